"""The machines' states and the events that come by themselves: understood, or refused before anything is done."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from orchestrator.common.errors import BerthError, InvalidRequest
from orchestrator.tenants.execution_input import machine_input
from tests.adapters.bad_input.classifying import at, is_id, is_rollout_step, is_run, is_text, is_turn
from tests.adapters.bad_input.inputs import JsonText, an_input
from tests.adapters.bad_input.storm import INPUTS, storm
from tests.adapters.bad_input.world import RECONCILIATION, ROLLOUT, RUN, ControlPlane
from tests.fakes import NEXT_VERSION, NOON, QUEUE, VERSION, execution_arn, stack_arn

EXECUTION: dict[str, Any] = {
    "Id": RUN.execution,
    "StartTime": RUN.started_at.isoformat(),
    "Input": {
        **machine_input(RUN.attempt, RUN.request),
        "request": {
            "by": RUN.request.by,
            "explicit": True,
            "labels": {"plan": "gold"},
            "pin": VERSION,
            "force": False,
            "drainSeconds": 60,
        },
    },
}
OPERATION = RUN.attempt.operation.value
DONE = {
    "outcome": "done",
    "stackId": stack_arn(),
    "queue": {"arn": QUEUE.arn, "url": QUEUE.url},
    "version": VERSION,
    "changedAt": None,
}
GAVE_UP = {"outcome": "failed", "reason": "It broke.", "failedStack": stack_arn(), "throttled": False}
FAULT = {"Error": "States.TaskFailed", "Cause": JsonText(errorType="Throttled", errorMessage="Rate exceeded")}
ROLLOUT_RUN = {"Id": execution_arn(f"rollout-{ROLLOUT}-1"), "Input": {"rolloutId": ROLLOUT, "attempt": 1}}
TURN = {"rolloutId": ROLLOUT, "stage": 1, "tenantId": "acme", "version": NEXT_VERSION, "execution": "child"}

STEPS: dict[str, tuple[dict[str, Any], Callable[[object], bool]]] = {
    "begin": ({"execution": EXECUTION, "operation": OPERATION}, is_run),
    "start_stack": ({"execution": EXECUTION, "taskToken": "token"}, is_run),
    "await_admission": ({"execution": EXECUTION, "taskToken": "token"}, is_run),
    "await_stack": ({"execution": EXECUTION, "taskToken": "token"}, is_run),
    "inspect_stack": ({"execution": EXECUTION}, is_run),
    "finish": ({"execution": EXECUTION, "stack": DONE}, is_run),
    "record_failure": ({"execution": EXECUTION, "operation": OPERATION, "failure": GAVE_UP}, is_run),
    "record_failure of a fault": ({"execution": EXECUTION, "operation": OPERATION, "failure": FAULT}, is_run),
    "advance_rollout": ({"execution": ROLLOUT_RUN}, is_rollout_step),
    "advance_rollout of a fault": ({"execution": ROLLOUT_RUN, "failure": FAULT}, is_rollout_step),
    "await_operator": ({"execution": ROLLOUT_RUN, "taskToken": "token"}, is_rollout_step),
    "admit_tenant": (TURN, is_turn),
    "record_outcome": ({**TURN, "failure": FAULT}, is_turn),
    "review_tenant": (TURN, is_turn),
    "stack_event": (
        {
            "source": "aws.cloudformation",
            "detail": {"stack-id": stack_arn(RUN.tenant), "client-request-token": RUN.attempt.client_token},
        },
        lambda event: (
            is_text(at(event, "detail", "stack-id"))
            and isinstance(event["detail"].get("client-request-token"), str | None)
        ),
    ),
    "reconcile": (
        {"reconciliationId": RECONCILIATION},
        lambda event: at(event, "reconciliationId") in ("settling", "survey") or is_id(at(event, "reconciliationId")),
    ),
    "reconcile on schedule": (
        {"reconciliationId": "survey"},
        lambda event: at(event, "reconciliationId") in ("settling", "survey") or is_id(at(event, "reconciliationId")),
    ),
}


def meet(plane: ControlPlane, function: str, event: Any, is_understood: Callable[[object], bool]) -> str:
    try:
        response = plane.call(function, event)
    except InvalidRequest:
        assert not plane.effects, f"refused, but for {plane.effects}"
        return "refused"
    except BerthError as expected:
        response = {"outcome": type(expected).__name__}
    assert is_understood(event), "was not refused"
    json.dumps(response)
    return str(at(response, "outcome"))


@pytest.mark.parametrize("step", STEPS)
def test_any_input_of_a_state_is_understood_or_refused(plane: ControlPlane, step: str) -> None:
    template, is_understood = STEPS[step]
    function = step.partition(" ")[0]
    met = storm(
        step,
        plane,
        lambda rng: an_input(rng, template),
        lambda event: meet(plane, function, event, is_understood),
    )
    assert INPUTS < 100 or (met["refused"] and len(met) > 1), met


def test_any_event_of_an_execution_is_understood_or_refused(plane: ControlPlane) -> None:
    """As it comes: an event in a message, and in the event, as text, what the execution was given."""
    detail = {
        "executionArn": RUN.execution,
        "status": "ABORTED",
        "startDate": int(NOON.timestamp() * 1_000),
        "input": JsonText(EXECUTION["Input"]),
    }
    template = {"Records": [{"messageId": "1", "body": JsonText({"source": "aws.states", "detail": detail})}]}

    def is_understood(event: object) -> bool:
        details = [json.loads(message["body"])["detail"] for message in at(event, "Records")]
        return all(
            is_run({"execution": {**EXECUTION, "Id": each["executionArn"], "Input": json.loads(each["input"])}})
            for each in details
        )

    met = storm(
        "close_execution",
        plane,
        lambda rng: an_input(rng, template),
        lambda event: meet(plane, "close_execution", event, is_understood),
    )
    assert INPUTS < 100 or (met["refused"] and len(met) > 1), met
