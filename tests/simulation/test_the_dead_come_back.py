"""An execution counts as dead, its lock is taken over; and then it goes on as if nothing had happened.

Nothing of what it does then has any effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Any

import pytest

from orchestrator.tenants import tenant_stack
from orchestrator.tenants.operations import CHECK_HOLDER_AFTER
from orchestrator.tenants.records import Attempt, Lock, Operation, Request, Run, Status
from tests.fakes import ACME, NEXT_VERSION, VERSION, InMemoryTable
from tests.simulation.player import Execution, Moment, State, Trouble
from tests.simulation.promises import assert_the_promises_hold, told_of
from tests.simulation.stories import CREATES, DELETES, UPDATES, Story
from tests.simulation.watch import CHANGES_A_STACK
from tests.simulation.world import World

STORIES = [CREATES[0], UPDATES[0], next(story for story in UPDATES if story.name == "undone"), DELETES[0]]
VERSIONS = {Operation.CREATE: VERSION, Operation.UPDATE: NEXT_VERSION, Operation.DELETE: VERSION}


class Return(Enum):
    AT_ONCE = "while its successor is at work"
    LATE = "when its successor has ended"


@dataclass
class Undead:
    """Makes the calls of an execution, and sees that none has an effect once it is dead."""

    world: World
    trouble: Trouble
    dead: bool = False

    def around(self, name: str, call: Callable[[], Any]) -> Any:
        if not self.dead:
            return self.trouble.around(name, call)
        assert name not in CHANGES_A_STACK, f"the dead call {name}"
        before = self.rows()
        try:
            return call()
        finally:
            assert self.rows() == before, f"the dead write, by {name}"

    def rows(self) -> tuple[object, ...]:
        table = self.world.table
        lock = table.lock(ACME)
        return lock and lock.run, table.metadata(ACME), list(table.audits(ACME)), list(table.history(ACME))


def owns(world: World, execution: Execution) -> bool:
    lock = world.table.lock(ACME)
    return lock is not None and lock.run.execution == execution.name


def deaths(story: Story) -> Iterator[tuple[Execution, Undead]]:
    """The execution, dead after every number of steps that leave it with the lock."""
    for trouble in (Trouble(1, Moment.AFTER), Trouble()):  # The first has the lock, and does not know it.
        for steps in range(1, 100):
            world = story.arrange()
            name = story.order(world)
            assert name
            undead = Undead(world, Trouble(trouble.at_call, trouble.moment))
            execution = Execution(world, name, undead.around)
            for _ in range(steps):
                execution.step()
            if not owns(world, execution):
                break
            undead.dead = True
            world.executions.end(name)
            yield execution, undead


def take_over(dead: Execution, operation: Operation) -> Execution:
    """The next execution, which has just been given the lock."""
    world = dead.world
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


def come_back(story: Story, operation: Operation, when: Return) -> int:
    """Play it all. How many deaths that were."""
    count = 0
    for dead, undead in deaths(story):
        died_at = dead.at
        try:
            successor = take_over(dead, operation)
            if when is Return.LATE:
                successor.play()
            assert not dead.play()
            successor.play()
            assert_the_promises_hold(undead.world)
            assert told_of(undead.world, dead.name) == [Status.STARTED, Status.FAILURE]
        except AssertionError as failed:
            failed.add_note(f"it died at {died_at}")
            raise
        assert dead.state is State.FAILED
        count += 1
    return count


@pytest.mark.parametrize("when", Return, ids=lambda when: when.value)
@pytest.mark.parametrize("operation", Operation)
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_nothing_that_the_dead_do_has_an_effect(story: Story, operation: Operation, when: Return) -> None:
    assert come_back(story, operation, when) > 5


def _publish_whoever_owns_it(monkeypatch: pytest.MonkeyPatch) -> None:
    fenced = InMemoryTable.publish

    def publish(self: InMemoryTable, run: Run, *args: Any, **named: Any) -> None:
        self.plant_lock(run.tenant, run)
        fenced(self, run, *args, **named)

    monkeypatch.setattr(InMemoryTable, "publish", publish)


def _touch_stacks_without_a_look_at_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tenant_stack, "_own_lock", lambda run, _reader: Lock(run, None))


def _leave_tokens_in_any_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        InMemoryTable,
        "remember_token",
        lambda self, run, token: self.plant_lock(run.tenant, run, task_token=token),
    )


@pytest.mark.parametrize(
    ("bug", "found"),
    [
        (_publish_whoever_owns_it, "the dead write, by table.publish"),
        (_touch_stacks_without_a_look_at_the_lock, "the dead call stacks."),
        (_leave_tokens_in_any_lock, "the dead write, by table.remember_token"),
    ],
)
def test_a_bug_lets_the_dead_act_and_is_found(
    bug: Callable[[pytest.MonkeyPatch], None], found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bug(monkeypatch)
    with pytest.raises(AssertionError, match=found):
        come_back(CREATES[0], Operation.DELETE, Return.AT_ONCE)
