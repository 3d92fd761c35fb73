"""Which creation of a tenant is alive. Besides tenants' queues, the event plane reads nothing else of provisioning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.adapters.aws import throttling
from orchestrator.adapters.dynamodb import keys
from orchestrator.adapters.dynamodb.values import Item, text
from orchestrator.common.tenant_ids import TenantId

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class DynamoTenants:
    """Implements :class:`orchestrator.events.ports.Tenants` by one consistent read of two attributes."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def incarnation(self, tenant: TenantId) -> str | None:
        row = self._row(tenant)
        return None if "WithdrawnBy" in row else text(row, "CreatedAt")

    def has_ended(self, tenant: TenantId, incarnation: str) -> bool:
        return text(self._row(tenant), "CreatedAt") != incarnation

    def _row(self, tenant: TenantId) -> Item:
        return tenant_attributes(self._client, self._table, tenant, "CreatedAt", "WithdrawnBy")


def tenant_attributes(client: DynamoDBClient, table: str, tenant: TenantId, *names: str) -> Item:
    """These attributes of the row, and no others: the permissions of the functions name them."""
    with throttling():
        response = client.get_item(
            TableName=table,
            Key=keys.metadata_key(tenant),
            ProjectionExpression=", ".join(names),
            ConsistentRead=True,
        )
    return response.get("Item", {})
