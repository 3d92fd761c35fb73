"""The attempts at a tenant's operations: which is the next, and which can be retried."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.records import Attempt, Audit, Operation, Request, Status
from orchestrator.tenants.state import is_delete_in_effect


def next_attempt(
    tenant: TenantId, operation: Operation, version: str, audits: Sequence[Audit], first_free: int
) -> Attempt:
    taken = [
        audit.attempt
        for audit in audits
        if audit.operation is operation and (operation is Operation.DELETE or audit.version == version)
    ]
    number = 1 + max(taken, default=0)
    if operation is Operation.CREATE and is_delete_in_effect(audits):
        # getQueue may have started the create with this number before the tenant was deleted. It has recorded nothing
        # yet, and will be refused.
        number += 1
    return Attempt(tenant, operation, version, max(first_free, number))


def first_creates(tenant: TenantId, versions: Iterable[str | None]) -> list[Attempt]:
    """The creates that getQueue may have started for a tenant without records. The first attempt may have died."""
    known = dict.fromkeys(filter(None, versions))
    return [Attempt(tenant, Operation.CREATE, version, number) for version in known for number in (1, 2)]


def that_can_be_retried(audits: Sequence[Audit], *, in_service: bool) -> list[Audit]:
    """The operations that failed by themselves, not because they were refused.

    A delete that left the tenant in service was refused. While a delete is in effect, all operations but explicit
    creates are refused.
    """
    if in_service:
        return [audit for audit in audits if audit.operation is not Operation.DELETE]
    if is_delete_in_effect(audits):
        return [audit for audit in audits if audit.operation is Operation.DELETE or audit.request.explicit]
    return list(audits)


def is_failed_delete(audit: Audit | None) -> bool:
    return audit is not None and audit.operation is Operation.DELETE and audit.status is Status.FAILURE


def latest_of(audits: Sequence[Audit]) -> Audit | None:
    return max(audits, key=lambda audit: audit.updated_at, default=None)


def deleted_at(audits: Sequence[Audit]) -> datetime | None:
    """The time of the delete's request. Rows from before Berth have only the time of its end."""
    return next((audit.asked_at or audit.updated_at for audit in audits if audit.operation is Operation.DELETE), None)


def request_of_retry(failed: Audit, by: str, reason: str) -> Request:
    """The request of an operation that starts the failed one again, with the same options.

    Labels, pin and tier of a tenant that is created stay as they are now: the failed create has recorded its own.
    """
    # The retry of a create has the time of the original request, so that a later delete still wins.
    asked_at = failed.asked_at if failed.operation is Operation.CREATE else None
    # A delete for a resource deletes only that resource's tenant, so it keeps the resource. A create does not.
    resource = failed.request.resource if failed.operation is Operation.DELETE else None
    # The retry is explicit only if the original request was: a delete may be about to begin.
    tier = None if failed.operation is Operation.CREATE else failed.request.tier
    return replace(
        failed.request, by=by, resource=resource, asked_at=asked_at, reason=reason, labels=None, pin=None, tier=tier
    )
