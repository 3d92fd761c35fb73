"""Watches what runs do to one tenant, and knows what ought to be true of it then.

It knows nothing of how the table keeps its promises: it follows who was given the lock and what each operation came
to, and compares.
"""

from __future__ import annotations

from collections import Counter

from orchestrator.tenants.decisions import BeingDeleted, Deleted, Failed, Ready
from orchestrator.tenants.get_queue import Answer, Provisioning
from orchestrator.tenants.records import Audit, Metadata, Operation, Queue, Status
from tests.fakes import ACME
from tests.simulation.player import Execution
from tests.simulation.world import World

CHANGES_A_STACK = frozenset(
    f"stacks.{method}"
    for method in (
        "create",
        "delete",
        "draw_up_changes",
        "make_changes",
        "forget_changes",
        "roll_back",
        "continue_rollback",
    )
)

Served = tuple[Queue | None, str | None]
Rows = tuple[str | None, Metadata | None, dict[tuple[Operation, str | None], Audit]]


class Watch:
    """What ought to be true of the tenant, from what was seen to happen."""

    def __init__(self, world: World) -> None:
        self.world = world
        metadata = world.table.metadata(ACME)
        self.served: Served | None = (metadata.queue, metadata.version) if metadata and metadata.published else None
        """What getQueue ought to answer with."""
        self.withdrawn: Served | None = None
        """What it would answer with if the delete that goes on were refused."""
        self.deleted = any(audit.operation is Operation.DELETE for audit in world.table.audits(ACME))
        self.owners: list[Execution] = []
        """Runs that were given the lock, and have neither given it back, nor lost it, nor died."""
        self.seen: Counter[str] = Counter()

    def rows(self) -> Rows:
        table = self.world.table
        lock = table.lock(ACME)
        audits = {_key(audit): audit for audit in table.audits(ACME)}
        return lock.run.execution if lock else None, table.metadata(ACME), audits

    def before(self, run: Execution, call: str) -> None:
        """A run is about to make a call."""
        if call in CHANGES_A_STACK:
            owner = self.rows()[0]
            assert owner == run.name, f"{run.name} calls {call}, but the tenant belongs to {owner}"
            assert call != "stacks.create" or not self.deleted, f"{run.name} creates a stack of a deleted tenant"

    def after(self, run: Execution, call: str, before: Rows) -> None:
        """It has made it. ``before`` is what the table said then."""
        owner, metadata, audits = before
        now_owner, now_metadata, now_audits = self.rows()
        if now_owner != owner:
            self._owner_changes(run, call, owner, now_owner)
        if now_metadata != metadata:
            # A run that was refused may clear away what it has said about a tenant that belongs to nobody.
            whose = {owner, now_owner} | ({run.name} if call == "table.fail" and owner is None else set())
            assert run.name in whose, f"{run.name} writes metadata, but the tenant belongs to {owner}"
        for key, audit in now_audits.items():
            if audit != audits.get(key):
                self._audit_changes(run, call, owner, audits.get(key), audit)
        if call == "table.fail" and owner == run.name:
            self._failed(run)
        self.check()

    def _owner_changes(self, run: Execution, call: str, owner: str | None, now_owner: str | None) -> None:
        if now_owner is None:
            assert owner == run.name, f"{run.name} frees the lock of {owner}"
            self.owners.remove(run)
            return
        assert now_owner == run.name, f"{run.name} gives the lock to {now_owner}"
        assert call == "table.begin", f"{run.name} takes the lock by {call}"
        self.owners.append(run)
        if owner is not None:
            assert owner not in self.world.executions.running, f"{run.name} takes the lock of {owner}, which runs"
            self.seen["taken over"] += 1
        if owner is None:
            self.withdrawn = None
        if run.operation is Operation.DELETE:
            self.served, self.withdrawn = None, self.served or self.withdrawn
        elif self.withdrawn and self._stands():
            # Whoever takes over from a delete that has not touched the stack gives the tenant back to service.
            self.served, self.withdrawn = self.withdrawn, None

    def _audit_changes(self, run: Execution, call: str, owner: str | None, was: Audit | None, audit: Audit) -> None:
        if audit.execution != run.name:
            revived = call == "table.begin" and audit.revived_by == run.name
            closed = call == "table.begin" and audit.status is Status.FAILURE
            dead = audit.execution not in self.world.executions.running
            assert revived or (closed and dead), f"{run.name} writes the audit of {audit.execution}"
            if revived:
                assert run.explicit, f"{run.name} brings back a deleted tenant unasked"
                self.deleted = False
                self.seen["revived"] += 1
            return
        assert was is None or was.attempt <= audit.attempt, f"{run.name} overwrites what came after it"
        self.seen[f"{run.operation} {audit.status}"] += 1
        if audit.status is Status.SUCCESS:
            assert owner == run.name, f"{run.name} succeeds, but the tenant belongs to {owner}"
            self._succeeded(run)

    def _succeeded(self, run: Execution) -> None:
        living = self.world.stacks.living
        if run.operation is Operation.DELETE:
            assert living == [], f"{run.name} has deleted, but there is {living}"
            self.served, self.deleted = None, True
            return
        assert not self.deleted, f"{run.name} serves a deleted tenant"
        (stack,) = living
        self.served = (stack.queue, stack.version)

    def _failed(self, run: Execution) -> None:
        if run.operation is Operation.DELETE and self._stands():
            self.served = self.withdrawn

    def _stands(self) -> bool:
        return any(not stack.status.startswith("DELETE_") for stack in self.world.stacks.living)

    def gone(self, run: Execution) -> None:
        """It has died, or lost its lock."""
        if run in self.owners:
            self.owners.remove(run)

    def check(self) -> None:
        """At any time: one owner, one stack, and what is served is what the last operation has left."""
        owner, metadata, _ = self.rows()
        assert len(self.owners) <= 1, f"several own the tenant: {[run.name for run in self.owners]}"
        for run in self.owners:
            assert owner == run.name, f"{run.name} owns the tenant, but the lock says {owner}"
        published = metadata is not None and metadata.published
        served = (metadata.queue, metadata.version) if metadata and published else None
        assert served == self.served, f"{served} is served, not {self.served}"
        assert len(self.world.stacks.living) <= 1

    def check_answer(self, answer: Answer) -> None:
        """What getQueue has answered, when nothing happened meanwhile."""
        deleting = [run for run in self.owners if run.operation is Operation.DELETE]
        if self.served:
            assert answer == Ready(*self.served)  # type: ignore[arg-type]  # what is served has a queue and a version
        elif deleting:
            assert isinstance(answer, BeingDeleted), f"{deleting[0].name} goes on, and the answer is {answer}"
        elif self.deleted and not self.owners:
            # A further delete, of what was deleted already, may be under way or have failed.
            further = isinstance(answer, Failed | BeingDeleted) and answer.audit.operation is Operation.DELETE
            assert isinstance(answer, Deleted) or further, f"the tenant is deleted, and the answer is {answer}"
        else:
            assert isinstance(answer, Provisioning | Failed | BeingDeleted | Deleted)
        self.seen[type(answer).__name__] += 1


def _key(audit: Audit) -> tuple[Operation, str | None]:
    return audit.operation, None if audit.operation is Operation.DELETE else audit.version
