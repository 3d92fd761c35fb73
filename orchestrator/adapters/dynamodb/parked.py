"""How many deliveries of a tenant are parked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.adapters.dynamodb import event_keys
from orchestrator.adapters.dynamodb.deliveries import DynamoDeliveries
from orchestrator.adapters.dynamodb.reads import Reads
from orchestrator.events.records import TenantEpoch

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class DynamoParkedDeliveries:
    """Implements :class:`orchestrator.events.ports.ParkedDeliveries`."""

    def __init__(self, client: DynamoDBClient, table: str, *, events_table: str) -> None:
        self._reads = Reads(client, table)
        self._deliveries = DynamoDeliveries(client, events_table)

    def count_parked(self, life: TenantEpoch, limit: int) -> int:
        found = 0
        for pointer in self._reads.partition(event_keys.configuration_pk(life), event_keys.POINTER_PREFIX):
            connection_id = pointer["sk"]["S"].removeprefix(event_keys.POINTER_PREFIX)
            found += len(self._deliveries.parked(connection_id, limit - found))
            if found >= limit:
                break
        return found
