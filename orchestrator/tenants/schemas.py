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
from orchestrator.tenants.outcomes import Done
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
_GAVE_UP = object_of(
    {"outcome": {"const": "failed"}, "reason": _REASON},
    {"failedStack": {"type": ["string", "null"]}, "throttled": {"type": "boolean"}},
)
_INSPECTED = {
    "anyOf": [
        object_of(
            {
                "outcome": {"const": "done"},
                **_STACK_ID,
                "queue": object_of({"arn": TEXT, "url": TEXT}),
                "version": VERSION,
                "changedAt": {"type": ["string", "null"]},
            }
        ),
        object_of({"outcome": {"const": "gone"}}),
    ]
}
ERROR = object_of({"Error": {"type": "string"}}, {"Cause": {"type": "string"}})
_FAILURE = {"anyOf": [_GAVE_UP, ERROR]}

_STEP = Schema(object_of({"execution": _EXECUTION}))
_BEGIN_STEP = Schema(object_of({"execution": _EXECUTION, **_OPERATION}))
_START_STEP = Schema(
    object_of({"execution": _EXECUTION, "taskToken": SECRET}, {"emptySince": {"type": ["string", "null"]}})
)
_AWAIT_STEP = Schema(object_of({"execution": _EXECUTION, "taskToken": SECRET}))
_FINISH_STEP = Schema(object_of({"execution": _EXECUTION, "stack": _INSPECTED}))
_FAILURE_STEP = Schema(object_of({"execution": _EXECUTION, "failure": _FAILURE, **_OPERATION}))
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
class StartStep:
    run: Run
    empty_since: datetime | None
    """Since when every count has found the queues empty that the step removes."""
    task_token: str
    """The state waits with this token."""


@dataclass(frozen=True, slots=True)
class AwaitStep:
    run: Run
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
    """True if an earlier step reported that CloudFormation has confirmed the request."""
    event: Mapping[str, Any]
    """CloudFormation's event, with the URL for the response."""
    fault: str | None

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
    return _run(valid(_STEP, event))


def parse_begin_step(event: object) -> Run:
    checked = valid(_BEGIN_STEP, event)
    _check_machine(checked)
    return _run(checked)


def _check_machine(checked: Mapping[str, Any]) -> None:
    """Raise :class:`InvalidRequest` if the operation in an execution's input is not that of its machine.

    Anybody who may start a machine may give it any input.
    """
    given, of_machine = checked["execution"]["Input"]["operation"], checked["operation"]
    if given != of_machine:
        raise InvalidRequest(
            f"execution.Input.operation is {given}, but this machine is for {of_machine}. Nothing was recorded."
        )


def parse_start_step(event: object) -> StartStep:
    checked = valid(_START_STEP, event)
    since = checked.get("emptySince")
    return StartStep(_run(checked), _moment(since, "emptySince") if since else None, checked["taskToken"])


def parse_await_step(event: object) -> AwaitStep:
    checked = valid(_AWAIT_STEP, event)
    return AwaitStep(_run(checked), checked["taskToken"])


def parse_finish_step(event: object) -> FinishStep:
    checked = valid(_FINISH_STEP, event)
    run, stack = _run(checked), checked["stack"]
    if (stack["outcome"] == "gone") != (run.attempt.operation is Operation.DELETE):
        raise InvalidRequest(f"stack.outcome: a {run.attempt.operation} does not end with {stack['outcome']!r}")
    if stack["outcome"] == "gone":
        return FinishStep(run, None)
    queue = Queue(stack["queue"]["arn"], stack["queue"]["url"])
    changed_at = stack["changedAt"]
    moment = None if changed_at is None else _moment(changed_at, "stack.changedAt")
    return FinishStep(run, Done(stack["stackId"], queue, stack["version"], moment))


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
