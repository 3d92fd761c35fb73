"""Translates transitions of tenants' rows into requests to DynamoDB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

from orchestrator.adapters.dynamodb import columns, expressions, history_rows, keys
from orchestrator.adapters.dynamodb.columns import Column
from orchestrator.adapters.dynamodb.listing_rows import relisting_row
from orchestrator.adapters.dynamodb.values import Item
from orchestrator.tenants.history import HistoryEntry
from orchestrator.tenants.writes import Announce, Append, AuditKey, Key, LockKey, MetadataKey, Write


def transact_item(write: Write, table: str) -> Item:
    """The write as one item of ``TransactWriteItems``."""
    match write:
        case Append(entry):
            row = history_rows.history_row(entry) if isinstance(entry, HistoryEntry) else history_rows.change_row(entry)
            return {"Put": {"TableName": table, "Item": row, "ConditionExpression": "attribute_not_exists(pk)"}}
        case Announce(relisting):
            return {"Put": {"TableName": table, "Item": relisting_row(relisting)}}
        case _:
            return expressions.transact_item(write, table, key_of(write.key), _Stored(write.key))


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


@dataclass(frozen=True, slots=True)
class _Stored:
    """Implements :class:`orchestrator.adapters.dynamodb.expressions.Stored` for a tenant's row."""

    key: Key

    def attributes(self, name: str) -> Sequence[str]:
        return _columns(self.key)[name].names

    def values(self, name: str, value: object) -> Sequence[Item]:
        return _columns(self.key)[name].values(self.key.tenant, value)
