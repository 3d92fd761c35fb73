"""Converts plain values to DynamoDB's typed attribute values and back.

This module knows no capability, so that a function loads only the records that it reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from orchestrator.common.times import parse_timestamp, timestamp

Item = dict[str, Any]
"""A row or a value in DynamoDB's format, in which every value has its type."""


def s(value: str) -> dict[str, str]:
    return {"S": value}


def n(value: int) -> dict[str, str]:
    return {"N": str(value)}


def expiry(moment: datetime) -> Item:
    return n(int(moment.timestamp()))


def time(value: datetime) -> dict[str, str]:
    return {"S": timestamp(value)}


def text(item: Mapping[str, Any], name: str) -> str | None:
    value = item.get(name)
    return value["S"] if value and "S" in value else None


def moment(item: Mapping[str, Any], name: str) -> datetime | None:
    found = text(item, name)
    return parse_timestamp(found) if found else None


def number(item: Mapping[str, Any], name: str, default: int) -> int:
    return int(item[name]["N"]) if name in item else default


def labels_value(labels: Mapping[str, str]) -> Item:
    return {"M": {name: s(value) for name, value in labels.items()}}
