"""Turns a change that is on record into the event about it. ``None``: the change is not published.

``row`` names the row that has the change. Together with the change, it makes the event's id.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from orchestrator.common.times import timestamp
from orchestrator.events.delivery.records import Connection, ConnectionStatus, Delivery, DeliveryState
from orchestrator.own_events.kinds import Kind, OwnEvent, change_id
from orchestrator.rollouts.records import Rollout, RolloutStatus
from orchestrator.tenants.history import HistoryEntry
from orchestrator.tenants.records import Operation, RootCause, Status, release_of

_MAX_TEXT = 4_000
"""Characters of a text from outside, such as a failure's reason. EventBridge limits the size of an event."""

_WHEN_SUCCEEDED: Mapping[Operation, Kind] = {
    Operation.CREATE: Kind.TENANT_PROVISIONED,
    Operation.UPDATE: Kind.TENANT_UPDATED,
    Operation.DELETE: Kind.TENANT_DELETED,
}
_OF_ROLLOUTS: Mapping[RolloutStatus, Kind] = {
    RolloutStatus.HALTED: Kind.ROLLOUT_HALTED,
    RolloutStatus.SUCCEEDED: Kind.ROLLOUT_SUCCEEDED,
}


def operation_ended(entry: HistoryEntry, *, row: str) -> OwnEvent | None:
    """An entry of a tenant's history is appended once, with the change itself, and its key is unique."""
    if entry.status is Status.STARTED or entry.tenant.is_warm:
        return None  # A stack that is kept ready is no tenant's.
    failed = entry.status is Status.FAILURE
    kind = Kind.TENANT_FAILED if failed else _WHEN_SUCCEEDED[entry.operation]
    data: dict[str, object] = {
        "tenant_id": entry.tenant.value,
        "version": release_of(entry.operation, entry.version),
        "attempt": entry.attempt,
        "execution": entry.execution,
        "requested_by": entry.request.by,
        "reason": _cut(entry.request.reason),
    }
    if failed:
        data |= {"operation": entry.operation.value, "root_cause": _root_cause(entry.root_cause)}
    return OwnEvent(change_id(kind, row), kind, entry.at, data, entry.tenant)


def rollout_ended(before: RolloutStatus | None, rollout: Rollout, *, row: str, at: datetime) -> OwnEvent | None:
    """``before`` is the status that the write has replaced. ``at`` is the time of the write.

    A halted rollout may be resumed and halt again, so its revision is part of the id.
    """
    kind = _OF_ROLLOUTS.get(rollout.status)
    if kind is None or rollout.status is before or rollout.spec.dry_run:
        return None
    data: dict[str, object] = {
        "rollout_id": rollout.id,
        "version": rollout.spec.version,
        "total": rollout.total,
        "reason": _cut(rollout.reason),
        "requested_by": rollout.by,
        "created_at": timestamp(rollout.created_at),
    }
    return OwnEvent(change_id(kind, row, str(rollout.revision)), kind, rollout.ended_at or at, data)


def connection_disabled(
    before: ConnectionStatus | None, connection: Connection, *, row: str, at: datetime
) -> OwnEvent | None:
    """``before`` is the status that the write has replaced. ``at`` is the time of the write."""
    if connection.status is not ConnectionStatus.DISABLED or before is ConnectionStatus.DISABLED:
        return None
    kind = Kind.CONNECTION_DISABLED
    data: dict[str, object] = {
        "tenant_id": connection.life.tenant.value,
        "connection_id": connection.connection_id,
        "origin": connection.origin,
        "name": connection.name,
        # The address is left out: the URL of a hook may be a secret.
        "destination": connection.destination.kind.value,
        "reason": _cut(connection.reason or ""),
    }
    change = f"{connection.revision} {timestamp(at)}"
    return OwnEvent(change_id(kind, row, change), kind, at, data, connection.life.tenant)


def delivery_exhausted(delivery: Delivery, *, row: str, at: datetime) -> OwnEvent | None:
    """A delivery that somebody asks for again may fail again, at another time, which is part of the id."""
    if delivery.state is not DeliveryState.FAILED:
        return None
    kind, ended_at, tenant = Kind.DELIVERY_EXHAUSTED, delivery.ended_at or at, delivery.ref.life.tenant
    data: dict[str, object] = {
        "tenant_id": tenant.value,
        "connection_id": delivery.ref.connection_id,
        "origin": delivery.origin,
        "event_id": delivery.ref.event_id,
        "tries": delivery.tries,
        "code": delivery.code,
        "reason": _cut(delivery.reason),
        "resend": delivery.resend,
    }
    return OwnEvent(change_id(kind, row, timestamp(ended_at)), kind, ended_at, data, tenant)


def _root_cause(cause: RootCause | None) -> dict[str, str] | None:
    if cause is None:
        return None
    return {"resource": cause.resource, "resource_type": cause.resource_type, "reason": _cut(cause.reason)}


def _cut(text: str) -> str:
    return text[:_MAX_TEXT]
