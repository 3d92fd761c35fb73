"""The entries of a tenant's history: the events of its operations, and changes outside operations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal

from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.records import Operation, Request, RootCause, Status


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """An entry of the history: one event of an operation. Entries are appended, never changed."""

    tenant: TenantId
    at: datetime
    operation: Operation
    version: str
    attempt: int
    status: Status
    execution: str
    root_cause: RootCause | None = None
    request: Request = field(default_factory=Request)
    """The request of the operation."""
    altered: bool = False
    """True if the row does not match the digest in its key: somebody has overwritten it."""


class ChangeKind(StrEnum):
    """The kinds of changes of a tenant's records outside operations."""

    DESCRIBE = "DESCRIBE"
    """Somebody changed the tenant's labels or pin."""
    CORRECT = "CORRECT"
    """A reconciliation made the metadata match the stack."""
    REPLACE = "REPLACE"
    """The tenant's stack has another queue although no operation is running: somebody changed the stack by hand."""
    ADOPT = "ADOPT"
    """A tenant from before Berth was added to the index."""


@dataclass(frozen=True, slots=True)
class RecordedChange:
    """An entry of the history: one change of a tenant's records outside operations."""

    tenant: TenantId
    at: datetime
    kind: ChangeKind
    request: Request
    before: Mapping[str, object]
    after: Mapping[str, object]
    altered: bool = False
    """The same as in :class:`HistoryEntry`."""


@dataclass(frozen=True, slots=True)
class UnreadableEntry:
    """A row of the history that is not a valid entry: somebody other than Berth has written it."""

    at: datetime | None
    """The time in the row's key; ``None`` if the key has none."""
    altered: Literal[True] = True
