"""Reads of the table, as DynamoDB takes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orchestrator.adapters.aws import throttling
from orchestrator.adapters.dynamodb import keys
from orchestrator.adapters.dynamodb.values import Item, s

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


@dataclass(frozen=True, slots=True)
class Reads:
    """Consistent, but for the index, which lags a little."""

    client: DynamoDBClient
    table: str

    def get(self, key: keys.Key) -> Item | None:
        with throttling():
            response = self.client.get_item(TableName=self.table, Key=key, ConsistentRead=True)
        return response.get("Item")

    def partition(self, pk: str, prefix: str | None = None) -> Iterator[Item]:
        """The rows under one partition key, by sort key; only those whose sort key begins so, if that is given."""
        condition, values = "pk = :pk", {":pk": s(pk)}
        if prefix is not None:
            condition, values = f"{condition} AND begins_with(sk, :prefix)", values | {":prefix": s(prefix)}
        return self._query(KeyConditionExpression=condition, ExpressionAttributeValues=values, ConsistentRead=True)

    def listed(self, listing_key: str, **more: Any) -> Iterator[Item]:
        """All that the index has under one key."""
        return self._query(
            IndexName=keys.LISTING_INDEX,
            KeyConditionExpression="ListingKey = :key",
            ExpressionAttributeValues={":key": s(listing_key)},
            **more,
        )

    def count_listed(self, listing_key: str) -> int:
        """How many rows the index has under one key. They are read for it, and not sent."""
        pages = self.client.get_paginator("query").paginate(
            TableName=self.table,
            IndexName=keys.LISTING_INDEX,
            KeyConditionExpression="ListingKey = :key",
            ExpressionAttributeValues={":key": s(listing_key)},
            Select="COUNT",
        )
        with throttling():
            return sum(page["Count"] for page in pages)

    def _query(self, **query: Any) -> Iterator[Item]:
        pages = self.client.get_paginator("query").paginate(TableName=self.table, **query)
        with throttling():
            for page in pages:
                yield from page["Items"]
