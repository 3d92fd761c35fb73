"""An execution that has lost its tenant's lock changes nothing any more.

Either it counted as dead and another execution took the lock over, or an operator deleted the lock by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import Enum
from typing import Any

import pytest

from orchestrator.tenants import tenant_stack
from orchestrator.tenants.operations import CHECK_HOLDER_AFTER
from orchestrator.tenants.provisioning import CHECK_EXECUTION_AFTER
from orchestrator.tenants.records import Attempt, Lock, Operation, Request, Run, Status
from tests.fakes import ACME, NEXT_VERSION, VERSION, InMemoryTable
from tests.simulation.aws.executions import Execution, FaultInjector, Moment, State
from tests.simulation.checks.invariants import CHANGES_A_STACK
from tests.simulation.checks.world_state import ENDED, assert_the_promises_hold, told_of
from tests.simulation.scenarios import CREATES, DELETES, UPDATES, Scenario, execution_of
from tests.simulation.world import A_MOMENT, OPERATOR, World

SCENARIOS = [CREATES[0], UPDATES[0], next(each for each in UPDATES if each.name == "undone"), DELETES[0]]
VERSIONS = {Operation.CREATE: VERSION, Operation.UPDATE: NEXT_VERSION, Operation.DELETE: VERSION}

every_scenario = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)


class Resumes(Enum):
    AT_ONCE = "while its successor is at work"
    LATE = "when its successor has ended"


@dataclass
class CallsOf:
    """Makes the calls of an execution, and checks that none has an effect once the execution has lost the lock."""

    world: World
    fault: FaultInjector
    lost: bool = False
    may_close_its_audit: bool = False

    def around(self, name: str, call: Callable[[], Any]) -> Any:
        if not self.lost:
            return self.fault.around(name, call)
        assert name not in CHANGES_A_STACK, f"without the lock, it calls {name}"
        before = self.rows()
        try:
            return call()
        finally:
            allowed = self.may_close_its_audit and name == "table.fail"
            assert allowed or self.rows() == before, f"without the lock, it writes by {name}"

    def rows(self) -> tuple[object, ...]:
        table = self.world.table
        lock = table.lock(ACME)
        return lock and lock.run, table.metadata(ACME), list(table.audits(ACME)), list(table.history(ACME))


def owns(world: World, execution: Execution) -> bool:
    lock = world.table.lock(ACME)
    return lock is not None and lock.run.execution == execution.name


def with_the_lock(scenario: Scenario) -> Iterator[tuple[Execution, CallsOf]]:
    """The execution after every number of steps that leave it with the lock."""
    for fault in (FaultInjector(1, Moment.AFTER), FaultInjector()):  # The first has the lock, and does not know it.
        for steps in range(1, 100):
            world = scenario.arrange()
            name = scenario.order(world)
            assert name
            calls = CallsOf(world, replace(fault))
            execution = Execution(world, name, calls.around)
            for _ in range(steps):
                execution.step()
            if not owns(world, execution):
                break
            yield execution, calls


def take_over(lost: Execution, operation: Operation) -> Execution:
    """The next execution, which has just been given the lock."""
    world = lost.world
    world.let_time_pass(CHECK_HOLDER_AFTER + timedelta(seconds=1))
    audits = [audit for audit in world.table.audits(ACME) if audit.operation is operation]
    number = 1 + max((audit.attempt for audit in audits), default=0)
    attempt = Attempt(ACME, operation, VERSIONS[operation], number)
    name = world.executions.start(attempt, Request(explicit=True, force=True))
    assert name
    successor = Execution(world, name)
    successor.step()
    assert owns(world, successor)
    return successor


def replace_everywhere(scenario: Scenario, operation: Operation, resumes: Resumes) -> int:
    """Replace the execution after each of its steps, and return how many steps that were."""
    count = 0
    for execution, calls in with_the_lock(scenario):
        at = execution.at
        calls.lost = True
        execution.world.executions.end(execution.name)
        try:
            successor = take_over(execution, operation)
            if resumes is Resumes.LATE:
                successor.play()
            assert not execution.play()
            successor.play()
            assert_the_promises_hold(calls.world)
            assert told_of(calls.world, execution.name) == [Status.STARTED, Status.FAILURE]
        except AssertionError as failed:
            failed.add_note(f"it was replaced at {at}")
            raise
        assert execution.state is State.FAILED
        count += 1
    return count


def delete_the_lock_everywhere(scenario: Scenario) -> int:
    """Delete the lock after each step of the execution, and return how many steps that were."""
    count = 0
    for execution, calls in with_the_lock(scenario):
        world, at = execution.world, execution.at
        calls.lost = calls.may_close_its_audit = True
        world.table.plant_lock(ACME, None)
        try:
            assert not execution.play()
            world.let_time_pass(CHECK_EXECUTION_AFTER + A_MOMENT)
            successor = scenario.ask_again(world) or execution_of(world.lifecycle().retry(ACME, OPERATOR.by))
            if successor is not None:
                Execution(world, successor).play()
                assert told_of(world, successor) in ENDED
            assert_the_promises_hold(world)
            if scenario.ends is Status.SUCCESS:
                scenario.then(world)
        except AssertionError as failed:
            failed.add_note(f"the lock was deleted before {at}")
            raise
        count += 1
    return count


@pytest.mark.parametrize("resumes", Resumes, ids=lambda resumes: resumes.value)
@pytest.mark.parametrize("operation", Operation)
@every_scenario
def test_an_execution_that_was_replaced_changes_nothing(
    scenario: Scenario, operation: Operation, resumes: Resumes
) -> None:
    assert replace_everywhere(scenario, operation, resumes) > 4


@every_scenario
def test_an_execution_whose_lock_was_deleted_changes_nothing_and_the_next_one_succeeds(scenario: Scenario) -> None:
    assert delete_the_lock_everywhere(scenario) > 4


# Planted bugs

Bug = Callable[[pytest.MonkeyPatch], None]


def _publish_whoever_owns_it(monkeypatch: pytest.MonkeyPatch) -> None:
    fenced = InMemoryTable.publish

    def publish(self: InMemoryTable, run: Run, *args: Any, **named: Any) -> None:
        self.plant_lock(run.tenant, run)
        fenced(self, run, *args, **named)

    monkeypatch.setattr(InMemoryTable, "publish", publish)


def _touch_stacks_without_a_look_at_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tenant_stack, "own_lock", lambda run, _reader: Lock(run, None))


BUGS = [
    (_publish_whoever_owns_it, "writes by table.publish"),
    (_touch_stacks_without_a_look_at_the_lock, "calls stacks."),
]


@pytest.mark.parametrize(("bug", "found"), BUGS)
def test_a_bug_lets_a_replaced_execution_act_and_is_found(
    bug: Bug, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bug(monkeypatch)
    with pytest.raises(AssertionError, match=f"without the lock, it {found}"):
        replace_everywhere(CREATES[0], Operation.DELETE, Resumes.AT_ONCE)


@pytest.mark.parametrize(("bug", "found"), BUGS)
def test_a_bug_lets_an_execution_act_whose_lock_was_deleted_and_is_found(
    bug: Bug, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bug(monkeypatch)
    with pytest.raises(AssertionError, match=f"without the lock, it {found}"):
        delete_the_lock_everywhere(CREATES[0])
