"""Is an event for a custom resource CloudFormation's? Whoever may invoke the function can make one up.

So CloudFormation is asked about the resource: it calls the function only while it is creating, updating or deleting
that very resource, and shows so. A forged event names a resource that is not being changed, or none at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from orchestrator.common.errors import Throttled, Unconfirmed
from orchestrator.common.stack_arns import StackArn
from orchestrator.tenants.ports import ResourceState, StackResources
from orchestrator.tenants.resource_requests import Claim, Kind, may_be_tenant_queue, parse_claim

_IN_PROGRESS = {
    Kind.CREATE: "CREATE_IN_PROGRESS",
    Kind.UPDATE: "UPDATE_IN_PROGRESS",
    Kind.DELETE: "DELETE_IN_PROGRESS",
}
_UNDOING = "UPDATE_ROLLBACK_IN_PROGRESS"
_CLEANING_UP = frozenset({"UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"})

_MAX_LOOKS = 5
_SECONDS_BETWEEN_LOOKS = 2


@dataclass(frozen=True, slots=True)
class Deployment:
    """The deployment of the control plane itself, which asks by custom resources in its own stack."""

    stack: StackArn
    resources: StackResources
    pause: Callable[[float], None]

    def confirm(self, event: Mapping[str, Any], resource_type: str) -> None:
        """Raise :class:`Unconfirmed` unless the deployment is at that very resource, and the resource is of that type.

        CloudFormation's descriptions are eventually consistent, so it is asked again for some seconds. Whoever calls
        this leaves the error to Lambda, which calls the function again a minute later, and once more after that.
        """
        claim = parse_claim(event, self.stack.location)
        if claim.resource.stack == self.stack:
            for look in range(_MAX_LOOKS):
                if look:
                    self.pause(_SECONDS_BETWEEN_LOOKS)
                if self._is_at(claim, resource_type):
                    return
        raise Unconfirmed(
            f"CloudFormation does not confirm this request: it is not at the {claim.kind} of {claim.resource} as a "
            f"{resource_type} of stack {self.stack}. The event was made up, or came too late. Nothing was done."
        )

    def is_undone(self) -> bool:
        """True while the deployment has failed, and CloudFormation goes back to the one before."""
        return self.resources.stack_status(self.stack) == _UNDOING

    def _is_at(self, claim: Claim, resource_type: str) -> bool:
        try:
            found = self.resources.resource(claim.resource)
        except Throttled:
            return False
        # These resources never change their physical ids, so there is no replacement to be told from the old one.
        return found is not None and found.resource_type == resource_type and _is_in_progress(claim, found)


def is_confirmed(claim: Claim, resources: StackResources) -> bool:
    """True while CloudFormation shows that it is doing with that resource what the event says."""
    found = resources.resource(claim.resource)
    if found is None or not may_be_tenant_queue(found.resource_type):
        return False
    in_progress = _is_in_progress(claim, found)
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


def how_it_ended(claim: Claim, since: datetime, resources: StackResources) -> bool | None:
    """Whether what the event says has gone well; ``None`` unless CloudFormation shows that it has ended.

    ``since`` is when the event came: what has ended before that is not what the event is about.
    """
    found = resources.resource(claim.resource)
    if found is None or found.changed_at is None or found.changed_at < since:
        return None
    operation = claim.kind.value.upper()
    return {f"{operation}_COMPLETE": True, f"{operation}_FAILED": False}.get(found.status)


def is_undone(claim: Claim, resources: StackResources) -> bool:
    """True while CloudFormation undoes an update, and so asks for what was there before it."""
    return claim.kind is Kind.UPDATE and resources.stack_status(claim.resource.stack) == _UNDOING


def _is_in_progress(claim: Claim, found: ResourceState) -> bool:
    return found.status == _IN_PROGRESS[claim.kind]


def _is_same(claim: Claim, found: ResourceState) -> bool:
    """The resource is the one that the event names. One whose create never was answered may have no id."""
    return found.physical_id in ("", claim.physical_id)
