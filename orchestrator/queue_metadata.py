"""What a tenant's stack says about its own queue, whoever changes the stack, also on rollback.

It is recorded at once and served only after an operation has published a version.
"""

from __future__ import annotations

from orchestrator.errors import Throttled
from orchestrator.ports import Clock, QueueMetadata, Stacks, TenantReader
from orchestrator.records import Queue
from orchestrator.tenants import TenantId


def record_queue(tenant: TenantId, *, stack_id: str, queue: Queue, ledger: QueueMetadata, clock: Clock) -> None:
    """The stack has this queue now."""
    ledger.record_queue(tenant, stack_id=stack_id, queue=queue, at=clock.now())


def forget_queue(
    tenant: TenantId, *, stack_id: str, reader: TenantReader, ledger: QueueMetadata, stacks: Stacks
) -> bool:
    """The stack has let go of its queue. Only what this very stack wrote is removed.

    And only if the whole stack goes: undoing an update that brought the custom resource (the first one of a tenant
    from before there was one) takes that away again, and leaves the queue.
    """
    metadata = reader.metadata(tenant)
    if metadata is None or (metadata.published and metadata.stack_id not in (None, stack_id)):
        return False
    try:
        stack = stacks.find(stack_id)
    except Throttled:
        if metadata.published:
            raise
        stack = None  # An operation is at it, and hardly any but a delete or a failed create lets go of its queue.
    if stack is not None and not stack.status.startswith(("DELETE_", "ROLLBACK_")):
        return False
    if metadata.stack_id != stack_id:
        # The row does not name the stack, but an operation may have found it by its name, and be about to publish it.
        # An event that comes again when the stack has long gone says nothing new.
        if stack is not None and stack.status.endswith("_IN_PROGRESS"):
            ledger.mark_gone(tenant, stack_id=stack_id)
        return False
    again = stack is not None and stack.status == "DELETE_COMPLETE" and not metadata.published
    if again and metadata.gone_stack_id not in (None, stack_id):
        return False  # It must not hide that a later stack has gone.
    return ledger.forget_queue(tenant, stack_id=stack_id, vanished=metadata.published)
