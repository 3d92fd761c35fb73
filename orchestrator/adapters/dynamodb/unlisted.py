"""Finds tenants from before Berth by a scan of the table, and applies their adoption.

No other module scans the table. The scan reads only the attributes that it filters by, and its permission allows no
others.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from orchestrator.adapters.aws import cancellation_codes, error_code, error_message, throttling
from orchestrator.adapters.dynamodb import keys, rows
from orchestrator.adapters.dynamodb.reads import Reads
from orchestrator.adapters.dynamodb.tenants import DynamoTable
from orchestrator.adapters.dynamodb.values import Item, s, text
from orchestrator.common.errors import InvalidRequest, UnreadableRows
from orchestrator.common.tenant_ids import TenantId
from orchestrator.reconciling.adoption_writes import adoption_of
from orchestrator.reconciling.ports import Adopted, UnlistedPage, UnlistedTenant
from orchestrator.tenants.history import RecordedChange
from orchestrator.tenants.records import Status, TenantState
from orchestrator.tenants.writes import AuditKey

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

SCANNED_ATTRIBUTES = ("pk", "sk", "ListingKey", "Version", "StackId", "Attempt")
"""The attributes that a scan reads."""

_NEEDS_ADOPTION = (
    "begins_with(pk, :tenant) AND "
    "((sk = :metadata AND (attribute_not_exists(ListingKey) OR "
    "(attribute_exists(Version) AND attribute_not_exists(StackId)))) OR "
    "(begins_with(sk, :audit) AND attribute_not_exists(Attempt)))"
)
_COMPARED_ATTRIBUTES = (
    *("ListingKey", "Version", "StackId", "InboundQueueUrl", "UpdatedAt", "UpdateAt"),
    *("WithdrawnBy", "AskedFor", "Labels", "PinnedVersion"),
)
"""An adoption fails if one of these attributes has changed: every write of a metadata row changes at least one."""


class UnlistedRows:
    """Implements :class:`orchestrator.reconciling.ports.UnlistedTenants`."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table
        self._reads = Reads(client, table)
        self._tenants = DynamoTable(client, table)

    def page(self, cursor: str | None, *, limit: int) -> UnlistedPage:
        key, returned_before = _position(cursor) if cursor else (None, None)
        start: Any = {"ExclusiveStartKey": key} if key else {}
        with throttling():
            page = self._client.scan(
                TableName=self._table,
                Limit=limit,
                Select="SPECIFIC_ATTRIBUTES",
                ProjectionExpression="pk",
                FilterExpression=_NEEDS_ADOPTION,
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
        # A scan reads the rows of a partition one after the other, so only the last tenant of a page can be on the
        # next page, too.
        last_tenant = next(reversed(found), returned_before)
        return UnlistedPage(
            tenants=[tenant for tenant in found if tenant != returned_before],
            rows=page["ScannedCount"],
            read_units=page.get("ConsumedCapacity", {}).get("CapacityUnits", 0.0),
            cursor=_cursor(last, last_tenant) if last else None,
        )

    def unlisted(self, tenant: TenantId) -> UnlistedTenant | None:
        found = {row["sk"]["S"]: row for row in self._reads.partition(keys.tenant_pk(tenant))}
        metadata, lock = found.get(keys.METADATA), found.get(keys.LOCK)
        audits = [row for sort_key, row in found.items() if sort_key.startswith(keys.AUDIT_PREFIX)]
        listed = _is_listed(metadata, audits)
        has_stack = metadata is None or "Version" not in metadata or "StackId" in metadata
        if listed and has_stack and not any(map(_is_unfinished, audits)):
            return None
        return UnlistedTenant(
            tenant=tenant,
            metadata=rows.readable(rows.metadata_from, metadata) if metadata else None,
            audits=tuple(rows.readable(rows.audit_from, audit) for audit in audits),
            audit_keys=tuple(map(_key, audits)),
            lock=rows.readable(rows.lock_from, lock) if lock else None,
            earlier=frozenset(_key(audit) for audit in audits if "Attempt" not in audit),
            listed=listed,
            stored_metadata={name: metadata.get(name) for name in _COMPARED_ATTRIBUTES} if metadata else None,
        )

    def adopt(self, seen: UnlistedTenant, adopted: Adopted, change: RecordedChange) -> bool:
        if self.unlisted(seen.tenant) != seen:
            return False
        try:
            return self._tenants.apply(adoption_of(seen, adopted, change))
        except ClientError as error:
            if "ValidationError" in cancellation_codes(error) or error_code(error) == "ValidationException":
                # Values of the earlier system may be too long for the index or for a row with more attributes.
                raise UnreadableRows(
                    f"DynamoDB does not take the rows {keys.tenant_pk(seen.tenant)}: {error_message(error)}"
                ) from error
            raise


def _is_listed(metadata: Item | None, audits: list[Item]) -> bool:
    if metadata is not None:
        # A tenant with AskedFor has been requested. Its create is about to begin, and lists it.
        return "ListingKey" in metadata or "AskedFor" in metadata
    return not audits or any(map(_is_listed_as_deleted, audits))


def _is_listed_as_deleted(audit: Item) -> bool:
    return text(audit, "ListingKey") == keys.listed_tenants(TenantState.DELETED)


def _is_unfinished(audit: Item) -> bool:
    """True for an unfinished operation of the earlier system. Those of Berth are settled without an adoption."""
    return "Attempt" not in audit and text(audit, "Status") == Status.STARTED


def _key(audit: Item) -> AuditKey:
    operation, version = keys.operation_of(audit["sk"]["S"])
    return AuditKey(keys.tenant_of(audit["pk"]["S"]), operation, version)


def _cursor(key: Mapping[str, Any], last_tenant: str | None) -> str:
    """``last_tenant`` is the tenant that was found last, so that the next page does not return it again."""
    text = json.dumps([key["pk"]["S"], key["sk"]["S"], last_tenant])
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _position(cursor: str) -> tuple[keys.Key, str | None]:
    """The key of the last row that was read, and the tenant that was found last."""
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        pk, sk, last_tenant = json.loads(text)
        if isinstance(pk, str) and isinstance(sk, str) and isinstance(last_tenant, str | None) and pk and sk:
            return keys.key(pk, sk), last_tenant
    except (ValueError, TypeError, RecursionError, binascii.Error):
        pass
    raise InvalidRequest("The cursor is not one that an adoption has returned.")
