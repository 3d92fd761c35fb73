"""Converts rows of the table to records of the domain and back."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from orchestrator.adapters.dynamodb import columns
from orchestrator.adapters.dynamodb.keys import (
    METADATA,
    history_key,
    is_altered,
    moment_of_history,
    operation_of,
    tenant_of,
    tenant_of_history,
    version_of_position,
)
from orchestrator.adapters.dynamodb.tenant_values import (
    request_value,
    root_cause_from,
    root_cause_value,
    stored_request,
)
from orchestrator.adapters.dynamodb.values import Item, moment, n, number, s, text, time
from orchestrator.common.errors import BerthError, UnreadableRows
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import parse_timestamp
from orchestrator.tenants.records import (
    Attempt,
    Audit,
    ChangeKind,
    HistoryEntry,
    Lock,
    Metadata,
    Operation,
    RecordedChange,
    Request,
    RootCause,
    Run,
    Status,
    TenantInBrief,
    TenantState,
    UnreadableEntry,
)

if TYPE_CHECKING:
    from orchestrator.releases.records import Release
    from orchestrator.tenants.ports import ListedTenant

_MAX_ERROR = 200
"""Characters of an error message that are shown: values written by other systems may have any length."""

Parsed = TypeVar("Parsed")


def metadata_from(item: Mapping[str, Any]) -> Metadata:
    fields = {name: column.read(item) for name, column in columns.METADATA.items()}
    return Metadata(tenant=tenant_of(item["pk"]["S"]), labelled="Labels" in item, **fields)


def listed_from(item: Mapping[str, Any], state: TenantState) -> ListedTenant | None:
    """A row that the index lists in that state. ``None`` if the row belongs to no tenant.

    An unreadable row must not hide the others, so it is listed with the state and version that the index has.
    """
    # Imported here, because getQueue uses this module, too, lists nothing and must start fast.
    from orchestrator.tenants.ports import ListedTenant

    try:
        return _listed_from(item)
    except UNREADABLE as error:
        reason = f"The row cannot be read, so something other than Berth has written it ({_describe(error)})."
    try:
        position = item["ListingSort"]["S"]
        return ListedTenant(
            tenant=tenant_of(item["pk"]["S"]),
            state=state,
            version=version_of_position(position) or None,
            pinned_version=None,
            labels={},
            queue=None,
            updated_at=None,
            root_cause=RootCause(item["sk"]["S"], "AWS::DynamoDB::Table", reason),
            position=position,
            readable=False,
        )
    except UNREADABLE:
        return None


def brief_from(item: Mapping[str, Any], state: TenantState) -> TenantInBrief | None:
    """A row that the index lists in that state. ``None`` if the row belongs to no tenant.

    The position has the tenant and its version: every write of a tenant's version also writes the position.
    """
    try:
        version, _, name = item["ListingSort"]["S"].rpartition("#")
        tenant = TenantId.parse(name)
    except UNREADABLE:
        return None
    if len(item) == 1:
        return TenantInBrief(tenant, state, version or None, None, {})
    try:
        pinned_version, labels = (columns.METADATA[column].read(item) for column in ("pinned_version", "labels"))
    except UNREADABLE:
        pinned_version, labels = None, {}
    return TenantInBrief(tenant, state, version or None, pinned_version, labels)


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:_MAX_ERROR]


def _listed_from(item: Mapping[str, Any]) -> ListedTenant:
    """Read from the tenant's metadata or, if the tenant is deleted, from the audit of its delete."""
    from orchestrator.tenants.ports import ListedTenant

    if item["sk"]["S"] != METADATA:
        return ListedTenant(
            tenant=tenant_of(item["pk"]["S"]),
            state=TenantState.DELETED,
            version=None,
            pinned_version=None,
            labels={},
            queue=None,
            updated_at=moment(item, "UpdatedAt"),
            root_cause=None,
            position=item["ListingSort"]["S"],
        )
    metadata = metadata_from(item)
    return ListedTenant(
        tenant=metadata.tenant,
        state=TenantState(item["State"]["S"]),
        version=metadata.version,
        pinned_version=metadata.pinned_version,
        labels=metadata.labels,
        queue=metadata.queue if metadata.published else None,
        updated_at=metadata.updated_at,
        root_cause=root_cause_from(item),
        position=item["ListingSort"]["S"],
        stack_id=metadata.stack_id,
    )


def audit_from(item: Mapping[str, Any]) -> Audit:
    operation, version = operation_of(item["sk"]["S"])
    return Audit(
        tenant=tenant_of(item["pk"]["S"]),
        operation=operation,
        version=version or text(item, "Version"),
        status=Status(item["Status"]["S"]),
        execution=item["Execution"]["S"],
        updated_at=parse_timestamp(item["UpdatedAt"]["S"]),
        attempt=number(item, "Attempt", 1),
        root_cause=root_cause_from(item),
        request=stored_request(item),
        revived_by=text(item, "RevivedBy"),
        asked_at=moment(item, "AskedAt"),
    )


def readable(parse: Callable[[Mapping[str, Any]], Parsed], item: Mapping[str, Any]) -> Parsed:
    """Parse the row. Raises :class:`UnreadableRows`."""
    try:
        return parse(item)
    except UNREADABLE as error:
        raise UnreadableRows(
            f"the row {item['pk']['S']} {item['sk']['S']} cannot be read ({_describe(error)})"
        ) from error


UNREADABLE = (KeyError, ValueError, TypeError, AttributeError, OverflowError, RecursionError, BerthError)
"""The errors that parsing may raise if another system has written the row."""


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
    request = _recorded_request(item) if "Request" in item else None
    return HistoryEntry(
        tenant=tenant_of_history(item["pk"]["S"]),
        at=parse_timestamp(item["At"]["S"]),
        operation=Operation(item["Operation"]["S"]),
        version=item["Version"]["S"],
        attempt=number(item, "Attempt", 1),
        status=Status(item["Status"]["S"]),
        execution=item["Execution"]["S"],
        root_cause=root_cause_from(item),
        requested_by=request.by if request else text(item, "RequestedBy") or "",
        request=request,
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
        "Request": request_value(entry.request or Request(entry.requested_by)),
    }
    if entry.root_cause:
        fields["RootCause"] = root_cause_value(entry.root_cause)
    return history_key(entry.tenant, entry.at, f"{attempt.name}#{entry.status}", fields) | fields


def lock_from(item: Mapping[str, Any]) -> Lock:
    attempt = Attempt(
        tenant=tenant_of(item["pk"]["S"]),
        operation=Operation(item["Operation"]["S"]),
        version=item["Version"]["S"],
        number=number(item, "Attempt", 1),
    )
    run = Run(attempt, item["Execution"]["S"], parse_timestamp(item["StartedAt"]["S"]), stored_request(item))
    return Lock(
        run,
        text(item, "TaskToken"),
        text(item, "ChangeSet"),
        text(item, "Deployed"),
        moment(item, "StackChangedAt"),
        text(item, "StartedStack"),
        text(item, "StartedAs"),
    )


def release_from(item: Mapping[str, Any]) -> Release:
    # Imported here for the same reason as above.
    from orchestrator.releases.records import Release

    return Release(
        version=item["Version"]["S"],
        template_url=item["TemplateUrl"]["S"],
        digest=item["Digest"]["S"],
        published_at=parse_timestamp(item["PublishedAt"]["S"]),
        content=text(item, "Content") or "",
        notes=text(item, "Notes") or "",
        parameters=frozenset(item.get("Parameters", {}).get("SS", ())),
    )


def release_fields(release: Release) -> Item:
    return {
        "Version": s(release.version),
        "TemplateUrl": s(release.template_url),
        "Digest": s(release.digest),
        "PublishedAt": time(release.published_at),
        "Content": s(release.content),
        "Notes": s(release.notes),
        # DynamoDB rejects empty sets.
        **({"Parameters": {"SS": sorted(release.parameters)}} if release.parameters else {}),
    }
