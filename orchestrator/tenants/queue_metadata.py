"""A tenant's stack reports its queue through a custom resource, on every change of the stack, also on rollbacks.

The queue is recorded at once, and served only after an operation has published a version.
"""

from __future__ import annotations

from orchestrator.common.errors import StackNotOurs, Throttled, Unsettled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import Clock
from orchestrator.tenants.changes import replacement
from orchestrator.tenants.own_stack import is_given_away, is_ours, is_recorded
from orchestrator.tenants.ports import QueueMetadata, TenantReader
from orchestrator.tenants.records import Metadata, Queue
from orchestrator.tenants.stack_ports import Stacks

_ROUNDS = 3
"""The maximum number of tries to record a queue while other events record theirs."""


def record_queue(
    tenant: TenantId,
    *,
    stack_id: str,
    reported: Queue,
    reader: TenantReader,
    ledger: QueueMetadata,
    stacks: Stacks,
    clock: Clock,
) -> None:
    """Record the queue that CloudFormation lists among the stack's resources.

    ``reported``, the queue in the event, may be forged. It is used only if it is already recorded for that stack, and
    then no call is needed.
    """
    for _ in range(_ROUNDS):
        metadata = reader.metadata(tenant)
        if is_given_away(tenant, metadata):
            return  # The stack has not learned yet which tenant has taken it, or its update was rolled back.
        queue = _queue_to_record(tenant, stack_id, reported, metadata, stacks)
        if queue is None:
            return
        at = clock.now()
        change = None
        if metadata and _changed_by_hand(metadata, queue, reader):
            change = replacement(metadata, queue, stack_id=stack_id, at=at)
        # If another event has recorded a queue since the metadata was read, that queue must not be overwritten.
        if ledger.record_queue(tenant, stack_id=stack_id, queue=queue, at=at, seen=metadata, change=change):
            return
    raise Unsettled(
        f"Tenant {tenant}: the queue of stack {stack_id} could not be recorded, because other events changed the "
        f"tenant's queue {_ROUNDS} times at the same moment. Update the stack again."
    )


def _changed_by_hand(metadata: Metadata, queue: Queue, reader: TenantReader) -> bool:
    """True if a tenant that is served has another queue although no operation is running."""
    return metadata.published and metadata.queue not in (None, queue) and reader.lock(metadata.tenant) is None


def _queue_to_record(
    tenant: TenantId, stack_id: str, reported: Queue, metadata: Metadata | None, stacks: Stacks
) -> Queue | None:
    if not _may_be_tenants(tenant, stack_id, metadata, stacks):
        raise StackNotOurs(
            f"Tenant {tenant}: stack {stack_id} is not recorded as the tenant's, so its queue was not recorded."
        )
    served = metadata if metadata and metadata.version is not None else None
    if served and (served.stack_id, served.queue) == (stack_id, reported):
        return reported  # The queue is recorded already, so a forged event changes nothing.
    try:
        return _own_queue(tenant, stack_id, served, stacks)
    except Throttled:
        if served is None:
            return None  # The tenant is not served from the stack yet. The operation publishes the queue when it ends.
        raise


def _may_be_tenants(tenant: TenantId, stack_id: str, metadata: Metadata | None, stacks: Stacks) -> bool:
    """True if the stack has the tenant's stack name, or is recorded as the tenant's."""
    return stacks.names.is_stack_of(tenant, stack_id) or is_recorded(stack_id, metadata)


def _own_queue(tenant: TenantId, stack_id: str, served: Metadata | None, stacks: Stacks) -> Queue | None:
    """The queue among the stack's resources; ``None`` if CloudFormation does not show a new stack or its queue yet.

    In that case nothing is recorded and no error is raised: the operation publishes the queue when it ends.
    """
    is_new = served is None or served.stack_id != stack_id
    if is_new:
        stack = stacks.find(stack_id)
        if stack is None:
            return None
        if not is_ours(stack, served, stacks):
            raise StackNotOurs(
                f"Tenant {tenant}: stack {stack_id} was not made by Berth, so its queue was not recorded."
            )
    queue = stacks.queue(stack_id)
    if queue is None and not is_new:
        raise StackNotOurs(
            f"Tenant {tenant}: CloudFormation lists no queue of the tenant in stack {stack_id}. Nothing was recorded."
        )
    return queue


def forget_queue(
    tenant: TenantId, *, stack_id: str, reader: TenantReader, ledger: QueueMetadata, stacks: Stacks
) -> bool:
    """Remove the queue of a stack that is being deleted from the metadata, if this stack recorded it.

    The queue stays if only the custom resource is deleted. That happens when the update that added it to the stack of
    an older tenant is rolled back.
    """
    metadata = reader.metadata(tenant)
    if (
        metadata is None
        or metadata.given_to is not None
        or (metadata.published and metadata.stack_id not in (None, stack_id))
    ):
        return False
    if not _may_be_tenants(tenant, stack_id, metadata, stacks):
        return False
    try:
        stack = stacks.find(stack_id)
    except Throttled:
        if metadata.published:
            raise
        stack = None  # An operation is running, almost certainly a delete or a create that failed.
    if stack is not None and not stack.status.startswith(("DELETE_", "ROLLBACK_")):
        return False
    if metadata.stack_id != stack_id:
        # The row does not name the stack, but an operation may have found it by its name and be about to publish it.
        # An event that is repeated after the stack was deleted has no effect.
        is_going = stack is not None and stack.status.endswith("_IN_PROGRESS")
        if not is_going or ledger.mark_gone(tenant, stack_id=stack_id):
            return False
        metadata = reader.metadata(tenant)  # An operation may have published the stack since the first read.
        if metadata is None or metadata.stack_id != stack_id:
            return False
    is_repeated = stack is not None and stack.status == "DELETE_COMPLETE" and not metadata.published
    if is_repeated and metadata.gone_stack_id not in (None, stack_id):
        return False  # The repeated event must not overwrite the id of a later stack that was deleted.
    return ledger.forget_queue(tenant, stack_id=stack_id)
