"""Which operation may run on which tenant: one pure function.

It is asked twice. When someone asks for an operation, so that they are told at once; and by the operation itself
once it owns the tenant, because until then everything may have changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.versions import is_older
from orchestrator.releases.records import Release
from orchestrator.tenants.records import UNKNOWN_CREATOR, Attempt, Audit, Metadata, Operation, Request, Run, Status
from orchestrator.tenants.stack_resources import Requester, StackResource
from orchestrator.tenants.state import delete_counts, is_deleted, latest_create


class Refusal(StrEnum):
    UNKNOWN_TENANT = "unknown-tenant"
    UNKNOWN_RELEASE = "unknown-release"
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
    ROLLOUT_IN_THE_WAY = "rollout-in-the-way"
    ROLLOUT_OVER = "rollout-over"
    NOTHING_TO_APPROVE = "nothing-to-approve"
    UNKNOWN_RECONCILIATION = "unknown-reconciliation"
    UNKNOWN_ADOPTION = "unknown-adoption"
    FLEET_FULL = "tenant-limit-reached"
    TOO_MANY_CREATES = "too-many-creates"


@dataclass(frozen=True, slots=True)
class Refused:
    """Not done, and why. Nothing was started."""

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
) -> Refused | None:
    """Why the operation may not run. ``release`` is the published release of the attempt's version, if it is one."""
    if attempt.operation is Operation.DELETE:
        return None
    if release is None:
        return unknown_release(attempt.tenant, attempt.version)
    if attempt.operation is Operation.CREATE:
        return _create_refusal(attempt, request, asked_at, metadata, audits)
    return _update_refusal(attempt, request, metadata, audits)


def unknown_release(tenant: TenantId, version: str) -> Refused:
    return Refused(
        Refusal.UNKNOWN_RELEASE,
        f"Tenant {tenant}: version {version} was never published. See the published ones: berth releases",
    )


def unknown_tenant(tenant: TenantId) -> Refused:
    return Refused(Refusal.UNKNOWN_TENANT, f"No such tenant: {tenant}. Create it: berth create {tenant}")


def tenant_deleted(tenant: TenantId) -> Refused:
    return Refused(
        Refusal.TENANT_DELETED,
        f"Tenant {tenant} was deleted. Only creating it explicitly brings it back: berth create {tenant}",
    )


def why_it_stays(run: Run, metadata: Metadata | None, audits: Sequence[Audit]) -> str | None:
    """Why a delete that has only now got its turn must not go on: the tenant is not the one that was to be deleted."""
    tenant, request = run.tenant, run.request
    if request.own and not brought_into_being(request.requester, metadata, audits):
        return f"Tenant {tenant} was brought into being by somebody else, so it is not deleted for {request.requester}."
    if any(_created_since(run.asked_at, audit) for audit in audits):
        return f"Tenant {tenant} was created again after this delete had been asked for, so it stays."
    if request.unserved and metadata is not None and metadata.was_served:
        return f"Tenant {tenant} has got its queue since this delete was asked for, so it stays. Ask again."
    return None


def _created_since(asked_at: datetime, audit: Audit) -> bool:
    later = audit.asked_at is not None and audit.asked_at > asked_at
    return later and audit.operation is Operation.CREATE and audit.request.explicit and audit.status is Status.SUCCESS


def brought_into_being(by: Requester, metadata: Metadata | None, audits: Sequence[Audit]) -> bool:
    """Whether it was this caller who brought the tenant into being, as it is now: since it was last deleted."""
    return owner_of(metadata, audits) == by


def owner_of(metadata: Metadata | None, audits: Sequence[Audit]) -> Requester | None:
    """Who brought the tenant into being, as it is now, or has tried to; ``None`` when nobody has.

    A create that has begun makes its requester the owner, and a create that failed takes nothing away.
    """
    if metadata is not None and metadata.created_by is not None:
        return metadata.created_by
    if is_deleted(audits):
        return None
    # A create that never began has recorded no owner; nor has one that failed before 0.7.0, or any before 0.5.0.
    latest = latest_create(audits)
    there_before = metadata is not None and metadata.version is not None
    if latest is not None and (latest.status is Status.SUCCESS or not there_before):
        return latest.request.requester
    return UNKNOWN_CREATOR if there_before else None


def other_owner(by: Requester, metadata: Metadata | None, audits: Sequence[Audit]) -> Requester | None:
    """Whose tenant it is, if it is somebody else's."""
    owner = owner_of(metadata, audits)
    return None if owner == by or _deployed_again(by, owner, metadata) else owner


def owner_once_begun(request: Request, metadata: Metadata | None, audits: Sequence[Audit]) -> Requester:
    """Whose tenant it is once a create for this request has begun.

    The tenant stays whose it was until it is deleted, also if its create failed or its stack has vanished. Only a
    tenant that never had a queue passes to others: to an operator who creates or retries it by name, and to the same
    resource of a stack that was deployed again.
    """
    if metadata is not None and metadata.withdrawn_by is not None:
        return request.requester  # What a delete has left is created anew.
    owner = owner_of(metadata, audits)
    by_operator = request.explicit and request.resource is None
    passes = (metadata is None or not metadata.was_served) and by_operator
    if owner is None or passes or _deployed_again(request.requester, owner, metadata):
        return request.requester
    return owner


def _deployed_again(by: Requester, owner: Requester | None, metadata: Metadata | None) -> bool:
    """True for the resource that asked first for a tenant that never had a queue, in its next stack.

    A stack whose creation failed has to be deleted, and the next of its name has another id.
    """
    if metadata is not None and metadata.was_served:
        return False
    return isinstance(by, StackResource) and isinstance(owner, StackResource) and by.stands_for(owner)


def _create_refusal(
    attempt: Attempt, request: Request, asked_at: datetime, metadata: Metadata | None, audits: Sequence[Audit]
) -> Refused | None:
    if metadata is not None and metadata.published and not is_deleted(audits):
        return None
    if delete_counts(audits) and (not request.explicit or _deleted_since(asked_at, audits)):
        return tenant_deleted(attempt.tenant)
    others = request.resource is not None and delete_counts(audits) and not _deleted_for(request.resource, audits)
    if others and not _was_never_served(audits):
        return Refused(
            Refusal.TENANT_DELETED,
            f"Tenant {attempt.tenant} was deleted, and not by this resource, so this resource does not bring it back. "
            f"Ask an operator of Berth to do so: berth create {attempt.tenant}",
        )
    pin = request.pin or (metadata.pinned_version if metadata else None)
    if pin not in (None, attempt.version):
        return Refused(
            Refusal.PINNED,
            f"Tenant {attempt.tenant} is pinned to version {pin}, so it is not created at {attempt.version}. "
            f"Create it at its pin: berth create {attempt.tenant}",
        )
    return None


def _deleted_for(resource: StackResource, audits: Sequence[Audit]) -> bool:
    """Whether it was this resource that deleted its own tenant, or the same one of the stack before this one."""
    deletes = [audit.request for audit in audits if audit.operation is Operation.DELETE]
    return any(delete.own and delete.resource and resource.stands_for(delete.resource) for delete in deletes)


def _was_never_served(audits: Sequence[Audit]) -> bool:
    """Whether the resource that had asked first has deleted what was left of a create that failed."""
    deletes = [audit for audit in audits if audit.operation is Operation.DELETE and audit.status is Status.SUCCESS]
    return any(delete.request.own and delete.request.unserved for delete in deletes)


def _deleted_since(asked_at: datetime, audits: Sequence[Audit]) -> bool:
    """Whether the delete was asked for after a create that is only now about to begin."""
    return any(
        audit.operation is Operation.DELETE and audit.asked_at is not None and audit.asked_at > asked_at
        for audit in audits
    )


def _update_refusal(
    attempt: Attempt, request: Request, metadata: Metadata | None, audits: Sequence[Audit]
) -> Refused | None:
    tenant, target = attempt.tenant, attempt.version
    if metadata is None and not audits:
        return unknown_tenant(tenant)
    if is_deleted(audits):
        return tenant_deleted(attempt.tenant)
    if metadata is None or not metadata.published or metadata.version is None:
        return Refused(
            Refusal.NOT_PROVISIONED,
            f"Tenant {tenant} has no queue in service, so there is nothing to update. See why: berth tenant {tenant}",
        )
    if metadata.pinned_version not in (None, target):
        return Refused(
            Refusal.PINNED,
            f"Tenant {tenant} is pinned to version {metadata.pinned_version}, so it is not moved to {target}. "
            "Change its pin first.",
        )
    if is_older(target, than=metadata.version) and not request.allow_downgrade:
        return Refused(
            Refusal.DOWNGRADE,
            f"Tenant {tenant} is at version {metadata.version}; {target} is older. Going back has to be "
            "asked for explicitly: allow the downgrade.",
        )
    return None
