"""Reads of the table that its modules share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orchestrator.adapters.aws import throttling
from orchestrator.adapters.dynamodb import keys
from orchestrator.adapters.dynamodb.values import Item, s
from orchestrator.common.errors import Throttled

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


_MAX_BATCH = 100
"""The maximum number of keys of a BatchGetItem."""
_ROUNDS = 8
"""How often keys are asked for again that DynamoDB left unprocessed: a response holds at most 16 MB."""


@dataclass(frozen=True, slots=True)
class Reads:
    """Reads are strongly consistent, except those of the index, which lags a little."""

    client: DynamoDBClient
    table: str

    def get(self, key: keys.Key) -> Item | None:
        with throttling():
            response = self.client.get_item(TableName=self.table, Key=key, ConsistentRead=True)
        return response.get("Item")

    def many(self, all_keys: Sequence[keys.Key], **options: Any) -> Iterator[Item]:
        """The rows with these keys, in any order: one request per 100 keys."""
        for start in range(0, len(all_keys), _MAX_BATCH):
            yield from self._batch(all_keys[start : start + _MAX_BATCH], options)

    def _batch(self, batch: Sequence[keys.Key], options: dict[str, Any]) -> Iterator[Item]:
        asked: Any = {self.table: {"Keys": list(batch), "ConsistentRead": True, **options}}
        for _ in range(_ROUNDS):
            with throttling():
                found = self.client.batch_get_item(RequestItems=asked)
            yield from found["Responses"].get(self.table, [])
            asked = found.get("UnprocessedKeys")
            if not asked:
                return
        raise Throttled(f"BatchGetItem left keys of {self.table} unprocessed {_ROUNDS} times.")

    def partition(self, pk: str, prefix: str | None = None) -> Iterator[Item]:
        """The rows of a partition, by sort key. ``prefix`` selects those whose sort key begins with it."""
        condition, values = "pk = :pk", {":pk": s(pk)}
        if prefix is not None:
            condition, values = f"{condition} AND begins_with(sk, :prefix)", values | {":prefix": s(prefix)}
        return self._query(KeyConditionExpression=condition, ExpressionAttributeValues=values, ConsistentRead=True)

    def partition_after(self, pk: str, after: str) -> Iterator[Item]:
        """The rows of a partition whose sort keys are greater than that one."""
        return self._query(
            KeyConditionExpression="pk = :pk AND sk > :after",
            ExpressionAttributeValues={":pk": s(pk), ":after": s(after)},
            ConsistentRead=True,
        )

    def newest_first(self, pk: str, *, before: str | None = None, limit: int | None = None) -> Iterator[Item]:
        """The rows of a partition from its end, or from the sort key ``before``, which is left out.

        ``limit`` is the number of rows per request, for a caller that needs no more.
        """
        condition, values = "pk = :pk", {":pk": s(pk)}
        if before is not None:
            condition, values = f"{condition} AND sk < :before", values | {":before": s(before)}
        return self._query(
            KeyConditionExpression=condition,
            ExpressionAttributeValues=values,
            ConsistentRead=True,
            ScanIndexForward=False,
            **({"Limit": limit} if limit else {}),
        )

    def page_of_newest(self, pk: str, *, after: str | None, limit: int) -> tuple[list[Item], str | None]:
        """One page of a partition from its end, or after that sort key, and the sort key to continue after."""
        condition, values = "pk = :pk", {":pk": s(pk)}
        if after is not None:
            condition, values = f"{condition} AND sk < :after", values | {":after": s(after)}
        with throttling():
            page = self.client.query(
                TableName=self.table,
                KeyConditionExpression=condition,
                ExpressionAttributeValues=values,
                ScanIndexForward=False,
                ConsistentRead=True,
                Limit=limit,
            )
        last = page.get("LastEvaluatedKey")
        return page["Items"], last["sk"]["S"] if last else None

    def listed(self, listing_key: str, **options: Any) -> Iterator[Item]:
        """All rows that the index lists under the key."""
        return self._query(
            IndexName=keys.LISTING_INDEX,
            KeyConditionExpression="ListingKey = :key",
            ExpressionAttributeValues={":key": s(listing_key)},
            **options,
        )

    def count_listed(self, listing_key: str) -> int:
        """The number of rows that the index lists under the key. DynamoDB reads all of them and returns the count."""
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
