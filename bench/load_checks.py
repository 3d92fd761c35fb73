"""Checks after a load test: every tenant is in service, by one execution, and nothing is left over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.ports import TenantReader
from orchestrator.tenants.records import Attempt, Audit, Lock, Operation, Status

TenantMap = Callable[[Callable[[TenantId], Sequence[str]], Sequence[TenantId]], Iterable[Sequence[str]]]


class Records(TenantReader, Protocol):
    def lock(self, tenant: TenantId) -> Lock | None: ...

    def unfinished_operations(self) -> Iterable[Audit]: ...


@dataclass(frozen=True, slots=True)
class Execution:
    name: str
    status: str
    started_at: datetime
    ended_at: datetime | None


def tenants_not_served(records: Records, tenants: Sequence[TenantId], *, each: TenantMap = map) -> list[str]:
    """Problems of tenants whose rows are not those of one successful create; ``each`` may check many at once."""

    def check(tenant: TenantId) -> Sequence[str]:
        return _not_served(records, tenant)

    return [problem for problems in each(check, tenants) for problem in problems]


def _not_served(records: Records, tenant: TenantId) -> Sequence[str]:
    audits, metadata, lock = records.audits(tenant), records.metadata(tenant), records.lock(tenant)
    problems = []
    if [(audit.operation, audit.status) for audit in audits] != [(Operation.CREATE, Status.SUCCESS)]:
        operations = ", ".join(_described(audit) for audit in audits) or "none"
        problems.append(f"{tenant}: its operations are not one create that succeeded, but {operations}")
    if metadata is None or not metadata.published or metadata.queue is None:
        problems.append(f"{tenant}: no queue is published")
    if lock is not None:
        problems.append(f"{tenant}: still locked by {lock.run.execution}")
    return problems


def _described(audit: Audit) -> str:
    return f"{audit.operation} {audit.status}{f' ({audit.root_cause})' if audit.root_cause else ''}"


def wrong_executions(executions: Sequence[Execution], tenants: Sequence[TenantId], version: str) -> list[str]:
    """Problems with the executions: each tenant must have exactly one, its first, and all must have succeeded."""
    expected = Counter(Attempt(tenant, Operation.CREATE, version, 1).name for tenant in tenants)
    found = Counter(execution.name for execution in executions)
    return [
        *(f"{name}: never executed" for name in expected - found),
        *(f"{name}: executed, though one execution per tenant was expected" for name in found - expected),
        *(f"{each.name}: {each.status}" for each in executions if each.status != "SUCCEEDED"),
    ]


def left_over(records: Records, messages: Mapping[str, int]) -> list[str]:
    """Unfinished operations in the index, and queues of the control plane that have messages."""
    return [
        *(f"{audit.tenant}: {audit.execution} is unfinished" for audit in records.unfinished_operations()),
        *(f"{queue}: {count} messages" for queue, count in messages.items() if count),
    ]


def max_at_once(executions: Sequence[Execution]) -> int:
    """The maximum number of executions that ran at the same time."""
    changes = [(each.started_at, 1) for each in executions]
    changes += [(each.ended_at, -1) for each in executions if each.ended_at is not None]
    running = maximum = 0
    for _, change in sorted(changes):
        running += change
        maximum = max(maximum, running)
    return maximum
