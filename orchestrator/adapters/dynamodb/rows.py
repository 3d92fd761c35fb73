"""Rows of the table as records of the domain, and back."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from orchestrator.adapters.dynamodb.keys import (
    METADATA,
    is_altered,
    moment_of_history,
    operation_of,
    tenant_of,
    tenant_of_history,
    version_at,
)
from orchestrator.common.errors import BerthError, UnreadableRows
from orchestrator.common.times import parse_timestamp, timestamp
from orchestrator.releases.records import Release
from orchestrator.tenants.execution_input import request_document, request_from
from orchestrator.tenants.records import (
    Attempt,
    Audit,
    ChangeKind,
    HistoryEntry,
    Lock,
    Metadata,
    Operation,
    Queue,
    RecordedChange,
    Request,
    RootCause,
    Run,
    Status,
    TenantState,
    UnreadableEntry,
)
from orchestrator.tenants.stack_resources import Requester, StackResource

if TYPE_CHECKING:
    from orchestrator.tenants.ports import ListedTenant

_MAX_ERROR = 200
"""Characters that are told of an error: a value that somebody else has written may be of any length."""

Parsed = TypeVar("Parsed")
Item = dict[str, Any]
"""A row as the DynamoDB client takes and gives it: every value with its type."""


def s(value: str) -> dict[str, str]:
    return {"S": value}


def n(value: int) -> dict[str, str]:
    return {"N": str(value)}


def time(value: datetime) -> dict[str, str]:
    return {"S": timestamp(value)}


def text(item: Mapping[str, Any], name: str) -> str | None:
    value = item.get(name)
    return value["S"] if value and "S" in value else None


def moment(item: Mapping[str, Any], name: str) -> datetime | None:
    found = text(item, name)
    return parse_timestamp(found) if found else None


def number(item: Mapping[str, Any], name: str, default: int) -> int:
    return int(item[name]["N"]) if name in item else default


def _queue(item: Mapping[str, Any], direction: str) -> Queue | None:
    arn, url = text(item, f"{direction}QueueArn"), text(item, f"{direction}QueueUrl")
    return Queue(arn, url) if arn and url else None


def metadata_from(item: Mapping[str, Any]) -> Metadata:
    return Metadata(
        tenant=tenant_of(item["pk"]["S"]),
        queue=_queue(item, "Inbound"),
        stack_id=text(item, "StackId"),
        version=text(item, "Version"),
        created_at=moment(item, "CreatedAt"),
        # Rows from before 0.1.0 have it under another name.
        updated_at=moment(item, "UpdatedAt") or moment(item, "UpdateAt"),
        withdrawn_by=text(item, "WithdrawnBy"),
        outbound_queue=_queue(item, "Outbound"),
        pinned_version=text(item, "PinnedVersion"),
        labels=_labels(item),
        deployed=text(item, "Deployed"),
        created_by=_requester(item, "CreatedBy"),
        asked_for=_asked_for(item),
        asked_for_at=moment(item, "AskedForAt"),
        gone_stack_id=text(item, "GoneStackId"),
        last_version=text(item, "LastVersion") or None,
    )


def requester_value(requester: Requester) -> Item:
    if isinstance(requester, str):
        return s(requester)
    return {"M": {"StackId": s(str(requester.stack)), "LogicalId": s(requester.logical_id)}}


def _requester(item: Mapping[str, Any], name: str) -> Requester | None:
    if "M" in item.get(name, {}):
        resource = item[name]["M"]
        return StackResource.parse(resource["StackId"]["S"], resource["LogicalId"]["S"])
    found = text(item, name)
    # 0.5.0 wrote a resource as text, too.
    return found and (StackResource.from_text(found) or found)


def asked_for_value(create: Attempt) -> dict[str, str]:
    return s(f"{create.version}#{create.number}")


def _asked_for(item: Mapping[str, Any]) -> Attempt | None:
    version, _, number_ = (text(item, "AskedFor") or "").rpartition("#")
    return Attempt(tenant_of(item["pk"]["S"]), Operation.CREATE, version, int(number_)) if version else None


def stack_fields(metadata: Metadata) -> Item:
    """What the metadata says that the tenant's stack says, too, and when that was."""
    fields: Item = {}
    if metadata.queue:
        fields |= {"InboundQueueArn": s(metadata.queue.arn), "InboundQueueUrl": s(metadata.queue.url)}
    if metadata.stack_id:
        fields["StackId"] = s(metadata.stack_id)
    if metadata.version:
        fields["Version"] = s(metadata.version)
    if metadata.updated_at:
        fields["UpdatedAt"] = time(metadata.updated_at)
    return fields


def listed_from(item: Mapping[str, Any], state: TenantState) -> ListedTenant | None:
    """A row that the index has in that state, as a tenant of the list. ``None`` if the row is no tenant's.

    One row that nobody can read must not hide all others, so it is listed by what the index says of it.
    """
    # Only here: getQueue, which lists nothing and must start fast, reads rows, too.
    from orchestrator.tenants.ports import ListedTenant

    try:
        return _listed_from(item)
    except UNREADABLE as error:
        reason = f"The row cannot be read, so something other than Berth has written it ({_in_words(error)})."
    try:
        position = item["ListingSort"]["S"]
        return ListedTenant(
            tenant=tenant_of(item["pk"]["S"]),
            state=state,
            version=version_at(position) or None,
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


def _in_words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:_MAX_ERROR]


def _listed_from(item: Mapping[str, Any]) -> ListedTenant:
    """From a tenant's metadata, or, where there is none any more, from the audit of its delete."""
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


def labels_value(labels: Mapping[str, str]) -> Item:
    return {"M": {name: s(value) for name, value in labels.items()}}


def _labels(item: Mapping[str, Any]) -> dict[str, str]:
    return {name: value["S"] for name, value in item.get("Labels", {"M": {}})["M"].items()}


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
        request=_request_from(item),
        revived_by=text(item, "RevivedBy"),
        asked_at=moment(item, "AskedAt"),
    )


def readable(parse: Callable[[Mapping[str, Any]], Parsed], item: Mapping[str, Any]) -> Parsed:
    """The row as a record. Raises :class:`UnreadableRows`."""
    try:
        return parse(item)
    except UNREADABLE as error:
        raise UnreadableRows(
            f"the row {item['pk']['S']} {item['sk']['S']} cannot be read ({_in_words(error)})"
        ) from error


UNREADABLE = (KeyError, ValueError, TypeError, AttributeError, OverflowError, RecursionError, BerthError)
"""The errors of reading a row that somebody else has written."""


def history_from(item: Mapping[str, Any]) -> HistoryEntry | RecordedChange | UnreadableEntry:
    """One row that nobody can read must not hide all others of the tenant."""
    try:
        return _change_from(item) if "Change" in item else _operation_from(item)
    except UNREADABLE:
        return UnreadableEntry(moment_of_history(item["sk"]["S"]))


def _recorded_request(item: Mapping[str, Any]) -> Request:
    request = _request_from(item)
    if not isinstance(request.by, str) or not isinstance(request.reason, str):
        raise TypeError("who asked, and why, are texts")
    return request


def _said(item: Mapping[str, Any], name: str) -> Mapping[str, object]:
    said = json.loads(item[name]["S"])
    if not isinstance(said, dict):
        raise TypeError(f"{name} is no object")
    return said


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
        before=_said(item, "Before"),
        after=_said(item, "After"),
        altered=is_altered(item),
    )


def change_fields(change: RecordedChange) -> Item:
    return {
        "At": time(change.at),
        "Change": s(change.kind),
        **request_fields(change.request),
        # As JSON texts: they are only ever read as a whole.
        "Before": s(json.dumps(change.before, sort_keys=True)),
        "After": s(json.dumps(change.after, sort_keys=True)),
    }


def history_fields(run: Run, status: Status, at: datetime, cause: RootCause | None) -> Item:
    fields = {
        "At": time(at),
        **attempt_fields(run.attempt),
        "Status": s(status),
        "Execution": s(run.execution),
        **request_fields(run.request),
    }
    if cause:
        fields["RootCause"] = root_cause_value(cause)
    return fields


def attempt_fields(attempt: Attempt) -> Item:
    return {"Operation": s(attempt.operation), "Version": s(attempt.version), "Attempt": n(attempt.number)}


def request_fields(request: Request) -> Item:
    """As one JSON text: what was asked for is only ever read as a whole."""
    return {"Request": s(json.dumps(request_document(request), sort_keys=True))}


def _request_from(item: Mapping[str, Any]) -> Request:
    return request_from(json.loads(text(item, "Request") or "{}"))


def lock_fields(run: Run) -> Item:
    return {
        **attempt_fields(run.attempt),
        **request_fields(run.request),
        "Execution": s(run.execution),
        "StartedAt": time(run.started_at),
    }


def lock_from(item: Mapping[str, Any]) -> Lock:
    attempt = Attempt(
        tenant=tenant_of(item["pk"]["S"]),
        operation=Operation(item["Operation"]["S"]),
        version=item["Version"]["S"],
        number=number(item, "Attempt", 1),
    )
    run = Run(attempt, item["Execution"]["S"], parse_timestamp(item["StartedAt"]["S"]), _request_from(item))
    return Lock(run, text(item, "TaskToken"), text(item, "ChangeSet"))


def release_from(item: Mapping[str, Any]) -> Release:
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
        # DynamoDB knows no empty sets.
        **({"Parameters": {"SS": sorted(release.parameters)}} if release.parameters else {}),
    }


def root_cause_value(cause: RootCause) -> Item:
    return {"M": {"Resource": s(cause.resource), "Type": s(cause.resource_type), "Reason": s(cause.reason)}}


def root_cause_from(item: Mapping[str, Any]) -> RootCause | None:
    if "RootCause" not in item:
        return None
    cause = item["RootCause"]["M"]
    return RootCause(cause["Resource"]["S"], cause["Type"]["S"], cause["Reason"]["S"])
