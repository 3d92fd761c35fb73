"""The attempts at a tenant's operations: which is the next, and which can be retried."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.records import Attempt, Audit, Operation, Status
from orchestrator.tenants.state import is_delete_in_effect


def next_attempt(
    tenant: TenantId, operation: Operation, version: str, audits: Sequence[Audit], first_free: int
) -> Attempt:
    same = [
        audit.attempt
        for audit in audits
        if audit.operation is operation and (operation is Operation.DELETE or audit.version == version)
    ]
    return Attempt(tenant, operation, version, max([first_free, *(number + 1 for number in same)]))


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
    """The time of the delete's request. Rows from before 0.5.0 have only the time of its end."""
    return next((audit.asked_at or audit.updated_at for audit in audits if audit.operation is Operation.DELETE), None)
