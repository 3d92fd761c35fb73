"""Converts rows of tenants' histories to entries and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from orchestrator.adapters.dynamodb.keys import history_key, is_altered, moment_of_history, tenant_of_history
from orchestrator.adapters.dynamodb.rows import UNREADABLE
from orchestrator.adapters.dynamodb.tenant_values import (
    request_value,
    root_cause_from,
    root_cause_value,
    stored_request,
)
from orchestrator.adapters.dynamodb.values import Item, n, s, time
from orchestrator.common.times import parse_timestamp
from orchestrator.tenants.history import ChangeKind, HistoryEntry, RecordedChange, UnreadableEntry
from orchestrator.tenants.records import Attempt, Operation, Request, Status


def history_from(item: Mapping[str, Any]) -> HistoryEntry | RecordedChange | UnreadableEntry:
    """An unreadable row must not hide the tenant's other entries."""
    try:
        return _change_from(item) if "Change" in item else _operation_from(item)
    except UNREADABLE:
        return UnreadableEntry(moment_of_history(item["sk"]["S"]))


def _recorded_request(item: Mapping[str, Any]) -> Request:
    request = stored_request(item)
    if not isinstance(request.by, str) or not isinstance(request.reason, str):
        raise TypeError("the requester and the reason must be texts")
    return request


def _json_object(item: Mapping[str, Any], name: str) -> Mapping[str, object]:
    value = json.loads(item[name]["S"])
    if not isinstance(value, dict):
        raise TypeError(f"{name} must be a JSON object")
    return value


def _operation_from(item: Mapping[str, Any]) -> HistoryEntry:
    return HistoryEntry(
        tenant=tenant_of_history(item["pk"]["S"]),
        at=parse_timestamp(item["At"]["S"]),
        operation=Operation(item["Operation"]["S"]),
        version=item["Version"]["S"],
        attempt=int(item["Attempt"]["N"]),
        status=Status(item["Status"]["S"]),
        execution=item["Execution"]["S"],
        root_cause=root_cause_from(item),
        request=_recorded_request(item),
        altered=is_altered(item),
    )


def _change_from(item: Mapping[str, Any]) -> RecordedChange:
    return RecordedChange(
        tenant=tenant_of_history(item["pk"]["S"]),
        at=parse_timestamp(item["At"]["S"]),
        kind=ChangeKind(item["Change"]["S"]),
        request=_recorded_request(item),
        before=_json_object(item, "Before"),
        after=_json_object(item, "After"),
        altered=is_altered(item),
    )


def change_row(change: RecordedChange) -> Item:
    fields = {
        "At": time(change.at),
        "Change": s(change.kind),
        "Request": request_value(change.request),
        # Stored as JSON, because they are always read as a whole.
        "Before": s(json.dumps(change.before, sort_keys=True)),
        "After": s(json.dumps(change.after, sort_keys=True)),
    }
    return history_key(change.tenant, change.at, change.kind, fields) | fields


def history_row(entry: HistoryEntry) -> Item:
    attempt = Attempt(entry.tenant, entry.operation, entry.version, entry.attempt)
    fields: Item = {
        "At": time(entry.at),
        "Operation": s(entry.operation),
        "Version": s(entry.version),
        "Attempt": n(entry.attempt),
        "Status": s(entry.status),
        "Execution": s(entry.execution),
        "Request": request_value(entry.request),
    }
    if entry.root_cause:
        fields["RootCause"] = root_cause_value(entry.root_cause)
    return history_key(entry.tenant, entry.at, f"{attempt.name}#{entry.status}", fields) | fields
