"""Which epochs tenants have: the settings of all tenants, and whether an epoch is still the current one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Set
from typing import TYPE_CHECKING

from orchestrator.adapters.dynamodb import event_keys
from orchestrator.adapters.dynamodb.event_configuration import settings_from
from orchestrator.adapters.dynamodb.event_unreadable import read_row
from orchestrator.adapters.dynamodb.reads import Reads
from orchestrator.adapters.dynamodb.values import Item, text
from orchestrator.events.records import EventSettings, TenantEpoch, UnreadableRow

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


def _listed_settings_from(row: Item) -> EventSettings:
    return settings_from(row, event_keys.tenant_of_listing(row["ListingSort"]["S"]))


class DynamoEpochs:
    """Implements :class:`orchestrator.events.ports.ListedSettings`."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def listed_settings(self) -> Iterator[EventSettings | UnreadableRow]:
        for row in Reads(self._client, self._table).listed(event_keys.LISTED_SETTINGS):
            yield read_row(row, _listed_settings_from)

    def current_epochs(self, lives: Collection[TenantEpoch]) -> Set[TenantEpoch]:
        tenants = sorted({life.tenant for life in lives}, key=lambda tenant: tenant.value)
        rows = Reads(self._client, self._table).many(
            [event_keys.settings_key(tenant) for tenant in tenants], ProjectionExpression="pk, epoch"
        )
        epochs = {row["pk"]["S"]: text(row, "epoch") for row in rows}
        return {life for life in lives if epochs.get(event_keys.settings_key(life.tenant)["pk"]["S"]) == life.epoch}
