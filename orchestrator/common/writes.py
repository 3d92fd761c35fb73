"""Changes of rows, as data. A transition is a few writes with conditions, which are made all or not at all.

Rows are named by keys, which each capability defines, and their contents by the fields of their records, so nothing
here knows how rows are stored. Tables only apply transitions. A name with a point is an entry of a field that is a map.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

KeyT = TypeVar("KeyT", covariant=True)
Fields = Mapping[str, object]

# Conditions


@dataclass(frozen=True, slots=True)
class RowExists:
    pass


@dataclass(frozen=True, slots=True)
class RowAbsent:
    pass


@dataclass(frozen=True, slots=True)
class Present:
    field: str


@dataclass(frozen=True, slots=True)
class Missing:
    field: str


@dataclass(frozen=True, slots=True)
class Equals:
    field: str
    value: object


@dataclass(frozen=True, slots=True)
class Differs:
    """True also if the field is missing."""

    field: str
    value: object


@dataclass(frozen=True, slots=True)
class Below:
    field: str
    value: int


@dataclass(frozen=True, slots=True)
class Contains:
    """The field is a set, and has this member."""

    field: str
    member: str


@dataclass(frozen=True, slots=True)
class StoredAs:
    """The row has these values, in the format of the table that has read them; a field that is ``None`` is missing.

    For rows of another system, whose values may be stored in another way than the same values of a record.
    """

    values: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class AllOf:
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    conditions: tuple[Condition, ...]


FieldCondition = Present | Missing | Equals | Differs | Below | Contains
Condition = RowExists | RowAbsent | StoredAs | FieldCondition | AllOf | AnyOf


def all_of(*conditions: Condition) -> AllOf:
    return AllOf(conditions)


def any_of(*conditions: Condition) -> AnyOf:
    return AnyOf(conditions)


def still(name: str, value: object) -> Condition:
    """The field has that value, or is missing if the value is ``None``."""
    return Missing(name) if value is None else Equals(name, value)


# Writes


@dataclass(frozen=True, slots=True)
class Put(Generic[KeyT]):
    """Write the whole row, replacing any existing one."""

    key: KeyT
    fields: Fields
    condition: Condition | None = None


@dataclass(frozen=True, slots=True)
class Update(Generic[KeyT]):
    """Write some fields of a row. A missing row is created."""

    key: KeyT
    sets: Fields = field(default_factory=dict)
    defaults: Fields = field(default_factory=dict)
    """These fields are set only if the row does not have them."""
    clears: Sequence[str] = ()
    condition: Condition | None = None
    takes: Mapping[str, str] = field(default_factory=dict)
    """Members to take out of fields that are sets. A set that becomes empty is a missing field."""


@dataclass(frozen=True, slots=True)
class Delete(Generic[KeyT]):
    key: KeyT
    condition: Condition


@dataclass(frozen=True, slots=True)
class Check(Generic[KeyT]):
    """Write nothing to this row, but require the condition to hold."""

    key: KeyT
    condition: Condition
