"""The entries of a tenant's history for changes of its records outside operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.history import ChangeKind, RecordedChange
from orchestrator.tenants.records import Audit, Metadata, Queue, Request, TenantState

if TYPE_CHECKING:
    from orchestrator.tenants.ports import Pin


def description(
    tenant: TenantId,
    metadata: Metadata | None,
    *,
    labels: Mapping[str, str] | None,
    pin: Pin,
    request: Request,
    at: datetime,
) -> RecordedChange:
    """A change of labels and pin, with the values before and after it."""
    labelled: Mapping[str, str] = metadata.labels if metadata else {}
    pinned = metadata.pinned_version if metadata else None
    return RecordedChange(
        tenant,
        at,
        ChangeKind.DESCRIBE,
        request,
        before=_description_document(labelled, pinned),
        after=_description_document(labelled if labels is None else labels, pin.applied_to(pinned)),
    )


def correction(before: Metadata, after: Metadata, *, request: Request, at: datetime) -> RecordedChange:
    return RecordedChange(
        before.tenant,
        at,
        ChangeKind.CORRECT,
        request,
        before=_stack_document(before),
        after=_stack_document(after),
    )


def replacement(before: Metadata, queue: Queue, *, stack_id: str, at: datetime) -> RecordedChange:
    """The stack has another queue. The stack itself is the requester of the change."""
    return RecordedChange(
        before.tenant,
        at,
        ChangeKind.REPLACE,
        Request(by=stack_id),
        before=_stack_document(before),
        after=_stack_document(replace(before, queue=queue, stack_id=stack_id)),
    )


def adoption(
    before: Metadata, after: Metadata, *, state: TenantState, closed: Sequence[Audit], request: Request, at: datetime
) -> RecordedChange:
    """``closed`` are the unfinished operations of the earlier system that the adoption ends."""
    ends = [f"{audit.operation} {audit.version or ''}".strip() + f": {audit.status}" for audit in closed]
    return RecordedChange(
        before.tenant,
        at,
        ChangeKind.ADOPT,
        request,
        before=_stack_document(before) | {"state": None},
        after=_stack_document(after) | {"state": state.value} | ({"closed": ends} if ends else {}),
    )


def _description_document(labels: Mapping[str, str], pinned_version: str | None) -> dict[str, object]:
    return {"labels": dict(labels), "pinnedVersion": pinned_version}


def _stack_document(metadata: Metadata) -> dict[str, object]:
    return {
        "queueUrl": metadata.queue.url if metadata.queue else None,
        "queueArn": metadata.queue.arn if metadata.queue else None,
        "stackId": metadata.stack_id,
        "version": metadata.version,
    }
