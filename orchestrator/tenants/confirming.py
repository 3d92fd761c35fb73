"""Checks that an event for a custom resource is CloudFormation's. Anybody who may invoke the function can forge one.

CloudFormation invokes the function only while it is creating, updating or deleting the resource, and the resource's
status shows that. A forged event names a resource that is not being changed, or that does not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from orchestrator.common.errors import Throttled, Unconfirmed
from orchestrator.common.stack_arns import StackArn
from orchestrator.tenants.resource_requests import Claim, Kind, may_be_tenant_queue, parse_claim
from orchestrator.tenants.stack_ports import ResourceState, StackResources

_IN_PROGRESS = {
    Kind.CREATE: "CREATE_IN_PROGRESS",
    Kind.UPDATE: "UPDATE_IN_PROGRESS",
    Kind.DELETE: "DELETE_IN_PROGRESS",
}
_ROLLING_BACK = "UPDATE_ROLLBACK_IN_PROGRESS"
_CLEANING_UP = frozenset({"UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"})

_MAX_CHECKS = 5
_SECONDS_BETWEEN_CHECKS = 2


@dataclass(frozen=True, slots=True)
class Deployment:
    """The deployment of the control plane, which has custom resources in its own stack."""

    stack: StackArn
    resources: StackResources
    pause: Callable[[float], None]

    def confirm(self, event: Mapping[str, Any], resource_type: str) -> None:
        """Raise :class:`Unconfirmed` unless the deployment is changing that resource, and the resource has that type.

        CloudFormation's descriptions are eventually consistent, so the check is repeated for some seconds. Callers must
        not catch the error: Lambda then invokes the function again a minute later, and once more after that.
        """
        claim = parse_claim(event, self.stack.location)
        if claim.resource.stack == self.stack:
            for check in range(_MAX_CHECKS):
                if check:
                    self.pause(_SECONDS_BETWEEN_CHECKS)
                if self._is_changing(claim, resource_type):
                    return
        raise Unconfirmed(
            f"CloudFormation does not confirm the {claim.kind} of {claim.resource} as a {resource_type} of stack "
            f"{self.stack}. The event is forged, or was too late. Nothing was done."
        )

    def is_undone(self) -> bool:
        """True while the deployment has failed and CloudFormation is rolling it back."""
        return self.resources.stack_status(self.stack) == _ROLLING_BACK

    def _is_changing(self, claim: Claim, resource_type: str) -> bool:
        try:
            found = self.resources.resource(claim.resource)
        except Throttled:
            return False
        # The physical ids of these resources never change, so they are never replaced.
        return found is not None and found.resource_type == resource_type and _is_in_progress(claim, found)


def is_confirmed(claim: Claim, resources: StackResources) -> bool:
    """True while CloudFormation shows that it is making the change of the resource that the event claims."""
    found = resources.resource(claim.resource)
    if found is None or not may_be_tenant_queue(found.resource_type):
        return False
    in_progress = _is_in_progress(claim, found)
    if claim.kind is Kind.CREATE:
        return in_progress  # The resource has no physical id before the response.
    if in_progress and _is_same(claim, found):
        return True
    stack_status = resources.stack_status(claim.resource.stack)
    if claim.kind is Kind.UPDATE:
        # When a replacement is rolled back, the event may name one of the two resources and CloudFormation the other.
        return in_progress and stack_status == _ROLLING_BACK
    # A replaced resource is deleted during the clean-up, when CloudFormation shows its replacement already.
    return stack_status in _CLEANING_UP and found.physical_id not in (claim.physical_id, claim.tenant_id)


def how_it_ended(claim: Claim, since: datetime, resources: StackResources) -> bool | None:
    """True if the change that the event claims succeeded, False if it failed; ``None`` if it has not ended.

    ``since`` is when the event arrived. A change that ended before that is another one.
    """
    found = resources.resource(claim.resource)
    if found is None or found.changed_at is None or found.changed_at < since:
        return None
    operation = claim.kind.value.upper()
    return {f"{operation}_COMPLETE": True, f"{operation}_FAILED": False}.get(found.status)


def is_undone(claim: Claim, resources: StackResources) -> bool:
    """True while CloudFormation rolls back an update, and so requests the former properties."""
    return claim.kind is Kind.UPDATE and resources.stack_status(claim.resource.stack) == _ROLLING_BACK


def _is_in_progress(claim: Claim, found: ResourceState) -> bool:
    return found.status == _IN_PROGRESS[claim.kind]


def _is_same(claim: Claim, found: ResourceState) -> bool:
    """True if the resource is the one that the event names. If its create got no response, it may have no id."""
    return found.physical_id in ("", claim.physical_id)
