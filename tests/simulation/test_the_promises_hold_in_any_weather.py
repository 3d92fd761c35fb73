"""The six promises, in storms that seeds decide, and bugs put in on purpose: each is found out.

A test that fails names its seed and the command that plays it again. ``make soak`` plays many more.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from orchestrator import get_queue, lifecycle, operations, queue_metadata, tenant_stack
from orchestrator.decisions import Ready
from orchestrator.outcomes import Done
from orchestrator.ports import Stack
from orchestrator.reconciling import settling
from orchestrator.reconciling.settling import Settling
from orchestrator.records import Metadata, Operation, Request, Run, Status
from orchestrator.stack_status import StackCondition, condition
from orchestrator.tenants import STACK_NAME_PREFIX, TenantId
from tests.fakes import VERSION, FakeExecutions, InMemoryTable
from tests.simulation.voyage import CROWDED, INSISTENT, Broken, Happening, Voyage
from tests.simulation.weather import BROKEN_STACKS, CRASHES, DEATHS, ECHOES, LOST_RESULTS, ZOMBIES, Weather

SEEDS = range(150)
MORE_SEEDS = range(400)
"""As many as it may take to find a bug."""


def sail_all(
    seeds: range, weather: Weather | None = None, happenings: tuple[Happening, ...] | None = None
) -> Counter[str]:
    """What was seen in all of them."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        voyage = Voyage(seed, weather, happenings)
        voyage.sail()
        seen += voyage.seen
    return seen


def test_the_promises_hold_and_everything_that_may_happen_does() -> None:
    seen = sail_all(SEEDS)
    ends = {f"{operation} {status}" for operation in Operation for status in (Status.SUCCESS, Status.FAILURE)}
    settled = {f"{end}, settled" for end in ends}
    answers = {"Ready", "Provisioning", "BeingDeleted", "Deleted", "Failed"}
    orders = {"Accepted", "AlreadySo", "Refused"}
    deaths = {f"{how}{where}" for how in ("was aborted", "timed out") for where in ("", " in the middle of a function")}
    trouble = {"held", "lost", "told again", "hung", "throttled", "crashed after a call", "old code"}
    healed = {"settled", "taken over", "revived"}
    assert ends | settled | answers | orders | deaths | trouble | healed <= set(seen)


def test_a_seed_tells_the_same_story_again() -> None:
    stories = []
    for _ in range(2):
        story: list[str] = []
        voyage = Voyage(4)
        voyage.harbour.log = story.append
        voyage.sail()
        stories.append([re.sub(" at 0x[0-9a-f]+", "", line) for line in story])
    assert stories[0] == stories[1]
    assert len(stories[0]) > 100


# Bugs

Bug = Callable[[pytest.MonkeyPatch], None]
Table = InMemoryTable


def _publish_whoever_owns_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Table, "publish", _unfenced(Table.publish))


def _unfenced(fenced: Callable[..., None]) -> Callable[..., None]:
    def write(self: InMemoryTable, run: Run, **named: Any) -> None:
        rows, owns = self._of(run.tenant), self._owns(run)
        lock = rows.lock
        self.__dict__["_owns"] = lambda _run: True
        try:
            fenced(self, run, **named)
        finally:
            del self.__dict__["_owns"]
        rows.lock = None if owns else lock

    return write


def _metadata_before_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stack itself says at which version it is, before anybody has seen that its queue can be used."""
    record = Table.record_queue

    def eager(self: InMemoryTable, tenant: TenantId, **named: Any) -> None:
        record(self, tenant, **named)
        rows = self._of(tenant)
        rows.metadata = rows.metadata and replace(rows.metadata, version=rows.metadata.version or VERSION)

    monkeypatch.setattr(Table, "record_queue", eager)


def _free_the_lock_early(monkeypatch: pytest.MonkeyPatch) -> None:
    remember = Table.remember_token

    def forgetful(self: InMemoryTable, run: Run, task_token: str) -> None:
        remember(self, run, task_token)
        self._of(run.tenant).lock = None

    monkeypatch.setattr(Table, "remember_token", forgetful)


def _take_over_without_asking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        operations,
        "is_dead",
        lambda holder, *, executions, clock: clock.now() - holder.run.started_at > operations.CHECK_HOLDER_AFTER,  # noqa: ARG005
    )


def _settle_without_asking(monkeypatch: pytest.MonkeyPatch) -> None:
    """An event says that the execution has ended, so it has; the index says so, too."""
    settle = Settling.settle

    class Over(FakeExecutions):
        def is_over(self, execution: str) -> bool:  # noqa: ARG002
            return True

    def trusting(self: Settling, given: Run, **named: Any) -> settling.Settlement:
        return settle(replace(self, executions=Over()), given, **named)

    monkeypatch.setattr(Settling, "settle", trusting)


def _over_as_soon_as_aborted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeExecutions, "is_over", lambda self, execution: not self.is_running(execution))


def _settle_an_update_by_its_status_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    inspect = tenant_stack.inspect_stack

    def hopeful(run: Run, *, stacks: Any, **named: Any) -> Any:
        stack: Stack | None = stacks.find(run.tenant.stack_name)
        stands = stack and condition(stack.status) in (StackCondition.DONE, StackCondition.DONE_AT_OLD_VERSION)
        if run.attempt.operation is Operation.UPDATE and stack and stands and stack.queue:
            return Done(stack.stack_id, stack.queue, run.attempt.version)
        return inspect(run, stacks=stacks, **named)

    monkeypatch.setattr(settling, "inspect_stack", hopeful)


def _serve_what_is_being_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    def ready(metadata: Metadata | None) -> Ready | None:
        known = metadata and metadata.queue and metadata.version
        return Ready(metadata.queue, metadata.version) if metadata and known else None  # type: ignore[arg-type]

    monkeypatch.setattr(get_queue, "ready", ready)


def _retry_whatever_was_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "is_deleted", lambda _audits: False)


def _failure_over_a_later_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Table, "_may_write", lambda _self, _run: True)


def _trust_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it lists is taken for unfinished, and is given its end whatever its row says."""
    may_write = Table._may_write

    def may(self: InMemoryTable, run: Run) -> bool:
        audits = self._of(run.tenant).audits.values()
        return may_write(self, run) or any(audit.execution == run.execution for audit in audits)

    monkeypatch.setattr(Settling, "_says_started", lambda _self, _run: True)
    monkeypatch.setattr(Table, "_may_write", may)


def _names_without_a_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    def tenant_of(stack_id: str) -> TenantId:
        return TenantId(stack_id.split("/")[1].removeprefix(STACK_NAME_PREFIX))

    monkeypatch.setattr(TenantId, "stack_name", property(lambda self: f"{STACK_NAME_PREFIX}{self.value}"))
    monkeypatch.setattr("tests.simulation.harbour.tenant_of_stack", tenant_of)
    monkeypatch.setattr(tenant_stack, "tenant_of_stack", tenant_of)


def _create_whatever_was_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "refusal", lambda *_, **__: None)


def _revive_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call for a deleted tenant's queue is taken for one for the tenant."""
    monkeypatch.setattr(get_queue, "Request", lambda by="": Request(by=by, explicit=True))
    monkeypatch.setattr(get_queue, "decide", _decide_to_create)


def _decide_to_create(*args: Any, **named: Any) -> Any:
    from orchestrator.decisions import Deleted, StartCreate, decide

    decision = decide(*args, **named)
    attempts = [audit.attempt for audit in args[1] if audit.operation is Operation.CREATE and audit.version == args[2]]
    return StartCreate(1 + max(attempts, default=0)) if isinstance(decision, Deleted) else decision


def _publish_for_a_refused_create(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Settling, "_may_be_served", lambda _self, _run: True)


def _forget_the_queue_of_any_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    forget = Table.forget_queue

    def careless(self: InMemoryTable, tenant: TenantId, *, stack_id: str, vanished: bool) -> bool:
        metadata = self._of(tenant).metadata
        return forget(self, tenant, stack_id=metadata.stack_id or "" if metadata else stack_id, vanished=vanished)

    def forget_queue(tenant: TenantId, *, stack_id: str, ledger: InMemoryTable, **_: Any) -> bool:
        return ledger.forget_queue(tenant, stack_id=stack_id, vanished=True)

    monkeypatch.setattr(Table, "forget_queue", careless)
    monkeypatch.setattr(queue_metadata, "forget_queue", forget_queue)
    monkeypatch.setattr("tests.simulation.cloudformation.forget_queue", forget_queue)


def _never_settle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only who asks again heals what died."""
    monkeypatch.setattr(Settling, "settle", lambda *_, **__: settling.NothingToSettle())


def _settle_only_what_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """No schedule: an event that is lost leaves its operation open."""
    monkeypatch.setattr("tests.simulation.harbour.Harbour.reconcile", lambda *_: None)


@dataclass(frozen=True)
class Planted:
    """A bug, what it is found out by, and where that takes the least time."""

    bug: Bug
    found: str
    weather: Weather | None = None
    happenings: tuple[Happening, ...] | None = None


AT_WORK = "takes the lock of .*, which is at work"
BUGS = {
    "publish is not fenced": Planted(
        _publish_whoever_owns_it, "end twice|overwrites what came after|but the tenant belongs to", CRASHES
    ),
    "metadata before the end": Planted(_metadata_before_the_end, "is served, not None"),
    "the lock is freed early": Planted(_free_the_lock_early, "say Started"),
    "a lock is taken over without asking": Planted(_take_over_without_asking, AT_WORK, LOST_RESULTS, CROWDED),
    "an operation is settled without asking": Planted(_settle_without_asking, AT_WORK, LOST_RESULTS),
    "aborted counts as over": Planted(_over_as_soon_as_aborted, AT_WORK, ZOMBIES, CROWDED),
    "an update is settled by its status": Planted(
        _settle_an_update_by_its_status_alone, "has succeeded, but the stack is at", BROKEN_STACKS
    ),
    "getQueue overlooks a delete": Planted(_serve_what_is_being_deleted, "answer is Ready"),
    "a retry brings back the deleted": Planted(
        _retry_whatever_was_deleted, "brings back a deleted tenant", ECHOES, INSISTENT
    ),
    "a failure overwrites what came later": Planted(
        _failure_over_a_later_attempt, "overwrites what came after|end twice", CRASHES, INSISTENT
    ),
    "the index is trusted": Planted(_trust_the_index, "end twice", DEATHS),
    "stacks' names have no digest": Planted(_names_without_a_digest, "tenants are in each other's way"),
    "a create is never refused": Planted(_create_whatever_was_deleted, "a deleted tenant", ECHOES),
    "a stray call brings back the deleted": Planted(
        _revive_unasked, "is deleted, and the answer is Provisioning|which nobody asked for"
    ),
    "a refused create is published": Planted(
        _publish_for_a_refused_create, "serves a tenant that is to be deleted", DEATHS, CROWDED
    ),
    "any stack's queue is forgotten": Planted(_forget_the_queue_of_any_stack, "takes the queue of", ECHOES),
    "nothing is settled": Planted(_never_settle, "for ever", DEATHS),
    "nothing is settled on a schedule": Planted(_settle_only_what_is_told, "for ever", DEATHS),
}


@pytest.mark.parametrize("planted", [pytest.param(planted, id=name) for name, planted in BUGS.items()])
def test_a_bug_does_not_survive_the_weather(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    planted.bug(monkeypatch)
    with pytest.raises(Broken, match=f"(?s)seed [0-9]+: .*({planted.found}).*python -m tests.simulation --seed [0-9]+"):
        sail_all(MORE_SEEDS, planted.weather, planted.happenings)
