"""The rows of a tenant, and the writes that change them: see :mod:`orchestrator.common.writes`.

Tables only apply transitions: see :meth:`orchestrator.tenants.ports.TenantRows.apply`.

These fields are in the rows but not in the records, and define where the index lists a row:

| row      | field            | value                                                                             |
|----------|------------------|-----------------------------------------------------------------------------------|
| metadata | `listed_state`   | the state in which the tenant is listed                                           |
| metadata | `listed_version` | the version at which the tenant is listed                                         |
| metadata | `root_cause`     | why the tenant is in that state                                                   |
| audit    | `listed`         | :class:`Unfinished`, or :attr:`TenantState.DELETED` after a successful delete     |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.writes import Check, Delete, Put, Update
from orchestrator.tenants.history import HistoryEntry, RecordedChange
from orchestrator.tenants.listings import Relisting
from orchestrator.tenants.records import Attempt, Audit, Operation

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


@dataclass(frozen=True, slots=True)
class Unfinished:
    """The index lists the operation as unfinished, ordered by its start time."""

    since: datetime


# Writes


@dataclass(frozen=True, slots=True)
class Append:
    """Append an entry to the history. An existing entry is never overwritten."""

    entry: HistoryEntry | RecordedChange


@dataclass(frozen=True, slots=True)
class Announce:
    """Record for a day that the tenant's place in the index changes. Lists of the fleet read that meanwhile."""

    relisting: Relisting


Write = Put[Key] | Update[Key] | Delete[Key] | Check[Key] | Append | Announce
Transition = Sequence[Write]
"""No row is written twice in one transition."""
