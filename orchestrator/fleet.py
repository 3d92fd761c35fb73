"""All tenants at a glance, from the index: those that have a queue, and those that are on their way or failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from orchestrator.ports import TableReader, TenantReader
from orchestrator.records import Audit, HistoryEntry, Lock, Metadata, Operation, Queue, RootCause, Status
from orchestrator.tenants import TenantId


class TenantState(StrEnum):
    READY = "READY"
    PROVISIONING = "PROVISIONING"
    FAILED = "FAILED"
    DELETING = "DELETING"
    DELETED = "DELETED"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class TenantSummary:
    tenant: TenantId
    state: TenantState
    version: str | None
    updated_at: datetime | None
    queue: Queue | None
    root_cause: RootCause | None


@dataclass(frozen=True, slots=True)
class TenantDetail:
    summary: TenantSummary
    lock: Lock | None
    audits: Sequence[Audit]
    history: Sequence[HistoryEntry]


def tenant_detail(tenant: TenantId, reader: TenantReader) -> TenantDetail:
    audits = _audits(tenant, reader)
    metadata = reader.metadata(tenant)
    return TenantDetail(
        summary=summarise(tenant, metadata, audits),
        lock=reader.lock(tenant),
        audits=audits,
        history=reader.history(tenant),
    )


def list_tenants(reader: TableReader) -> list[TenantSummary]:
    """Published tenants as the index has them; those that are on their way or failed, by their own audits.

    The index knows of a failure but not of what came after it, so that is looked up: such tenants are few.
    Deleted tenants are not listed.
    """
    published = {entry.tenant: entry for entry in reader.published_tenants()}
    unpublished = {
        audit.tenant
        for status in (Status.FAILURE, Status.STARTED)
        for audit in reader.operations(status)
        if audit.tenant not in published
    }
    summaries = [summarise(tenant, metadata, []) for tenant, metadata in published.items()]
    summaries += [summarise(tenant, None, _audits(tenant, reader)) for tenant in unpublished]
    listed = (summary for summary in summaries if summary.state is not TenantState.DELETED)
    return sorted(listed, key=lambda summary: str(summary.tenant))


def _audits(tenant: TenantId, reader: TenantReader) -> list[Audit]:
    return sorted(reader.audits(tenant), key=lambda audit: audit.updated_at)


def summarise(tenant: TenantId, metadata: Metadata | None, audits: Sequence[Audit]) -> TenantSummary:
    """One line about a tenant. ``audits`` are in the order of time."""
    latest = audits[-1] if audits else None
    published = metadata if metadata is not None and metadata.published else None
    state = _state(published, latest)
    return TenantSummary(
        tenant=tenant,
        state=state,
        version=published.version if published else None,
        updated_at=max((r.updated_at for r in (published, latest) if r and r.updated_at), default=None),
        queue=published.queue if published else None,
        root_cause=latest.root_cause if latest and state is TenantState.FAILED else None,
    )


def _state(published: Metadata | None, latest: Audit | None) -> TenantState:
    if latest and latest.operation is Operation.DELETE and latest.status is Status.STARTED:
        return TenantState.DELETING
    if published:
        return TenantState.READY
    if latest is None:
        return TenantState.UNKNOWN
    if latest.status is Status.SUCCESS and latest.operation is Operation.DELETE:
        return TenantState.DELETED
    return {
        Status.STARTED: TenantState.PROVISIONING,
        Status.FAILURE: TenantState.FAILED,
        Status.SUCCESS: TenantState.UNKNOWN,
    }[latest.status]
