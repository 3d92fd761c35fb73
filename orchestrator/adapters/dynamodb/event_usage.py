"""How many events of a tenant were accepted in a month: one row per tenant and month."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from orchestrator.adapters.aws import throttling
from orchestrator.adapters.dynamodb import event_keys
from orchestrator.events.quotas import month_of
from orchestrator.events.records import TenantEpoch, Used

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class DynamoUsage:
    """Implements :class:`orchestrator.events.ports.Usage`."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def used(self, life: TenantEpoch, at: datetime) -> Used:
        with throttling():
            response = self._client.get_item(
                TableName=self._table, Key=event_keys.usage_key(life, month_of(at)), ConsistentRead=True
            )
        row = response.get("Item", {})
        # A counter that is damaged refuses no events. The function that counts reports it.
        events, submissions = (int(row.get(name, {}).get("N", 0)) for name in ("events", "submissions"))
        return Used(events, submissions)
