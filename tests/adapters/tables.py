"""Helpers of the tests of the table's contract."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol

import pytest

from orchestrator.adapters.dynamodb.tenants import DynamoTable
from orchestrator.common.tenant_ids import TenantId
from orchestrator.reconciling.ports import Corrections
from orchestrator.releases.ports import Releases
from orchestrator.tenants.history import HistoryEntry
from orchestrator.tenants.ledger import Ledger
from orchestrator.tenants.listings import ListedTenant
from orchestrator.tenants.ports import (
    FleetReader,
    OperationLedger,
    Publication,
    QueueMetadata,
    TenantDescriptions,
    TenantReader,
)
from orchestrator.tenants.records import Audit, Lock, Metadata, Operation, Queue, Run, Status, TenantState
from tests.fakes import (
    ACME,
    NEXT_VERSION,
    NOON,
    QUEUE,
    VERSION,
    a_run,
    take,
)
from tests.present import present

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

SECOND = timedelta(seconds=1)
LATER = NOON + timedelta(minutes=1)
LATER_STILL = NOON + timedelta(minutes=2)
LEGACY_TIME = datetime.fromisoformat("2020-08-31T16:02:16.808Z")
LEGACY_QUEUE = Queue("arn:aws:sqs:eu-west-1:0:in", "https://sqs.eu-west-1.amazonaws.com/0/in")
LEGACY_OUTBOUND_QUEUE = Queue("arn:aws:sqs:eu-west-1:0:out", "https://sqs.eu-west-1.amazonaws.com/0/out")
LEGACY_VERSION = "0.1.12"

RUN = a_run()
UPDATE = a_run(operation=Operation.UPDATE, version=NEXT_VERSION, started_at=LATER)
DELETE = a_run(operation=Operation.DELETE, started_at=LATER)
OTHER_OPERATIONS = {
    "next attempt": a_run(2, started_at=LATER),
    "another version": a_run(version=NEXT_VERSION, started_at=LATER),
    "update": UPDATE,
    "delete": DELETE,
}
for_each_other_operation = pytest.mark.parametrize("other", list(OTHER_OPERATIONS.values()), ids=list(OTHER_OPERATIONS))
for_each_operation = pytest.mark.parametrize("run", [RUN, UPDATE, DELETE], ids=["create", "update", "delete"])

NOTHING_ABOUT_ACME = Metadata(ACME, None, None, None, None, None)
"""The metadata of a tenant whose first operation has begun."""


class Table(
    TenantReader, OperationLedger, QueueMetadata, TenantDescriptions, FleetReader, Releases, Corrections, Protocol
):
    """All of it."""


class WholeTable(DynamoTable, Ledger):
    """DynamoDB's table, and the ledger that writes it."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        DynamoTable.__init__(self, client, table)
        Ledger.__init__(self, self)


@dataclass(frozen=True)
class Legacy:
    """Puts rows there as they were written before versions were part of keys and attempts were counted."""

    metadata: Callable[[TenantId], None]
    audit: Callable[[Operation, Status, str | None], None]


Everything = tuple[Metadata | None, list[Audit], list[HistoryEntry], Lock | None, list[ListedTenant]]


def everything(table: Table, tenant: TenantId = ACME) -> Everything:
    """All that is known of a tenant, to see that nothing of it has changed."""
    return (
        table.metadata(tenant),
        list(table.audits(tenant)),
        list(table.history(tenant)),
        table.lock(tenant),
        [listed for listed in listed_tenants(table) if listed.tenant == tenant],
    )


NOTHING: Everything = (None, [], [], None, [])


def listed_tenants(table: Table) -> list[ListedTenant]:
    return [listed for state in TenantState for listed in table.tenants_in(state, limit=100)]


def states(table: Table, tenant: TenantId = ACME) -> list[TenantState]:
    """The states that the tenant is listed in: one, or none."""
    return [listed.state for listed in listed_tenants(table) if listed.tenant == tenant]


def outcomes(table: Table, run: Run) -> list[Status]:
    return [entry.status for entry in table.history(run.tenant) if entry.execution == run.execution]


def publish(
    table: Table,
    run: Run = RUN,
    *,
    at: datetime = LATER,
    version: str = VERSION,
    queue: Queue = QUEUE,
    deployed: str | None = None,
    stack_changed_at: datetime | None = None,
) -> None:
    publication = Publication("stack-1", queue, version, deployed, stack_changed_at=stack_changed_at)
    table.publish(run, publication, at=at)


def create(table: Table, tenant: TenantId = ACME, version: str = VERSION) -> None:
    """A tenant that is served."""
    run = a_run(tenant=tenant)
    take(table, run)
    publish(table, run, at=NOON + SECOND, version=version)


def delete(table: Table, tenant: TenantId = ACME, at: datetime = LATER) -> None:
    """A tenant that was served, and is deleted."""
    create(table, tenant)
    run = a_run(operation=Operation.DELETE, tenant=tenant, started_at=at)
    take(table, run)
    table.remove(run, at=at + SECOND)


def audit_of(table: Table, run: Run) -> Audit:
    (audit,) = [audit for audit in table.audits(run.tenant) if audit.execution == run.execution]
    return audit


def metadata_of(table: Table, tenant: TenantId = ACME) -> Metadata:
    return present(table.metadata(tenant))
