"""Rows of the table as records of the domain, and back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from orchestrator.adapters.keys import operation_of, tenant_of
from orchestrator.records import (
    Attempt,
    Audit,
    HistoryEntry,
    Lock,
    Metadata,
    Operation,
    Queue,
    Release,
    RootCause,
    Run,
    Status,
    parse_timestamp,
    timestamp,
)

Item = dict[str, Any]
"""A row as the DynamoDB client takes and gives it: every value with its type."""


def s(value: str) -> dict[str, str]:
    return {"S": value}


def n(value: int) -> dict[str, str]:
    return {"N": str(value)}


def time(value: datetime) -> dict[str, str]:
    return {"S": timestamp(value)}


def _text(item: Mapping[str, Any], name: str) -> str | None:
    value = item.get(name)
    return value["S"] if value and "S" in value else None


def _moment(item: Mapping[str, Any], name: str) -> datetime | None:
    text = _text(item, name)
    return parse_timestamp(text) if text else None


def _number(item: Mapping[str, Any], name: str, default: int) -> int:
    return int(item[name]["N"]) if name in item else default


def metadata_from(item: Mapping[str, Any]) -> Metadata:
    arn, url = _text(item, "InboundQueueArn"), _text(item, "InboundQueueUrl")
    return Metadata(
        tenant=tenant_of(item["pk"]["S"]),
        queue=Queue(arn, url) if arn and url else None,
        stack_id=_text(item, "StackId"),
        version=_text(item, "Version"),
        created_at=_moment(item, "CreatedAt"),
        updated_at=_moment(item, "UpdatedAt"),
    )


def audit_from(item: Mapping[str, Any]) -> Audit:
    operation, version = operation_of(item["sk"]["S"])
    return Audit(
        tenant=tenant_of(item["pk"]["S"]),
        operation=operation,
        version=version or _text(item, "Version"),
        status=Status(item["Status"]["S"]),
        execution=item["Execution"]["S"],
        updated_at=parse_timestamp(item["UpdatedAt"]["S"]),
        attempt=_number(item, "Attempt", 1),
        root_cause=_root_cause_from(item),
    )


def history_from(item: Mapping[str, Any]) -> HistoryEntry:
    return HistoryEntry(
        tenant=tenant_of(item["pk"]["S"]),
        at=parse_timestamp(item["At"]["S"]),
        operation=Operation(item["Operation"]["S"]),
        version=item["Version"]["S"],
        attempt=_number(item, "Attempt", 1),
        status=Status(item["Status"]["S"]),
        execution=item["Execution"]["S"],
        root_cause=_root_cause_from(item),
    )


def history_fields(run: Run, status: Status, at: datetime, cause: RootCause | None) -> Item:
    return {"At": time(at), **attempt_fields(run.attempt), "Status": s(status), "Execution": s(run.execution)} | (
        {"RootCause": root_cause_value(cause)} if cause else {}
    )


def attempt_fields(attempt: Attempt) -> Item:
    return {"Operation": s(attempt.operation), "Version": s(attempt.version), "Attempt": n(attempt.number)}


def lock_fields(run: Run) -> Item:
    return {**attempt_fields(run.attempt), "Execution": s(run.execution), "StartedAt": time(run.started_at)}


def lock_from(item: Mapping[str, Any]) -> Lock:
    attempt = Attempt(
        tenant=tenant_of(item["pk"]["S"]),
        operation=Operation(item["Operation"]["S"]),
        version=item["Version"]["S"],
        number=_number(item, "Attempt", 1),
    )
    run = Run(attempt, item["Execution"]["S"], parse_timestamp(item["StartedAt"]["S"]))
    return Lock(run, _text(item, "TaskToken"))


def release_from(item: Mapping[str, Any]) -> Release:
    return Release(
        version=item["Version"]["S"],
        template_url=item["TemplateUrl"]["S"],
        digest=item["Digest"]["S"],
        published_at=parse_timestamp(item["PublishedAt"]["S"]),
    )


def release_fields(release: Release) -> Item:
    return {
        "Version": s(release.version),
        "TemplateUrl": s(release.template_url),
        "Digest": s(release.digest),
        "PublishedAt": time(release.published_at),
    }


def root_cause_value(cause: RootCause) -> Item:
    return {"M": {"Resource": s(cause.resource), "Type": s(cause.resource_type), "Reason": s(cause.reason)}}


def _root_cause_from(item: Mapping[str, Any]) -> RootCause | None:
    if "RootCause" not in item:
        return None
    cause = item["RootCause"]["M"]
    return RootCause(cause["Resource"]["S"], cause["Type"]["S"], cause["Reason"]["S"])
