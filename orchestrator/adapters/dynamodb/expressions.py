"""Translates writes with their conditions into requests to DynamoDB, for rows of any kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, assert_never

from orchestrator.adapters.dynamodb.keys import Key
from orchestrator.adapters.dynamodb.values import Item, n, s
from orchestrator.common.writes import (
    AllOf,
    AnyOf,
    Below,
    Check,
    Condition,
    Contains,
    Delete,
    Differs,
    Equals,
    FieldCondition,
    Fields,
    Missing,
    Present,
    Put,
    RowAbsent,
    RowExists,
    StoredAs,
    Update,
)

KeyT = TypeVar("KeyT")


class Stored(Protocol):
    """How the fields of a row are stored."""

    def attributes(self, name: str) -> Sequence[str]:
        """The attributes that hold the field. A name with a point is an entry of a map."""
        ...

    def values(self, name: str, value: object) -> Sequence[Item]:
        """The values of the attributes, in the order of their names."""
        ...


def transact_item(
    write: Put[KeyT] | Update[KeyT] | Delete[KeyT] | Check[KeyT], table: str, key: Key, stored: Stored
) -> Item:
    """The write as one item of ``TransactWriteItems``."""
    expression = _Expression(stored)
    match write:
        case Put(_, fields, condition):
            row = {**key, **_row(stored, fields)}
            return {"Put": {"TableName": table, "Item": row, **expression.options(condition)}}
        case Update():
            return {"Update": {"TableName": table, "Key": key, **_update(write, expression)}}
        case Delete(_, condition):
            return {"Delete": {"TableName": table, "Key": key, **expression.options(condition)}}
        case Check(_, condition):
            return {"ConditionCheck": {"TableName": table, "Key": key, **expression.options(condition)}}
        case _:
            assert_never(write)


def condition_options(condition: Condition | None, stored: Stored) -> dict[str, Any]:
    """The parameters of a request that state the condition."""
    return _Expression(stored).options(condition)


def _row(stored: Stored, fields: Fields) -> Item:
    attributes: Item = {}
    for name, value in fields.items():
        attributes |= dict(zip(stored.attributes(name), stored.values(name, value), strict=True))
    return attributes


def _update(update: Update[KeyT], expression: _Expression) -> Item:
    sets = [expression.assign(name, value) for name, value in update.sets.items()]
    sets += [expression.assign(name, value, default=True) for name, value in update.defaults.items()]
    removes = [expression.name(name) for each in update.clears for name in expression.stored.attributes(each)]
    takes = [expression.take(name, member) for name, member in update.takes.items()]
    parts = [f"SET {', '.join(sets)}"] if sets else []
    parts += [f"REMOVE {', '.join(removes)}"] if removes else []
    parts += [f"DELETE {', '.join(takes)}"] if takes else []
    return {"UpdateExpression": " ".join(parts), **expression.options(update.condition)}


@dataclass
class _Expression:
    """The expressions of one write, with the names and values that they share."""

    stored: Stored
    names: dict[str, str] = field(default_factory=dict)
    placeholders: Item = field(default_factory=dict)

    def options(self, condition: Condition | None) -> dict[str, Any]:
        """Parameters of the request. DynamoDB rejects empty conditions and empty maps, so those are left out."""
        options: dict[str, Any] = {}
        if condition is not None:
            options["ConditionExpression"] = self._condition(condition)
        if self.names:
            options["ExpressionAttributeNames"] = self.names
        if self.placeholders:
            options["ExpressionAttributeValues"] = self.placeholders
        return options

    def name(self, attribute: str) -> str:
        """A placeholder for the attribute's name, which may be a reserved word."""
        parts = attribute.split(".")
        self.names |= {f"#{part}": part for part in parts}
        return ".".join(f"#{part}" for part in parts)

    def assign(self, name: str, value: object, *, default: bool = False) -> str:
        attributes, values = self.stored.attributes(name), self.stored.values(name, value)
        assigned = [(self.name(each), self._value(stored)) for each, stored in zip(attributes, values, strict=True)]
        return ", ".join(f"{to} = " + (f"if_not_exists({to}, {new})" if default else new) for to, new in assigned)

    def take(self, name: str, member: str) -> str:
        return f"{self._first(name)} {self._value({'SS': [member]})}"

    def _value(self, value: Mapping[str, Any]) -> str:
        name = f":v{len(self.placeholders)}"
        self.placeholders[name] = value
        return name

    def _condition(self, condition: Condition) -> str:
        match condition:
            case AllOf(conditions):
                return " AND ".join(f"({self._condition(each)})" for each in conditions)
            case AnyOf(conditions):
                return " OR ".join(f"({self._condition(each)})" for each in conditions)
            case RowExists():
                return "attribute_exists(pk)"
            case RowAbsent():
                return "attribute_not_exists(pk)"
            case StoredAs(values):
                return " AND ".join(self._stored_as(name, value) for name, value in values.items())
            case _:
                return self._field_condition(condition)

    def _field_condition(self, condition: FieldCondition) -> str:
        match condition:
            case Present(name):
                return f"attribute_exists({self._first(name)})"
            case Missing(name):
                return f"attribute_not_exists({self._first(name)})"
            case Equals(name, value):
                return self._equals(name, value)
            case Differs(name, value):
                pairs = zip(self.stored.attributes(name), self.stored.values(name, value), strict=True)
                return " OR ".join(f"{self.name(each)} <> {self._value(stored)}" for each, stored in pairs)
            case Below(name, value):
                return f"{self._first(name)} < {self._value(n(value))}"
            case Contains(name, member):
                return f"contains({self._first(name)}, {self._value(s(member))})"
            case _:
                assert_never(condition)

    def _stored_as(self, attribute: str, value: Any) -> str:
        name = self.name(attribute)
        return f"attribute_not_exists({name})" if value is None else f"{name} = {self._value(value)}"

    def _first(self, name: str) -> str:
        return self.name(self.stored.attributes(name)[0])

    def _equals(self, name: str, value: object) -> str:
        attributes, values = self.stored.attributes(name), self.stored.values(name, value)
        pairs = zip(attributes, values, strict=True)
        return " AND ".join(f"{self.name(each)} = {self._value(stored)}" for each, stored in pairs)
