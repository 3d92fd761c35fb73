"""Compares one tenant's records with its stack, as CloudFormation describes it now. Nothing is changed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from orchestrator.common.errors import QueueOutOfReach, UnreadableRows
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import Clock
from orchestrator.reconciling.checking import cannot_be_checked, check
from orchestrator.reconciling.classifying import Observation, outputs_differ
from orchestrator.reconciling.records import Finding
from orchestrator.releases.ports import Releases
from orchestrator.tenants.ports import Queues, TenantReader
from orchestrator.tenants.stack_ports import Stack, Stacks
from orchestrator.tenants.stack_status import StackCondition, condition


class Agreement(StrEnum):
    """How a tenant's records and its stack relate."""

    AGREES = "AGREES"
    DIFFERS = "DIFFERS"
    CHANGING = "CHANGING"
    """An operation or CloudFormation is changing the tenant, so that a difference would say nothing."""


@dataclass(frozen=True, slots=True)
class Comparison:
    tenant: TenantId
    at: datetime
    known: bool
    """False if the tenant has neither records nor a stack."""
    stack: Stack | None
    """The tenant's stack; ``None`` if it has none, or if this control plane may not see it."""
    finding: Finding | None
    changing: bool

    @property
    def agreement(self) -> Agreement:
        if self.finding is not None:
            return Agreement.DIFFERS
        return Agreement.CHANGING if self.changing else Agreement.AGREES


@dataclass(frozen=True, slots=True)
class Comparing:
    tenants: TenantReader
    stacks: Stacks
    queues: Queues
    releases: Releases
    clock: Clock

    def compare(self, tenant: TenantId) -> Comparison:
        """Raises :class:`orchestrator.common.errors.Throttled` while CloudFormation throttles."""
        now, releases = self.clock.now(), {release.version: release for release in self.releases.releases()}
        try:
            observation, finding = check(tenant, self.tenants, self.stacks, self.queues, releases)
        except (QueueOutOfReach, UnreadableRows) as error:
            observation, finding = None, cannot_be_checked(tenant, error)
        if observation is None:
            return Comparison(tenant, now, known=True, stack=None, finding=finding, changing=False)
        stack, changing = observation.live_stack, _is_changing(observation)
        return Comparison(
            tenant,
            now,
            known=bool(observation.audits) or observation.metadata is not None or stack is not None,
            stack=stack,
            finding=finding or (None if changing else outputs_differ(observation)),
            changing=changing,
        )


def _is_changing(observation: Observation) -> bool:
    stack = observation.live_stack
    return observation.lock is not None or (stack is not None and condition(stack.status) is StackCondition.WORKING)
