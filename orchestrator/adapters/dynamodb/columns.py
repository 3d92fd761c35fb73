"""The attributes and values in which each field of a tenant's records is stored.

Keys are in :mod:`orchestrator.adapters.dynamodb.keys`. Metadata is also read by its columns; locks and audits are read
in :mod:`orchestrator.adapters.dynamodb.rows`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.adapters.dynamodb import keys
from orchestrator.adapters.dynamodb.tenant_values import (
    request_value,
    requester_from,
    requester_value,
    root_cause_value,
)
from orchestrator.adapters.dynamodb.values import Item, labels_value, moment, n, s, text, time
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.records import Attempt, Operation, Queue, TenantState

Row = Mapping[str, Any]
Values = Sequence[Item]


@dataclass(frozen=True, slots=True)
class Column:
    """One field of a record, in one or more attributes of its row."""

    names: tuple[str, ...]
    values: Callable[[TenantId, Any], Values]
    """The values of the attributes, in the order of their names."""
    read: Callable[[Row], Any] = lambda _row: None


def _text(name: str) -> Column:
    return Column((name,), lambda _tenant, value: [s(value)], lambda row: text(row, name))


def _moment(name: str) -> Column:
    return Column((name,), lambda _tenant, value: [time(value)], lambda row: moment(row, name))


def _number(name: str) -> Column:
    return Column((name,), lambda _tenant, value: [n(value)])


def _queue(direction: str) -> Column:
    names = f"{direction}QueueArn", f"{direction}QueueUrl"

    def read(row: Row) -> Queue | None:
        arn, url = (text(row, name) for name in names)
        return Queue(arn, url) if arn and url else None

    return Column(names, lambda _tenant, queue: [s(queue.arn), s(queue.url)], read)


def _asked_for(row: Row) -> Attempt | None:
    version, _, number = (text(row, "AskedFor") or "").rpartition("#")
    return Attempt(keys.tenant_of(row["pk"]["S"]), Operation.CREATE, version, int(number)) if version else None


_REQUEST = Column(("Request",), lambda _tenant, request: [request_value(request)])
_ROOT_CAUSE = Column(("RootCause",), lambda _tenant, cause: [root_cause_value(cause)])

METADATA: Mapping[str, Column] = {
    "queue": _queue("Inbound"),
    "stack_id": _text("StackId"),
    "version": _text("Version"),
    "created_at": _moment("CreatedAt"),
    "updated_at": Column(
        ("UpdatedAt",),
        lambda _tenant, at: [time(at)],
        # Rows from before Berth store the time under another name.
        lambda row: moment(row, "UpdatedAt") or moment(row, "UpdateAt"),
    ),
    "withdrawn_by": _text("WithdrawnBy"),
    "outbound_queue": _queue("Outbound"),
    "pinned_version": _text("PinnedVersion"),
    "labels": Column(
        ("Labels",),
        lambda _tenant, labels: [labels_value(labels)],
        lambda row: {name: value["S"] for name, value in row.get("Labels", {"M": {}})["M"].items()},
    ),
    "resources": Column(
        ("Resources",),
        lambda _tenant, resources: [labels_value(resources)],
        lambda row: {name: value["S"] for name, value in row.get("Resources", {"M": {}})["M"].items()},
    ),
    "deployed": _text("Deployed"),
    "stack_changed_at": _moment("StackChangedAt"),
    "created_by": Column(
        ("CreatedBy",),
        lambda _tenant, requester: [requester_value(requester)],
        lambda row: requester_from(row, "CreatedBy"),
    ),
    "asked_for": Column(("AskedFor",), lambda _tenant, create: [s(f"{create.version}#{create.number}")], _asked_for),
    "asked_for_at": _moment("AskedForAt"),
    "gone_stack_id": _text("GoneStackId"),
    "given_to": _text("GivenTo"),
    "last_version": Column(
        ("LastVersion",), lambda _tenant, version: [s(version)], lambda row: text(row, "LastVersion") or None
    ),
    "recorded_tier": _text("Tier"),
}
"""The fields of :class:`orchestrator.tenants.records.Metadata`."""


def _listed_version(tenant: TenantId, version: str | None) -> Values:
    return [s(keys.listed_tenant(tenant, TenantState.READY, version)[1])]


METADATA_ROW: Mapping[str, Column] = {
    **METADATA,
    "listed_state": Column(("State", "ListingKey"), lambda _tenant, state: [s(state), s(keys.listed_tenants(state))]),
    "listed_version": Column(("ListingSort",), _listed_version),
    "root_cause": _ROOT_CAUSE,
    # Adoptions remove the attribute of rows from before Berth.
    "former_updated_at": _moment("UpdateAt"),
}

LOCK_ROW: Mapping[str, Column] = {
    "operation": _text("Operation"),
    "version": _text("Version"),
    "attempt": _number("Attempt"),
    "request": _REQUEST,
    "execution": _text("Execution"),
    "started_at": _moment("StartedAt"),
    "task_token": _text("TaskToken"),
    "change_set": _text("ChangeSet"),
    "deployed": _text("Deployed"),
    "stack_changed_at": _moment("StackChangedAt"),
    "started_stack": _text("StartedStack"),
    "started_as": _text("StartedAs"),
}


def _listed_audit(tenant: TenantId, listed: Any) -> Values:
    """The position of an unfinished operation, or of a deleted tenant, which is listed by the audit of its delete."""
    if listed is TenantState.DELETED:
        position = keys.listed_tenant(tenant, TenantState.DELETED, None)
    else:
        position = keys.unfinished_operation(tenant, listed.since)
    return [s(part) for part in position]


AUDIT_ROW: Mapping[str, Column] = {
    "status": _text("Status"),
    "execution": _text("Execution"),
    "updated_at": _moment("UpdatedAt"),
    "version": _text("Version"),
    "attempt": _number("Attempt"),
    "asked_at": _moment("AskedAt"),
    "request": _REQUEST,
    "root_cause": _ROOT_CAUSE,
    "revived_by": _text("RevivedBy"),
    "ticket": _number("Ticket"),
    "expected_at": _moment("ExpectedAt"),
    "waits_until": _moment("WaitsUntil"),
    "listed": Column(("ListingKey", "ListingSort"), _listed_audit),
}
