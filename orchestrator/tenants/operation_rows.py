"""The rows that the steps of an operation write: the lock, audits, entries of the history and the tenant's listing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.writes import Condition, Put
from orchestrator.tenants.history import HistoryEntry
from orchestrator.tenants.listings import Relisting
from orchestrator.tenants.records import Audit, Metadata, Operation, RootCause, Run, Status, TenantState
from orchestrator.tenants.state import root_cause_of, state_of
from orchestrator.tenants.writes import Announce, Append, AuditKey, Unfinished

if TYPE_CHECKING:
    from orchestrator.tenants.turns import Place

LISTING_FIELDS = ("listed_state", "listed_version", "root_cause")
"""The fields of the metadata row by which the index lists the tenant."""


def empty_metadata(tenant: TenantId) -> Metadata:
    """The metadata of a tenant that has none recorded."""
    return Metadata(tenant, None, None, None, None, None)


def has_recorded(audits: Sequence[Audit], run: Run, status: Status) -> bool:
    """True if the run itself has recorded this status."""
    return any(audit.execution == run.execution and audit.status is status for audit in audits)


def with_audit(audits: Sequence[Audit], written: Audit) -> Sequence[Audit]:
    """The audits after one of them was written, in place of the audit with the same key."""
    return [*(audit for audit in audits if AuditKey.of(audit) != AuditKey.of(written)), written]


def listing(metadata: Metadata, audits: Sequence[Audit]) -> tuple[dict[str, object], list[str]]:
    """How the index lists a tenant that is not deleted: the fields to set, and the fields to clear."""
    cause = root_cause_of(metadata, audits)
    sets: dict[str, object] = {"listed_state": state_of(metadata, audits), "listed_version": metadata.version}
    return (sets | {"root_cause": cause}, []) if cause else (sets, ["root_cause"])


def lock_fields(run: Run) -> dict[str, object]:
    attempt = run.attempt
    return {
        "operation": attempt.operation,
        "version": attempt.version,
        "attempt": attempt.number,
        "request": run.request,
        "execution": run.execution,
        "started_at": run.started_at,
    }


def audit_of(
    run: Run, status: Status, at: datetime, cause: RootCause | None = None, place: Place | None = None
) -> Audit:
    attempt = run.attempt
    return Audit(
        run.tenant,
        attempt.operation,
        attempt.version,
        status,
        run.execution,
        at,
        attempt.number,
        cause,
        run.request,
        asked_at=run.asked_at,
        ticket=place.ticket if place else None,
        expected_at=place.expected_at if place else None,
        waits_until=place.waits_until if place else None,
    )


def audit_written(
    run: Run,
    status: Status,
    at: datetime,
    cause: RootCause | None = None,
    *,
    place: Place | None = None,
    condition: Condition | None = None,
) -> Put[AuditKey]:
    """The write of the run's audit. The index lists unfinished operations, and deletes that succeeded.

    ``place`` is given while a create waits for its turn.
    """
    audit = audit_of(run, status, at, cause)
    written: dict[str, object] = {
        "status": audit.status,
        "execution": audit.execution,
        "updated_at": audit.updated_at,
        "version": audit.version,
        "attempt": audit.attempt,
        "asked_at": audit.asked_at,
        "request": audit.request,
    }
    if cause:
        written["root_cause"] = cause
    if place:
        written |= {"ticket": place.ticket, "expected_at": place.expected_at, "waits_until": place.waits_until}
    if status is Status.STARTED:
        written["listed"] = Unfinished(at)
    elif status is Status.SUCCESS and audit.operation is Operation.DELETE:
        written["listed"] = TenantState.DELETED
    return Put(AuditKey.of(run.attempt), written, condition)


def announced(run: Run, status: Status, at: datetime) -> Announce:
    """The tenant's place in the index changes whenever an operation begins or ends."""
    deleted = run.attempt.operation is Operation.DELETE and status is Status.SUCCESS
    return Announce(Relisting(run.tenant, at, deleted))


def history_appended(run: Run, status: Status, at: datetime, cause: RootCause | None = None) -> Append:
    attempt = run.attempt
    return Append(
        HistoryEntry(
            run.tenant,
            at,
            attempt.operation,
            attempt.version,
            attempt.number,
            status,
            run.execution,
            cause,
            run.request,
        )
    )
