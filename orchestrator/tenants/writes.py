"""Changes of a tenant's rows, as data. A transition is a few writes with conditions, which are made all or not at all.

Rows are named by keys, and their contents by the fields of their records, so this module does not know how rows are
stored. Tables only apply transitions: see :meth:`orchestrator.tenants.ports.TenantRows.apply`.

These fields are in the rows but not in the records, and define where the index lists a row:

| row      | field            | value                                                                             |
|----------|------------------|-----------------------------------------------------------------------------------|
| metadata | `listed_state`   | the state in which the tenant is listed                                           |
| metadata | `listed_version` | the version at which the tenant is listed                                         |
| metadata | `root_cause`     | why the tenant is in that state                                                   |
| audit    | `listed`         | :class:`Unfinished`, or :attr:`TenantState.DELETED` after a successful delete     |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.records import Attempt, Audit, HistoryEntry, Operation, RecordedChange

# Rows


@dataclass(frozen=True, slots=True)
class MetadataKey:
    tenant: TenantId


@dataclass(frozen=True, slots=True)
class LockKey:
    tenant: TenantId


@dataclass(frozen=True, slots=True)
class AuditKey:
    tenant: TenantId
    operation: Operation
    version: str | None
    """``None`` for a delete, which has no version, and for a create from before versions were recorded."""

    @classmethod
    def of(cls, operation: Attempt | Audit) -> AuditKey:
        version = None if operation.operation is Operation.DELETE else operation.version
        return cls(operation.tenant, operation.operation, version)


Key = MetadataKey | LockKey | AuditKey
Fields = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Unfinished:
    """The index lists the operation as unfinished, ordered by its start time."""

    since: datetime


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


FieldCondition = Present | Missing | Equals | Differs | Below
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
class Put:
    """Write the whole row, replacing any existing one."""

    key: Key
    fields: Fields
    condition: Condition | None = None


@dataclass(frozen=True, slots=True)
class Update:
    """Write some fields of a row. A missing row is created."""

    key: Key
    sets: Fields = field(default_factory=dict)
    defaults: Fields = field(default_factory=dict)
    """These fields are set only if the row does not have them."""
    clears: Sequence[str] = ()
    condition: Condition | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    key: Key
    condition: Condition


@dataclass(frozen=True, slots=True)
class Check:
    """Write nothing to this row, but require the condition to hold."""

    key: Key
    condition: Condition


@dataclass(frozen=True, slots=True)
class Append:
    """Append an entry to the history. An existing entry is never overwritten."""

    entry: HistoryEntry | RecordedChange


Write = Put | Update | Delete | Check | Append
Transition = Sequence[Write]
"""No row is written twice in one transition."""
