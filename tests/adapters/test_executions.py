"""Executions on Step Functions: what is sent, and which words mean what. What they do is in the contract."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from orchestrator.adapters.stepfunctions import StepFunctionsExecutions, StepFunctionsRollouts
from orchestrator.common.errors import Throttled
from orchestrator.rollouts.records import Rollout, Spec
from orchestrator.tenants.execution_input import machine_input
from orchestrator.tenants.provisioning import Provisioning
from orchestrator.tenants.records import Operation, Request, Status
from tests.adapters.conftest import client
from tests.fakes import ACME, EXPLICIT, NOON, InMemoryTable, World, a_release, an_attempt, an_audit

STATES = "arn:aws:states:eu-west-1:000000000000"
MACHINES = {operation: f"{STATES}:stateMachine:{operation.lower()}-tenant" for operation in Operation}
MACHINE = MACHINES[Operation.CREATE]
ATTEMPT = an_attempt()
NAME = ATTEMPT.name
EXECUTION = f"{STATES}:execution:create-tenant:{NAME}"


@pytest.fixture
def executions() -> StepFunctionsExecutions:
    return StepFunctionsExecutions(lambda: client("stepfunctions"), MACHINES.__getitem__)


def describe(
    states: Stubber, status: str, *, started_at: datetime = NOON, stopped_at: datetime | None = None, **more: str
) -> None:
    answer: dict[str, Any] = {"executionArn": EXECUTION, "stateMachineArn": MACHINE, "status": status, **more}
    answer["startDate"] = started_at
    if stopped_at:
        answer["stopDate"] = stopped_at
    states.add_response("describe_execution", answer, {"executionArn": EXECUTION})


@pytest.mark.parametrize("operation", Operation)
def test_an_attempt_is_started_under_its_name_with_its_request(
    executions: StepFunctionsExecutions, states: Stubber, operation: Operation
) -> None:
    attempt = an_attempt(operation=operation)
    sent = {
        "stateMachineArn": MACHINES[operation],
        "name": attempt.name,
        "input": json.dumps(machine_input(attempt, EXPLICIT), sort_keys=True),
    }
    execution = f"{STATES}:execution:{operation.lower()}-tenant:{attempt.name}"
    states.add_response("start_execution", {"executionArn": execution, "startDate": NOON}, sent)
    assert executions.start(attempt, EXPLICIT) == execution


def test_equal_requests_have_equal_input(executions: StepFunctionsExecutions, states: Stubber) -> None:
    labels = {"a": "1", "b": "2"}
    requests = [Request(by="ada", labels=labels), Request(by="ada", labels=dict(reversed(labels.items())))]
    sent = {
        "stateMachineArn": MACHINE,
        "name": NAME,
        "input": json.dumps(machine_input(ATTEMPT, requests[0]), sort_keys=True),
    }
    for request in requests:
        states.add_response("start_execution", {"executionArn": EXECUTION, "startDate": NOON}, sent)
        assert executions.start(ATTEMPT, request) == EXECUTION


def test_an_execution_of_any_machine_is_started_by_name(executions: StepFunctionsExecutions, states: Stubber) -> None:
    machine, execution = f"{STATES}:stateMachine:tenant-queue", f"{STATES}:execution:tenant-queue:request-1"
    sent = {"stateMachineArn": machine, "name": "request-1", "input": '{"event": {"a": 1, "b": 2}}'}
    states.add_response("start_execution", {"executionArn": execution, "startDate": NOON}, sent)
    assert executions.start_by_name(machine, "request-1", {"event": {"b": 2, "a": 1}}) == execution


@pytest.mark.parametrize(("status", "running"), [("RUNNING", True), ("SUCCEEDED", False)])
def test_a_name_is_used_once_on_any_machine(
    executions: StepFunctionsExecutions, states: Stubber, status: str, running: bool
) -> None:
    machine, execution = f"{STATES}:stateMachine:tenant-queue", f"{STATES}:execution:tenant-queue:request-1"
    states.add_client_error("start_execution", "ExecutionAlreadyExists", "Execution Already Exists")
    answer = {"executionArn": execution, "stateMachineArn": machine, "status": status, "startDate": NOON}
    states.add_response("describe_execution", answer, {"executionArn": execution})
    assert executions.start_by_name(machine, "request-1", {}) == (execution if running else None)


def test_a_name_that_is_running_returns_that_execution(executions: StepFunctionsExecutions, states: Stubber) -> None:
    states.add_client_error("start_execution", "ExecutionAlreadyExists", "Execution Already Exists")
    describe(states, "RUNNING")
    assert executions.start(ATTEMPT, EXPLICIT) == EXECUTION


def test_an_execution_that_is_not_visible_yet_counts_as_running(
    executions: StepFunctionsExecutions, states: Stubber
) -> None:
    """DescribeExecution is eventually consistent. Taken for ended, it would be started a second time."""
    states.add_client_error("start_execution", "ExecutionAlreadyExists", "Execution Already Exists")
    states.add_client_error("describe_execution", "ExecutionDoesNotExist", "Execution Does Not Exist")
    assert executions.start(ATTEMPT, EXPLICIT) == EXECUTION


@pytest.mark.parametrize("status", ["SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"])
def test_a_name_that_has_ended_is_not_started_again(
    executions: StepFunctionsExecutions, states: Stubber, status: str
) -> None:
    states.add_client_error("start_execution", "ExecutionAlreadyExists", "Execution Already Exists")
    describe(states, status)
    assert executions.start(ATTEMPT, EXPLICIT) is None


def test_any_other_refusal_is_an_error(executions: StepFunctionsExecutions, states: Stubber) -> None:
    states.add_client_error("start_execution", "StateMachineDoesNotExist", "State Machine Does Not Exist")
    with pytest.raises(ClientError, match="StateMachineDoesNotExist"):
        executions.start(ATTEMPT, EXPLICIT)


@pytest.mark.parametrize(
    ("status", "running"),
    [("RUNNING", True), ("SUCCEEDED", False), ("FAILED", False), ("TIMED_OUT", False), ("ABORTED", False)],
)
def test_only_the_status_running_counts_as_running(
    executions: StepFunctionsExecutions, states: Stubber, status: str, running: bool
) -> None:
    describe(states, status)
    assert executions.is_running(EXECUTION) is running


A_MOMENT_AGO, TWO_MINUTES_AGO = timedelta(seconds=1), timedelta(minutes=2)


@pytest.mark.parametrize(
    ("status", "ago", "over"),
    [
        ("RUNNING", None, False),
        ("SUCCEEDED", A_MOMENT_AGO, True),
        ("FAILED", A_MOMENT_AGO, True),
        ("ABORTED", A_MOMENT_AGO, False),
        ("ABORTED", TWO_MINUTES_AGO, True),
        ("TIMED_OUT", A_MOMENT_AGO, False),
        ("TIMED_OUT", TWO_MINUTES_AGO, True),
    ],
)
def test_a_stopped_execution_is_over_once_its_last_function_has_ended(
    executions: StepFunctionsExecutions, states: Stubber, status: str, ago: timedelta | None, over: bool
) -> None:
    describe(states, status, stopped_at=datetime.now(UTC) - ago if ago else None)
    assert executions.is_over(EXECUTION) is over


@pytest.mark.parametrize(("linger", "over"), [(0, True), (59, True), (61, False), (180, False)])
@pytest.mark.parametrize("status", ["ABORTED", "TIMED_OUT"])
def test_the_time_that_the_last_function_may_take_is_a_setting(
    states: Stubber, status: str, linger: int, over: bool
) -> None:
    executions = StepFunctionsExecutions(
        lambda: client("stepfunctions"), MACHINES.__getitem__, linger=timedelta(seconds=linger)
    )
    describe(states, status, stopped_at=datetime.now(UTC) - timedelta(seconds=60))
    assert executions.is_over(EXECUTION) is over


@pytest.mark.parametrize(("ago", "over"), [(A_MOMENT_AGO, False), (TWO_MINUTES_AGO, True)])
def test_without_an_end_the_start_counts(
    executions: StepFunctionsExecutions, states: Stubber, ago: timedelta, over: bool
) -> None:
    describe(states, "ABORTED", started_at=datetime.now(UTC) - ago)
    assert executions.is_over(EXECUTION) is over


@pytest.mark.parametrize(
    ("status", "more", "response"),
    [
        ("ABORTED", {}, "was aborted"),
        ("ABORTED", {"cause": "by ada"}, "was aborted (by ada)"),
        ("ABORTED", {"error": "Stopped", "cause": "by ada"}, "was aborted (Stopped: by ada)"),
        ("TIMED_OUT", {}, "timed out"),
        ("FAILED", {"error": "States.Runtime"}, "failed (States.Runtime)"),
        ("SUCCEEDED", {}, "succeeded"),
        # One that Step Functions may have one day.
        ("PENDING_REDRIVE", {}, "PENDING_REDRIVE"),
    ],
)
def test_the_end_is_described(
    executions: StepFunctionsExecutions, states: Stubber, status: str, more: dict[str, str], response: str
) -> None:
    describe(states, status, **more)
    assert executions.how_it_ended(EXECUTION) == response


@pytest.mark.parametrize("code", ["ExecutionDoesNotExist", "InvalidArn"])
def test_an_execution_that_does_not_exist_is_over(
    executions: StepFunctionsExecutions, states: Stubber, code: str
) -> None:
    for _ in range(3):
        states.add_client_error("describe_execution", code, "no such execution")
    assert executions.is_running(EXECUTION) is False
    assert executions.is_over(EXECUTION) is True
    assert executions.how_it_ended(EXECUTION) == "is no longer known to Step Functions"


def test_an_execution_that_may_not_be_described_is_an_error(
    executions: StepFunctionsExecutions, states: Stubber
) -> None:
    states.add_client_error("describe_execution", "AccessDeniedException", "not authorized")
    with pytest.raises(ClientError):
        executions.is_running(EXECUTION)


@pytest.mark.parametrize(
    "execution",
    [
        "arn:legacy",
        f"{STATES}:execution:deploy-tenant-stack:{NAME}",
        f"{STATES}:execution:create-tenant-of-old:{NAME}",
        EXECUTION.replace("eu-west-1", "eu-west-2"),
        EXECUTION.replace("000000000000", "111111111111"),
    ],
)
def test_an_execution_of_another_system_counts_as_over_without_a_call(
    executions: StepFunctionsExecutions,
    states: Stubber,  # noqa: ARG001 - fails any call
    execution: str,
) -> None:
    """Functions may not describe such an execution: every request for the tenant would fail."""
    assert executions.is_running(execution) is False
    assert executions.is_berths(execution) is False


@pytest.mark.parametrize("operation", Operation)
def test_executions_of_each_machine_are_described(
    executions: StepFunctionsExecutions, states: Stubber, operation: Operation
) -> None:
    execution = executions.execution_of(an_attempt(operation=operation))
    answer = {"executionArn": execution, "stateMachineArn": MACHINES[operation], "status": "RUNNING", "startDate": NOON}
    states.add_response("describe_execution", answer, {"executionArn": execution})
    assert executions.is_running(execution)
    assert executions.is_berths(execution)


@pytest.mark.parametrize("operation", [Operation.CREATE, Operation.UPDATE])
def test_get_queue_answers_although_an_earlier_system_never_ended_its_operation(
    executions: StepFunctionsExecutions, states: Stubber, operation: Operation
) -> None:
    table = InMemoryTable()
    table.record_release(a_release())
    started = an_audit(Status.STARTED, operation, version=None, at=NOON - timedelta(days=900))
    legacy = f"{STATES}:execution:deploy-tenant-stack:1"
    table.plant_audit(replace(started, execution=legacy), numbered=False)
    states.add_response("start_execution", {"executionArn": EXECUTION, "startDate": NOON})
    assert World(table=table, executions=executions).get_queue(ACME) == Provisioning(EXECUTION)


def test_a_waiting_execution_is_woken(executions: StepFunctionsExecutions, states: Stubber) -> None:
    states.add_response("send_task_success", {}, {"taskToken": "token", "output": "{}"})
    assert executions.wake("token") is True


@pytest.mark.parametrize("code", ["TaskTimedOut", "TaskDoesNotExist", "InvalidToken"])
def test_an_execution_that_no_longer_waits_is_not_woken(
    executions: StepFunctionsExecutions, states: Stubber, code: str
) -> None:
    states.add_client_error("send_task_success", code, "gone")
    assert executions.wake("token") is False


def test_any_other_refusal_to_wake_is_an_error(executions: StepFunctionsExecutions, states: Stubber) -> None:
    states.add_client_error("send_task_success", "AccessDeniedException", "not authorized")
    with pytest.raises(ClientError):
        executions.wake("token")


def test_every_call_may_be_throttled(executions: StepFunctionsExecutions, states: Stubber) -> None:
    for method in ("start_execution", *["describe_execution"] * 3, "send_task_success"):
        states.add_client_error(method, "ThrottlingException", "Rate exceeded")
    for call in (
        lambda: executions.start(ATTEMPT, EXPLICIT),
        lambda: executions.is_running(EXECUTION),
        lambda: executions.is_over(EXECUTION),
        lambda: executions.how_it_ended(EXECUTION),
        lambda: executions.wake("token"),
    ):
        with pytest.raises(Throttled, match="Rate exceeded"):
            call()


def test_the_client_is_created_once_when_it_is_first_used() -> None:
    made: list[object] = []

    def make() -> object:
        made.append(client("stepfunctions"))
        return made[-1]

    executions = StepFunctionsExecutions(make, MACHINES.__getitem__)  # type: ignore[arg-type]
    assert not made
    with Stubber(client("stepfunctions")) as states:
        for _ in range(2):
            states.add_response("send_task_success", {})
            executions.wake("token")
    assert len(made) == 1


ROLLOUT_MACHINE = f"{STATES}:stateMachine:rollout"
ROLLOUT = Rollout("20261116-120000-ab12", Spec("0.2.0", ()), "ada", NOON, (), total=0, skipped={}, attempt=2)
ROLLOUT_EXECUTION = f"{STATES}:execution:rollout:rollout-20261116-120000-ab12-2"


@pytest.fixture
def rollouts(executions: StepFunctionsExecutions) -> StepFunctionsRollouts:
    return StepFunctionsRollouts(executions, lambda: ROLLOUT_MACHINE)


def test_an_attempt_at_a_rollout_is_started_by_its_name(rollouts: StepFunctionsRollouts, states: Stubber) -> None:
    sent = {
        "stateMachineArn": ROLLOUT_MACHINE,
        "name": "rollout-20261116-120000-ab12-2",
        "input": '{"attempt": 2, "rolloutId": "20261116-120000-ab12"}',
    }
    states.add_response("start_execution", {"executionArn": ROLLOUT_EXECUTION, "startDate": NOON}, sent)
    assert rollouts.start_rollout(ROLLOUT) == ROLLOUT_EXECUTION


@pytest.mark.parametrize(("status", "running"), [("RUNNING", True), ("FAILED", False)])
def test_an_attempt_at_a_rollout_is_made_once(
    rollouts: StepFunctionsRollouts, states: Stubber, status: str, running: bool
) -> None:
    answer = {"executionArn": ROLLOUT_EXECUTION, "stateMachineArn": ROLLOUT_MACHINE, "status": status}
    states.add_client_error("start_execution", "ExecutionAlreadyExists", "Execution Already Exists")
    for _ in range(2):
        states.add_response("describe_execution", {**answer, "startDate": NOON}, {"executionArn": ROLLOUT_EXECUTION})
    assert rollouts.start_rollout(ROLLOUT) == (ROLLOUT_EXECUTION if running else None)
    assert rollouts.is_running(ROLLOUT_EXECUTION) is running


def test_an_execution_of_a_rollout_that_is_not_shown_neither_runs_nor_has_ended(
    rollouts: StepFunctionsRollouts, states: Stubber
) -> None:
    states.add_client_error("describe_execution", "ExecutionDoesNotExist")
    assert rollouts.is_running(ROLLOUT_EXECUTION) is None


def test_a_waiting_rollout_is_woken(rollouts: StepFunctionsRollouts, states: Stubber) -> None:
    states.add_response("send_task_success", {}, {"taskToken": "token", "output": "{}"})
    states.add_client_error("send_task_success", "TaskDoesNotExist", "gone")
    assert [rollouts.wake("token"), rollouts.wake("token")] == [True, False]


def test_without_starting_a_rollout_its_machine_is_not_needed(
    executions: StepFunctionsExecutions, states: Stubber
) -> None:
    def unknown() -> str:
        raise AssertionError

    states.add_response("send_task_success", {})
    assert StepFunctionsRollouts(executions, unknown).wake("token")
