"""What the machines' states send, as JSON schemas, and its translation into the domain's words.

What operators send is in :mod:`orchestrator.api.operator_requests`, what CloudFormation sends for custom resources in
:mod:`orchestrator.tenants.resource_requests`. getQueue has no schema: its function must start fast.
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
from orchestrator.common.validation import LABELS, REASON, SECRET, TENANT_ID, TEXT, VERSION, Schema, object_of, valid
from orchestrator.tenants.deadlines import DRAIN_SECONDS
from orchestrator.tenants.execution_input import request_from
from orchestrator.tenants.names import Names
from orchestrator.tenants.outcomes import Again, Clearing, Done, Draining, GaveUp, Gone, Start, Started, Unchanged
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
        object_of({"outcome": {"const": "gone"}}),
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
            }
        ),
        object_of({"outcome": {"const": "gone"}}),
    ]
}
ERROR = object_of({"Error": {"type": "string"}}, {"Cause": {"type": "string"}})
_FAILURE = {"anyOf": [_GAVE_UP, ERROR]}

_STEP = Schema(object_of({"execution": _EXECUTION}, _OPERATION))
_CHECK_STEP = Schema(object_of({"execution": _EXECUTION}, {"emptySince": {"type": ["string", "null"]}}))
_START_STEP = Schema(
    object_of({"execution": _EXECUTION}, {"lookedAt": TEXT, "emptySince": {"type": ["string", "null"]}})
)
_STACK_STEP = Schema(object_of({"execution": _EXECUTION, "stack": _STARTED}))
_AWAIT_STEP = Schema(object_of({"execution": _EXECUTION, "stack": _STARTED, "taskToken": SECRET}))
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
"""The physical id of a resource that was never provided, because what it asked for could not be understood."""


@dataclass(frozen=True, slots=True)
class StackEvent:
    stack_id: str
    client_token: str
    """Of the request that brought the stack where it is; empty if the event names none."""


@dataclass(frozen=True, slots=True)
class CheckStep:
    run: Run
    empty_since: datetime | None
    """When the tenant's queues first looked empty, and have ever since."""


@dataclass(frozen=True, slots=True)
class StartStep:
    run: Run
    looked_at: datetime | None
    """Of a delete: when the tenant's queues were last seen to be empty."""
    empty_since: datetime | None
    """Of an update: when the queues that it takes away first looked empty, and have ever since."""


@dataclass(frozen=True, slots=True)
class StackStep:
    run: Run
    started: Start


@dataclass(frozen=True, slots=True)
class AwaitStep:
    run: Run
    started: Start
    task_token: str


@dataclass(frozen=True, slots=True)
class FinishStep:
    run: Run
    stack: Done | None


@dataclass(frozen=True, slots=True)
class SettleStep:
    claim: Claim
    asked: TenantQueueRequest | InvalidRequest
    """The request, or why it is none."""
    since: datetime
    confirmed: bool
    """The machine says that CloudFormation has confirmed it at an earlier step. The machine of 0.5.0 does not say."""
    event: Mapping[str, Any]
    """What CloudFormation sent, and where the answer goes."""
    fault: str | None
    by_old_machine: bool = False
    """The execution began with the machine of 0.5.0, which knows of no requests that are not confirmed."""

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


def _check_machine(checked: Mapping[str, Any]) -> None:
    """Raise :class:`InvalidRequest` if an execution was given another operation than its machine is for.

    Whoever may start one machine may give it any input. Machines of 0.6.0 and before do not say what they are for.
    """
    given = checked["execution"]["Input"]["operation"]
    made_for = checked.get("operation", given)
    if given != made_for:
        raise InvalidRequest(
            f"execution.Input.operation is {given}, but this machine is for {made_for}. Nothing was recorded."
        )


def parse_check_step(event: object) -> CheckStep:
    checked = valid(_CHECK_STEP, event)
    run = _run(checked)
    return CheckStep(run, _empty_since(checked, run))


def parse_start_step(event: object) -> StartStep:
    checked = valid(_START_STEP, event)
    run, looked_at = _run(checked), checked.get("lookedAt")
    return StartStep(run, _moment(looked_at, "lookedAt") if looked_at else None, _empty_since(checked, run))


def _empty_since(checked: Mapping[str, Any], run: Run) -> datetime | None:
    if "emptySince" not in checked:
        # The execution began with a machine that keeps no moment between two looks: 0.4.0's of a delete, 0.6.0's of an
        # update.
        return run.started_at
    since = checked["emptySince"]
    return _moment(since, "emptySince") if since else None


def parse_stack_step(event: object) -> StackStep:
    checked = valid(_STACK_STEP, event)
    return StackStep(_run(checked), _start(checked["stack"]))


def parse_await_step(event: object) -> AwaitStep:
    checked = valid(_AWAIT_STEP, event)
    return AwaitStep(_run(checked), _start(checked["stack"]), checked["taskToken"])


def parse_finish_step(event: object) -> FinishStep:
    checked = valid(_FINISH_STEP, event)
    run, stack = _run(checked), checked["stack"]
    if (stack["outcome"] == "gone") != (run.attempt.operation is Operation.DELETE):
        raise InvalidRequest(f"stack.outcome: a {run.attempt.operation} does not end with {stack['outcome']!r}")
    if stack["outcome"] == "gone":
        return FinishStep(run, None)
    queue = Queue(stack["queue"]["arn"], stack["queue"]["url"])
    return FinishStep(run, Done(stack["stackId"], queue, stack["version"]))


def _start(told: Mapping[str, Any]) -> Start:
    """What StartStack said, as it said it."""
    match told["outcome"]:
        case "started":
            return Started(told["stackId"])
        case "clearing":
            return Clearing(told["stackId"])
        case "unchanged":
            return Unchanged(told["stackId"])
        case "gone":
            return Gone()
        case "draining":
            return Draining(told["messages"], _moment(told["emptySince"], "emptySince"), told["seconds"])
        case "failed":
            return GaveUp(told["reason"], told.get("failedStack"), told.get("throttled", False))
        case _:
            return Again(told["reason"], told.get("throttled", False))


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
    """``here`` is where Berth is deployed, and where the stacks are that may ask."""
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
    """What went wrong in a function, in its own words: a task's cause is the function's error as JSON."""
    error, cause = str(failure["Error"]), str(failure.get("Cause", ""))
    try:
        told = json.loads(cause)
        if isinstance(told, dict) and "errorMessage" in told:
            error, cause = str(told.get("errorType", error)), str(told["errorMessage"])
    except (ValueError, RecursionError):
        pass
    # It is recorded, whatever it is: half of a surrogate pair could not be.
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
        int(given["attempt"]),  # 1.0 is an integer, too, to JSON schemas
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
