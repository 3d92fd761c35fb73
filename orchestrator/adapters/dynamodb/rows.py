"""Converts rows of the table to records of the domain and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from orchestrator.adapters.dynamodb import columns
from orchestrator.adapters.dynamodb.keys import (
    operation_of,
    tenant_of,
)
from orchestrator.adapters.dynamodb.tenant_values import (
    root_cause_from,
    stored_request,
)
from orchestrator.adapters.dynamodb.values import Item, moment, number, s, text, time
from orchestrator.common.errors import BerthError, UnreadableRows
from orchestrator.common.tiers import STANDARD
from orchestrator.common.times import parse_timestamp
from orchestrator.tenants.records import (
    Attempt,
    Audit,
    Lock,
    Metadata,
    Operation,
    Run,
    Status,
)

if TYPE_CHECKING:
    from orchestrator.releases.records import Release

_MAX_ERROR = 200
"""Characters of an error message that are shown: values written by other systems may have any length."""

Parsed = TypeVar("Parsed")


def metadata_from(item: Mapping[str, Any]) -> Metadata:
    fields = {name: column.read(item) for name, column in columns.METADATA.items()}
    return Metadata(tenant=tenant_of(item["pk"]["S"]), labelled="Labels" in item, **fields)


def describe(error: Exception) -> str:
    """The error with which parsing a row has ended."""
    return f"{type(error).__name__}: {error}"[:_MAX_ERROR]


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
        ticket=number(item, "Ticket", 0) or None,
        expected_at=moment(item, "ExpectedAt"),
        waits_until=moment(item, "WaitsUntil"),
    )


def readable(parse: Callable[[Mapping[str, Any]], Parsed], item: Mapping[str, Any]) -> Parsed:
    """Parse the row. Raises :class:`UnreadableRows`."""
    try:
        return parse(item)
    except UNREADABLE as error:
        raise UnreadableRows(
            f"the row {item['pk']['S']} {item['sk']['S']} cannot be read ({describe(error)})"
        ) from error


UNREADABLE = (KeyError, ValueError, TypeError, AttributeError, OverflowError, RecursionError, BerthError)
"""The errors that parsing may raise if another system has written the row."""


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
    # Imported here, because getQueue uses this module, too, reads no releases and must start fast.
    from orchestrator.releases.records import Release

    return Release(
        version=item["Version"]["S"],
        template_url=item["TemplateUrl"]["S"],
        digest=item["Digest"]["S"],
        published_at=parse_timestamp(item["PublishedAt"]["S"]),
        content=text(item, "Content") or "",
        notes=text(item, "Notes") or "",
        parameters=frozenset(item.get("Parameters", {}).get("SS", ())),
        published_by=text(item, "PublishedBy") or "",
        tier=text(item, "Tier") or STANDARD,
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
        **({"PublishedBy": s(release.published_by)} if release.published_by else {}),
        "Tier": s(release.tier),
    }
