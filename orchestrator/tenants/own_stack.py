"""Which stack is a tenant's own. A tenant's stack name can be computed, so anybody may make a stack that bears it."""

from __future__ import annotations

from orchestrator.common.errors import StackNotOurs, StackOutOfReach
from orchestrator.common.stack_arns import name_of
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.names import LEGACY_PREFIXES_SETTING, Names
from orchestrator.tenants.ports import Stack, Stacks, TenantReader
from orchestrator.tenants.records import Metadata
from orchestrator.tenants.stack_status import StackCondition, condition


def own_stack(tenant: TenantId, *, reader: TenantReader, stacks: Stacks) -> Stack | None:
    """The tenant's stack.

    Raises :class:`StackNotOurs` if somebody else's stack bears the tenant's stack name, and :class:`StackOutOfReach` if
    this deployment may not look at the stack on record.
    """
    metadata = reader.metadata(tenant)
    if reason := why_out_of_reach(metadata, stacks.names):
        raise StackOutOfReach(reason)
    stack = find_stack(tenant, metadata, stacks)
    if stack is None or condition(stack.status) is StackCondition.GONE:
        return None
    if not is_for(tenant, stack, metadata):
        raise StackNotOurs(
            f"Tenant {tenant}: stack {stack.stack_id} has this tenant's stack name but was made for "
            f"{stack.tenant_id or 'something else'}. Delete it by hand if nobody needs it."
        )
    if not is_ours(stack, metadata, stacks):
        raise StackNotOurs(
            f"Tenant {tenant}: stack {stack.stack_id} has this tenant's stack name, but Berth did not make it: its "
            f"service role is not this deployment's, and the tenant was never served from it. {what_to_do(stack)}"
        )
    return stack


def find_stack(tenant: TenantId, metadata: Metadata | None, stacks: Stacks) -> Stack | None:
    """The stack on record, if an earlier system made it under another name. Otherwise the one of the tenant's name.

    Nobody creates stacks of other names any more: once such a stack has gone, the next one has the tenant's name.
    """
    name, recorded = stacks.names.stack_of(tenant), recorded_stack(metadata)
    if recorded is not None and name_of(recorded) != name:
        stack = stacks.find(recorded)
        if stack is not None and condition(stack.status) is not StackCondition.GONE:
            return stack
    return stacks.find(name)


def recorded_stack(metadata: Metadata | None) -> str | None:
    """The id of the tenant's stack, or of the one that is about to go, or could not."""
    return (metadata.stack_id or metadata.gone_stack_id) if metadata else None


def why_out_of_reach(metadata: Metadata | None, names: Names) -> str | None:
    """The reason why nothing can be done about the tenant's stack: a deployment without the prefix of its name."""
    recorded = recorded_stack(metadata)
    if metadata is None or recorded is None or names.reaches(name_of(recorded)):
        return None
    return (
        f"Tenant {metadata.tenant}: its stack {name_of(recorded)} was adopted, and this control plane may not change "
        f"stacks of such names. Deploy with a prefix of that name in {LEGACY_PREFIXES_SETTING}, then ask again."
    )


def has_unknown_stack(metadata: Metadata | None, names: Names) -> bool:
    """Whether the tenant is served from a stack that Berth cannot find: an earlier system made it under another name.

    CloudFormation names queues after their stacks, so a queue of another name is in a stack of another name.
    """
    if metadata is None or metadata.queue is None or metadata.version is None or recorded_stack(metadata) is not None:
        return False
    return not metadata.queue.name.startswith(names.tenant_prefix)


def may_be_its_stack(tenant: TenantId, stack_id: str, *, reader: TenantReader, names: Names) -> bool:
    """Whether the stack bears the tenant's stack name, or is on record as the tenant's, under whatever name."""
    return names.is_stack_of(tenant, stack_id) or is_on_record(stack_id, reader.metadata(tenant))


def is_on_record(stack_id: str, metadata: Metadata | None) -> bool:
    return metadata is not None and stack_id in (metadata.stack_id, metadata.gone_stack_id)


def is_for(tenant: TenantId, stack: Stack, metadata: Metadata | None) -> bool:
    """Whether the stack says that it is the tenant's. Templates of an earlier system need not say for whom they are."""
    if stack.tenant_id is not None or metadata is None:
        return stack.tenant_id == tenant.value
    served_from = metadata.stack_id if metadata.version is not None else metadata.gone_stack_id
    return stack.stack_id == served_from


_CANNOT_BE_UPDATED = (StackCondition.NEVER_LIVED, StackCondition.BROKEN)


def what_to_do(stack: Stack) -> str:
    """What a person does about a stack that is not ours. One that cannot be updated cannot be handed over, either."""
    delete = f"aws cloudformation delete-stack --stack-name {stack.stack_id}"
    if condition(stack.status) not in _CANNOT_BE_UPDATED:
        return (
            f"Delete it by hand if nobody needs it: {delete}. If an earlier deployment of Berth made it, hand it over: "
            "see Handing a stack over in the runbook."
        )
    return (
        f"It is {stack.status}, so delete it by hand, whoever made it: {delete}. If that fails, see Handing a stack "
        "over in the runbook. Then have the operation retried."
    )


def is_ours(stack: Stack, metadata: Metadata | None, stacks: Stacks) -> bool:
    """Whether Berth made the stack, and not somebody who knew the tenant's stack name.

    Either the stack has this deployment's service role, or the tenant was served from it before. So a later deployment
    with another role loses no tenant.
    """
    if stack.ours:
        return True
    if metadata is None:
        return False
    if metadata.gone_stack_id == stack.stack_id and name_of(stack.stack_id) != stacks.names.stack_of(metadata.tenant):
        return True  # Under another name than the tenant's, only a stack on record may take its queue back.
    if metadata.version is None:
        return False
    if metadata.stack_id is not None:
        return metadata.stack_id == stack.stack_id
    # The tenant is older than stack ids in rows: then its queue is the proof.
    return metadata.queue is not None and stacks.queue(stack.stack_id) == metadata.queue
