"""Items of ``TransactWriteItems`` for rows that are not a tenant's."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.adapters.dynamodb import keys
from orchestrator.adapters.dynamodb.values import Item, s


@dataclass(frozen=True, slots=True)
class Writes:
    table: str

    def append(self, row: Item) -> Item:
        """Put a history row, unless there is one with that key."""
        return self.put(row, condition="attribute_not_exists(pk)")

    def put(
        self,
        item: Item,
        *,
        condition: str | None = None,
        values: Item | None = None,
        names: dict[str, str] | None = None,
    ) -> Item:
        put: Item = {"TableName": self.table, "Item": item}
        if condition:
            put["ConditionExpression"] = condition
        if values:
            put["ExpressionAttributeValues"] = values
        if names:
            put["ExpressionAttributeNames"] = names
        return {"Put": put}

    def check(
        self, key: keys.Key, condition: str, *, values: Item | None = None, names: dict[str, str] | None = None
    ) -> Item:
        check: Item = {"TableName": self.table, "Key": key, "ConditionExpression": condition}
        if values:
            check["ExpressionAttributeValues"] = values
        if names:
            check["ExpressionAttributeNames"] = names
        return {"ConditionCheck": check}

    def delete(self, key: keys.Key, condition: str, values: Item) -> Item:
        delete: Item = {"TableName": self.table, "Key": key, "ConditionExpression": condition}
        return {"Delete": delete | ({"ExpressionAttributeValues": values} if values else {})}

    def update(
        self,
        key: keys.Key,
        expression: str,
        *,
        values: Item | None = None,
        condition: str | None = None,
        names: dict[str, str] | None = None,
    ) -> Item:
        update: Item = {"TableName": self.table, "Key": key, "UpdateExpression": expression}
        if condition:
            update["ConditionExpression"] = condition
        if values:
            update["ExpressionAttributeValues"] = values
        if names:
            update["ExpressionAttributeNames"] = names
        return {"Update": update}


def listing(position: tuple[str, str]) -> Item:
    listing_key, listing_sort = position
    return {"ListingKey": s(listing_key), "ListingSort": s(listing_sort)}
