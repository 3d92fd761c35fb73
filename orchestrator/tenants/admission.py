"""Which operation may run on which tenant, as a pure function.

It is called twice: when an operation is requested, so that a refusal is reported at once; and by the operation itself
once it owns the tenant, because the records may have changed until then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.versions import is_older
from orchestrator.releases.records import Release, Withdrawal
from orchestrator.tenants.records import UNKNOWN_CREATOR, Attempt, Audit, Metadata, Operation, Request, Run, Status
from orchestrator.tenants.stack_resources import Requester, StackResource
from orchestrator.tenants.state import is_delete_in_effect, is_deleted, latest_create


class Refusal(StrEnum):
    UNKNOWN_TENANT = "unknown-tenant"
    UNKNOWN_RELEASE = "unknown-release"
    RELEASE_WITHDRAWN = "release-withdrawn"
    LAST_RELEASE = "last-release"
    NO_RELEASE = "tier-without-release"
    OTHER_TIER = "other-tier"
    TENANT_DELETED = "tenant-deleted"
    NOT_PROVISIONED = "not-provisioned"
    DOWNGRADE = "downgrade"
    PINNED = "pinned"
    BUSY = "tenant-busy"
    NOT_EMPTY = "queue-not-empty"
    NOT_ADOPTED = "not-adopted"
    NOTHING_TO_RETRY = "nothing-to-retry"
    UNKNOWN_ROLLOUT = "unknown-rollout"
    UNKNOWN_ALARM = "unknown-alarm"
    UNKNOWN_SELECTION = "unknown-selection"
    ROLLOUT_IN_THE_WAY = "rollout-in-the-way"
    ROLLOUT_OVER = "rollout-over"
    NOTHING_TO_APPROVE = "nothing-to-approve"
    NOTHING_TO_PROMOTE = "nothing-to-promote"
    UNKNOWN_RECONCILIATION = "unknown-reconciliation"
    FLEET_FULL = "tenant-limit-reached"
    TOO_MANY_CREATES = "too-many-creates"


@dataclass(frozen=True, slots=True)
class Refused:
    """The request was refused for this reason. Nothing was started."""

    kind: Refusal
    reason: str
    details: Mapping[str, object] = field(default_factory=dict)


def refusal(
    attempt: Attempt,
    request: Request,
    *,
    asked_at: datetime,
    metadata: Metadata | None,
    audits: Sequence[Audit],
    release: Release | None,
    withdrawal: Withdrawal | None = None,
) -> Refused | None:
    """Why the operation may not run; ``None`` if it may. ``release`` is the published release of the attempt's version,
    if there is one, and ``withdrawal`` says that the release was withdrawn."""
    if attempt.operation is Operation.DELETE:
        return None
    if release is None:
        return unknown_release(attempt.tenant, attempt.version)
    if withdrawal is not None:
        pinned = request.pin or (metadata.pinned_version if metadata else None)
        return release_withdrawn(
            attempt.tenant,
            attempt.version,
            withdrawal,
            attempt.operation,
            pinned=pinned == attempt.version,
            at=metadata.version if metadata else None,
        )
    if attempt.operation is Operation.CREATE:
        return _create_refusal(attempt, request, asked_at, metadata, audits, release.tier)
    return _update_refusal(attempt, request, metadata, audits, release.tier)


def unknown_release(tenant: TenantId, version: str) -> Refused:
    return Refused(
        Refusal.UNKNOWN_RELEASE,
        f"Tenant {tenant}: version {version} was never published. See the published versions: berth releases",
    )


def other_tier(tenant: TenantId, version: str, tier: str, *, own: str, instead: str) -> Refused:
    """The release is of another ``tier`` than the tenant's ``own``. ``instead`` says what to do."""
    return Refused(
        Refusal.OTHER_TIER,
        f"Tenant {tenant} is of the tier {own}, and release {version} is of the tier {tier}. Nothing was changed. "
        f"{instead}",
    )


def release_withdrawn(
    tenant: TenantId,
    version: str,
    withdrawal: Withdrawal,
    operation: Operation | None = None,
    *,
    pinned: bool = False,
    at: str | None = None,
    tier: str | None = None,
) -> Refused:
    """``operation`` is the one that is refused, if the request is not about a pin. ``pinned`` to this release.

    ``at`` is the tenant's own release. Instead of a release that was withdrawn, an earlier one is current. For a tenant
    that is not older than the withdrawn release, that is a downgrade. ``tier`` is the one that a create has to name.
    """
    if operation is None:
        done, instead = "pinned to it", f"Pin the tenant to another release: berth pin {tenant} VERSION"
    else:
        downgrade = at is not None and not is_older(at, than=version)
        done, instead = _way_back(tenant, operation, downgrade=downgrade, tier=tier)
        if pinned:
            instead = (
                f"The tenant is pinned to it: berth pin {tenant} VERSION, or berth unpin {tenant}. Then: {instead}"
            )
        else:
            instead = f"Use the current release: {instead}"
    return Refused(
        Refusal.RELEASE_WITHDRAWN,
        f"{withdrawal.sentence(version)}, so tenant {tenant} was not {done}. {instead}",
    )


def _way_back(tenant: TenantId, operation: Operation, *, downgrade: bool, tier: str | None) -> tuple[str, str]:
    if operation is Operation.CREATE:
        return "created at it", f"berth create {tenant}{f' --tier {tier}' if tier else ''}"
    return "moved to it", _upgrade(tenant, downgrade=downgrade)


def _upgrade(tenant: TenantId, *, downgrade: bool) -> str:
    return f"berth upgrade {tenant}{' --allow-downgrade' if downgrade else ''}"


def withdrawn_under(tenant: TenantId, version: str, withdrawal: Withdrawal, current: str | None) -> Refused:
    """There is nothing to retry, but the tenant is at a release that was withdrawn. ``current`` is the current one."""
    downgrade = current is None or is_older(current, than=version)
    return Refused(
        Refusal.RELEASE_WITHDRAWN,
        f"Tenant {tenant}: its latest operation succeeded, so there is nothing to retry. "
        f"{withdrawal.sentence(version)}, and the tenant is at it. Move it to the current release: "
        f"{_upgrade(tenant, downgrade=downgrade)}",
    )


def unknown_tenant(tenant: TenantId) -> Refused:
    return Refused(Refusal.UNKNOWN_TENANT, f"Tenant {tenant} does not exist. Create it: berth create {tenant}")


def tenant_deleted(tenant: TenantId) -> Refused:
    return Refused(
        Refusal.TENANT_DELETED,
        f"Tenant {tenant} was deleted. Only an explicit create restores it: berth create {tenant}",
    )


def why_not_deleted(run: Run, metadata: Metadata | None, audits: Sequence[Audit]) -> str | None:
    """Why a delete that has just begun must not delete the tenant: the tenant has changed since the request."""
    tenant, request = run.tenant, run.request
    if request.own and not is_owner(request.requester, metadata, audits):
        return f"Tenant {tenant} was not deleted, because it does not belong to {request.requester}."
    if any(_created_since(run.asked_at, audit) for audit in audits):
        return f"Tenant {tenant} was not deleted, because it was created again after the delete had been requested."
    if request.unserved and metadata is not None and metadata.was_served:
        return (
            f"Tenant {tenant} was not deleted, because it has got its queue since the delete was requested. Request "
            "the delete again."
        )
    return None


def _created_since(asked_at: datetime, audit: Audit) -> bool:
    later = audit.asked_at is not None and audit.asked_at > asked_at
    return later and audit.operation is Operation.CREATE and audit.request.explicit and audit.status is Status.SUCCESS


def is_owner(by: Requester, metadata: Metadata | None, audits: Sequence[Audit]) -> bool:
    """True if the tenant belongs to this requester."""
    return owner_of(metadata, audits) == by


def owner_of(metadata: Metadata | None, audits: Sequence[Audit]) -> Requester | None:
    """The tenant's owner: the requester of its first create since it was last deleted; ``None`` if there was none.

    A create makes its requester the owner when it begins, and a create that fails does not change the owner.
    """
    if metadata is not None and metadata.created_by is not None:
        return metadata.created_by
    if is_deleted(audits):
        return None
    # A create that never began has recorded no owner, and rows from before Berth have none.
    latest = latest_create(audits)
    has_version = metadata is not None and metadata.version is not None
    if latest is not None and (latest.status is Status.SUCCESS or not has_version):
        return latest.request.requester
    return UNKNOWN_CREATOR if has_version else None


def other_owner(by: Requester, metadata: Metadata | None, audits: Sequence[Audit]) -> Requester | None:
    """The tenant's owner, if the tenant belongs to somebody else."""
    owner = owner_of(metadata, audits)
    return None if owner == by or _deployed_again(by, owner, metadata) else owner


def owner_once_begun(request: Request, metadata: Metadata | None, audits: Sequence[Audit]) -> Requester:
    """The tenant's owner once a create for this request has begun.

    The owner does not change until the tenant is deleted, also if its create failed or its stack has vanished. Only a
    tenant that never had a queue gets another owner: an operator who creates or retries it by name, or the same
    resource of a stack that was deployed again.
    """
    if metadata is not None and metadata.withdrawn_by is not None and is_delete_in_effect(audits):
        return request.requester  # The tenant is created as a new one, though its delete has not finished.
    owner = owner_of(metadata, audits)
    by_operator = request.explicit and request.resource is None
    passes = by_operator and not _served_since_created(metadata)
    if owner is None or passes or _deployed_again(request.requester, owner, metadata):
        return request.requester
    return owner


def _served_since_created(metadata: Metadata | None) -> bool:
    """True if the tenant has had a queue since it was first created, or created again after a delete.

    A tenant that was created again after a delete that had not finished stays withdrawn until it has its new queue.
    """
    return metadata is not None and metadata.was_served and metadata.withdrawn_by is None


def _deployed_again(by: Requester, owner: Requester | None, metadata: Metadata | None) -> bool:
    """True if the requester is the owner's resource in a stack that was deployed again, and there never was a queue.

    A stack whose creation failed has to be deleted, and the next stack of its name has another id.
    """
    if _served_since_created(metadata):
        return False
    return isinstance(by, StackResource) and isinstance(owner, StackResource) and by.stands_for(owner)


def _create_refusal(
    attempt: Attempt,
    request: Request,
    asked_at: datetime,
    metadata: Metadata | None,
    audits: Sequence[Audit],
    tier: str,
) -> Refused | None:
    if metadata is not None and metadata.published and not is_deleted(audits):
        return None
    if is_delete_in_effect(audits) and (not request.explicit or _deleted_since(asked_at, audits)):
        return tenant_deleted(attempt.tenant)
    deleted_by_others = (
        request.resource is not None and is_delete_in_effect(audits) and not _deleted_for(request.resource, audits)
    )
    if deleted_by_others and not _was_never_served(audits):
        return Refused(
            Refusal.TENANT_DELETED,
            f"Tenant {attempt.tenant} was deleted, but not by this resource, so this resource cannot restore it. Ask "
            f"an operator of Berth to create the tenant: berth create {attempt.tenant}",
        )
    pin = request.pin or (metadata.pinned_version if metadata else None)
    if pin not in (None, attempt.version):
        return Refused(
            Refusal.PINNED,
            f"Tenant {attempt.tenant} is pinned to version {pin}, so it is not created at {attempt.version}. "
            f"Create it at version {pin}: berth create {attempt.tenant}",
        )
    own = request.tier or (metadata.recorded_tier if metadata else None)
    if own not in (None, tier):
        again = f"Create it in its own tier: berth create {attempt.tenant}"
        return other_tier(attempt.tenant, attempt.version, tier, own=own, instead=again)
    return None


def _deleted_for(resource: StackResource, audits: Sequence[Audit]) -> bool:
    """True if this resource deleted its own tenant, or the same resource of a former stack with the same name did."""
    deletes = [audit.request for audit in audits if audit.operation is Operation.DELETE]
    return any(delete.own and delete.resource and resource.stands_for(delete.resource) for delete in deletes)


def _was_never_served(audits: Sequence[Audit]) -> bool:
    """True if the tenant's owner, a resource, has deleted the remains of a create that had failed."""
    deletes = [audit for audit in audits if audit.operation is Operation.DELETE and audit.status is Status.SUCCESS]
    return any(delete.request.own and delete.request.unserved for delete in deletes)


def _deleted_since(asked_at: datetime, audits: Sequence[Audit]) -> bool:
    """True if the delete was requested after the create that is about to begin."""
    return any(
        audit.operation is Operation.DELETE and audit.asked_at is not None and audit.asked_at > asked_at
        for audit in audits
    )


def _update_refusal(
    attempt: Attempt, request: Request, metadata: Metadata | None, audits: Sequence[Audit], tier: str
) -> Refused | None:
    tenant, target = attempt.tenant, attempt.version
    if metadata is None and not audits:
        return unknown_tenant(tenant)
    if is_deleted(audits):
        return tenant_deleted(attempt.tenant)
    if metadata is None or not metadata.published or metadata.version is None:
        return Refused(
            Refusal.NOT_PROVISIONED,
            f"Tenant {tenant} has no queue in service, so it was not updated. See why: berth tenant {tenant}",
        )
    if metadata.pinned_version not in (None, target):
        return Refused(
            Refusal.PINNED,
            f"Tenant {tenant} is pinned to version {metadata.pinned_version}, so it is not updated to {target}. "
            "Change its pin first.",
        )
    moves = metadata.tier != tier
    if moves and request.tier != tier:
        move = f"To move the tenant to that tier: berth move {tenant} --tier {tier}"
        return other_tier(tenant, target, tier, own=metadata.tier, instead=move)
    # Versions of different tiers have no order.
    if not moves and is_older(target, than=metadata.version) and not request.allow_downgrade:
        return Refused(
            Refusal.DOWNGRADE,
            f"Tenant {tenant} is at version {metadata.version}, and {target} is older, so it was not updated. To "
            f"update it all the same, allow the downgrade: berth upgrade {tenant} --to {target} --allow-downgrade",
        )
    return None
