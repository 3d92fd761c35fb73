"""Custom::TenantQueue: a resource in another team's stack that is a tenant's queue.

CloudFormation asks once and waits; this is asked again and again until there is an answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from orchestrator.admission import Refusal, Refused, brought_into_being
from orchestrator.lifecycle import Accepted, AlreadySo, Lifecycle, Ordered
from orchestrator.records import Audit, Operation, Queue, Status
from orchestrator.resource_requests import Kind, OnDelete, TenantQueueRequest
from orchestrator.tenants import TenantId

PATIENCE = timedelta(minutes=55)
"""CloudFormation waits for an hour at most. It is told before that."""

_WAITED_FOR = (Refusal.BUSY, Refusal.TOO_MANY_CREATES)


@dataclass(frozen=True, slots=True)
class Waiting:
    outcome = "waiting"


@dataclass(frozen=True, slots=True)
class Provided:
    """What was asked for is so. Without a queue after a delete."""

    queue: Queue | None
    outcome = "provided"


@dataclass(frozen=True, slots=True)
class NotProvided:
    reason: str
    outcome = "failed"


Answer = Waiting | Provided | NotProvided


def settle(asked: TenantQueueRequest, *, since: datetime, lifecycle: Lifecycle) -> Answer:
    """Take one step towards the answer. ``since`` is when it was asked for."""
    answer = _delete(asked, since, lifecycle) if asked.kind is Kind.DELETE else _provide(asked, since, lifecycle)
    if isinstance(answer, Waiting) and lifecycle.clock.now() - since > PATIENCE:
        minutes = int(PATIENCE.total_seconds() // 60)
        return NotProvided(f"Tenant {asked.tenant} was not settled within {minutes} minutes.")
    return answer


def _provide(asked: TenantQueueRequest, since: datetime, lifecycle: Lifecycle) -> Answer:
    tenant, reader = asked.tenant, lifecycle.reader
    audits = reader.audits(tenant)
    pinned = metadata.pinned_version if (metadata := reader.metadata(tenant)) else None
    version = asked.request.pin or pinned or lifecycle.version
    if failed := _failed([audit for audit in audits if audit.version == version], Operation.CREATE, since):
        return NotProvided(_why(tenant, failed))
    # An update of the same tenant asks for labels and a version; it brings nobody back.
    same_tenant = asked.kind is Kind.UPDATE and asked.replaces is None
    request = replace(asked.request, asked_at=since)
    ordered = lifecycle.create(tenant, request, unpin=asked.unpin, explicit=not same_tenant)
    metadata = reader.metadata(tenant)
    if isinstance(ordered, AlreadySo) and metadata and metadata.published:
        return Provided(metadata.queue)
    return _waiting(ordered)


def _delete(asked: TenantQueueRequest, since: datetime, lifecycle: Lifecycle) -> Answer:
    """Delete the tenant if that was wished for, and if it was this resource that had it created.

    A tenant that was there before is left alone: also the rollback of a stack that was to use it asks for a delete.
    """
    if asked.on_delete is OnDelete.RETAIN:
        return Provided(None)
    tenant = asked.tenant
    audits, metadata = lifecycle.reader.audits(tenant), lifecycle.reader.metadata(tenant)
    if lifecycle.pending_create(metadata):
        return Waiting()  # It may be this resource's own, which is seen once it has begun.
    if not brought_into_being(asked.request.requester, metadata, audits):
        return Provided(None)
    if failed := _failed(audits, Operation.DELETE, since):
        return NotProvided(_why(tenant, failed))
    ordered = lifecycle.delete(tenant, replace(asked.request, asked_at=since, own=True))
    return Provided(None) if isinstance(ordered, AlreadySo) else _waiting(ordered)


def _waiting(ordered: Ordered) -> Answer:
    match ordered:
        case Refused(kind, reason) if kind not in _WAITED_FOR:
            return NotProvided(reason)
        case Accepted() | AlreadySo() | Refused():
            return Waiting()


def _failed(audits: Sequence[Audit], operation: Operation, since: datetime) -> Audit | None:
    """A failure of this very request: an older one is what it is to overcome."""
    return next(
        (
            audit
            for audit in audits
            if audit.operation is operation and audit.status is Status.FAILURE and audit.updated_at >= since
        ),
        None,
    )


def _why(tenant: TenantId, failed: Audit) -> str:
    cause = failed.root_cause or "no root cause was recorded"
    return f"Tenant {tenant}: {failed.operation} {failed.version} failed: {cause}"
