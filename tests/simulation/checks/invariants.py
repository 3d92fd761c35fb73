"""The six promises, checked at every call that anybody makes to the outside.

The checks do not know how the product keeps them. They follow who got the lock, how each operation ended and what was
requested, and compare that with the rows, the stacks and the queues.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol, cast

from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.deadlines import DEADLINE
from orchestrator.tenants.decisions import BeingDeleted, Deleted, Failed
from orchestrator.tenants.execution_input import request_from
from orchestrator.tenants.provisioning import Answer
from orchestrator.tenants.ready import Ready
from orchestrator.tenants.records import Audit, Metadata, Operation, Queue, Status
from orchestrator.tenants.stack_ports import Stack
from orchestrator.tenants.stack_resources import Requester, StackResource
from tests.fakes import FakeClock, FakeExecutions, InMemoryTable
from tests.simulation.actors.callers import Caller, Role
from tests.simulation.aws.queues import LaggingQueues
from tests.simulation.checks.request_log import RequestLog

if TYPE_CHECKING:
    from tests.simulation.aws.cloudformation import TenantStacks

Served = tuple[Queue | None, str | None]
AuditKey = tuple[Operation, str | None]

OLD_MESSAGE = timedelta(seconds=75)
"""A delete that is not forced loses none that was sent longer ago, nor one from before the queue was withdrawn."""

NOT_LISTED = "the queue among its resources"
"""Part of the root cause when CloudFormation lists another queue than the stack names, or none."""

WRITES = frozenset(
    f"table.{method}"
    for method in (
        "begin",
        "remember_token",
        "publish",
        "remove",
        "fail",
        "describe",
        "record_queue",
        "forget_queue",
        "correct",
        "adopt",
    )
)


CHANGES_A_STACK = frozenset(
    f"stacks.{method}"
    for method in (
        "create",
        "delete",
        "create_change_set",
        "execute_change_set",
        "update",
        "delete_change_set",
        "roll_back",
        "continue_rollback",
    )
)


class Run(Protocol):
    """The properties of an execution that the checks use."""

    @property
    def running(self) -> bool: ...

    @property
    def alive(self) -> bool: ...

    @property
    def explicit(self) -> bool: ...

    @property
    def operation(self) -> Operation: ...

    @property
    def started_at(self) -> datetime: ...


@dataclass(frozen=True)
class Rows:
    owner: str | None
    metadata: Metadata | None
    audits: dict[AuditKey, Audit]
    entries: int
    """How many entries the history has."""

    @property
    def said(self) -> tuple[Mapping[str, str], str | None]:
        return (self.metadata.labels, self.metadata.pinned_version) if self.metadata else ({}, None)

    @property
    def served(self) -> Served | None:
        published = self.metadata is not None and self.metadata.published
        return (self.metadata.queue, self.metadata.version) if self.metadata and published else None


class TenantChecks:
    """The expected state of one tenant, from the calls that were seen."""

    def __init__(self, tenant: TenantId, checks: Checks) -> None:
        self.tenant = tenant
        self._all = checks
        rows = self.rows()
        self.served = rows.served
        """The queue and version that getQueue should answer with."""
        self.withdrawn: Served | None = None
        """The same, in case the running delete is refused."""
        self.deleted = any(audit.operation is Operation.DELETE for audit in rows.audits.values())
        self.to_go = self.deleted
        """A delete has begun, and nobody has undone it or asked for the tenant since."""
        self.free = False
        """The tenant was deleted by the resource that asked first, and had never been served."""
        self._delete: str | None = None
        """The latest delete that has begun."""
        self.withdrawn_at = checks.clock.now()
        self.requests = RequestLog()
        self.vanished: str | None = None
        """The version at which the tenant was served when its queue went, though nobody deleted the tenant."""

    def rows(self) -> Rows:
        table = self._all.table
        lock = table.lock(self.tenant)
        audits = {_key(audit): audit for audit in table.audits(self.tenant)}
        owner, entries = lock.run.execution if lock else None, len(table.history(self.tenant))
        return Rows(owner, table.metadata(self.tenant), audits, entries)

    @property
    def living(self) -> list[Stack]:
        """Its own stacks: not those that somebody else made under its name."""
        own = [stack for stack in self._all.stacks.living if stack.stack_id not in self._all.planted]
        return [stack for stack in own if stack.tenant_id == self.tenant.value]

    # Changes of rows

    def changed(self, caller: Caller, call: str, was: Rows, now: Rows) -> None:
        if now.said != was.said or call in ("table.correct", "table.adopt"):
            assert now.entries > was.entries, f"{caller} changes {was.said} into {now.said} by {call}, without a trace"
        if now.owner != was.owner:
            self._owner_changes(caller, call, was.owner, now)
        for key, audit in now.audits.items():
            if audit != was.audits.get(key):
                self._audit_changes(caller, call, was, was.audits.get(key), audit, now)
        if said_of(was) != said_of(now):
            resource = caller.resource or self._all.resource_of(caller.execution)
            self.check_owner(resource, "describes")
            self._all.seen["described by its own resource"] += resource is not None and resource == self.requests.owner
        if call == "table.correct" and now.metadata != was.metadata:
            assert now.owner is None, f"{caller} corrects what belongs to {now.owner}"
            self.served = now.served
            assert self.served is None or self.fits(self.served), f"{caller} corrects {was.served} to {now.served}"
        if call == "table.adopt":
            assert now.owner is None, f"{caller} adopts what belongs to {now.owner}"
            self._all.seen["adopted"] += 1
        if call == "table.forget_queue":
            self.withdrawn = None
        if call == "table.forget_queue" and was.served and not now.served:
            going = [stack for stack in self.living if stack.stack_id == was.metadata.stack_id]  # type: ignore[union-attr]
            going = [stack for stack in going if not stack.status.startswith(("DELETE_", "ROLLBACK_"))]
            assert not going, f"{caller} takes the queue of {going[0].stack_id} away, which is {going[0].status}"
            assert was.served
            self.served, self.vanished = None, was.served[1]

    def _owner_changes(self, caller: Caller, call: str, owner: str | None, now: Rows) -> None:
        now_owner = now.owner
        if owner is not None:
            by_itself = caller.role is Role.RUN and caller.execution == owner
            alive = self._all.runs[owner].alive
            assert by_itself or not alive, f"{caller} takes the lock of {_short(owner)}, which is at work"
            if not by_itself:
                self._all.seen["taken over" if now_owner else "settled"] += 1
        if now_owner is None:
            return
        assert caller.execution == now_owner, f"{caller} gives the lock to {now_owner}"
        assert call == "table.begin", f"{caller} takes the lock by {call}"
        run = self._all.runs[now_owner]
        if run.operation is Operation.DELETE:
            # One that takes over from another may be refused as that might have been.
            self.served, self.withdrawn = None, self.served or self.withdrawn
            self.to_go, self._delete, self.withdrawn_at = True, now_owner, self._all.clock.now()
        elif owner is not None and self._all.runs[owner].operation is Operation.DELETE:
            self._restore(owner, now)
        if run.operation is Operation.CREATE and not self.to_go:
            self.requests.begins(self._all.requester_of(now_owner), by_name=run.explicit)

    def check_owner(self, resource: StackResource | None, does: str) -> None:
        """A resource of another team deletes and describes only a tenant that it brought into being itself.

        Or was the first to try to, also if it failed.
        """
        owner = self.requests.owner if self.requests.owner is not None else self.requests.first
        mine = (
            resource is None
            or owner in (None, resource)
            or (self.requests.owner is None and self.requests.again(resource))
        )
        assert mine, f"{resource} {does} {self.tenant}, which was brought into being by {owner or 'nobody knows who'}"

    def _audit_changes(
        self, caller: Caller, call: str, was: Rows, was_audit: Audit | None, audit: Audit, now: Rows
    ) -> None:
        if call == "table.adopt":
            assert audit.execution not in self._all.runs, f"{caller} adopts {audit.execution}, which is Berth's own"
            return
        if audit.revived_by is not None and audit.revived_by != (was_audit and was_audit.revived_by):
            self._revived(caller, now)
            if was_audit is not None and replace(audit, revived_by=was_audit.revived_by) == was_audit:
                return
        run = self._all.runs.get(audit.execution)
        assert run is not None, f"{caller} writes the audit of {audit.execution}, which never was"
        name = _short(audit.execution)
        mine = caller.role is Role.RUN and caller.execution == audit.execution
        assert mine or not run.alive, f"{caller} closes {name}, which is at work"
        if was_audit is not None:
            assert was_audit.attempt <= audit.attempt, f"{caller} overwrites what came after it"
            over = was_audit.execution == audit.execution and was_audit.status is not Status.STARTED
            assert not over, f"{caller} has {name} end twice: {was_audit.status}, {audit.status}"
        self._all.seen[f"{audit.operation} {audit.status}{'' if mine else ', settled'}"] += 1
        if audit.status is Status.SUCCESS:
            assert was.owner == audit.execution, f"{name} succeeds, but the tenant belongs to {was.owner}"
            self._succeeded(audit, now)
        elif audit.operation is Operation.DELETE and was.owner == audit.execution and call == "table.fail":
            self._restore(audit.execution, now)
        if audit.root_cause:
            assert "was made for" not in audit.root_cause.reason, f"tenants are in each other's way: {audit.root_cause}"
            early = self._all.clock.now() - run.started_at <= DEADLINE
            lags = early and NOT_LISTED in audit.root_cause.reason
            assert not lags, f"{name} has failed because CloudFormation was late to list its queue: {audit.root_cause}"

    def _revived(self, caller: Caller, now: Rows) -> None:
        owner = now.owner
        assert owner == caller.execution, f"{caller} revives a tenant that belongs to {owner}"
        assert self._all.runs[owner].explicit, f"{caller} brings back a deleted tenant unasked"
        if self.to_go:
            self._check_reviver(self._all.resource_of(owner))
            wanted = self.requests.may_bring_back(owner, self._delete)
            assert wanted, f"{caller} brings back a deleted tenant, which nobody asked for since"
            # From now on it is another tenant of the same name.
            since = now.metadata.created_at if now.metadata else None
            # Unless its queue has vanished, and the delete has not touched its stack.
            assert since is None or self.vanished, (
                f"{caller} brings back a deleted tenant as the one that was created at {since}"
            )
            self.requests.is_gone()
            self.requests.begins(self._all.requester_of(owner), by_name=True)
            self._all.seen["revived"] += 1
        self.deleted = self.to_go = False

    def _check_reviver(self, resource: StackResource | None) -> None:
        """A resource brings back only what it has deleted, or the same resource of a stack of the same name."""
        if resource is None:
            return
        deleted_by = self._all.resource_of(self._delete or "")
        may = deleted_by is not None and resource.stands_for(deleted_by)
        if not may and self.free:
            self._all.seen["had by another after a rollback"] += 1
            return
        assert may, f"{resource} brings back {self.tenant}, which was deleted by {deleted_by or 'somebody else'}"
        self._all.seen["revived by its own resource"] += 1

    def _succeeded(self, audit: Audit, now: Rows) -> None:
        name, self.vanished = _short(audit.execution), None
        if audit.operation is Operation.DELETE:
            assert self.living == [], f"{name} has deleted, but there is {self.living}"
            self.check_owner(self._all.resource_of(audit.execution), "deletes")
            self.served, self.withdrawn, self.deleted, self.to_go = None, None, True, True
            self.free = self.requests.owner is None and self._all.resource_of(audit.execution) is not None
            self.requests.is_gone()
            return
        assert not self.deleted, f"{name} serves a deleted tenant"
        assert not self.to_go, f"{name} serves a tenant that is to be deleted"
        assert self.living, "a queue is served, but there is no stack"
        (stack,) = self.living
        if audit.operation is Operation.UPDATE:
            self.served = stack.queue, audit.version
            assert self.fits(self.served), f"{name} has succeeded, but the stack is at {stack.version}"
            self._all.seen["only recorded"] += stack.version != audit.version
        else:
            self.requests.is_there(self._all.requester_of(audit.execution))
            if self.served is None or not self.fits(self.served):
                self.served = stack.queue, stack.version
            self._check_description(audit, now)
        self.withdrawn = None

    def _check_description(self, create: Audit, now: Rows) -> None:
        """The labels and the pin that were accepted with that create have not been lost."""
        said = self.requests.described.pop(create.execution, None)
        if said is None or said.number != self.requests.sayings or now.metadata is None:
            return
        name, labels, pin = _short(create.execution), now.metadata.labels, now.metadata.pinned_version
        assert said.labels in (None, labels), f"{name} was asked for with labels {said.labels}, and they are {labels}"
        assert said.pin in (None, pin), f"{name} was asked for with the pin {said.pin}, and that is {pin}"
        self._all.seen["described"] += 1

    def _restore(self, delete: str, now: Rows) -> None:
        """A delete has failed, or died. If it has not touched the stack, the tenant is served again."""
        touched = delete in self._all.touched
        stands = [stack for stack in self.living if not stack.status.startswith("DELETE_")]
        if touched or self.withdrawn is None:
            self.served = None
        elif stands:
            self.served = self.withdrawn
        else:
            # Somebody deletes the stack by hand, and Berth may or may not have noticed.
            self.served = now.served and self.withdrawn
        self.to_go = self.served is None
        self.withdrawn = None
        self._all.seen["given back to service"] += self.served is not None

    def fits(self, served: Served) -> bool:
        """True if the stack has that queue and version, or a version with the same content."""
        (stack,) = self.living
        queue, version = served
        return stack.queue == queue and (stack.version is None or self._all.same_content(stack.version, version))

    # At any time

    def check(self) -> None:
        rows = self.rows()
        if rows.served:
            own = rows.served[0] in self._all.made.get(self.tenant, ())
            assert own, f"{self.tenant}: {rows.served[0]} is served, which was never in a stack of its own"
        assert rows.served == self.served, f"{self.tenant}: {rows.served} is served, not {self.served}"
        if rows.served and rows.metadata:
            gone = rows.metadata.stack_id in self._all.let_go
            assert not gone, f"{self.tenant}: a queue is served that has gone with its stack {rows.metadata.stack_id}"
            release = self._all.table.release(rows.metadata.version or "")
            fits = release is None or rows.metadata.tier == release.tier
            assert fits, f"{self.tenant} is of the tier {rows.metadata.tier}, at a release of another tier: {release}"
        assert len(self.living) <= 1, f"{self.tenant} has several stacks: {self.living}"
        started = [audit.execution for audit in rows.audits.values() if audit.status is Status.STARTED]
        owner = [rows.owner] if rows.owner else []
        assert started == owner, f"{self.tenant} belongs to {owner}, but {started} say Started"

    def check_answer(self, answer: Answer) -> None:
        """Check an answer of getQueue. Nothing else has happened during the call."""
        owner = self.rows().owner
        operation = self._all.runs[owner].operation if owner else None
        if self.served:
            assert isinstance(answer, Ready)
            assert (answer.queue, answer.version) == self.served, f"{answer} is answered, not {self.served}"
        elif operation is Operation.DELETE and owner and self._all.runs[owner].running:
            assert isinstance(answer, BeingDeleted), f"{self.tenant} is being deleted, and the answer is {answer}"
        elif self.deleted and owner is None:
            further = isinstance(answer, Failed) and answer.audit.operation is Operation.DELETE
            assert isinstance(answer, Deleted) or further, f"{self.tenant} is deleted, and the answer is {answer}"
        else:
            assert not isinstance(answer, Ready), f"nothing is served, and the answer is {answer}"
        self._all.seen[type(answer).__name__] += 1


class Checks:
    """The checks of all tenants, and of every call."""

    def __init__(
        self,
        table: InMemoryTable,
        stacks: TenantStacks,
        queues: LaggingQueues,
        executions: FakeExecutions,
        clock: FakeClock,
        tenants: Collection[TenantId],
    ) -> None:
        self.table = table
        self.stacks = stacks
        self.clock = clock
        self._queues, self._executions = queues, executions
        self.runs: dict[str, Run] = {}
        self.seen: Counter[str] = Counter()
        self.let_go: set[str] = set()
        """Stacks that are being deleted and whose queue is no longer recorded."""
        self.planted: set[str] = set()
        """Stacks that somebody else made under a tenant's name."""
        self.made: dict[TenantId, set[Queue]] = {}
        """The queues that CloudFormation has made in the stacks of each tenant."""
        self.touched: set[str] = set()
        """Deletes that have had CloudFormation delete a stack."""
        self.of = {tenant: TenantChecks(tenant, self) for tenant in tenants}

    def around(self, caller: Caller, name: str, call: Callable[[], Any]) -> Any:
        """Make the call, and see what it did."""
        if name in WRITES:
            with self._rows_compared(caller, name):
                return call()
        if name in CHANGES_A_STACK:
            with self._stacks_compared(caller, name):
                return call()
        result = call()
        if name == "executions.start" and result:
            self._accepted(caller, result)
        return result

    def _accepted(self, caller: Caller, execution: str) -> None:
        """The request was accepted: this execution was started for it, or was running already."""
        assert caller.role is not Role.FORGER, f"{caller} has started {execution} by a forged event"
        given, now = self._executions.inputs[execution], self.clock.now()
        asked = self.of[TenantId.parse(given["tenantId"])].requests
        if given["operation"] == Operation.DELETE:
            asked.delete(execution, caller.asked_at or now)
        elif given["operation"] == Operation.CREATE and caller.wants_it:
            asked.create(execution, asked_at=caller.asked_at or now, at=now)

    def _request(self, execution: str) -> dict[str, Any]:
        return cast(dict[str, Any], self._executions.inputs[execution].get("request", {}))

    def requester_of(self, execution: str) -> Requester:
        return request_from(self._request(execution)).requester

    def resource_of(self, execution: str) -> StackResource | None:
        """The resource of another team for which the execution was started, if it was for one."""
        known = execution in self._executions.inputs
        return request_from(self._request(execution)).resource if known else None

    def same_content(self, one: str | None, other: str | None) -> bool:
        if one == other:
            return True
        releases = [self.table.release(version) for version in (one or "", other or "")]
        return len({release and release.content for release in releases}) == 1 and None not in releases

    @contextmanager
    def _rows_compared(self, caller: Caller, name: str) -> Iterator[None]:
        before = {tenant: checks.rows() for tenant, checks in self.of.items()}
        yield
        for tenant, checks in self.of.items():
            now = checks.rows()
            if now != before[tenant]:
                assert caller.role is not Role.FORGER, f"a forged event of {caller} changes rows of {tenant}"
                assert caller.tenant in (None, tenant), f"{caller} of {caller.tenant} changes rows of {tenant}"
                checks.changed(caller, name, before[tenant], now)
                checks.check()

    @contextmanager
    def _stacks_compared(self, caller: Caller, name: str) -> Iterator[None]:
        assert caller.role is Role.RUN, f"{caller} calls {name}"
        assert caller.tenant is not None
        checks = self.of[caller.tenant]
        owner = checks.rows().owner
        assert owner == caller.execution, f"{caller} calls {name}, but the tenant belongs to {owner}"
        if name == "stacks.create":
            assert not checks.to_go, f"{caller} creates a stack of a deleted tenant"
        before = {stack_id: fake.stack for stack_id, fake in self.stacks.all.items()}
        yield
        for stack_id, fake in self.stacks.all.items():
            if fake.stack is not before.get(stack_id):
                whose = fake.stack.tenant_id
                assert stack_id not in self.planted, f"{caller} calls {name} on {stack_id}, which somebody else made"
                assert whose == caller.tenant.value, f"{caller} of {caller.tenant} changes the stack of {whose}"
                if name in ("stacks.execute_change_set", "stacks.update"):
                    self.seen["updated without a change set"] += name == "stacks.update"
                    template = self.stacks.executed(fake)
                    released = {release.template_url for release in self.table.releases()}
                    assert template in released, f"{caller} changes a stack to {template}, which is no release's"
                    self._updates(owner, stack_id)
                if name == "stacks.delete" and self.runs[owner].operation is Operation.DELETE:
                    checks.check_owner(self.resource_of(owner), "deletes")
                    self._deletes(owner, before[stack_id], checks.withdrawn_at)

    def _updates(self, owner: str, stack_id: str) -> None:
        if self._request(owner).get("allowReplacement"):
            return
        for queue in (self.stacks.outbound.get(stack_id), self.stacks.added.get(stack_id)):
            lost = self._queues.sent_before(self.runs[owner].started_at, queue.url) if queue else 0
            assert not lost, f"{_short(owner)} takes away a queue with {lost} messages that nobody has received"

    def _deletes(self, owner: str, stack: Stack, withdrawn_at: datetime) -> None:
        self.touched.add(owner)
        if self._request(owner).get("force") or stack.status.startswith("DELETE_"):
            return
        old = max(withdrawn_at, self.clock.now() - OLD_MESSAGE)
        for queue in (stack.queue, self.stacks.outbound.get(stack.stack_id)):
            lost = self._queues.sent_before(old, queue.url) if queue else 0
            assert not lost, f"{_short(owner)} deletes a queue with {lost} messages that nobody has received"

    def check(self) -> None:
        for checks in self.of.values():
            checks.check()


def said_of(rows: Rows) -> tuple[Mapping[str, str], str | None] | None:
    """The labels and the pin. Of a tenant that is gone nothing is said."""
    metadata = rows.metadata
    said = (metadata.labels, metadata.pinned_version) if metadata else ({}, None)
    return None if said == ({}, None) else said


def _key(audit: Audit) -> AuditKey:
    return audit.operation, None if audit.operation is Operation.DELETE else audit.version


def _short(execution: str) -> str:
    return execution.rpartition(":")[2]
