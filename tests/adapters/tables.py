"""What the tests of the table's contract share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

import pytest

from orchestrator.ports import FleetReader, OperationLedger, QueueMetadata, Releases, TenantReader
from orchestrator.records import Audit, Operation, Queue, Run, Status
from orchestrator.tenants import TenantId
from tests.fakes import (
    ACME,
    NOON,
    QUEUE,
    VERSION,
    a_run,
)

SECOND = timedelta(seconds=1)
LATER = NOON + timedelta(minutes=1)
LATER_STILL = NOON + timedelta(minutes=2)
LEGACY_TIME = datetime.fromisoformat("2020-08-31T16:02:16.808Z")
LEGACY_QUEUE = Queue("arn:aws:sqs:eu-west-1:0:in", "https://sqs.eu-west-1.amazonaws.com/0/in")

RUN = a_run()
OTHER_OPERATIONS = {
    "next attempt": a_run(2, started_at=LATER),
    "another version": a_run(version="0.2.0", started_at=LATER),
    "update": a_run(operation=Operation.UPDATE, started_at=LATER),
    "delete": a_run(operation=Operation.DELETE, started_at=LATER),
}
for_each_other_operation = pytest.mark.parametrize("other", list(OTHER_OPERATIONS.values()), ids=list(OTHER_OPERATIONS))


class Table(TenantReader, OperationLedger, QueueMetadata, FleetReader, Releases, Protocol):
    """All of it."""


@dataclass(frozen=True)
class Legacy:
    """Puts rows there as they were written before versions were part of keys and attempts were counted."""

    metadata: Callable[[TenantId], None]
    audit: Callable[[Operation, Status, str | None], None]


def everything(table: Table, tenant: TenantId = ACME) -> tuple[object, ...]:
    """All that is known of a tenant, to see that nothing of it has changed."""
    return (table.metadata(tenant), list(table.audits(tenant)), list(table.history(tenant)), table.lock(tenant))


def outcomes(table: Table, run: Run) -> list[Status]:
    return [entry.status for entry in table.history(run.tenant) if entry.execution == run.execution]


def publish(table: Table, run: Run = RUN, *, at: datetime = LATER, version: str = VERSION) -> None:
    table.publish(run, stack_id="stack-1", queue=QUEUE, version=version, at=at)


def audit_of(table: Table, run: Run) -> Audit:
    (audit,) = [audit for audit in table.audits(run.tenant) if audit.execution == run.execution]
    return audit
