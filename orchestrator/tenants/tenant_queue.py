"""Custom::TenantQueue: a resource in another team's stack that stands for a tenant's queue.

CloudFormation sends one event and waits for the response. A state machine calls this module again and again until there
is a response to send.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from orchestrator.common.errors import InvalidRequest, Throttled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.admission import Refusal, Refused, is_owner, other_owner
from orchestrator.tenants.confirming import how_it_ended, is_confirmed, is_undone
from orchestrator.tenants.lifecycle import Lifecycle
from orchestrator.tenants.operations import CHECK_HOLDER_AFTER
from orchestrator.tenants.order_results import Accepted, Changed, OrderResult, Unchanged
from orchestrator.tenants.ports import SeenTenant
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
from orchestrator.tenants.stack_ports import StackResources
from orchestrator.tenants.stack_resources import Requester
from orchestrator.tenants.state import state_of

PATIENCE = timedelta(minutes=55)
"""CloudFormation waits for an hour at most. The response is sent before that."""

CONSISTENT_WITHIN = timedelta(seconds=30)
"""How long CloudFormation's descriptions may lag. A request that it has not confirmed by then is refused."""

_TEMPORARY_REFUSALS = (Refusal.BUSY, Refusal.TOO_MANY_CREATES)


@dataclass(frozen=True, slots=True)
class Waiting:
    confirmed: bool = True
    """True if CloudFormation has confirmed the request. The next step gets this as input, which may be forged."""
    outcome = "waiting"


@dataclass(frozen=True, slots=True)
class Provided:
    """The tenant is in the requested state. After a delete there is no queue."""

    queue: Queue | None
    outcome = "provided"


@dataclass(frozen=True, slots=True)
class NotProvided:
    reason: str
    outcome = "failed"


@dataclass(frozen=True, slots=True)
class NotConfirmed:
    """The request is not CloudFormation's. Nobody waits for a response, so none is sent."""

    reason: str
    outcome = "refused"


@dataclass(frozen=True, slots=True)
class ProvidedBefore:
    """CloudFormation has its response already: an earlier try of this step sent it, and died before it could end."""

    outcome = Provided.outcome


@dataclass(frozen=True, slots=True)
class NotProvidedBefore:
    """The same for a response that the queue could not be provided."""

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
    """Take one step towards the response, if CloudFormation confirms that the request is its own.

    Otherwise nothing is done, and no response is sent. ``since`` is when the request arrived. ``confirmed`` is True if
    an earlier step reported that CloudFormation has confirmed the request. That may be forged, so it only saves calls
    while there is nothing to do but wait, and gives a request one more step when CloudFormation stops showing it.
    """
    # The time is read before CloudFormation is called, because a slow function would otherwise use an old description.
    waited, is_sure = lifecycle.clock.now() - since, False
    try:
        if confirmed and waited <= PATIENCE and _is_running(asked, lifecycle):
            return Waiting()
        is_sure = is_confirmed(claim, resources)
        if not is_sure:
            if confirmed or waited <= CONSISTENT_WITHIN:
                return Waiting(confirmed=False)
            return _ended_or_forged(claim, since, resources)
        if isinstance(asked, InvalidRequest):
            return _refused(claim, asked)
        return settle(asked, since=since, lifecycle=lifecycle, undone=lambda: is_undone(claim, resources))
    except Throttled as throttled:
        if waited <= PATIENCE:
            return Waiting(confirmed or is_sure)
        return NotProvided(str(throttled)) if is_sure else _not_confirmed(claim, f"AWS throttled it: {throttled}")


def _is_running(asked: TenantQueueRequest | InvalidRequest, lifecycle: Lifecycle) -> bool:
    """True while the requested operation holds the tenant's lock, unless it is old enough to have died."""
    if isinstance(asked, InvalidRequest):
        return False
    lock = lifecycle.reader.lock(asked.tenant)
    wanted = Operation.DELETE if asked.kind is Kind.DELETE else Operation.CREATE
    if lock is None or lock.run.attempt.operation is not wanted:
        return False
    return lifecycle.clock.now() - lock.run.started_at <= CHECK_HOLDER_AFTER


def _ended_or_forged(claim: Claim, since: datetime, resources: StackResources) -> AnsweredBefore | NotConfirmed:
    provided = how_it_ended(claim, since, resources)
    if provided is not None:
        return ProvidedBefore() if provided else NotProvidedBefore()
    return _not_confirmed(claim, "the event is forged, or was too late")


def _not_confirmed(claim: Claim, why: str) -> NotConfirmed:
    return NotConfirmed(
        f"CloudFormation does not confirm the {claim.kind} of the custom resource {claim.resource} ({why}). Nothing "
        "was done, and no response was sent."
    )


def _refused(claim: Claim, invalid: InvalidRequest) -> Provided | NotProvided:
    """A delete always succeeds: an invalid resource was never provided, and its stack must be able to roll back."""
    return Provided(None) if claim.kind is Kind.DELETE else NotProvided(f"{type(invalid).__name__}: {invalid}")


def settle(
    asked: TenantQueueRequest, *, since: datetime, lifecycle: Lifecycle, undone: Callable[[], bool] = lambda: False
) -> Answer:
    """Take one step towards the response. ``since`` is the time of the request.

    ``undone`` returns True if CloudFormation is rolling back an update.
    """
    if asked.kind is Kind.DELETE:
        answer = _delete(asked, since, lifecycle)
    else:
        answer = _provide(asked, since, lifecycle, undone)
    if isinstance(answer, Waiting) and lifecycle.clock.now() - since > PATIENCE:
        minutes = int(PATIENCE.total_seconds() // 60)
        return NotProvided(
            f"Tenant {asked.tenant}: {asked.kind} did not end within {minutes} minutes. Deploy the stack again. If "
            f"that does not help, ask an operator of Berth to look at the tenant: berth tenant {asked.tenant}"
        )
    return answer


def _provide(asked: TenantQueueRequest, since: datetime, lifecycle: Lifecycle, undone: Callable[[], bool]) -> Answer:
    tenant, reader = asked.tenant, lifecycle.reader
    seen, audits = reader.metadata(tenant), reader.audits(tenant)
    owner = other_owner(asked.request.requester, seen, audits)
    if owner is not None:
        # A refusal during a rollback would leave the stack stuck. Labels and pin are not changed then, either.
        if (differing := _differing(asked.request, seen)) and not undone():
            return _not_the_owner(asked.tenant, owner, differing)
        asked = replace(asked, request=replace(asked.request, labels=None, pin=None), unpin=False)
    version = asked.request.pin or lifecycle.version_to_create(lifecycle.tier_to_create(seen, audits), seen, audits)
    if failed := _failed([audit for audit in audits if audit.version == version], Operation.CREATE, since):
        return NotProvided(_why(tenant, failed))
    # An update of the same tenant only changes labels and version. It must not restore a deleted tenant.
    same_tenant = asked.kind is Kind.UPDATE and asked.replaces is None
    request = replace(asked.request, asked_at=since)
    ordered = lifecycle.create(tenant, request, unpin=asked.unpin, explicit=not same_tenant, only_if=SeenTenant(seen))
    metadata = reader.metadata(tenant)
    if isinstance(ordered, Changed | Unchanged) and metadata and metadata.published:
        return Provided(metadata.queue)
    return _waiting(ordered)


def _differing(request: Request, metadata: Metadata | None) -> list[str]:
    """The properties that differ from what is recorded about the tenant."""
    properties = {
        "Labels": (request.labels, metadata.labels if metadata else {}),
        "Version": (request.pin, metadata.pinned_version if metadata else None),
    }
    return [name for name, (requested, recorded) in properties.items() if requested not in (None, recorded)]


def _not_the_owner(tenant: TenantId, owner: Requester, differing: Sequence[str]) -> NotProvided:
    properties = " and ".join(differing)
    return NotProvided(
        f"Tenant {tenant} belongs to {_name(owner)}, who requested it first, so this resource cannot change its "
        f"{properties}. "
        f"Remove {properties} from this resource to get the tenant's queue as it is, or ask an operator of Berth to "
        "change the tenant."
    )


def _name(owner: Requester) -> str:
    return "an owner who was not recorded" if owner in ("", UNKNOWN_CREATOR) else str(owner)


def _delete(asked: TenantQueueRequest, since: datetime, lifecycle: Lifecycle) -> Answer:
    """Delete the tenant if the resource has ``OnDelete: delete`` and owns the tenant.

    A tenant of another owner stays: CloudFormation also sends a delete when it rolls back a stack that was to use the
    tenant. If the create failed, there is nothing to retain: the remains are deleted, so that others may create the
    tenant.
    """
    tenant = asked.tenant
    audits, metadata = lifecycle.reader.audits(tenant), lifecycle.reader.metadata(tenant)
    unserved = metadata is not None and not metadata.was_served
    if asked.on_delete is OnDelete.RETAIN and not (unserved and state_of(metadata, audits) is TenantState.FAILED):
        return Provided(None)
    if lifecycle.pending_create(metadata):
        return Waiting()  # The pending create may be this resource's own, which is known once it has begun.
    if not is_owner(asked.request.requester, metadata, audits):
        return Provided(None)
    failed = _failed(audits, Operation.DELETE, since)
    # A delete that failed because the tenant had got its queue meanwhile had other options, and does not count.
    if failed and failed.request.unserved == unserved:
        return NotProvided(_why(tenant, failed))
    ordered = lifecycle.delete(tenant, replace(asked.request, asked_at=since, own=True, unserved=unserved))
    return Provided(None) if isinstance(ordered, Unchanged) else _waiting(ordered)


def _waiting(ordered: OrderResult) -> Answer:
    match ordered:
        case Refused(kind, reason) if kind not in _TEMPORARY_REFUSALS:
            return NotProvided(reason)
        case Accepted() | Changed() | Unchanged() | Refused():
            return Waiting()


def _failed(audits: Sequence[Audit], operation: Operation, since: datetime) -> Audit | None:
    """A failure of this request, not of an older one."""
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
