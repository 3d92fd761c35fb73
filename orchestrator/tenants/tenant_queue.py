"""Custom::TenantQueue: a resource in another team's stack that is a tenant's queue.

CloudFormation asks once and waits; this is asked again and again until there is an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from orchestrator.common.errors import InvalidRequest, Throttled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.admission import Refusal, Refused, brought_into_being, other_owner
from orchestrator.tenants.confirming import how_it_ended, is_confirmed, is_undone
from orchestrator.tenants.lifecycle import Accepted, Lifecycle, Ordered, Unchanged
from orchestrator.tenants.operations import CHECK_HOLDER_AFTER
from orchestrator.tenants.ports import Seen, StackResources
from orchestrator.tenants.records import (
    UNKNOWN_CREATOR,
    Audit,
    Metadata,
    Operation,
    Queue,
    Request,
    Status,
    TenantState,
)
from orchestrator.tenants.resource_requests import Claim, Kind, OnDelete, TenantQueueRequest
from orchestrator.tenants.stack_resources import Requester
from orchestrator.tenants.state import state_of

PATIENCE = timedelta(minutes=55)
"""CloudFormation waits for an hour at most. It is told before that."""

CONSISTENT_WITHIN = timedelta(seconds=30)
"""How far CloudFormation's descriptions may lag behind. A request that it has not confirmed by then is refused."""

_WAITED_FOR = (Refusal.BUSY, Refusal.TOO_MANY_CREATES)


@dataclass(frozen=True, slots=True)
class Waiting:
    confirmed: bool = True
    """CloudFormation has confirmed the request. The next step is told, but whoever invokes it can say the same."""
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


@dataclass(frozen=True, slots=True)
class NotConfirmed:
    """The request is not CloudFormation's. Nobody waits for an answer, so none is given."""

    reason: str
    outcome = "refused"


@dataclass(frozen=True, slots=True)
class ProvidedBefore:
    """CloudFormation has its answer: an earlier try of this step gave it, and did not live to say so."""

    outcome = Provided.outcome


@dataclass(frozen=True, slots=True)
class NotProvidedBefore:
    """The same for an answer that it could not be provided."""

    outcome = NotProvided.outcome


AnsweredBefore = ProvidedBefore | NotProvidedBefore
Answer = Waiting | Provided | NotProvided


def answer(
    claim: Claim,
    asked: TenantQueueRequest | InvalidRequest,
    *,
    confirmed: bool,
    since: datetime,
    lifecycle: Lifecycle,
    resources: StackResources,
) -> Answer | AnsweredBefore | NotConfirmed:
    """Take one step towards the answer, if CloudFormation confirms that the request is its own.

    Otherwise nothing is done, and nothing is told to anybody. ``since`` is when the request came. ``confirmed`` says
    that CloudFormation has confirmed it at an earlier step. That may be made up, so it only saves asking while there
    is nothing to do but wait, and grants one more look to a request that CloudFormation stops showing.
    """
    # Before CloudFormation is asked: a function may be slow, and what it was told is old then.
    waited, sure = lifecycle.clock.now() - since, False
    try:
        if confirmed and waited <= PATIENCE and _is_at_work(asked, lifecycle):
            return Waiting()
        sure = is_confirmed(claim, resources)
        if not sure:
            if confirmed or waited <= CONSISTENT_WITHIN:
                return Waiting(confirmed=False)
            return _ended_or_made_up(claim, since, resources)
        if isinstance(asked, InvalidRequest):
            return _refused(claim, asked)
        return settle(asked, since=since, lifecycle=lifecycle, undone=lambda: is_undone(claim, resources))
    except Throttled as throttled:
        if waited <= PATIENCE:
            return Waiting(confirmed or sure)
        return NotProvided(str(throttled)) if sure else _not_confirmed(claim, f"AWS had no time: {throttled}")


def _is_at_work(asked: TenantQueueRequest | InvalidRequest, lifecycle: Lifecycle) -> bool:
    """True while an operation such as was asked for owns the tenant, unless it is old enough to have died."""
    if isinstance(asked, InvalidRequest):
        return False
    lock = lifecycle.reader.lock(asked.tenant)
    wanted = Operation.DELETE if asked.kind is Kind.DELETE else Operation.CREATE
    if lock is None or lock.run.attempt.operation is not wanted:
        return False
    return lifecycle.clock.now() - lock.run.started_at <= CHECK_HOLDER_AFTER


def _ended_or_made_up(claim: Claim, since: datetime, resources: StackResources) -> AnsweredBefore | NotConfirmed:
    provided = how_it_ended(claim, since, resources)
    if provided is not None:
        return ProvidedBefore() if provided else NotProvidedBefore()
    return _not_confirmed(claim, "the event was made up, or came too late")


def _not_confirmed(claim: Claim, why: str) -> NotConfirmed:
    return NotConfirmed(
        f"CloudFormation does not confirm that it is at the {claim.kind} of {claim.resource} as a custom resource "
        f"({why}). Nothing was done, and nobody was answered."
    )


def _refused(claim: Claim, invalid: InvalidRequest) -> Provided | NotProvided:
    """Whatever was refused was never provided, so it can always be deleted: else its stack could not roll back."""
    return Provided(None) if claim.kind is Kind.DELETE else NotProvided(f"{type(invalid).__name__}: {invalid}")


def settle(
    asked: TenantQueueRequest, *, since: datetime, lifecycle: Lifecycle, undone: Callable[[], bool] = lambda: False
) -> Answer:
    """Take one step towards the answer. ``since`` is when it was asked for, ``undone`` says if an update is undone."""
    if asked.kind is Kind.DELETE:
        answer = _delete(asked, since, lifecycle)
    else:
        answer = _provide(asked, since, lifecycle, undone)
    if isinstance(answer, Waiting) and lifecycle.clock.now() - since > PATIENCE:
        minutes = int(PATIENCE.total_seconds() // 60)
        return NotProvided(f"Tenant {asked.tenant} was not settled within {minutes} minutes.")
    return answer


def _provide(asked: TenantQueueRequest, since: datetime, lifecycle: Lifecycle, undone: Callable[[], bool]) -> Answer:
    tenant, reader = asked.tenant, lifecycle.reader
    seen, audits = reader.metadata(tenant), reader.audits(tenant)
    owner = other_owner(asked.request.requester, seen, audits)
    if owner is not None:
        # Refusing to go back would leave the stack stuck. Nothing is said about the tenant then, either.
        if (differing := _differing(asked.request, seen)) and not undone():
            return _not_the_owner(asked.tenant, owner, differing)
        asked = replace(asked, request=replace(asked.request, labels=None, pin=None), unpin=False)
    version = asked.request.pin or lifecycle.version_to_create(seen, audits)
    if failed := _failed([audit for audit in audits if audit.version == version], Operation.CREATE, since):
        return NotProvided(_why(tenant, failed))
    # An update of the same tenant asks for labels and a version; it brings nobody back.
    same_tenant = asked.kind is Kind.UPDATE and asked.replaces is None
    request = replace(asked.request, asked_at=since)
    ordered = lifecycle.create(tenant, request, unpin=asked.unpin, explicit=not same_tenant, only_if=Seen(seen))
    metadata = reader.metadata(tenant)
    if isinstance(ordered, Unchanged) and metadata and metadata.published:
        return Provided(metadata.queue)
    return _waiting(ordered)


def _differing(request: Request, metadata: Metadata | None) -> list[str]:
    """The properties that say something else about the tenant than what is recorded."""
    properties = {
        "Labels": (request.labels, metadata.labels if metadata else {}),
        "Version": (request.pin, metadata.pinned_version if metadata else None),
    }
    return [name for name, (said, recorded) in properties.items() if said not in (None, recorded)]


def _not_the_owner(tenant: TenantId, owner: Requester, differing: Sequence[str]) -> NotProvided:
    properties = " and ".join(differing)
    return NotProvided(
        f"Tenant {tenant} belongs to {_name(owner)}, who asked for it first, so this resource cannot change its "
        f"{properties}. "
        f"Leave {properties} out of this resource to get the tenant's queue as it is, or ask an operator of Berth to "
        "change the tenant."
    )


def _name(owner: Requester) -> str:
    return "somebody who was not recorded" if owner in ("", UNKNOWN_CREATOR) else str(owner)


def _delete(asked: TenantQueueRequest, since: datetime, lifecycle: Lifecycle) -> Answer:
    """Delete the tenant if the resource says ``OnDelete: delete`` and created the tenant itself.

    A tenant that was there before is left alone: also the rollback of a stack that was to use it asks for a delete.
    If the creation failed, there is nothing to retain: what is left is deleted, so that others may have the tenant.
    """
    tenant = asked.tenant
    audits, metadata = lifecycle.reader.audits(tenant), lifecycle.reader.metadata(tenant)
    unserved = metadata is not None and not metadata.was_served
    if asked.on_delete is OnDelete.RETAIN and not (unserved and state_of(metadata, audits) is TenantState.FAILED):
        return Provided(None)
    if lifecycle.pending_create(metadata):
        return Waiting()  # It may be this resource's own, which is seen once it has begun.
    if not brought_into_being(asked.request.requester, metadata, audits):
        return Provided(None)
    failed = _failed(audits, Operation.DELETE, since)
    # One that gave up because the tenant had got its queue meanwhile asked for something else.
    if failed and failed.request.unserved == unserved:
        return NotProvided(_why(tenant, failed))
    ordered = lifecycle.delete(tenant, replace(asked.request, asked_at=since, own=True, unserved=unserved))
    return Provided(None) if isinstance(ordered, Unchanged) else _waiting(ordered)


def _waiting(ordered: Ordered) -> Answer:
    match ordered:
        case Refused(kind, reason) if kind not in _WAITED_FOR:
            return NotProvided(reason)
        case Accepted() | Unchanged() | Refused():
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
