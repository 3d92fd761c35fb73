"""Repairing a finding: either with an operation that an operator could request, too, or by correcting the metadata.

Such an operation may be refused like any other. Nothing is forced, and no stack is deleted that may still be in use.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from orchestrator.common.errors import Unsettled
from orchestrator.common.times import Clock
from orchestrator.reconciling.classifying import Observation
from orchestrator.reconciling.ports import Corrections
from orchestrator.reconciling.records import Finding, Remedy
from orchestrator.releases.ports import Releases
from orchestrator.tenants.admission import Refused
from orchestrator.tenants.lifecycle import Lifecycle
from orchestrator.tenants.order_results import Accepted, Changed, OrderResult, Unchanged
from orchestrator.tenants.ports import QueueMetadata
from orchestrator.tenants.records import Request
from orchestrator.tenants.stack_ports import Stack
from orchestrator.tenants.state import is_delete_in_effect


@dataclass(frozen=True, slots=True)
class Repairing:
    lifecycle: Lifecycle
    corrections: Corrections
    queue_metadata: QueueMetadata
    clock: Clock
    releases: Releases

    def repair(self, finding: Finding, observation: Observation, by: str, *, reason: str = "") -> Finding:
        """The finding with the result of its repair. A repair that fails must not prevent the others."""
        try:
            return self._repair(finding, observation, Request(by=by, reason=reason))
        except Unsettled as unsettled:
            return replace(finding, result=str(unsettled))

    def _repair(self, finding: Finding, observation: Observation, request: Request) -> Finding:
        tenant = observation.tenant
        match finding.remedy:
            case Remedy.CREATE:
                # The stack that is there, if any, is to be published, so the create must be in its tier.
                request = replace(request, tier=self._tier_of(observation.live_stack))
                return _with_result(finding, self.lifecycle.create(tenant, request, explicit=False))
            case Remedy.RECREATE:
                return self._recreate(finding, observation, request)
            case Remedy.DELETE:
                return _with_result(finding, self.lifecycle.delete(tenant, request, remains=True))
            case Remedy.UPGRADE:
                return _with_result(finding, self.lifecycle.upgrade(tenant, None, request))
            case Remedy.CORRECT:
                return self._correct(finding, observation, request)
            case Remedy.SETTLE | Remedy.NONE:
                return finding

    def _recreate(self, finding: Finding, observation: Observation, request: Request) -> Finding:
        # The time of the request is set now, so that a delete that is requested from now on wins.
        request = replace(request, asked_at=self.clock.now())
        metadata, tenant = observation.metadata, observation.tenant
        stack_id = metadata.stack_id if metadata else None
        if stack_id is None or not self.queue_metadata.forget_queue(tenant, stack_id=stack_id, seen=metadata):
            return _changed_meanwhile(finding)
        # A failed delete may have left the tenant in service. Without its queue, that delete would be in effect.
        explicit = is_delete_in_effect(observation.audits)
        return _with_result(finding, self.lifecycle.create(tenant, request, explicit=explicit))

    def _correct(self, finding: Finding, observation: Observation, request: Request) -> Finding:
        metadata, stack = observation.metadata, observation.live_stack
        if metadata is None or stack is None:
            return _changed_meanwhile(finding)
        tier = self._tier_of(stack)
        if not self.corrections.correct(metadata, stack, tier=tier, request=request, at=self.clock.now()):
            return _changed_meanwhile(finding)
        return replace(finding, result="the metadata now matches the stack", repaired=True)

    def _tier_of(self, stack: Stack | None) -> str | None:
        release = self.releases.release(stack.version) if stack and stack.version else None
        return release.tier if release else None


def _with_result(finding: Finding, ordered: OrderResult) -> Finding:
    match ordered:
        case Accepted(attempt, execution):
            return replace(finding, result=f"{attempt.operation} {attempt.version}: {execution}", ordered=True)
        case Changed(reason) | Unchanged(reason) | Refused(_, reason):
            return replace(finding, result=reason)


def _changed_meanwhile(finding: Finding) -> Finding:
    return replace(finding, result="the tenant has changed meanwhile, and is checked again in the next reconciliation")
