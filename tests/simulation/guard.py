"""The six promises, looked after at every call that anybody makes to the outside.

It knows nothing of how they are kept: it follows who was given the lock, what each operation came to and what people
asked for, and compares that with what is recorded and with what CloudFormation has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from orchestrator.decisions import BeingDeleted, Deleted, Failed, Ready
from orchestrator.get_queue import Answer
from orchestrator.ports import Stack
from orchestrator.records import Audit, Metadata, Operation, Queue, Status
from orchestrator.tenants import TenantId
from tests.fakes import FakeStacks, InMemoryTable
from tests.simulation.watch import CHANGES_A_STACK

Served = tuple[Queue | None, str | None]
AuditKey = tuple[Operation, str | None]

WRITES = frozenset(
    f"table.{method}"
    for method in (
        "begin",
        "revive",
        "remember_token",
        "touch",
        "publish",
        "remove",
        "fail",
        "describe",
        "record_queue",
        "forget_queue",
        "correct",
    )
)


class Role(Enum):
    """Who calls."""

    RUN = "a function of an execution"
    SETTLER = "the function that settles an execution that has ended"
    RECONCILER = "a reconciliation"
    RESOURCE = "the custom resource of a stack"
    EVENT = "the function that hears of stacks"
    PERSON = "an operator or a platform"


@dataclass(frozen=True)
class Caller:
    role: Role
    tenant: TenantId | None
    """Whose tenant it is about; a reconciliation is about all of them."""
    execution: str = ""
    wants_it: bool = False
    """Whether this is somebody who asks for the tenant itself, and not only for its queue."""

    def __str__(self) -> str:
        return self.execution.rpartition(":")[2] or self.role.value


class Run(Protocol):
    """What has to be known about an execution."""

    @property
    def running(self) -> bool: ...

    @property
    def alive(self) -> bool: ...

    @property
    def explicit(self) -> bool: ...

    @property
    def operation(self) -> Operation: ...


@dataclass(frozen=True)
class Rows:
    owner: str | None
    metadata: Metadata | None
    audits: dict[AuditKey, Audit]

    @property
    def served(self) -> Served | None:
        published = self.metadata is not None and self.metadata.published
        return (self.metadata.queue, self.metadata.version) if self.metadata and published else None


class TenantGuard:
    """What ought to be true of one tenant, from what was seen to happen."""

    def __init__(self, tenant: TenantId, world: Guard) -> None:
        self.tenant = tenant
        self._world = world
        rows = self.rows()
        self.served = rows.served
        """What getQueue ought to answer with."""
        self.withdrawn: Served | None = None
        """What it would answer with if the delete that goes on were refused."""
        self.deleted = any(audit.operation is Operation.DELETE for audit in rows.audits.values())
        self.to_go = self.deleted
        """A delete has begun, and nobody has undone it or asked for the tenant since."""
        self.wanted: set[str] = set()
        """Executions that may bring the tenant back, if it is deleted: somebody asked for it itself."""
        self.asked_for = False
        """Whether somebody has asked for the tenant itself since it was deleted."""

    def rows(self) -> Rows:
        table = self._world.table
        lock = table.lock(self.tenant)
        audits = {_key(audit): audit for audit in table.audits(self.tenant)}
        return Rows(lock.run.execution if lock else None, table.metadata(self.tenant), audits)

    @property
    def living(self) -> list[Stack]:
        return [stack for stack in self._world.stacks.living if stack.tenant_id == self.tenant.value]

    # What changes

    def changed(self, caller: Caller, call: str, was: Rows, now: Rows) -> None:
        if now.owner != was.owner:
            self._owner_changes(caller, call, was.owner, now.owner)
        for key, audit in now.audits.items():
            if audit != was.audits.get(key):
                self._audit_changes(caller, call, was.owner, was.audits.get(key), audit)
        if call == "table.correct" and now.metadata != was.metadata:
            assert now.owner is None, f"{caller} corrects what belongs to {now.owner}"
            self.served = now.served and self._what_stands()
        if call == "table.forget_queue":
            self.withdrawn = None
        if call == "table.forget_queue" and was.served and not now.served:
            going = [stack for stack in self.living if stack.stack_id == was.metadata.stack_id]  # type: ignore[union-attr]
            going = [stack for stack in going if not stack.status.startswith(("DELETE_", "ROLLBACK_"))]
            assert not going, f"{caller} takes the queue of {going[0].stack_id} away, which is {going[0].status}"
            self.served = None

    def _owner_changes(self, caller: Caller, call: str, owner: str | None, now_owner: str | None) -> None:
        if owner is not None:
            by_itself = caller.role is Role.RUN and caller.execution == owner
            alive = self._world.runs[owner].alive
            assert by_itself or not alive, f"{caller} takes the lock of {_short(owner)}, which is at work"
            if not by_itself:
                self._world.seen["taken over" if now_owner else "settled"] += 1
        if now_owner is None:
            return
        assert caller.execution == now_owner, f"{caller} gives the lock to {now_owner}"
        assert call == "table.begin", f"{caller} takes the lock by {call}"
        if self._world.runs[now_owner].operation is Operation.DELETE:
            # One that takes over from another may be refused as that might have been.
            self.served, self.withdrawn = None, self.served or self.withdrawn
            self.to_go = True

    def _audit_changes(self, caller: Caller, call: str, owner: str | None, was: Audit | None, now: Audit) -> None:
        if call == "table.revive":
            self._revived(caller, owner)
            return
        run = self._world.runs.get(now.execution)
        assert run is not None, f"{caller} writes the audit of {now.execution}, which never was"
        mine = caller.role is Role.RUN and caller.execution == now.execution
        assert mine or not run.alive, f"{caller} closes {_short(now.execution)}, which is at work"
        if was is not None:
            assert was.attempt <= now.attempt, f"{caller} overwrites what came after it"
            over = was.execution == now.execution and was.status is not Status.STARTED
            assert not over, f"{caller} has {_short(now.execution)} end twice: {was.status}, {now.status}"
        self._world.seen[f"{now.operation} {now.status}{'' if mine else ', settled'}"] += 1
        if now.status is Status.SUCCESS:
            assert owner == now.execution, f"{_short(now.execution)} succeeds, but the tenant belongs to {owner}"
            self._succeeded(now, run)
        elif now.status is Status.FAILURE and owner == now.execution and call == "table.fail":
            self._failed(now)
        if now.root_cause:
            assert "was made for" not in now.root_cause.reason, f"tenants are in each other's way: {now.root_cause}"

    def _revived(self, caller: Caller, owner: str | None) -> None:
        assert owner == caller.execution, f"{caller} revives a tenant that belongs to {owner}"
        assert self._world.runs[owner].explicit, f"{caller} brings back a deleted tenant unasked"
        if self.deleted:
            assert caller.execution in self.wanted, f"{caller} brings back a deleted tenant, which nobody asked for"
        self.deleted = self.to_go = False
        self._world.seen["revived"] += 1

    def _succeeded(self, audit: Audit, run: Run) -> None:
        name = _short(audit.execution)
        self.withdrawn = None
        if audit.operation is Operation.DELETE:
            assert self.living == [], f"{name} has deleted, but there is {self.living}"
            self.served, self.deleted, self.to_go, self.asked_for = None, True, True, False
            return
        assert not self.deleted, f"{name} serves a deleted tenant"
        assert run.explicit or not self.to_go, f"{name} serves a tenant that is to be deleted"
        self.served = self._what_stands()
        if audit.operation is Operation.UPDATE:
            assert self.served[1] == audit.version, f"{name} has succeeded, but the stack is at {self.served[1]}"

    def _what_stands(self) -> Served:
        assert self.living, "a queue is served, but there is no stack"
        (stack,) = self.living
        return stack.queue, stack.version

    def _failed(self, audit: Audit) -> None:
        left_alone = [stack for stack in self.living if not stack.status.startswith("DELETE_")]
        if audit.operation is Operation.DELETE and left_alone:
            self.served = self.withdrawn
            self.to_go = self.served is None

    # What is true at any time

    def check(self) -> None:
        rows = self.rows()
        assert rows.served == self.served, f"{self.tenant}: {rows.served} is served, not {self.served}"
        assert len(self.living) <= 1, f"{self.tenant} has several stacks: {self.living}"
        started = [audit.execution for audit in rows.audits.values() if audit.status is Status.STARTED]
        owner = [rows.owner] if rows.owner else []
        assert started == owner, f"{self.tenant} belongs to {owner}, but {started} say Started"

    def check_answer(self, answer: Answer) -> None:
        """What getQueue has answered, when nothing happened meanwhile."""
        owner = self.rows().owner
        operation = self._world.runs[owner].operation if owner else None
        if self.served:
            assert isinstance(answer, Ready)
            assert (answer.queue, answer.version) == self.served, f"{answer} is answered, not {self.served}"
        elif operation is Operation.DELETE and owner and self._world.runs[owner].running:
            assert isinstance(answer, BeingDeleted), f"{self.tenant} is being deleted, and the answer is {answer}"
        elif self.deleted and owner is None:
            further = isinstance(answer, Failed) and answer.audit.operation is Operation.DELETE
            assert isinstance(answer, Deleted) or further, f"{self.tenant} is deleted, and the answer is {answer}"
        else:
            assert not isinstance(answer, Ready), f"nothing is served, and the answer is {answer}"
        self._world.seen[type(answer).__name__] += 1


class Guard:
    """All tenants, and who calls what."""

    def __init__(self, table: InMemoryTable, stacks: FakeStacks, tenants: Collection[TenantId]) -> None:
        self.table = table
        self.stacks = stacks
        self.runs: dict[str, Run] = {}
        self.seen: Counter[str] = Counter()
        self.of = {tenant: TenantGuard(tenant, self) for tenant in tenants}

    def around(self, caller: Caller, name: str, call: Callable[[], Any]) -> Any:
        """Make the call, and see what it did."""
        if name in WRITES:
            with self._rows_compared(caller, name):
                return call()
        if name in CHANGES_A_STACK:
            with self._stacks_compared(caller, name):
                return call()
        told = call()
        if name == "executions.start" and told and caller.wants_it and caller.tenant:
            self.of[caller.tenant].wanted.add(told)
        return told

    @contextmanager
    def _rows_compared(self, caller: Caller, name: str) -> Iterator[None]:
        before = {tenant: guard.rows() for tenant, guard in self.of.items()}
        yield
        for tenant, guard in self.of.items():
            now = guard.rows()
            if now != before[tenant]:
                assert caller.tenant in (None, tenant), f"{caller} of {caller.tenant} changes rows of {tenant}"
                guard.changed(caller, name, before[tenant], now)
                guard.check()

    @contextmanager
    def _stacks_compared(self, caller: Caller, name: str) -> Iterator[None]:
        assert caller.role is Role.RUN, f"{caller} calls {name}"
        assert caller.tenant is not None
        guard = self.of[caller.tenant]
        owner = guard.rows().owner
        assert owner == caller.execution, f"{caller} calls {name}, but the tenant belongs to {owner}"
        if name == "stacks.create":
            assert not guard.deleted, f"{caller} creates a stack of a deleted tenant"
        before = {stack_id: fake.stack for stack_id, fake in self.stacks.all.items()}
        yield
        for stack_id, fake in self.stacks.all.items():
            if fake.stack is not before.get(stack_id):
                whose = fake.stack.tenant_id
                assert whose == caller.tenant.value, f"{caller} of {caller.tenant} changes the stack of {whose}"

    def check(self) -> None:
        for guard in self.of.values():
            guard.check()


def _key(audit: Audit) -> AuditKey:
    return audit.operation, None if audit.operation is Operation.DELETE else audit.version


def _short(execution: str) -> str:
    return execution.rpartition(":")[2]
