"""The rules for the writes by which a tenant joins the pool: a create that begins and ends in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.tiers import POOLED
from orchestrator.common.writes import Check, Condition, Missing, Present, RowAbsent, Update, all_of, still
from orchestrator.tenants.admission import owner_once_begun
from orchestrator.tenants.operation_rows import audit_written, history_appended
from orchestrator.tenants.operation_transitions import not_overtaken, revival
from orchestrator.tenants.pooling import why_not_pooled
from orchestrator.tenants.records import (
    Attempt,
    Audit,
    Operation,
    Queue,
    Request,
    Run,
    Status,
    TenantRecords,
    TenantState,
)
from orchestrator.tenants.state import delete_of, is_delete_in_effect
from orchestrator.tenants.writes import LockKey, MetadataKey, Transition, Write

_OF_AN_OWN_STACK = (
    *("stack_id", "version", "last_version", "deployed", "stack_changed_at", "outbound_queue", "gone_stack_id"),
    *("former_queue", "former_queue_until", "pinned_version"),
)


def is_refused(tenant: TenantId, before: TenantRecords, request: Request, at: datetime) -> bool:
    """True if the tenant is served already, or must not join the pool."""
    is_served = before.metadata is not None and before.metadata.published
    return is_served or why_not_pooled(tenant, request, before.metadata, before.audits, at) is not None


def joined(tenant: TenantId, before: TenantRecords, queue: Queue, request: Request, at: datetime) -> Transition:
    """The tenant's record with its queue, the audit and the history of its create. An explicit create supersedes the
    tenant's delete.

    If an operation begins, or the record changes at the same moment, nothing is applied.
    """
    run = _run(tenant, before.audits, request, at)
    writes: list[Write] = [
        Check(LockKey(tenant), RowAbsent()),
        audit_written(run, Status.SUCCESS, at, condition=not_overtaken(run)),
        history_appended(run, Status.SUCCESS, at),
    ]
    delete = delete_of(before.audits)
    if delete is not None and is_delete_in_effect(before.audits):
        writes.append(revival(run, delete))
    metadata = before.metadata
    owner = owner_once_begun(request, metadata, before.audits)
    sets: dict[str, object] = {
        "queue": queue,
        "recorded_tier": POOLED,
        "created_at": at,
        "updated_at": at,
        "created_by": owner,
        "listed_state": TenantState.READY,
        "listed_version": None,
    }
    if request.labels is not None:
        sets["labels"] = request.labels
    clears = [*_OF_AN_OWN_STACK, "withdrawn_by", "root_cause", "asked_for", "asked_for_at"]
    unchanged: list[Condition] = [
        still("created_at", metadata.created_at if metadata else None),
        still("withdrawn_by", metadata.withdrawn_by if metadata else None),
        still("asked_for_at", metadata.asked_for_at if metadata else None),
        still("stack_id", metadata.stack_id if metadata else None),
        Present("queue") if metadata and metadata.queue else Missing("queue"),
    ]
    return [*writes, Update(MetadataKey(tenant), sets, clears=clears, condition=all_of(*unchanged))]


def _run(tenant: TenantId, audits: Sequence[Audit], request: Request, at: datetime) -> Run:
    """The create as an operation. It has no execution, but its audit and its history name something."""
    numbers = [audit.attempt for audit in audits if audit.operation is Operation.CREATE and audit.version == POOLED]
    attempt = Attempt(tenant, Operation.CREATE, POOLED, 1 + max(numbers, default=0))
    return Run(attempt, f"pool/{attempt.name}", at, request)
