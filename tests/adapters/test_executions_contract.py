"""The contract of executions, which the fake and Step Functions both keep.

What the stand-ins for AWS cannot show is left out for them, here and nowhere else:

- moto runs no states, so nothing waits for a token there, and it takes any token for one;
- moto forgets why an execution was stopped;
- moto and the emulator list executions from the oldest on, where AWS begins with the newest;
- the emulator refuses the name of a running execution, where AWS answers with it: the adapter takes both for the same.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from secrets import token_hex
from threading import Event
from typing import Any

import pytest

from orchestrator.adapters.stepfunctions import StepFunctionsExecutions
from orchestrator.tenants.ports import Executions
from orchestrator.tenants.recent import ExecutionStatus
from orchestrator.tenants.records import Operation, Request, Run
from tests.adapters.conftest import Account
from tests.fakes import EXPLICIT, NOON, FakeClock, FakeExecutions, an_attempt, execution_arn
from tests.present import present

ATTEMPT = an_attempt()
wakes = pytest.mark.parametrize("kind", ["memory", "emulator"], indirect=True)
"""Where states are run."""


class InMemory:
    """Executions in memory, and what happens to them."""

    def __init__(self) -> None:
        self._fake: Any = FakeExecutions(FakeClock())
        self._fake.made_up_run = False
        self.executions: Executions = self._fake

    def abort(self, execution: str) -> None:
        self._fake.end(execution)

    def token(self) -> str:
        self._fake.waiting.add("token")
        return "token"

    def go_on(self, execution: str) -> None:
        self._fake.end(execution)


class OnAws:
    """Executions that wait until they are woken or stopped."""

    def __init__(self, account: Account) -> None:
        self._states, self._sqs = account.client("stepfunctions"), account.client("sqs")
        # Names that no other test has: an execution that an earlier test has aborted may send its token only now.
        mine = token_hex(4)
        self._tokens = self._sqs.create_queue(QueueName=f"tokens-{mine}")["QueueUrl"]
        wait = {
            "Type": "Task",
            "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
            "Parameters": {"QueueUrl": self._tokens, "MessageBody": {"token.$": "$$.Task.Token"}},
            "End": True,
        }
        machine: str = self._states.create_state_machine(
            name=f"create-tenant-{mine}",
            roleArn=f"arn:aws:iam::{account.number}:role/states",
            definition=json.dumps({"StartAt": "Wait", "States": {"Wait": wait}}),
        )["stateMachineArn"]
        self.executions: Executions = StepFunctionsExecutions(
            lambda: self._states, lambda _operation: machine, linger=timedelta(0)
        )

    def abort(self, execution: str) -> None:
        self._states.stop_execution(executionArn=execution)

    def token(self) -> str:
        """The task token of the started execution, once the execution waits."""
        (message,) = self._sqs.receive_message(QueueUrl=self._tokens, WaitTimeSeconds=10)["Messages"]
        return str(json.loads(message["Body"])["token"])

    def go_on(self, execution: str) -> None:
        """Until it has taken notice: the emulator's executions do so a moment later."""
        while self._states.describe_execution(executionArn=execution)["status"] == "RUNNING":
            Event().wait(0.02)


World = InMemory | OnAws


@pytest.fixture
def world(account: Account | None) -> World:
    return OnAws(account) if account else InMemory()


def start(world: World, request: Request = EXPLICIT) -> str:
    return present(world.executions.start(ATTEMPT, request))


def test_an_attempt_is_found_while_its_execution_runs(world: World) -> None:
    assert world.executions.find_running(ATTEMPT) is None
    execution = start(world)
    assert world.executions.find_running(ATTEMPT) == execution
    world.abort(execution)
    assert world.executions.find_running(ATTEMPT) is None


def test_an_execution_runs_under_its_attempts_name(world: World) -> None:
    execution = start(world)
    assert execution.rpartition(":")[2] == ATTEMPT.name
    assert world.executions.is_running(execution) is True
    assert world.executions.is_over(execution) is False


@pytest.mark.parametrize("request_", [EXPLICIT, Request(by="someone else")], ids=["equal", "in other words"])
def test_starting_a_running_attempt_returns_the_same_execution(world: World, request_: Request) -> None:
    execution = start(world)
    assert world.executions.start(ATTEMPT, request_) == execution
    assert world.executions.is_running(execution)


def test_a_run_is_confirmed_while_its_execution_runs_with_the_same_input(world: World) -> None:
    run = Run(ATTEMPT, start(world), NOON, EXPLICIT)
    assert world.executions.confirmed(run)
    assert not world.executions.confirmed(replace(run, request=replace(EXPLICIT, force=True)))
    assert not world.executions.confirmed(replace(run, attempt=an_attempt(2)))
    assert not world.executions.confirmed(replace(run, attempt=an_attempt(operation=Operation.DELETE)))
    assert not world.executions.confirmed(replace(run, execution=f"{run.execution}0"))
    world.abort(run.execution)
    assert not world.executions.confirmed(run)


def test_the_start_of_a_run_is_that_of_its_execution(world: World) -> None:
    run = Run(ATTEMPT, start(world), NOON, EXPLICIT)
    confirmed = world.executions.confirmed(run)
    forged = replace(run, started_at=datetime(2099, 1, 1, tzinfo=UTC))
    assert confirmed is not None
    assert world.executions.confirmed(forged) == confirmed == replace(run, started_at=confirmed.started_at)
    assert confirmed.started_at < forged.started_at


def test_each_attempt_is_a_separate_execution(world: World) -> None:
    first, second = start(world), world.executions.start(an_attempt(2), EXPLICIT)
    assert second is not None
    world.abort(first)
    assert (world.executions.is_running(first), world.executions.is_running(second)) == (False, True)


def test_recent_executions_are_listed_with_their_times(world: World) -> None:
    executions = [present(world.executions.start(replace(ATTEMPT, number=number), EXPLICIT)) for number in (1, 2, 3)]
    world.abort(executions[0])
    listed = world.executions.recent(ATTEMPT.operation, limit=9)
    assert {each.execution for each in listed} == set(executions)
    running = {each.execution for each in listed if each.status is ExecutionStatus.RUNNING}
    assert running == set(executions[1:])
    assert all((each.ended_at is None) == (each.execution in running) for each in listed)
    assert len(world.executions.recent(ATTEMPT.operation, limit=1)) == 1


def test_an_aborted_execution_is_over(world: World) -> None:
    execution = start(world)
    world.abort(execution)
    assert world.executions.is_running(execution) is False
    assert world.executions.is_over(execution) is True
    assert world.executions.how_it_ended(execution) == "was aborted"


def test_an_ended_attempt_is_not_started_again(world: World) -> None:
    execution = start(world)
    world.abort(execution)
    assert world.executions.start(ATTEMPT, EXPLICIT) is None
    assert world.executions.is_running(execution) is False


@pytest.mark.parametrize("unknown", [execution_arn("never"), "arn:legacy"], ids=["never started", "no execution"])
def test_an_execution_that_never_existed_is_over(world: World, unknown: str) -> None:
    assert world.executions.is_running(unknown) is False
    assert world.executions.is_over(unknown) is True


@wakes
def test_a_waiting_execution_is_woken_once(world: World) -> None:
    execution = start(world)
    token = world.token()
    assert world.executions.wake(token) is True
    world.go_on(execution)
    assert world.executions.wake(token) is False


@wakes
def test_an_unknown_token_wakes_no_execution(world: World) -> None:
    assert world.executions.wake("token-of-nobody") is False
