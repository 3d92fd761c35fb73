"""Sizes of items as DynamoDB counts them, and the write units that follow from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.adapters.dynamodb.event_keys import STATUS_INDEX, TYPE_INDEX

UNIT_BYTES = 1024
"""A write unit is a write of up to 1 KB."""
TABLE_KEYS = ("pk", "sk")
INDEXES: Mapping[str, tuple[str, str]] = {
    STATUS_INDEX: ("GSI1PK", "GSI1SK"),
    TYPE_INDEX: ("GSI2PK", "GSI2SK"),
}
"""The indexes of the table of events. Both hold keys only: their own, and the table's."""


def item_size(item: Mapping[str, Any]) -> int:
    """The names and the values of all attributes."""
    return sum(len(name.encode()) + _value_size(value) for name, value in item.items())


def write_units(item: Mapping[str, Any]) -> int:
    return -(-item_size(item) // UNIT_BYTES)


def index_rows(item: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The rows of an item in the indexes. An item that lacks the keys of an index is not in it."""
    return {
        index: {name: item[name] for name in (*keys, *TABLE_KEYS)}
        for index, keys in INDEXES.items()
        if all(name in item for name in keys)
    }


def put_units(item: Mapping[str, Any]) -> dict[str, int]:
    """The write units of a put, by table and index."""
    return {"table": write_units(item)} | {index: write_units(row) for index, row in index_rows(item).items()}


def _value_size(value: Mapping[str, Any]) -> int:
    ((kind, content),) = value.items()
    match kind:
        case "S":
            return len(content.encode())
        case "B":
            return len(content)
        case "N":
            # Two digits per byte, and one byte for sign and exponent. Zeros at the end are not counted on AWS, but the
            # largest size matters here.
            return -(-len(content.lstrip("-")) // 2) + 1
        case "BOOL":
            return 1
        case "SS":
            return 3 + sum(1 + len(each.encode()) for each in content)
        case "M":
            return 3 + sum(1 + len(name.encode()) + _value_size(each) for name, each in content.items())
        case "L":
            return 3 + sum(1 + _value_size(each) for each in content)
        case _:
            raise ValueError(f"Rows have no values of type {kind}.")
