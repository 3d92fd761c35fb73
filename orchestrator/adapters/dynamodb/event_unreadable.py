"""Rows that cannot be read: somebody other than Berth has written them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from orchestrator.adapters.dynamodb.values import Item
from orchestrator.common.errors import BerthError
from orchestrator.events.records import UnreadableRow

CANNOT_BE_READ = (BerthError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)

RecordT = TypeVar("RecordT")


def read_row(row: Item, read: Callable[[Item], RecordT]) -> RecordT | UnreadableRow:
    """The record in a row that DynamoDB has returned. No service is called."""
    try:
        return read(row)
    except CANNOT_BE_READ:
        return UnreadableRow(f"{row['pk']['S']} / {row['sk']['S']}")
