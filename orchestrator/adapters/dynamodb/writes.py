"""Items of ``TransactWriteItems`` for rows that are not a tenant's."""

from __future__ import annotations

from collections.abc import Sequence
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

    def change(
        self,
        key: keys.Key,
        before: Item,
        after: Item,
        *,
        as_read: Sequence[str] = ("epoch",),
        derived: Sequence[str] = (),
    ) -> Item:
        """An update of the attributes that differ, if they and those in ``as_read`` are still as they were.

        ``derived`` attributes follow from the others. They are written whatever they were, so that a row that has lost
        them gets them back.
        """
        differ = {name for name in before | after if before.get(name) != after.get(name)}
        changed = sorted(differ - set(derived))
        names = {f"#{name}": name for name in (*as_read, *changed, *derived)}
        conditions, values, sets, removes = [], {}, [], []
        for name in dict.fromkeys((*as_read, *changed)):
            if name in before:
                conditions.append(f"#{name} = :old_{name}")
                values[f":old_{name}"] = before[name]
            else:
                conditions.append(f"attribute_not_exists(#{name})")
        for name in (*changed, *derived):
            if name in after:
                sets.append(f"#{name} = :new_{name}")
                values[f":new_{name}"] = after[name]
            else:
                removes.append(f"#{name}")
        parts = [f"SET {', '.join(sets)}"] if sets else []
        parts += [f"REMOVE {', '.join(removes)}"] if removes else []
        return self.update(key, " ".join(parts), condition=" AND ".join(conditions), values=values, names=names)


def listing(position: tuple[str, str]) -> Item:
    listing_key, listing_sort = position
    return {"ListingKey": s(listing_key), "ListingSort": s(listing_sort)}
