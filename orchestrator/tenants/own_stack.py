"""Which stack belongs to a tenant. Stack names can be computed, so anybody may create a stack with a tenant's name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from orchestrator.common.errors import StackNotOurs, StackOutOfReach
from orchestrator.common.stack_arns import name_of
from orchestrator.common.tenant_ids import WARM_PREFIX, TenantId
from orchestrator.releases.template_contract import DEAD_LETTER_QUEUE, OUTBOUND_QUEUE, SERVICE_TOKEN_PARAMETER
from orchestrator.tenants.names import LEGACY_PREFIXES_SETTING, Names
from orchestrator.tenants.ports import TenantReader
from orchestrator.tenants.records import Metadata, Queue
from orchestrator.tenants.stack_ports import Stack, Stacks
from orchestrator.tenants.stack_status import StackCondition, condition


def own_stack(tenant: TenantId, *, reader: TenantReader, stacks: Stacks) -> Stack | None:
    """The tenant's stack, if it exists. See :func:`own_stack_by`."""
    return own_stack_by(reader.metadata(tenant), tenant, stacks)


def own_stack_by(metadata: Metadata | None, tenant: TenantId, stacks: Stacks) -> Stack | None:
    """The tenant's stack, if it exists, by the tenant's metadata.

    Raises :class:`StackNotOurs` if somebody else's stack has the tenant's stack name, and :class:`StackOutOfReach` if
    this deployment has no permission for the recorded stack.
    """
    if reason := why_out_of_reach(metadata, stacks.names):
        raise StackOutOfReach(reason)
    stack = find_stack(tenant, metadata, stacks)
    if stack is None or condition(stack.status) is StackCondition.GONE:
        return None
    if not is_for(tenant, stack, metadata):
        raise StackNotOurs(
            f"Tenant {tenant}: stack {stack.stack_id} has this tenant's stack name, but was made for "
            f"{stack.tenant_id or 'something else'}. Delete the stack by hand if nobody needs it."
        )
    if not is_ours(stack, metadata, stacks):
        raise StackNotOurs(
            f"Tenant {tenant}: stack {stack.stack_id} has this tenant's stack name, but Berth did not make it: its "
            f"service role is not this deployment's, and the tenant was never served from it. {advice_about(stack)}"
        )
    return stack


def find_stack(tenant: TenantId, metadata: Metadata | None, stacks: Stacks) -> Stack | None:
    """The recorded stack, if an earlier system made it with another name. Otherwise the one with the tenant's name.

    Berth creates no stacks with other names: once such a stack was deleted, the next one has the tenant's name. A stack
    that was kept ready has its own name still, and belongs to the tenant that has taken it.
    """
    if is_given_away(tenant, metadata):
        return None
    name, recorded = stacks.names.stack_of(tenant), recorded_stack(metadata)
    if recorded is not None and name_of(recorded) != name:
        stack = stacks.find(recorded)
        if stack is not None and condition(stack.status) is not StackCondition.GONE:
            return stack
    return stacks.find(name)


def is_given_away(tenant: TenantId, metadata: Metadata | None) -> bool:
    """True if this was the id of a stack that was kept ready, and a tenant has taken the stack.

    Its record goes once the stack has learned its tenant. A delete that begins only then writes another record, which
    has no owner.
    """
    return tenant.is_warm and (metadata is None or metadata.given_to is not None or metadata.created_by is None)


def recorded_stack(metadata: Metadata | None) -> str | None:
    """The recorded id of the tenant's stack, also of one that is being deleted or could not be deleted."""
    return (metadata.stack_id or metadata.gone_stack_id) if metadata else None


def why_out_of_reach(metadata: Metadata | None, names: Names) -> str | None:
    """Why this deployment may not change the tenant's stack: its settings lack the prefix of the stack's name."""
    recorded = recorded_stack(metadata)
    if metadata is None or recorded is None or names.reaches(name_of(recorded)):
        return None
    return (
        f"Tenant {metadata.tenant}: its stack {name_of(recorded)} was adopted, but this control plane may not change "
        f"stacks with such names. Deploy with a prefix of that name in {LEGACY_PREFIXES_SETTING}, then send the "
        "request again."
    )


def is_from_before(metadata: Metadata | None) -> bool:
    """True if the tenant is served from a stack that is not recorded: Berth records the stack with each version."""
    return metadata is not None and metadata.version is not None and recorded_stack(metadata) is None


def has_unknown_stack(metadata: Metadata | None, names: Names) -> bool:
    """True if the tenant is served from a stack that is not recorded: an earlier system made it with another name.

    CloudFormation names queues after their stacks, so a queue with another name is in a stack with another name.
    """
    if metadata is None or metadata.queue is None or metadata.version is None or recorded_stack(metadata) is not None:
        return False
    return not metadata.queue.name.startswith(names.tenant_prefix)


def may_be_stack_of(tenant: TenantId, stack_id: str, *, reader: TenantReader, names: Names) -> bool:
    """True if the stack has the tenant's stack name, or is recorded as the tenant's."""
    return names.is_stack_of(tenant, stack_id) or is_recorded(stack_id, reader.metadata(tenant))


def is_recorded(stack_id: str, metadata: Metadata | None) -> bool:
    return metadata is not None and stack_id in (metadata.stack_id, metadata.gone_stack_id)


def is_for(tenant: TenantId, stack: Stack, metadata: Metadata | None) -> bool:
    """True if the stack was made for the tenant. Stacks of an earlier system may not name their tenant.

    A stack that was kept ready names its tenant after the first update. Until then, the record decides.
    """
    if metadata is not None and stack.tenant_id != tenant.value and _was_warm(stack):
        return is_recorded(stack.stack_id, metadata)
    if stack.tenant_id is not None or metadata is None:
        return stack.tenant_id == tenant.value
    served_from = metadata.stack_id if metadata.version is not None else metadata.gone_stack_id
    return stack.stack_id == served_from


def _was_warm(stack: Stack) -> bool:
    return stack.tenant_id is not None and stack.tenant_id.startswith(WARM_PREFIX)


_CANNOT_BE_UPDATED = (StackCondition.CREATION_FAILED, StackCondition.BROKEN)


def advice_about(stack: Stack) -> str:
    """Advice about a stack that Berth did not make. A stack that cannot be updated cannot be handed over."""
    delete = f"aws cloudformation delete-stack --stack-name {stack.stack_id}"
    if condition(stack.status) not in _CANNOT_BE_UPDATED:
        return (
            f"If nobody needs the stack, delete it by hand: {delete}. If an earlier deployment of Berth made it, hand "
            "it over: see Handing a stack over in the runbook."
        )
    return (
        f"The stack is {stack.status}, so delete it by hand, even if Berth did not make it: {delete}. If that fails, "
        "see Handing a stack over in the runbook. Then retry the operation."
    )


def is_ours(stack: Stack, metadata: Metadata | None, stacks: Stacks) -> bool:
    """True if Berth made the stack, and not somebody else who knew the tenant's stack name.

    Either the stack has this deployment's service role, or the tenant was served from it before. So tenants stay
    usable if a later deployment has another service role.
    """
    if stack.ours:
        return True
    if metadata is None:
        return False
    if metadata.gone_stack_id == stack.stack_id and name_of(stack.stack_id) != stacks.names.stack_of(metadata.tenant):
        return True  # A stack with another name gets into this field only if it was recorded as the tenant's.
    if metadata.version is None:
        return False
    if metadata.stack_id is not None:
        return metadata.stack_id == stack.stack_id
    # Rows from before stack ids were recorded have none: then the queue proves that the stack is the tenant's.
    return metadata.queue is not None and stacks.queue(stack.stack_id) == metadata.queue


def why_not_adopted_with(
    stack: Stack,
    queues: Mapping[str, Queue],
    metadata: Metadata,
    names: Names,
    owner: str,
    served: Mapping[str | None, str],
    dead_letters_of: Callable[[Queue], str | None],
) -> str | None:
    """Why an earlier system's tenant must not be adopted with the stack that has its queue, and what to do about it.

    ``queues`` are the stack's queues by logical id. ``owner`` is the tenant for which the stack is recorded, ``served``
    has the tenant of each inbound queue by ARN, and ``dead_letters_of`` returns the name of a dead-letter queue.
    """
    tenant, name = metadata.tenant, name_of(stack.stack_id)
    place, token = f"Its queue is in stack {stack.stack_id}", stack.parameters.get(SERVICE_TOKEN_PARAMETER)
    if token is not None and not names.is_own_service_token(token):
        return (
            f"{place}, which belongs to the control plane of {token}. If the tenant does, too, delete its rows in this "
            "control plane's table."
        )
    if stack.tenant_id not in (None, tenant.value):
        return (
            f"{place}, whose parameter TenantId is {stack.tenant_id!a}. If the stack is this tenant's, execute a "
            f"change set with TenantId={tenant} that replaces no queue. Otherwise delete this tenant's rows."
        )
    if name != names.stack_of(tenant) and not names.is_legacy(name):
        return _out_of_reach(place, "stacks")
    if owner != tenant.value:
        return f"{place}, which belongs to tenant {owner}. Delete the rows of the tenant that does not have the stack."
    if condition(stack.status) is StackCondition.WORKING:
        return f"{place}, which is {stack.status}. Adopt it when that has ended."
    if metadata.queue is None or metadata.queue.arn not in {queue.arn for queue in queues.values()}:
        return _out_of_reach(place, "queues")
    if others := _queues_of_others(queues, metadata, served, dead_letters_of):
        return (
            f"{place}, which has other queues, and its next upgrade would remove them: {', '.join(others)}. Remove "
            "them from the stack's template, with DeletionPolicy: Retain if anybody needs them."
        )
    return None


def _out_of_reach(place: str, what: str) -> str:
    return (
        f"{place}, but this control plane may not change {what} with such names. Deploy with a prefix of the name in "
        f"{LEGACY_PREFIXES_SETTING}."
    )


def _queues_of_others(
    queues: Mapping[str, Queue],
    metadata: Metadata,
    served: Mapping[str | None, str],
    dead_letters_of: Callable[[Queue], str | None],
) -> list[str]:
    """The queues of the stack that are not the tenant's.

    A queue that the row does not name is the tenant's by its logical id, unless another tenant is served from it.
    """
    tenant, named = metadata.tenant.value, {queue.arn for queue in (metadata.queue, metadata.outbound_queue) if queue}
    own = {
        logical_id
        for logical_id, queue in queues.items()
        if queue.arn in named
        or (logical_id in (DEAD_LETTER_QUEUE, OUTBOUND_QUEUE) and served.get(queue.arn, tenant) == tenant)
    }
    others = {logical_id: queue for logical_id, queue in queues.items() if logical_id not in own}
    dead_letters = {dead_letters_of(queues[logical_id]) for logical_id in own} if others else set()
    return [f"{name} ({queue.name})" for name, queue in sorted(others.items()) if queue.name not in dead_letters]
