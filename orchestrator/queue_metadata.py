"""What a tenant's stack says about its own queue, whoever changes the stack, also on rollback.

It is recorded at once and served only after an operation has published a version.
"""

from __future__ import annotations

from orchestrator.ports import Clock, QueueMetadata
from orchestrator.records import Queue
from orchestrator.tenants import TenantId


def record_queue(tenant: TenantId, *, stack_id: str, queue: Queue, ledger: QueueMetadata, clock: Clock) -> None:
    """The stack has this queue now."""
    ledger.record_queue(tenant, stack_id=stack_id, queue=queue, at=clock.now())


def forget_queue(tenant: TenantId, *, stack_id: str, ledger: QueueMetadata) -> bool:
    """The stack has let go of its queue. Only what this very stack wrote is removed."""
    return ledger.forget_queue(tenant, stack_id=stack_id)
