"""Is an event for a custom resource CloudFormation's? Whoever may invoke the function can make one up.

So CloudFormation is asked about the resource: it calls the function only while it is creating, updating or deleting
that very resource, and shows so. A forged event names a resource that is not being changed, or none at all.
"""

from __future__ import annotations

from orchestrator.ports import ResourceState, StackResources
from orchestrator.resource_requests import TENANT_QUEUE_TYPES, Claim, Kind

_IN_PROGRESS = {
    Kind.CREATE: "CREATE_IN_PROGRESS",
    Kind.UPDATE: "UPDATE_IN_PROGRESS",
    Kind.DELETE: "DELETE_IN_PROGRESS",
}
_UNDOING = "UPDATE_ROLLBACK_IN_PROGRESS"
_CLEANING_UP = frozenset({"UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"})


def is_confirmed(claim: Claim, resources: StackResources) -> bool:
    """True while CloudFormation shows that it is doing with that resource what the event says."""
    found = resources.resource(claim.resource)
    if found is None or found.resource_type not in TENANT_QUEUE_TYPES:
        return False
    in_progress = found.status == _IN_PROGRESS[claim.kind]
    if claim.kind is Kind.CREATE:
        return in_progress  # The resource gets its physical id by the answer.
    if in_progress and _is_same(claim, found):
        return True
    stack_status = resources.stack_status(claim.resource.stack)
    if claim.kind is Kind.UPDATE:
        # A replacement is undone: the event may name one of the two and CloudFormation show the other.
        return in_progress and stack_status == _UNDOING
    # Of a resource that was replaced the old one is deleted in the end, when CloudFormation shows the new one already.
    return stack_status in _CLEANING_UP and found.physical_id not in (claim.physical_id, claim.tenant_id)


def is_undone(claim: Claim, resources: StackResources) -> bool:
    """True while CloudFormation undoes an update, and so asks for what was there before it."""
    return claim.kind is Kind.UPDATE and resources.stack_status(claim.resource.stack) == _UNDOING


def _is_same(claim: Claim, found: ResourceState) -> bool:
    """The resource is the one that the event names. One whose create never was answered may have no id."""
    return found.physical_id in ("", claim.physical_id)
