"""The payloads of the state machines' states: their JSON schemas, and the values parsed from them.

Operators' requests are in :mod:`orchestrator.api.operator_requests`, CloudFormation's events for custom resources in
:mod:`orchestrator.tenants.resource_requests`. getQueue has no schema, because its function must start fast.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from orchestrator.common.errors import InvalidRequest, Throttled
from orchestrator.common.stack_arns import Location
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import parse_timestamp
from orchestrator.common.validation import (
    LABELS,
    REASON,
    SECRET,
    TENANT_ID,
    TEXT,
    TIER,
    VERSION,
    Schema,
    object_of,
    valid,
)
from orchestrator.tenants.deadlines import DRAIN_SECONDS
from orchestrator.tenants.execution_input import request_from
from orchestrator.tenants.names import Names
from orchestrator.tenants.outcomes import (
    Again,
    Clearing,
    Done,
    Draining,
    GaveUp,
    Gone,
    Reviewing,
    Start,
    Started,
    Unchanged,
)
from orchestrator.tenants.records import THROTTLING, Attempt, Operation, Queue, RootCause, Run
from orchestrator.tenants.resource_requests import Claim, TenantQueueRequest, parse_claim, parse_tenant_queue_request
from orchestrator.tenants.stack_resources import LOGICAL_ID

_REQUEST = object_of(
    {},
    {
        "by": {"type": "string", "maxLength": 2048},
        "resource": object_of({"stackId": TEXT, "logicalId": LOGICAL_ID}),
        "explicit": {"type": "boolean"},
        "labels": LABELS,
        "pin": VERSION,
        "version": VERSION,
        "allowDowngrade": {"type": "boolean"},
        "allowReplacement": {"type": "boolean"},
        "force": {"type": "boolean"},
        "drainSeconds": DRAIN_SECONDS,
        "askedAt": TEXT,
        "own": {"type": "boolean"},
        "unserved": {"type": "boolean"},
        "tier": TIER,
        "reason": REASON,
    },
)
_OPERATION = {"operation": {"enum": [operation.value for operation in Operation]}}
_EXECUTION = object_of(
    {
        "Id": TEXT,
        "StartTime": TEXT,
        "Input": object_of(
            {
                "tenantId": TENANT_ID,
                **_OPERATION,
                "version": VERSION,
                "attempt": {"type": "integer", "minimum": 1, "maximum": 99_999},
            },
            {"request": _REQUEST},
        ),
    }
)
_REASON = {"type": "string"}
_STACK_ID = {"stackId": TEXT}
_THROTTLED = {"throttled": {"type": "boolean"}}
_GAVE_UP = object_of(
    {"outcome": {"const": "failed"}, "reason": _REASON}, {"failedStack": {"type": ["string", "null"]}, **_THROTTLED}
)
_SECONDS = {"type": "integer", "minimum": 0}
_STARTED = {
    "anyOf": [
        object_of({"outcome": {"enum": ["started", "clearing", "unchanged"]}, **_STACK_ID}),
        object_of({"outcome": {"const": "again"}, "reason": _REASON}, _THROTTLED),
        object_of({"outcome": {"const": "draining"}, "messages": TEXT, "emptySince": TEXT, "seconds": _SECONDS}),
        _GAVE_UP,
        object_of({"outcome": {"enum": ["reviewing", "gone"]}}),
    ]
}
_INSPECTED = {
    "anyOf": [
        object_of(
            {
                "outcome": {"const": "done"},
                **_STACK_ID,
                "queue": object_of({"arn": TEXT, "url": TEXT}),
                "version": VERSION,
            },
            # Functions of 0.8.0 do not report it.
            {"changedAt": {"type": ["string", "null"]}},
        ),
        object_of({"outcome": {"const": "gone"}}),
    ]
}
ERROR = object_of({"Error": {"type": "string"}}, {"Cause": {"type": "string"}})
_FAILURE = {"anyOf": [_GAVE_UP, ERROR]}

_STEP = Schema(object_of({"execution": _EXECUTION}, _OPERATION))
_BEGIN_STEP = Schema(object_of({"execution": _EXECUTION}, {**_OPERATION, "canWait": {"type": "boolean"}}))
_CHECK_STEP = Schema(object_of({"execution": _EXECUTION}, {"emptySince": {"type": ["string", "null"]}}))
_START_STEP = Schema(
    object_of(
        {"execution": _EXECUTION},
        {"lookedAt": TEXT, "emptySince": {"type": ["string", "null"]}, "taskToken": SECRET},
    )
)
# Machines of 0.8.0 pass on the result of StartStack. Since then, it is kept with the lock.
_STACK_STEP = Schema(object_of({"execution": _EXECUTION}, {"stack": _STARTED}))
_AWAIT_STEP = Schema(object_of({"execution": _EXECUTION, "taskToken": SECRET}, {"stack": _STARTED}))
_FINISH_STEP = Schema(object_of({"execution": _EXECUTION, "stack": _INSPECTED}))
_FAILURE_STEP = Schema(object_of({"execution": _EXECUTION, "failure": _FAILURE}, _OPERATION))
_SETTLE_STEP = Schema(
    object_of(
        {"execution": object_of({"StartTime": TEXT, "Input": object_of({"event": {"type": "object"}})})},
        {"failure": ERROR, "confirmed": {"type": "boolean"}},
    )
)
_STACK_EVENT = Schema(
    object_of({"detail": object_of({"stack-id": TEXT}, {"client-request-token": {"type": ["string", "null"]}})})
)


REFUSED = "refused"
"""The physical id of a resource whose request was invalid, so that it was never provided."""


@dataclass(frozen=True, slots=True)
class StackEvent:
    stack_id: str
    client_token: str
    """The client token of the request that caused the event; empty if the event has none."""


@dataclass(frozen=True, slots=True)
class BeginStep:
    run: Run
    can_wait: bool
    """True if the machine has a state in which a create waits for its turn. That of 0.8.0 has none."""


@dataclass(frozen=True, slots=True)
class CheckStep:
    run: Run
    empty_since: datetime | None
    """Since when every count has found the tenant's queues empty."""


@dataclass(frozen=True, slots=True)
class StartStep:
    run: Run
    looked_at: datetime | None
    """Delete: when the tenant's queues were last found empty, if a machine of 0.8.0 has a state that counts."""
    empty_since: datetime | None
    """Since when every count has found the queues empty that the step removes."""
    task_token: str | None = None
    """The state waits with this token. Machines of 0.8.0 send none: their next state waits."""


@dataclass(frozen=True, slots=True)
class StackStep:
    run: Run
    started: Start | None
    """The result of StartStack, if a machine of 0.8.0 passes it on."""


@dataclass(frozen=True, slots=True)
class AwaitStep:
    run: Run
    started: Start | None
    """As for :class:`StackStep`."""
    task_token: str


@dataclass(frozen=True, slots=True)
class FinishStep:
    run: Run
    stack: Done | None


@dataclass(frozen=True, slots=True)
class SettleStep:
    claim: Claim
    asked: TenantQueueRequest | InvalidRequest
    """The request, or the error that makes it invalid."""
    since: datetime
    confirmed: bool
    """True if an earlier step reported that CloudFormation has confirmed the request. The machine of 0.5.0 does not
    pass this on."""
    event: Mapping[str, Any]
    """CloudFormation's event, with the URL for the response."""
    fault: str | None
    by_old_machine: bool = False
    """True if the execution began with the machine of 0.5.0, which has no state for unconfirmed requests."""

    @property
    def physical_id(self) -> str:
        if self.claim.physical_id:
            return self.claim.physical_id
        return REFUSED if isinstance(self.asked, InvalidRequest) else self.asked.tenant.value


@dataclass(frozen=True, slots=True)
class FailureStep:
    run: Run
    failure: RootCause
    failed_stack: str | None


def parse_run(event: object) -> Run:
    checked = valid(_STEP, event)
    _check_machine(checked)
    return _run(checked)


def parse_begin_step(event: object) -> BeginStep:
    checked = valid(_BEGIN_STEP, event)
    _check_machine(checked)
    return BeginStep(_run(checked), checked.get("canWait", False))


def _check_machine(checked: Mapping[str, Any]) -> None:
    """Raise :class:`InvalidRequest` if the operation in an execution's input is not that of its machine.

    Anybody who may start a machine may give it any input. Machines of 0.6.0 and before do not name their operation.
    """
    given = checked["execution"]["Input"]["operation"]
    of_machine = checked.get("operation", given)
    if given != of_machine:
        raise InvalidRequest(
            f"execution.Input.operation is {given}, but this machine is for {of_machine}. Nothing was recorded."
        )


def parse_check_step(event: object) -> CheckStep:
    checked = valid(_CHECK_STEP, event)
    run = _run(checked)
    return CheckStep(run, _empty_since(checked, run))


def parse_start_step(event: object) -> StartStep:
    checked = valid(_START_STEP, event)
    run, looked_at = _run(checked), checked.get("lookedAt")
    counted_at = _moment(looked_at, "lookedAt") if looked_at else None
    return StartStep(run, counted_at, _empty_since(checked, run), checked.get("taskToken"))


def _empty_since(checked: Mapping[str, Any], run: Run) -> datetime | None:
    if "emptySince" not in checked:
        # The execution began with a machine that does not pass the time on: a delete of 0.4.0, or an update of 0.6.0.
        return run.started_at
    since = checked["emptySince"]
    return _moment(since, "emptySince") if since else None


def parse_stack_step(event: object) -> StackStep:
    checked = valid(_STACK_STEP, event)
    return StackStep(_run(checked), _start(checked.get("stack")))


def parse_await_step(event: object) -> AwaitStep:
    checked = valid(_AWAIT_STEP, event)
    return AwaitStep(_run(checked), _start(checked.get("stack")), checked["taskToken"])


def parse_finish_step(event: object) -> FinishStep:
    checked = valid(_FINISH_STEP, event)
    run, stack = _run(checked), checked["stack"]
    if (stack["outcome"] == "gone") != (run.attempt.operation is Operation.DELETE):
        raise InvalidRequest(f"stack.outcome: a {run.attempt.operation} does not end with {stack['outcome']!r}")
    if stack["outcome"] == "gone":
        return FinishStep(run, None)
    queue = Queue(stack["queue"]["arn"], stack["queue"]["url"])
    changed_at = stack.get("changedAt")
    moment = None if changed_at is None else _moment(changed_at, "stack.changedAt")
    return FinishStep(run, Done(stack["stackId"], queue, stack["version"], moment))


def _start(result: Mapping[str, Any] | None) -> Start | None:
    """The outcome of StartStack, from its result."""
    if result is None:
        return None
    match result["outcome"]:
        case "started":
            return Started(result["stackId"])
        case "clearing":
            return Clearing(result["stackId"])
        case "unchanged":
            return Unchanged(result["stackId"])
        case "reviewing":
            return Reviewing()
        case "gone":
            return Gone()
        case "draining":
            return Draining(result["messages"], _moment(result["emptySince"], "emptySince"), result["seconds"])
        case "failed":
            return GaveUp(result["reason"], result.get("failedStack"), result.get("throttled", False))
        case _:
            return Again(result["reason"], result.get("throttled", False))


def parse_failure_step(event: object, names: Names) -> FailureStep:
    checked = valid(_FAILURE_STEP, event)
    _check_machine(checked)
    run, failure = _run(checked), checked["failure"]
    if "Error" in failure:
        reason = fault_of(failure)
        kind = THROTTLING if reason.startswith(f"{Throttled.__name__}:") else "AWS::StepFunctions::Execution"
        return FailureStep(run, RootCause(run.attempt.name, kind, reason), None)
    kind = THROTTLING if failure.get("throttled") else "AWS::CloudFormation::Stack"
    cause = RootCause(names.stack_of(run.tenant), kind, failure["reason"])
    return FailureStep(run, cause, failure.get("failedStack"))


def parse_settle_step(event: object, here: Location) -> SettleStep:
    """``here`` is the account and region where Berth is deployed. Only stacks in the same place may send requests."""
    checked = valid(_SETTLE_STEP, event)
    execution, failure = checked["execution"], checked.get("failure")
    given = execution["Input"]["event"]
    return SettleStep(
        claim=parse_claim(given, here),
        asked=_tenant_queue_request(given),
        since=_started_at(execution),
        confirmed=checked.get("confirmed", False),
        event=given,
        fault=fault_of(failure) if failure else None,
        by_old_machine="confirmed" not in checked,
    )


def _tenant_queue_request(event: Mapping[str, Any]) -> TenantQueueRequest | InvalidRequest:
    try:
        return parse_tenant_queue_request(event)
    except InvalidRequest as invalid:
        return invalid


def fault_of(failure: Mapping[str, Any]) -> str:
    """The error of a task that has failed. If its cause is a function's error as JSON, that error."""
    error, cause = str(failure["Error"]), str(failure.get("Cause", ""))
    try:
        raised = json.loads(cause)
        if isinstance(raised, dict) and "errorMessage" in raised:
            error, cause = str(raised.get("errorType", error)), str(raised["errorMessage"])
    except (ValueError, RecursionError):
        pass
    # A lone surrogate cannot be stored.
    return f"{error}: {cause}".encode(errors="replace").decode()


def parse_stack_event(event: object) -> StackEvent:
    detail = valid(_STACK_EVENT, event)["detail"]
    return StackEvent(detail["stack-id"], detail.get("client-request-token") or "")


def _run(event: Mapping[str, Any]) -> Run:
    execution = event["execution"]
    given = execution["Input"]
    attempt = Attempt(
        TenantId.parse(given["tenantId"]),
        Operation(given["operation"]),
        given["version"],
        int(given["attempt"]),  # JSON schemas accept 1.0 as an integer.
    )
    request = given.get("request", {})
    if "askedAt" in request:
        _moment(request["askedAt"], "execution.Input.request.askedAt")
    return Run(attempt, execution["Id"], _started_at(execution), request_from(request))


def _started_at(execution: Mapping[str, Any]) -> datetime:
    return _moment(execution["StartTime"], "execution.StartTime")


def _moment(text: str, what: str) -> datetime:
    try:
        return parse_timestamp(text)
    except (ValueError, OverflowError):
        raise InvalidRequest(f"{what} is not a time: {text!a}") from None
