"""The migration of an earlier system's rows, over the table in memory."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, cast

from orchestrator.adapters.migration import Migration, Plan, Seen
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import Clock
from orchestrator.tenants.records import Request
from orchestrator.tenants.writes import Transition


class InMemoryMigration(Migration):
    # Any: in the simulation, the ports are watched.
    def __init__(self, table: Any, stacks: Any, queues: Any, clock: Clock) -> None:
        super().__init__(cast(Any, table), "", stacks, stacks.stack_with, queues, clock, sleep=lambda _seconds: None)
        self.rows = table

    def candidates(self, _show: Callable[[str], None]) -> Collection[str]:
        found: list[TenantId] = self.rows.every_tenant()
        for seen in map(self.rows.seen, found):
            if metadata := seen.metadata:
                queue_arn = metadata.queue.arn if metadata.queue else None
                self.note(seen.tenant.value, metadata.stack_id, queue_arn, listed=seen.listed)
        return [tenant.value for tenant in found]

    def read(self, tenant: TenantId) -> Seen:
        return cast(Seen, self.rows.seen(tenant))

    def apply(self, writes: Transition) -> bool:
        return bool(self.rows.adopt(writes))

    def adopt_all(self, request: Request, *, dry_run: bool = False) -> list[tuple[Plan, str | None]]:
        """What `berth adopt` does: find all, then adopt them. The plans, and why each tenant was not adopted."""
        plans = list(self.find(lambda _line: None))
        if dry_run:
            return [(plan, plan.detail) for plan in plans]
        return [(plan, plan.detail if plan.seen is None else self.adopt(plan, request)) for plan in plans]
