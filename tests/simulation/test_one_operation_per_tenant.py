"""One operation per tenant: create, update and delete, all at once, in hundreds of orders.

A test that fails names its seed, and fails the same way again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from orchestrator.tenants import operations, tenant_stack
from orchestrator.tenants.records import Lock, Operation, Run, Status
from tests.fakes import ACME, InMemoryTable
from tests.simulation.storm import Broken, Storm

SEEDS = range(100)


def play_all(seeds: range) -> Counter[str]:
    """What was seen in all of them."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        storm = Storm(seed)
        storm.play()
        seen += storm.seen
    return seen


@pytest.mark.parametrize("seed", SEEDS)
def test_all_three_at_once_leave_one_owner_at_a_time_and_the_truth_in_the_end(seed: int) -> None:
    Storm(seed).play()


def test_a_seed_tells_the_same_story_again() -> None:
    first, again = Storm(4), Storm(4)
    for storm in (first, again):
        storm.play()
    assert first.world.table.history(ACME) == again.world.table.history(ACME)
    assert first.world.stacks.calls == again.world.stacks.calls
    assert first.seen == again.seen


def test_the_storms_see_all_that_may_happen() -> None:
    ends = {f"{operation} {status}" for operation in Operation for status in (Status.SUCCESS, Status.FAILURE)}
    answers = {"Ready", "Provisioning", "BeingDeleted", "Deleted", "Failed"}
    orders = {"Accepted", "Unchanged", "Refused"}
    trouble = {"waited", "killed", "robbed", "taken over", "revived"}
    assert ends | answers | orders | trouble <= set(play_all(SEEDS))


# Bugs, put in on purpose: each is found out.

Table = InMemoryTable
Bug = Callable[[pytest.MonkeyPatch], None]


def _whoever_owns_it(method: str) -> Bug:
    """A write of a run goes through even though another run owns the tenant, or nobody."""

    def unfenced(monkeypatch: pytest.MonkeyPatch) -> None:
        fenced = getattr(Table, method)

        def write(self: InMemoryTable, run: Run, *given: Any, **named: Any) -> None:
            others = self.lock(run.tenant)
            self.plant_lock(run.tenant, run)
            fenced(self, run, *given, **named)
            self.plant_lock(run.tenant, others.run if others and others.run.execution != run.execution else None)

        monkeypatch.setattr(Table, method, write)

    return unfenced


def _start_stack_without_a_look_at_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tenant_stack, "_own_lock", lambda run, reader: reader.lock(run.tenant) or Lock(run, None))


def _begin_with_a_lock_that_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = Table.begin

    def take(self: InMemoryTable, run: Run, **named: Any) -> Lock | None:
        lock = self.lock(run.tenant)
        if lock and lock.run.execution != run.execution:
            self.plant_lock(run.tenant, None)
        return begin(self, run, **named)

    monkeypatch.setattr(Table, "begin", take)


def _take_over_from_the_living(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "is_dead", lambda *_, **__: True)


def _delete_without_withdrawing(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = Table.begin

    def forgetful(self: InMemoryTable, run: Run, **named: Any) -> Lock | None:
        holder = begin(self, run, **named)
        self.change_metadata(run.tenant, withdrawn_by=None)
        return holder

    monkeypatch.setattr(Table, "begin", forgetful)


def _refused_delete_that_stays_withdrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    fail = Table.fail
    monkeypatch.setattr(Table, "fail", lambda self, *args, restore: fail(self, *args, restore=False))  # noqa: ARG005


def _create_whatever_was_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "refusal", lambda *_, **__: None)


def _failure_that_keeps_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    fail = Table.fail

    def keep(self: InMemoryTable, run: Run, *args: Any, **named: Any) -> bool:
        lock = self.lock(run.tenant)
        told = fail(self, run, *args, **named)
        self.plant_lock(run.tenant, lock.run if lock else None)
        return told

    monkeypatch.setattr(Table, "fail", keep)


NOT_ITS_TENANT = "(writes metadata|succeeds), but the tenant belongs to|owns the tenant, but the lock says"

BUGS: list[tuple[str, Bug, str]] = [
    ("publish is not fenced", _whoever_owns_it("publish"), NOT_ITS_TENANT),
    ("remove is not fenced", _whoever_owns_it("remove"), NOT_ITS_TENANT),
    ("start_stack takes no look", _start_stack_without_a_look_at_the_lock, "calls stacks.*, but the tenant belongs to"),
    ("a held lock is taken", _begin_with_a_lock_that_is_held, "takes the lock of .*, which runs"),
    ("the living count as dead", _take_over_from_the_living, "takes the lock of .*, which runs"),
    ("a delete does not withdraw", _delete_without_withdrawing, "is served, not None"),
    ("a refused delete is not undone", _refused_delete_that_stays_withdrawn, "None is served, not"),
    ("a stray call brings the deleted back", _create_whatever_was_deleted, "creates a stack of a deleted tenant"),
    ("a failure keeps the lock", _failure_that_keeps_the_lock, "(several own the tenant|nothing heals it)"),
]


@pytest.mark.parametrize(("bug", "found"), [pytest.param(bug, found, id=name) for name, bug, found in BUGS])
def test_a_bug_does_not_survive_the_storms(bug: Bug, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bug(monkeypatch)
    with pytest.raises(Broken, match=f"seed [0-9]+: .*{found}"):
        play_all(SEEDS)
