"""A tenant's stack says that it has a queue, or has none any more, whoever changes the stack, also on rollback.

It is recorded at once and served only after an operation has published a version.
"""

from __future__ import annotations

from orchestrator.common.errors import StackNotOurs, Throttled, Unsettled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import Clock
from orchestrator.tenants.changes import replacement
from orchestrator.tenants.own_stack import is_on_record, is_ours
from orchestrator.tenants.ports import QueueMetadata, Stacks, TenantReader
from orchestrator.tenants.records import Metadata, Queue

_ROUNDS = 3
"""How often a queue is recorded again that another event's came before."""


def record_queue(
    tenant: TenantId,
    *,
    stack_id: str,
    told: Queue,
    reader: TenantReader,
    ledger: QueueMetadata,
    stacks: Stacks,
    clock: Clock,
) -> None:
    """The stack says that it has a queue: record the one that CloudFormation lists among the stack's resources.

    Whoever may call the function may say anything. So ``told``, the queue that the stack's resource was given, counts
    in one case only: it is what is on record for that stack already. Then CloudFormation is not asked.
    """
    for _ in range(_ROUNDS):
        metadata = reader.metadata(tenant)
        queue = _queue_to_record(tenant, stack_id, told, metadata, stacks)
        if queue is None:
            return
        at = clock.now()
        change = None
        if metadata and _changed_by_hand(metadata, queue, reader):
            change = replacement(metadata, queue, stack_id=stack_id, at=at)
        # What CloudFormation listed a moment ago must not take the place of what another event has recorded since.
        if ledger.record_queue(tenant, stack_id=stack_id, queue=queue, at=at, seen=metadata, change=change):
            return
    raise Unsettled(f"Tenant {tenant}: its queue could not be recorded, others came before {_ROUNDS} times.")


def _changed_by_hand(metadata: Metadata, queue: Queue, reader: TenantReader) -> bool:
    """A tenant that is served has another queue, though no operation on it is at work."""
    return metadata.published and metadata.queue not in (None, queue) and reader.lock(metadata.tenant) is None


def _queue_to_record(
    tenant: TenantId, stack_id: str, told: Queue, metadata: Metadata | None, stacks: Stacks
) -> Queue | None:
    if not _may_speak(tenant, stack_id, metadata, stacks):
        raise StackNotOurs(f"Tenant {tenant}: stack {stack_id} is not the one on record, so it provides no queue.")
    served = metadata if metadata and metadata.version is not None else None
    if served and (served.stack_id, served.queue) == (stack_id, told):
        return told  # Whoever says so changes nothing.
    try:
        return _own_queue(tenant, stack_id, served, stacks)
    except Throttled:
        if served is None:
            return None  # Nobody is served from the stack yet; the operation on it publishes the queue when it ends.
        raise


def _may_speak(tenant: TenantId, stack_id: str, metadata: Metadata | None, stacks: Stacks) -> bool:
    """Whether the stack bears the tenant's stack name, or is on record as the tenant's under another one."""
    return stacks.names.is_stack_of(tenant, stack_id) or is_on_record(stack_id, metadata)


def _own_queue(tenant: TenantId, stack_id: str, served: Metadata | None, stacks: Stacks) -> Queue | None:
    """``None`` if CloudFormation does not list the queue of a new stack yet, or does not show the stack itself.

    Then nothing is recorded, and the stack is not refused either: the operation on it publishes the queue when it ends.
    """
    is_new = served is None or served.stack_id != stack_id
    if is_new:
        stack = stacks.find(stack_id)
        if stack is None:
            return None
        if not is_ours(stack, served, stacks):
            raise StackNotOurs(f"Tenant {tenant}: stack {stack_id} was not made by Berth, so it provides no queue.")
    queue = stacks.queue(stack_id)
    if queue is None and not is_new:
        raise StackNotOurs(f"Tenant {tenant}: CloudFormation lists no queue of the tenant in stack {stack_id}.")
    return queue


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
    if not _may_speak(tenant, stack_id, metadata, stacks):
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
