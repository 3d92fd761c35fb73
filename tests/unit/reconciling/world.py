"""A fleet with its stacks and everything that reconciling needs, in memory; and what may happen to it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from orchestrator.common.tenant_ids import TenantId
from orchestrator.reconciling.records import (
    Finding,
    Kind,
    Reconciliation,
    ReconciliationStatus,
    Remedy,
    Spec,
)
from orchestrator.tenants.ports import Publication
from orchestrator.tenants.records import Audit, Operation, Queue, RootCause, Run, Status
from orchestrator.tenants.stack_ports import Stack
from orchestrator.tenants.writes import MetadataKey
from tests.fakes import (
    NAMES,
    NEXT_VERSION,
    NOON,
    VERSION,
    FakeStacks,
    InMemoryTable,
    World,
    a_run,
    an_audit,
    some_metadata,
    take,
)
from tests.fakes.reconciling import InMemoryReconciliations

ADA = "arn:aws:sts::000000000000:assumed-role/operator/ada"
RECONCILIATION = "20261116-120000-abcd"
A_MINUTE = timedelta(minutes=1)
LONG_AGO = NOON - timedelta(days=1)


def tenant(name: str) -> TenantId:
    return TenantId.parse(name)


def queue_of(who: TenantId, number: int = 1) -> Queue:
    name = f"{NAMES.stack_of(who)}-InboundQueue-{number}"
    return Queue(f"arn:aws:sqs:eu-west-1:000000000000:{name}", f"https://sqs.eu-west-1.amazonaws.com/0/{name}")


def a_finding(kind: Kind = Kind.MISSING_STACK, remedy: Remedy = Remedy.NONE, **more: Any) -> Finding:
    return Finding(kind, "acme", "something differs", remedy, **more)


def asked_for(spec: Spec | None = None, **more: Any) -> Reconciliation:
    return replace(
        Reconciliation(RECONCILIATION, ADA, spec or Spec(), ReconciliationStatus.PENDING, NOON, NOON), **more
    )


def kinds(reconciliation: Reconciliation) -> list[tuple[Kind, str]]:
    """The kind and the subject of each finding."""
    return [(finding.kind, finding.subject) for finding in reconciliation.findings]


def only(reconciliation: Reconciliation) -> Finding:
    (finding,) = reconciliation.findings
    return finding


class MeddledTable(InMemoryTable):
    """The table, in which somebody else writes something just before an operation's end is written."""

    def __init__(self) -> None:
        super().__init__()
        self.meddler: Callable[[], object] = lambda: None

    def publish(self, run: Run, publication: Publication, *, at: datetime) -> None:
        self.meddler()
        super().publish(run, publication, at=at)

    def remove(self, run: Run, *, at: datetime) -> None:
        self.meddler()
        super().remove(run, at=at)

    def fail(self, run: Run, cause: RootCause, at: datetime, *, restore: bool = False) -> bool:
        self.meddler()
        return super().fail(run, cause, at, restore=restore)


class FlakyStacks(FakeStacks):
    """CloudFormation that has no time for one of the next calls."""

    def __init__(self) -> None:
        super().__init__()
        self._calls_until_throttled = 0

    def throttle(self, call: int) -> None:
        self._calls_until_throttled = call

    def _called(self, method: str) -> None:
        self._calls_until_throttled -= 1
        self.throttled_calls = int(self._calls_until_throttled == 0)
        super()._called(method)


class RememberedReconciliations(InMemoryReconciliations):
    """Everything that was ever recorded, not only the latest."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[Reconciliation] = []

    def record_reconciliation(self, reconciliation: Reconciliation) -> None:
        super().record_reconciliation(reconciliation)
        self.written.append(reconciliation)


class FleetWithStacks(World):
    """A fleet with its stacks, and what may happen to it."""

    table: MeddledTable
    stacks: FlakyStacks
    reconciliation_table: RememberedReconciliations

    def __init__(self) -> None:
        table, ran = MeddledTable(), RememberedReconciliations()
        super().__init__(version=NEXT_VERSION, table=table, stacks=FlakyStacks(), reconciliation_table=ran)

    # Tenants

    def add(self, name: str, *, version: str = VERSION, stack_version: str | None = None, **metadata: Any) -> TenantId:
        """A tenant that is served, from a stack that is as it should be unless told otherwise."""
        who = tenant(name)
        self.table.plant_audit(an_audit(Status.SUCCESS, tenant=who, version=version, at=LONG_AGO))
        stack = self.stacks.plant_done(who, version=stack_version or version, queue=queue_of(who))
        recorded = some_metadata(tenant=who, version=version, queue=queue_of(who))
        self.table.plant_metadata(replace(recorded, **{"stack_id": stack.stack_id} | metadata))
        return who

    def delete(self, who: TenantId) -> None:
        """By the rows: its stack is left to whoever tells the story."""
        self.table.plant_audit(an_audit(Status.SUCCESS, Operation.DELETE, tenant=who, at=LONG_AGO + A_MINUTE))
        self.table.drop(MetadataKey(who))

    def take_stack_away(self, who: TenantId) -> None:
        for stack in self.stacks_of(who):
            self.stacks.change(stack.stack_id, "DELETE_COMPLETE")

    def stacks_of(self, who: TenantId) -> list[Stack]:
        return [stack for stack in self.stacks.living if stack.tenant_id == who.value]

    def drifting(self, fleet: int) -> list[str]:
        """So many tenants are added; every other one's stack has drifted."""
        names = [f"t{number:02}" for number in range(fleet)]
        for name in names:
            self.add(name)
        for name in names[::2]:
            (stack,) = self.stacks_of(tenant(name))
            self.survey.drifted[stack.stack_id] = "1 of its resources"
        return names[::2]

    # Operations

    def begin(self, run: Run) -> Run:
        """Its execution runs, and owns the tenant."""
        assert self.executions.start(run.attempt, run.request) == run.execution
        assert take(self.table, run) is None
        return run

    def begin_and_die(self, run: Run) -> Run:
        self.begin(run)
        self.executions.end(run.execution)
        return run

    def die_at_once(self, name: str, *, at: datetime = NOON) -> Run:
        """A create that took its tenant's lock, and no step more."""
        return self.begin_and_die(a_run(tenant=tenant(name), started_at=at))

    # Looking

    def audit(self, who: TenantId, operation: Operation = Operation.CREATE) -> Audit:
        (found,) = (audit for audit in self.table.audits(who) if audit.operation is operation)
        return found

    def rows(self) -> object:
        """All that the table holds, to compare it with later."""
        # A tenant that was only read has no rows.
        tenants = {who: rows for who, rows in self.table.tenants.items() if rows}
        return copy.deepcopy((tenants, self.table.histories, self.table.releases()))

    def ordered(self) -> list[tuple[Operation, str, str]]:
        """The operation, tenant and version of each execution that was started."""
        return [(attempt.operation, attempt.tenant.value, attempt.version) for attempt, _ in self.executions.started]

    def reconcile(self, spec: Spec | None = None, **more: Any) -> Reconciliation:
        return self.reconciler(**more).run(asked_for(spec))
