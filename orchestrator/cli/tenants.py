"""`berth tenant` and `berth tenants`: what is recorded about one tenant, and about all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum

from rich.text import Text

from orchestrator.cli import render
from orchestrator.cli.errors import NoSuchTenant
from orchestrator.fleet import TenantDetail, TenantState, TenantSummary, list_tenants, tenant_detail
from orchestrator.ports import TableReader, TenantReader
from orchestrator.records import Audit, HistoryEntry, Lock, RootCause, timestamp
from orchestrator.tenants import TenantId


class ListedState(StrEnum):
    """The states that a tenant in the list can be in. Deleted tenants leave it."""

    READY = TenantState.READY
    PROVISIONING = TenantState.PROVISIONING
    FAILED = TenantState.FAILED
    DELETING = TenantState.DELETING


def show_tenant(tenant: TenantId, reader: TenantReader, *, as_json: bool) -> None:
    detail = tenant_detail(tenant, reader)
    if not (detail.audits or detail.summary.queue):
        raise NoSuchTenant(f"No such tenant: {tenant}. Asking for its queue creates it: berth get-queue {tenant}")
    if as_json:
        render.show_json(_detail_document(detail))
    else:
        _show_detail(detail)


def show_tenants(reader: TableReader, *, state: ListedState | None, version: str | None, as_json: bool) -> None:
    fleet = list_tenants(reader)
    tenants = [tenant for tenant in fleet if state in (None, tenant.state.value) and version in (None, tenant.version)]
    if as_json:
        render.show_json({"tenants": [_summary_document(tenant) for tenant in tenants]})
    elif tenants:
        _show_list(tenants)
    elif fleet:
        render.show_line(f"None of the {len(fleet)} tenants is like that. See them all: berth tenants")
    else:
        render.show_line("There are no tenants yet. Asking for a queue creates one: berth get-queue TENANT --wait")


def _show_list(tenants: Sequence[TenantSummary]) -> None:
    table = render.columns("Tenant", "State", "Version", "Updated (UTC)")
    for tenant in tenants:
        updated = f"{tenant.updated_at:%Y-%m-%d %H:%M}" if tenant.updated_at else ""
        table.add_row(tenant.tenant.value, render.state(tenant.state), tenant.version or "", updated)
    render.stdout().print(table)
    counts = Counter(tenant.state for tenant in tenants)
    told = ", ".join(f"{count} {state}" for state, count in counts.items())
    render.show_line(f"\n{len(tenants)} {'tenant' if len(tenants) == 1 else 'tenants'}: {told}")
    for tenant in tenants:
        if tenant.root_cause:
            render.show_line(Text.assemble((f"{tenant.tenant}: ", "bold"), str(tenant.root_cause)))


def _show_detail(detail: TenantDetail) -> None:
    summary = detail.summary
    queue = summary.queue
    render.show_pairs(
        {
            "tenant": summary.tenant.value,
            "state": render.state(summary.state),
            "version": summary.version,
            "updated": render.moment(summary.updated_at) if summary.updated_at else None,
            "queue url": queue.url if queue else None,
            "queue arn": queue.arn if queue else None,
            "root cause": str(summary.root_cause) if summary.root_cause else None,
        }
    )
    if detail.lock:
        run = detail.lock.run
        attempt = run.attempt
        render.show_line("\nGoing on now", "bold")
        render.show_pairs(
            {
                "operation": f"{attempt.operation} {attempt.version}, attempt {attempt.number}",
                "since": render.moment(run.started_at),
                "execution": run.execution,
            }
        )
    for audit in detail.audits:
        render.show_line(f"\n{audit.operation} {audit.version or ''}".rstrip(), "bold")
        render.show_pairs(
            {
                "status": render.state(audit.status),
                "attempt": str(audit.attempt),
                "updated": render.moment(audit.updated_at),
                "execution": audit.execution,
                "root cause": str(audit.root_cause) if audit.root_cause else None,
            }
        )
    if detail.history:
        _show_history(detail.history)


def _show_history(history: Sequence[HistoryEntry]) -> None:
    render.show_line("\nHistory", "bold")
    table = render.columns("At (UTC)", "Operation", "Version", "Attempt", "Status", "Why")
    for entry in history:
        table.add_row(
            f"{entry.at:%Y-%m-%d %H:%M:%S}",
            entry.operation,
            entry.version,
            str(entry.attempt),
            render.state(entry.status),
            Text(entry.root_cause.reason if entry.root_cause else ""),
        )
    render.stdout().print(table)


def _summary_document(summary: TenantSummary) -> dict[str, object]:
    queue = summary.queue
    return {
        "tenantId": summary.tenant.value,
        "state": summary.state.value,
        "version": summary.version,
        "updatedAt": _time(summary.updated_at),
        "queueUrl": queue.url if queue else None,
        "queueArn": queue.arn if queue else None,
        "rootCause": _root_cause_document(summary.root_cause),
    }


def _detail_document(detail: TenantDetail) -> dict[str, object]:
    return {
        **_summary_document(detail.summary),
        "currentOperation": _lock_document(detail.lock) if detail.lock else None,
        "audits": [_audit_document(audit) for audit in detail.audits],
        "history": [_history_document(entry) for entry in detail.history],
    }


def _lock_document(lock: Lock) -> dict[str, object]:
    # Without the task token: whoever has it can let the execution go on.
    attempt = lock.run.attempt
    return {
        "operation": attempt.operation.value,
        "version": attempt.version,
        "attempt": attempt.number,
        "execution": lock.run.execution,
        "startedAt": timestamp(lock.run.started_at),
    }


def _audit_document(audit: Audit) -> dict[str, object]:
    return {**_outcome_document(audit), "updatedAt": timestamp(audit.updated_at)}


def _history_document(entry: HistoryEntry) -> dict[str, object]:
    return {**_outcome_document(entry), "at": timestamp(entry.at)}


def _outcome_document(record: Audit | HistoryEntry) -> dict[str, object]:
    return {
        "operation": record.operation.value,
        "version": record.version,
        "attempt": record.attempt,
        "status": record.status.value,
        "execution": record.execution,
        "rootCause": _root_cause_document(record.root_cause),
    }


def _root_cause_document(cause: RootCause | None) -> dict[str, object] | None:
    """As getQueue's answer has it."""
    return {"resource": cause.resource, "type": cause.resource_type, "reason": cause.reason} if cause else None


def _time(moment: datetime | None) -> str | None:
    return timestamp(moment) if moment else None
