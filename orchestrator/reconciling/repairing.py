"""What is done about a finding. A repair is an order as an operator gives it, or a correction of what is recorded.

It is refused as any order is; nothing is forced, and no stack is deleted that may still be in use.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from orchestrator.common.errors import Unsettled
from orchestrator.common.times import Clock
from orchestrator.reconciling.classifying import Observation
from orchestrator.reconciling.ports import Corrections
from orchestrator.reconciling.records import Finding, Remedy
from orchestrator.tenants.admission import Refused
from orchestrator.tenants.lifecycle import Accepted, Lifecycle, Ordered, Unchanged
from orchestrator.tenants.ports import QueueMetadata
from orchestrator.tenants.records import Request
from orchestrator.tenants.state import delete_counts


@dataclass(frozen=True, slots=True)
class Repairing:
    lifecycle: Lifecycle
    corrections: Corrections
    queue_metadata: QueueMetadata
    clock: Clock

    def repair(self, finding: Finding, looked: Observation, by: str, *, reason: str = "") -> Finding:
        """The finding, with what came of it. One that cannot be repaired is no reason to leave the others alone."""
        try:
            return self._repair(finding, looked, Request(by=by, reason=reason))
        except Unsettled as unsettled:
            return replace(finding, result=str(unsettled))

    def _repair(self, finding: Finding, looked: Observation, request: Request) -> Finding:
        tenant = looked.tenant
        match finding.remedy:
            case Remedy.CREATE:
                return _told(finding, self.lifecycle.create(tenant, request, explicit=False))
            case Remedy.RECREATE:
                return self._recreate(finding, looked, request)
            case Remedy.DELETE:
                return _told(finding, self.lifecycle.delete(tenant, request, remains=True))
            case Remedy.UPGRADE:
                return _told(finding, self.lifecycle.upgrade(tenant, None, request))
            case Remedy.CORRECT:
                return self._correct(finding, looked, request)
            case Remedy.SETTLE | Remedy.ADOPT | Remedy.NONE:
                return finding

    def _recreate(self, finding: Finding, looked: Observation, request: Request) -> Finding:
        # A delete that somebody asks for from now on is not overruled.
        request = replace(request, asked_at=self.clock.now())
        metadata = looked.metadata
        stack_id = metadata.stack_id if metadata else None
        if stack_id is None or not self.queue_metadata.forget_queue(looked.tenant, stack_id=stack_id, vanished=True):
            return _changed_meanwhile(finding)
        # A delete that was refused left the tenant in service. Without its queue it would count.
        overcome = delete_counts(looked.audits)
        return _told(finding, self.lifecycle.create(looked.tenant, request, explicit=overcome))

    def _correct(self, finding: Finding, looked: Observation, request: Request) -> Finding:
        metadata, stack = looked.metadata, looked.live_stack
        if metadata is None or stack is None:
            return _changed_meanwhile(finding)
        if not self.corrections.correct(metadata, stack, request=request, at=self.clock.now()):
            return _changed_meanwhile(finding)
        return replace(finding, result="the metadata says what the stack says now", repaired=True)


def _told(finding: Finding, ordered: Ordered) -> Finding:
    match ordered:
        case Accepted(attempt, execution):
            return replace(finding, result=f"{attempt.operation} {attempt.version}: {execution}", ordered=True)
        case Unchanged(reason) | Refused(_, reason):
            return replace(finding, result=reason)


def _changed_meanwhile(finding: Finding) -> Finding:
    return replace(finding, result="it has changed meanwhile, and is looked at again next time")
