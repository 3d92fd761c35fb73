"""Translates transitions of tenants' rows into requests to DynamoDB."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, assert_never

from orchestrator.adapters.dynamodb import columns, keys, rows
from orchestrator.adapters.dynamodb.columns import Column
from orchestrator.adapters.dynamodb.values import Item, n
from orchestrator.tenants.records import HistoryEntry
from orchestrator.tenants.writes import (
    AllOf,
    AnyOf,
    Append,
    AuditKey,
    Below,
    Check,
    Condition,
    Delete,
    Differs,
    Equals,
    FieldCondition,
    Fields,
    Key,
    LockKey,
    MetadataKey,
    Missing,
    Present,
    Put,
    RowAbsent,
    RowExists,
    StoredAs,
    Update,
    Write,
)


def transact_item(write: Write, table: str) -> Item:
    """The write as one item of ``TransactWriteItems``."""
    match write:
        case Append(entry):
            row = rows.history_row(entry) if isinstance(entry, HistoryEntry) else rows.change_row(entry)
            return {"Put": {"TableName": table, "Item": row, "ConditionExpression": "attribute_not_exists(pk)"}}
        case Put(key, fields, condition):
            row = key_of(key) | _attributes(key, fields)
            return {"Put": {"TableName": table, "Item": row, **_Expression(key).options(condition)}}
        case Update(key):
            return {"Update": {"TableName": table, "Key": key_of(key), **_update(write)}}
        case Delete(key, condition):
            return {"Delete": {"TableName": table, "Key": key_of(key), **_Expression(key).options(condition)}}
        case Check(key, condition):
            return {"ConditionCheck": {"TableName": table, "Key": key_of(key), **_Expression(key).options(condition)}}
        case _:
            assert_never(write)


def key_of(key: Key) -> keys.Key:
    match key:
        case MetadataKey(tenant):
            return keys.metadata_key(tenant)
        case LockKey(tenant):
            return keys.lock_key(tenant)
        case AuditKey(tenant, operation, version):
            return keys.key(keys.tenant_pk(tenant), keys.audit_sk(operation, version))
        case _:
            assert_never(key)


def _columns(key: Key) -> Mapping[str, Column]:
    match key:
        case MetadataKey():
            return columns.METADATA_ROW
        case LockKey():
            return columns.LOCK_ROW
        case AuditKey():
            return columns.AUDIT_ROW
        case _:
            assert_never(key)


def _attributes(key: Key, fields: Fields) -> Item:
    attributes: Item = {}
    for name, value in fields.items():
        column = _columns(key)[name]
        attributes |= dict(zip(column.names, column.values(key.tenant, value), strict=True))
    return attributes


def _update(update: Update) -> Item:
    expression = _Expression(update.key)
    sets = [expression.assign(name, value) for name, value in update.sets.items()]
    sets += [expression.assign(name, value, default=True) for name, value in update.defaults.items()]
    removes = [expression.name(name) for each in update.clears for name in expression.columns[each].names]
    parts = [f"SET {', '.join(sets)}"] if sets else []
    parts += [f"REMOVE {', '.join(removes)}"] if removes else []
    return {"UpdateExpression": " ".join(parts), **expression.options(update.condition)}


@dataclass
class _Expression:
    """The expressions of one write, with the names and values that they share."""

    key: Key
    names: dict[str, str] = field(default_factory=dict)
    values: Item = field(default_factory=dict)

    @property
    def columns(self) -> Mapping[str, Column]:
        return _columns(self.key)

    def options(self, condition: Condition | None) -> dict[str, Any]:
        """Parameters of the request. DynamoDB rejects empty conditions and empty maps, so those are left out."""
        options: dict[str, Any] = {}
        if condition is not None:
            options["ConditionExpression"] = self._condition(condition)
        if self.names:
            options["ExpressionAttributeNames"] = self.names
        if self.values:
            options["ExpressionAttributeValues"] = self.values
        return options

    def name(self, attribute: str) -> str:
        """A placeholder for the attribute's name, which may be a reserved word."""
        self.names[f"#{attribute}"] = attribute
        return f"#{attribute}"

    def assign(self, name: str, value: object, *, default: bool = False) -> str:
        column = self.columns[name]
        values = column.values(self.key.tenant, value)
        assigned = [(self.name(each), self._value(stored)) for each, stored in zip(column.names, values, strict=True)]
        return ", ".join(f"{to} = " + (f"if_not_exists({to}, {new})" if default else new) for to, new in assigned)

    def _value(self, value: Item) -> str:
        name = f":v{len(self.values)}"
        self.values[name] = value
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
                return self._equals(self.columns[name], value)
            case Differs(name, value):
                (stored,) = self.columns[name].values(self.key.tenant, value)
                return f"{self._first(name)} <> {self._value(stored)}"
            case Below(name, value):
                return f"{self._first(name)} < {self._value(n(value))}"
            case _:
                assert_never(condition)

    def _stored_as(self, attribute: str, value: Any) -> str:
        name = self.name(attribute)
        return f"attribute_not_exists({name})" if value is None else f"{name} = {self._value(value)}"

    def _first(self, name: str) -> str:
        return self.name(self.columns[name].names[0])

    def _equals(self, column: Column, value: object) -> str:
        stored = column.values(self.key.tenant, value)
        legacy = column.legacy_value(value)
        if legacy is not None:
            (name,), (current,) = column.names, stored
            return f"{self.name(name)} IN ({self._value(current)}, {self._value(legacy)})"
        pairs = zip(column.names, stored, strict=True)
        return " AND ".join(f"{self.name(name)} = {self._value(each)}" for name, each in pairs)
