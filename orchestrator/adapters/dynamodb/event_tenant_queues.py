"""Where the queues of tenants are, for deliveries to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.adapters.dynamodb.event_tenants import tenant_attributes
from orchestrator.adapters.dynamodb.values import text
from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.delivery.records import ServedQueue

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class DynamoTenantQueues:
    """Implements :class:`orchestrator.events.delivery.ports.TenantQueues` by one consistent read."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def served_queue(self, tenant: TenantId) -> ServedQueue | None:
        names = ("CreatedAt", "WithdrawnBy", "InboundQueueUrl")
        row = tenant_attributes(self._client, self._table, tenant, *names)
        incarnation, url = text(row, "CreatedAt"), text(row, "InboundQueueUrl")
        if "WithdrawnBy" in row or incarnation is None or url is None:
            return None
        return ServedQueue(incarnation, url)
