"""Which stack is a tenant's own. A tenant's stack name can be computed, so anybody may make a stack that bears it."""

from __future__ import annotations

from orchestrator.errors import StackNotOurs
from orchestrator.ports import Stack, Stacks, TenantReader
from orchestrator.records import Metadata
from orchestrator.stack_status import StackCondition, condition
from orchestrator.tenants import TenantId


def own_stack(tenant: TenantId, *, reader: TenantReader, stacks: Stacks) -> Stack | None:
    """The tenant's stack, by its name. Raises :class:`StackNotOurs` if somebody else's stack bears that name."""
    stack = stacks.find(stacks.names.stack_of(tenant))
    if stack is None or condition(stack.status) is StackCondition.GONE:
        return None
    if stack.tenant_id != tenant.value:
        raise StackNotOurs(
            f"Tenant {tenant}: stack {stack.stack_id} has this tenant's stack name but was made for "
            f"{stack.tenant_id or 'something else'}. Delete it by hand if nobody needs it."
        )
    # The role is known already. The metadata is read only for the few stacks that are of another role.
    if not stack.ours and not is_ours(stack, reader.metadata(tenant), stacks):
        raise StackNotOurs(
            f"Tenant {tenant}: stack {stack.stack_id} has this tenant's stack name, but Berth did not make it: its "
            f"service role is not this deployment's, and the tenant was never served from it. {what_to_do(stack)}"
        )
    return stack


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
    if metadata is None or metadata.version is None:
        return False
    if metadata.stack_id is not None:
        return metadata.stack_id == stack.stack_id
    # The tenant is older than stack ids in rows: then its queue is the proof.
    return metadata.queue is not None and stacks.queue(stack.stack_id) == metadata.queue
