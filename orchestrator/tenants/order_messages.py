"""The messages of answers to operators' requests that several sentences make up."""

from __future__ import annotations

from collections.abc import Collection

from orchestrator.common.tenant_ids import TenantId
from orchestrator.releases.ports import Releases
from orchestrator.releases.records import Release
from orchestrator.tenants.admission import Refusal, Refused, other_tier
from orchestrator.tenants.decisions import FleetFull, Limited, TooManyCreates
from orchestrator.tenants.messages import Messages
from orchestrator.tenants.records import Attempt, Audit, Lock, Metadata, Operation, Request, Status
from orchestrator.tenants.selections import listed


def changes_of(tenant: TenantId, metadata: Metadata, request: Request, *, unpin: bool) -> list[str]:
    """The sentences about what a create has changed of a tenant that exists."""
    changes = [] if request.labels is None else ["Its labels are recorded."]
    if unpin:
        changes.append("It is no longer pinned.")
    elif request.pin and request.pin == metadata.version:
        changes.append("It is now pinned to that version.")
    elif request.pin:
        changes.append(f"It is now pinned to version {request.pin}. Update it: berth upgrade {tenant}")
    return changes


def without_stack(tenant: TenantId) -> Refused:
    return Refused(
        Refusal.NOT_ADOPTED,
        f"Tenant {tenant} is from before Berth, and the stack of its queue is not recorded. The tenant is served, but "
        "it was not upgraded. Adopt it: berth adopt. If no stack has the queue, the tenant has to be deleted and "
        "created again: see A fleet from before Berth in the runbook.",
    )


def no_release(tenant: TenantId, tier: str, releases: Releases) -> Refused:
    """The refusal for a tier that has no release to choose."""
    tiers = _tiers(releases)
    if tier in tiers:
        why = f"all releases of the tier {tier} were withdrawn. Reinstate one: berth release reinstate VERSION"
    else:
        there = f"There are these tiers: {listed(tiers)}" if tiers else "No release was published yet"
        why = f"there is no release of the tier {tier}. {there}. See the releases: berth releases"
    return Refused(Refusal.NO_RELEASE, f"Nothing was done about tenant {tenant}, because {why}")


def _tiers(releases: Releases) -> Collection[str]:
    """The tiers that tenants can be created in."""
    return {release.tier for release in releases.releases()}


def in_another_tier(metadata: Metadata, wanted: str | None, releases: Releases) -> Refused:
    """The refusal of a create for a tenant that exists in another tier. A move is advised only if it is possible."""
    tenant, tiers = metadata.tenant, _tiers(releases)
    instead = f"To move it: berth move {tenant} --tier {wanted}"
    if wanted not in tiers:
        instead = f"There is no tier {wanted}, only {listed(tiers)}. See the releases: berth releases"
    return Refused(
        Refusal.OTHER_TIER, f"Tenant {tenant} exists, in the tier {metadata.tier}. Nothing was changed. {instead}"
    )


def not_in_tier(
    tenant: TenantId, release: Release, *, own: str | None, operation: Operation | None = None
) -> Refused | None:
    """The refusal of a pin to a release of another tier than the tenant's ``own``, if that is known.

    ``operation`` is the create that would pin the tenant. There is no tenant yet that could be moved.
    """
    if own is None or own == release.tier:
        return None
    if operation is Operation.CREATE:
        return Refused(
            Refusal.OTHER_TIER,
            f"Tenant {tenant} was not created: release {release.version} is of the tier {release.tier}, not of {own}. "
            f"Name a release of the tier {own}, or the tier {release.tier}. See the releases: berth releases",
        )
    move = f"To move the tenant to that tier: berth move {tenant} --tier {release.tier}"
    return other_tier(tenant, release.version, release.tier, own=own, instead=move)


def refused_by(limited: Limited, tenant: TenantId) -> Refused:
    match limited:
        case FleetFull(tenants, limit):
            return Refused(
                Refusal.FLEET_FULL,
                f"Tenant {tenant} was not created: there are {tenants} tenants, and the maximum is {limit} "
                "(berth:maxTenants). Delete tenants that nobody needs, or deploy with a higher maximum, up to the "
                "account's quota of stacks. See the quota: berth doctor",
                {"tenants": tenants, "maxTenants": limit},
            )
        case TooManyCreates(limit, seconds):
            return Refused(
                Refusal.TOO_MANY_CREATES,
                f"Tenant {tenant} was not created yet: {limit} creates were started within a minute, which is the "
                f"maximum per caller (berth:createsPerMinute). Send the request again in {seconds} seconds.",
                {"retryAfterSeconds": seconds},
            )


def not_deleted_by_retry(tenant: TenantId, before: Audit | None) -> Refused:
    """``before`` is the latest operation before the delete that failed."""
    reason = (
        f"Tenant {tenant}: its latest operation, a delete, failed and left the tenant in service. A retry does not "
        f"delete a tenant that is in service. Request the delete again: berth delete {tenant}"
    )
    if before is not None and before.operation is Operation.UPDATE and before.status is Status.FAILURE:
        reason += f". Or repeat the update that failed before the delete: berth upgrade {tenant} --to {before.version}"
    return Refused(Refusal.NOTHING_TO_RETRY, reason)


def busy(tenant: TenantId, lock: Lock | None) -> Refused:
    if lock is None:
        return Refused(Refusal.BUSY, f"Tenant {tenant} is being changed by another request. Send the request again.")
    operation, release = lock.run.attempt.operation, lock.run.attempt.release
    what = f"{operation} {release}" if release else operation.value
    return Refused(
        Refusal.BUSY,
        f"Tenant {tenant} is busy: {what} is running. Send the request again when it has ended.",
        {"operation": operation.value, "version": release, "execution": lock.run.execution},
    )


def about_to_be_created(tenant: TenantId, create: Attempt) -> Refused:
    return Refused(
        Refusal.BUSY,
        f"Tenant {tenant} is busy: {create.operation} {create.version} is about to begin. Send the request again when "
        "it has ended.",
        {"operation": create.operation.value, "version": create.version},
    )


def message_counts(messages: Messages) -> dict[str, int]:
    return {"visible": messages.visible, "inFlight": messages.in_flight, "delayed": messages.delayed}


def warm_stack_taken(metadata: Metadata) -> str:
    return (
        f"Tenant {metadata.tenant} is ready, at version {metadata.version}: it has taken a stack that was kept ready."
    )
