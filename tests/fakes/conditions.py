"""Conditions of writes, on rows in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import datetime
from typing import Any, assert_never

from orchestrator.common.times import parse_timestamp, timestamp
from orchestrator.common.writes import (
    AllOf,
    AnyOf,
    Below,
    Condition,
    Contains,
    Differs,
    Equals,
    FieldCondition,
    Missing,
    Present,
    RowAbsent,
    RowExists,
    StoredAs,
)

Fields = dict[str, Any]


def holds(condition: Condition, row: Fields | None) -> bool:
    match condition:
        case AllOf(conditions):
            return all(holds(each, row) for each in conditions)
        case AnyOf(conditions):
            return any(holds(each, row) for each in conditions)
        case RowExists():
            return row is not None
        case RowAbsent():
            return row is None
        case StoredAs(values):
            return row == values
        case _:
            return _field_condition_holds(condition, row or {})


def _field_condition_holds(condition: FieldCondition, now: Fields) -> bool:
    match condition:
        case Present(name):
            return _is_there(now, name)
        case Missing(name):
            return not _is_there(now, name)
        case Equals(name, value):
            return _is_there(now, name) and bool(_field(now, name) == stored(value))
        case Differs(name, value):
            return not _is_there(now, name) or bool(_field(now, name) != stored(value))
        case Below(name, value):
            return _is_there(now, name) and bool(_field(now, name) < value)
        case Contains(name, member):
            return _is_there(now, name) and member in _field(now, name)
        case _:
            assert_never(condition)


def _field(now: Fields, name: str) -> Any:
    """The value of a field, or of an entry of a field that is a map."""
    whole, _, entry = name.partition(".")
    return now[whole][entry] if entry else now[whole]


def _is_there(now: Fields, name: str) -> bool:
    whole, _, entry = name.partition(".")
    return whole in now and (not entry or entry in now[whole])


def stored(value: Any) -> Any:
    """The value as it is read again: times are stored in milliseconds."""
    if isinstance(value, datetime):
        return parse_timestamp(timestamp(value))
    if is_dataclass(value) and not isinstance(value, type):
        within = {each.name: getattr(value, each.name) for each in fields(value) if each.init}
        read_again = {name: stored(each) for name, each in within.items()}
        return value if read_again == within else replace(value, **read_again)
    if isinstance(value, Mapping):
        return {name: stored(each) for name, each in value.items()}
    return value
