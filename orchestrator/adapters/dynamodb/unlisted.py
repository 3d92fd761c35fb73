"""Tenants from before Berth, found by a look at the whole table, and brought into the index.

This is the only scan. It reads no more than it takes to tell such rows from others, and its permission allows no more.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from orchestrator.adapters.aws import cancellation_codes, error_code, error_message, throttling
from orchestrator.adapters.dynamodb import keys, rows
from orchestrator.adapters.dynamodb.reads import Reads
from orchestrator.adapters.dynamodb.values import Item, n, root_cause_value, s, text, time
from orchestrator.adapters.dynamodb.writes import Writes, listing, unchanged
from orchestrator.common.errors import InvalidRequest, UnreadableRows
from orchestrator.common.tenant_ids import TenantId
from orchestrator.reconciling.ports import Adopted, UnlistedPage, UnlistedTenant
from orchestrator.tenants.records import Audit, Operation, RecordedChange, Status, TenantState

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_MAX_AUDITS = 90
"""A transaction has at most 100 rows."""

SCANNED_ATTRIBUTES = ("pk", "sk", "ListingKey", "Version", "StackId", "Attempt")
"""All that a scan sees of a row."""

_OF_EARLIER_SYSTEM = (
    "begins_with(pk, :tenant) AND "
    "((sk = :metadata AND (attribute_not_exists(ListingKey) OR "
    "(attribute_exists(Version) AND attribute_not_exists(StackId)))) OR "
    "(begins_with(sk, :audit) AND attribute_not_exists(Attempt)))"
)
_SEEN = (
    *("ListingKey", "Version", "StackId", "InboundQueueUrl", "UpdatedAt", "UpdateAt"),
    *("WithdrawnBy", "AskedFor", "Labels", "PinnedVersion"),
)
"""The attributes that have to be as they were when the row is adopted: everybody who writes it changes one of them."""


class UnlistedRows:
    """Implements :class:`orchestrator.reconciling.ports.UnlistedTenants`."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table
        self._reads = Reads(client, table)
        self._writes = Writes(table)

    def page(self, cursor: str | None, *, limit: int) -> UnlistedPage:
        key, told = _key_at(cursor) if cursor else (None, None)
        start: Any = {"ExclusiveStartKey": key} if key else {}
        with throttling():
            page = self._client.scan(
                TableName=self._table,
                Limit=limit,
                Select="SPECIFIC_ATTRIBUTES",
                ProjectionExpression="pk",
                FilterExpression=_OF_EARLIER_SYSTEM,
                ExpressionAttributeValues={
                    ":tenant": s(keys.TENANT_PREFIX),
                    ":metadata": s(keys.METADATA),
                    ":audit": s(keys.AUDIT_PREFIX),
                },
                ReturnConsumedCapacity="TOTAL",
                **start,
            )
        found = dict.fromkeys(row["pk"]["S"].removeprefix(keys.TENANT_PREFIX) for row in page["Items"])
        last = page.get("LastEvaluatedKey")
        # The rows of a partition are next to each other. So only the last tenant of a page may be in the next one, too.
        last_told = next(reversed(found), told)
        return UnlistedPage(
            tenants=[tenant for tenant in found if tenant != told],
            rows=page["ScannedCount"],
            read_units=page.get("ConsumedCapacity", {}).get("CapacityUnits", 0.0),
            cursor=_cursor(last, last_told) if last else None,
        )

    def unlisted(self, tenant: TenantId) -> UnlistedTenant | None:
        return self._unlisted(tenant, self._rows_of(tenant))

    def _rows_of(self, tenant: TenantId) -> dict[str, Item]:
        return {row["sk"]["S"]: row for row in self._reads.partition(keys.tenant_pk(tenant))}

    def _unlisted(self, tenant: TenantId, found: Mapping[str, Item]) -> UnlistedTenant | None:
        metadata, lock, audits = found.get(keys.METADATA), found.get(keys.LOCK), list(_audits(found))
        listed = _is_listed(metadata, audits)
        has_stack = metadata is None or "Version" not in metadata or "StackId" in metadata
        if listed and has_stack and not any(map(_never_ended, audits)):
            return None
        read = [rows.readable(rows.audit_from, audit) for audit in audits]
        return UnlistedTenant(
            tenant,
            rows.readable(rows.metadata_from, metadata) if metadata else None,
            tuple(read),
            rows.readable(rows.lock_from, lock) if lock else None,
            frozenset(_key(audit) for audit, row in zip(read, audits, strict=True) if "Attempt" not in row),
            listed,
        )

    def adopt(self, seen: UnlistedTenant, adopted: Adopted, change: RecordedChange) -> bool:
        found = self._rows_of(seen.tenant)
        if self._unlisted(seen.tenant, found) != seen:
            return False
        writes = [
            self._writes.check(keys.lock_key(seen.tenant), "attribute_not_exists(pk)"),
            *self._metadata(found.get(keys.METADATA), adopted, change, listed=seen.listed),
            *self._no_longer_deleted(found, adopted),
            *self._numbered(found, adopted),
            self._writes.append(rows.change_row(change)),
        ]
        try:
            with throttling():
                self._client.transact_write_items(TransactItems=writes)
        except ClientError as error:
            codes = cancellation_codes(error)
            if "ConditionalCheckFailed" in codes:
                return False
            if "ValidationError" in codes or error_code(error) == "ValidationException":
                # Attributes of any size that somebody else has written do not fit an index or a row any more.
                told = error_message(error)
                raise UnreadableRows(
                    f"DynamoDB does not take the rows {keys.tenant_pk(seen.tenant)}: {told}"
                ) from error
            raise
        return True

    def _metadata(self, row: Item | None, adopted: Adopted, change: RecordedChange, *, listed: bool) -> Iterator[Any]:
        key = keys.metadata_key(change.tenant)
        if adopted.state is TenantState.DELETED:
            # The audit of its delete lists it. If Berth has listed it so, the row is about the create that comes next.
            if row is not None and not listed:
                conditions, values = unchanged(row, *_SEEN)
                yield self._writes.delete(key, " AND ".join(conditions), values)
            return
        metadata = adopted.metadata
        version, updated_at = (metadata.version, metadata.updated_at) if metadata else (None, None)
        fields: Item = {
            "State": s(adopted.state),
            **listing(keys.listed_tenant(change.tenant, adopted.state, version)),
            "UpdatedAt": time(updated_at or change.at),
        }
        if metadata and metadata.stack_id:
            fields["StackId"] = s(metadata.stack_id)
        if metadata and metadata.queue:
            fields |= {"InboundQueueArn": s(metadata.queue.arn), "InboundQueueUrl": s(metadata.queue.url)}
        if adopted.root_cause:
            fields["RootCause"] = root_cause_value(adopted.root_cause)
        if row is None:
            yield self._writes.put(key | fields, condition="attribute_not_exists(pk)")
            return
        conditions, seen = unchanged(row, *_SEEN)
        gone = ["UpdateAt", *(() if adopted.root_cause else ("RootCause",))]
        if metadata and metadata.outbound_queue is None:
            gone += ["OutboundQueueArn", "OutboundQueueUrl"]
        yield self._writes.update(
            key,
            f"SET {', '.join(f'#{name} = :{name}' for name in fields)} REMOVE {', '.join(gone)}",
            values={f":{name}": value for name, value in fields.items()} | seen,
            condition=" AND ".join(conditions),
            names={f"#{name}": name for name in fields},
        )

    def _no_longer_deleted(self, found: Mapping[str, Item], adopted: Adopted) -> Iterator[Any]:
        """Take the audit of a delete that Berth has made out of the index, if the tenant is listed otherwise now."""
        if adopted.state is TenantState.DELETED:
            return
        for row in _audits(found):
            if "Attempt" in row and _is_listed_as_deleted(row):
                yield self._writes.update(
                    {"pk": row["pk"], "sk": row["sk"]},
                    "REMOVE ListingKey, ListingSort",
                    values={":seenStatus": row["Status"], ":seenExecution": row["Execution"]},
                    condition="#Status = :seenStatus AND Execution = :seenExecution",
                    names={"#Status": "Status"},
                )

    def _numbered(self, found: Mapping[str, Item], adopted: Adopted) -> Iterator[Any]:
        """The audits of the earlier system, with what has to be said about them."""
        # Each row has its own audit, in the same order: two rows may be about one operation at one version.
        pairs = zip(_audits(found), adopted.audits, strict=True)
        old = [(row, audit) for row, audit in pairs if "Attempt" not in row]
        # Those about which something is said come first. Further ones are understood as they are.
        old.sort(key=lambda each: _is_as_it_was(*each))
        for row, audit in old[:_MAX_AUDITS]:
            fields: Item = {"Attempt": n(1), "Status": s(audit.status)}
            if audit.root_cause:
                fields["RootCause"] = root_cause_value(audit.root_cause)
            if audit.operation is Operation.DELETE and audit.revived_by:
                fields["RevivedBy"] = s(audit.revived_by)
            if audit.operation is Operation.DELETE and adopted.state is TenantState.DELETED:
                fields |= listing(keys.listed_tenant(audit.tenant, TenantState.DELETED, None))
            yield self._writes.update(
                {"pk": row["pk"], "sk": row["sk"]},
                f"SET {', '.join(f'#{name} = :{name}' for name in fields)}",
                values={f":{name}": value for name, value in fields.items()}
                | {":seenStatus": row["Status"], ":seenExecution": row["Execution"]},
                condition="attribute_not_exists(Attempt) AND #Status = :seenStatus AND Execution = :seenExecution",
                names={f"#{name}": name for name in fields},
            )


def _audits(found: Mapping[str, Item]) -> Iterator[Item]:
    return (row for sort_key, row in found.items() if sort_key.startswith(keys.AUDIT_PREFIX))


def _is_listed(metadata: Item | None, audits: list[Item]) -> bool:
    if metadata is not None:
        # Somebody has asked for the tenant, and its create is about to begin: that lists it.
        return "ListingKey" in metadata or "AskedFor" in metadata
    return not audits or any(map(_is_listed_as_deleted, audits))


def _is_listed_as_deleted(audit: Item) -> bool:
    return text(audit, "ListingKey") == keys.listed_tenants(TenantState.DELETED)


def _never_ended(audit: Item) -> bool:
    """True for an operation of the earlier system that says Started. Those of Berth's have an end, by whoever."""
    return "Attempt" not in audit and text(audit, "Status") == Status.STARTED


def _key(audit: Audit) -> tuple[Operation, str | None]:
    return audit.operation, audit.version


def _is_as_it_was(row: Item, adopted: Audit) -> bool:
    return adopted.operation is not Operation.DELETE and adopted == rows.audit_from(row)


def _cursor(key: Mapping[str, Any], told: str | None) -> str:
    """``told`` is the tenant that was found last."""
    text = json.dumps([key["pk"]["S"], key["sk"]["S"], told])
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _key_at(cursor: str) -> tuple[keys.Key, str | None]:
    """The row to go on after, and the tenant that was found last before it."""
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        pk, sk, told = json.loads(text)
        if isinstance(pk, str) and isinstance(sk, str) and isinstance(told, str | None) and pk and sk:
            return keys.key(pk, sk), told
    except (ValueError, TypeError, RecursionError, binascii.Error):
        pass
    raise InvalidRequest("The cursor is not one that an adoption has returned.")
