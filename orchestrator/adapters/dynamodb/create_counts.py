"""How many creates each caller has started in the current minute: one row per caller.

There are as many rows as callers, and callers are principals of this account: API Gateway's HTTP APIs know no others.
So their number is bounded by the account's quotas of roles and users, and no row has to expire.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from orchestrator.adapters.aws import error_code, throttling
from orchestrator.adapters.dynamodb import keys
from orchestrator.adapters.dynamodb.values import Item, n, s, time
from orchestrator.common.errors import Unsettled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import parse_timestamp

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_ROUNDS = 5
_IN_THIS_WINDOW = "WindowStart >= :window AND (contains(Tenants, :tenant) OR size(Tenants) < :limit)"
"""Also a window that another function has begun, whose clock is ahead."""
_NO_WINDOW_YET = "attribute_not_exists(pk) OR WindowStart < :window"


class DynamoCreateCounts:
    """Implements :class:`orchestrator.tenants.ports.CreateCounts`.

    The row has the tenants rather than their number: many callers ask for one tenant at once, and that is one create.
    """

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def count(self, caller: str, tenant: TenantId, *, window: datetime, limit: int) -> datetime | None:
        key, one = keys.creates_key(caller), {"SS": [tenant.value]}
        values: Item = {":window": time(window), ":one": one}
        add = values | {":tenant": s(tenant.value), ":limit": n(limit)}
        for _ in range(_ROUNDS):
            found = self._update(key, "ADD Tenants :one", _IN_THIS_WINDOW, add)
            if found is None:
                return None
            if found and (began := parse_timestamp(found["WindowStart"]["S"])) >= window:
                return began
            if self._update(key, "SET WindowStart = :window, Tenants = :one", _NO_WINDOW_YET, values) is None:
                return None
            # Another function has begun the window in between.
        raise Unsettled(f"Tenant {tenant}: creates of its caller could not be counted. Ask again.")

    def is_counted(self, caller: str, tenant: TenantId, *, since: datetime) -> bool:
        with throttling():
            found = self._client.get_item(TableName=self._table, Key=keys.creates_key(caller), ConsistentRead=True)
        row: Item = found.get("Item") or {}
        return bool(row) and parse_timestamp(row["WindowStart"]["S"]) >= since and tenant.value in row["Tenants"]["SS"]

    def _update(self, key: keys.Key, expression: str, condition: str, values: Item) -> Item | None:
        """``None`` when it is done. Otherwise the condition does not hold, and the row is returned: empty if none."""
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
