"""Reviews of updates that are kept, so that CloudFormation is asked once per move and not once per tenant.

A move is the change from one template with its parameters to another. Only the tenant's id differs between two tenants
that make the same move. A change set shows what the move does to a stack. If it keeps every queue, the review is kept,
and other tenants make the same move by one call of UpdateStack.

A tenant's move is known only if its stack is as Berth's last successful operation has left and recorded it. Every other
stack is reviewed by a change set of its own, whatever reviews are kept.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from orchestrator.common.times import timestamp
from orchestrator.releases.ports import PublishedTemplates, Releases
from orchestrator.releases.published import fingerprint, varies_by_tenant
from orchestrator.releases.records import Release
from orchestrator.releases.template_contract import TENANT_PARAMETER
from orchestrator.tenants.records import Lock
from orchestrator.tenants.stack_ports import Stack
from orchestrator.tenants.stack_status import StackCondition, condition


@dataclass(frozen=True, slots=True)
class Move:
    """The change from a release and its parameters to another. The parameters are without the tenant's id."""

    origin: Release
    origin_parameters: Mapping[str, str]
    target: Release
    target_parameters: Mapping[str, str]
    learns_tenant: bool = False
    """True if the stack was kept ready, and does not name its tenant yet. Then the tenant's id changes, too, and so may
    whatever depends on it. The moves of other tenants say nothing about that."""

    @property
    def key(self) -> str:
        """The same for all tenants that make this move."""
        ends = [
            [self.origin.version, self.origin.digest, dict(self.origin_parameters)],
            [self.target.version, self.target.digest, dict(self.target_parameters)],
            *(["learns its tenant"] if self.learns_tenant else []),
        ]
        return hashlib.sha256(json.dumps(ends, sort_keys=True).encode()).hexdigest()

    def is_the_same_for_all(self, templates: PublishedTemplates) -> bool:
        """True if no tenant's id can decide what becomes of a queue."""
        found = [templates.published(release) for release in (self.origin, self.target)]
        return all(template is not None and not varies_by_tenant(template) for template in found)


@dataclass(frozen=True, slots=True)
class Review:
    """A change set has shown that the move replaces and removes no queue. It is never changed, and does not expire."""

    move: str
    """The key of the move."""
    origin: str
    target: str
    """The versions, for people to read."""
    change_set: str
    """The id of the change set, which names the tenant whose changes were reviewed."""
    at: datetime


def known_move(
    stack: Stack, lock: Lock, target: Release, *, parameters: Mapping[str, str], releases: Releases
) -> Move | None:
    """The move that the stack makes; ``None`` unless the stack is as Berth has left and recorded it.

    Every change through CloudFormation changes the time of the stack's last change. A change to a queue itself is
    seen by no change set either.
    """
    if condition(stack.status) is not StackCondition.DONE or not stack.ours or stack.attached:
        return None
    if lock.deployed is None or not _same_moment(lock.stack_changed_at, stack.changed_at):
        return None
    origin = releases.release(stack.version) if stack.version else None
    if origin is None or fingerprint(origin, stack.parameters) != lock.deployed:
        return None
    learns_tenant = stack.parameters.get(TENANT_PARAMETER) != parameters.get(TENANT_PARAMETER)
    shared = shared_parameters(stack.parameters), shared_parameters(parameters)
    return Move(origin, shared[0], target, shared[1], learns_tenant)


def _same_moment(recorded: datetime | None, now: datetime | None) -> bool:
    return recorded is not None and now is not None and timestamp(recorded) == timestamp(now)


def shared_parameters(parameters: Mapping[str, str]) -> dict[str, str]:
    """The parameters that are the same for all tenants."""
    return {name: value for name, value in parameters.items() if name != TENANT_PARAMETER}
