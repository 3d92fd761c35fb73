"""Counts the creates that each caller has started in the current minute, in one row per caller, and all of them since
the tenants were last counted, in one row.

Callers are principals of this account, because HTTP APIs admit no others. So the account's quotas of roles and users
limit the number of rows, and rows need not expire.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from orchestrator.adapters.aws import error_code, throttling
from orchestrator.adapters.dynamodb import keys
from orchestrator.adapters.dynamodb.values import Item, n, number, s, time
from orchestrator.common.errors import Unsettled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import parse_timestamp
from orchestrator.tenants.limits import TenantCount

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_MAX_TRIES = 5
_IN_THIS_WINDOW = "WindowStart >= :window AND (contains(Tenants, :tenant) OR size(Tenants) < :limit)"
"""Accepts later windows, too: the clock of another function may be ahead."""
_NO_WINDOW_YET = "attribute_not_exists(pk) OR WindowStart < :window"


class DynamoCreateCounts:
    """Implements :class:`orchestrator.tenants.ports.CreateCounts`.

    The row holds tenant ids rather than a number, so repeated requests for the same tenant count as one create.
    """

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def count(self, caller: str, tenant: TenantId, *, window: datetime, limit: int) -> datetime | None:
        key, one = keys.creates_key(caller), {"SS": [tenant.value]}
        values: Item = {":window": time(window), ":one": one}
        add = values | {":tenant": s(tenant.value), ":limit": n(limit)}
        for _ in range(_MAX_TRIES):
            found = self._update(key, "ADD Tenants :one", _IN_THIS_WINDOW, add)
            if found is None:
                return None
            if found and (began := parse_timestamp(found["WindowStart"]["S"])) >= window:
                return began
            if self._update(key, "SET WindowStart = :window, Tenants = :one", _NO_WINDOW_YET, values) is None:
                return None
            # Another function has started this window in the meantime.
        raise Unsettled(
            f"Tenant {tenant}: the caller started many creates at once, so this one was not counted. Try again."
        )

    def is_counted(self, caller: str, tenant: TenantId, *, since: datetime) -> bool:
        with throttling():
            found = self._client.get_item(TableName=self._table, Key=keys.creates_key(caller), ConsistentRead=True)
        row: Item = found.get("Item") or {}
        return bool(row) and parse_timestamp(row["WindowStart"]["S"]) >= since and tenant.value in row["Tenants"]["SS"]

    def _update(self, key: keys.Key, expression: str, condition: str, values: Item) -> Item | None:
        """``None`` if the row was updated. If the condition fails: the row, or an empty one if there is none."""
        update: Any = {
            "UpdateExpression": expression,
            "ConditionExpression": condition,
            "ExpressionAttributeValues": values,
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        try:
            with throttling():
                self._client.update_item(TableName=self._table, Key=key, **update)
        except ClientError as error:
            if error_code(error) != "ConditionalCheckFailedException":
                raise
            response: dict[str, Any] = dict(error.response)
            found: Item = response.get("Item") or {}
            return found
        return None


class DynamoTenantCounts:
    """Implements :class:`orchestrator.tenants.limits.TenantCounts`.

    Both numbers are in one row and are added to, so no function waits for another one.
    """

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def start(self, creates: int) -> TenantCount:
        with throttling():
            row: Item = self._client.update_item(
                TableName=self._table,
                Key=keys.tenant_count_key(),
                UpdateExpression="ADD Started :creates",
                ExpressionAttributeValues={":creates": n(creates)},
                ReturnValues="ALL_NEW",
            )["Attributes"]
        at = row.get("CountedAt")
        counted = number(row, "Counted", 0) if "Counted" in row else None
        return TenantCount(number(row, "Started", 0), counted, parse_timestamp(at["S"]) if at else None)

    def keep(self, tenants: int, at: datetime, *, seen: TenantCount) -> None:
        values: Item = {":tenants": n(tenants), ":at": time(at), ":began": n(-seen.started)}
        condition = "attribute_not_exists(CountedAt)"
        if seen.at is not None:
            condition, values[":seen"] = "CountedAt = :seen", time(seen.at)
        try:
            with throttling():
                self._client.update_item(
                    TableName=self._table,
                    Key=keys.tenant_count_key(),
                    UpdateExpression="SET Counted = :tenants, CountedAt = :at ADD Started :began",
                    ConditionExpression=condition,
                    ExpressionAttributeValues=values,
                )
        except ClientError as error:
            if error_code(error) != "ConditionalCheckFailedException":
                raise
