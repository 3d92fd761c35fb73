"""What reconciling needs from the outside, beyond :mod:`orchestrator.tenants.ports`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from orchestrator.common.tenant_ids import TenantId
from orchestrator.reconciling.records import Reconciliation
from orchestrator.tenants.ports import Stack
from orchestrator.tenants.records import (
    Audit,
    Lock,
    Metadata,
    RecordedChange,
    Request,
    RootCause,
    Status,
    TenantState,
)
from orchestrator.tenants.writes import AuditKey


class StackSurvey(Protocol):
    """All stacks of the account and region. Every method may raise :class:`orchestrator.common.errors.Throttled`."""

    def all(self) -> Iterable[SurveyedStack]: ...

    def start_drift_detection(self, stack_id: str) -> str | None:
        """Have CloudFormation compare the stack with its resources. ``None`` when it cannot be now."""

    def drift(self, detection: str) -> Drift:
        """How far that is."""


@dataclass(frozen=True, slots=True)
class SurveyedStack:
    name: str
    stack: Stack


@dataclass(frozen=True, slots=True)
class Drift:
    done: bool
    drifted: bool = False
    detail: str = ""
    """How many resources differ, or why it could not be told."""


class Corrections(Protocol):
    def correct(self, seen: Metadata, stack: Stack, *, request: Request, at: datetime) -> bool:
        """Have the metadata say what the stack says, and append that to the tenant's history.

        ``False`` when the tenant has changed since it was seen so, or an operation owns it.
        """


@dataclass(frozen=True, slots=True)
class UnlistedTenant:
    """A tenant as its rows say it: one that the index does not have, or whose stack is not on record, or of which an
    operation of the earlier system has not ended."""

    tenant: TenantId
    metadata: Metadata | None
    audits: Sequence[Audit]
    audit_keys: Sequence[AuditKey]
    """The keys of the audits' rows, in the same order. Old keys have no version, even if the audit has one."""
    lock: Lock | None
    earlier: frozenset[AuditKey] = frozenset()
    """The keys of the audits that the earlier system has written."""
    listed: bool = False
    """The index has it: an operation of Berth's has listed it, or an adoption before this one."""
    stored_metadata: Mapping[str, object] | None = None
    """The metadata's row as the table stores it, for :class:`orchestrator.tenants.writes.StoredAs`."""

    @property
    def unfinished(self) -> Sequence[Audit]:
        """Operations of the earlier system that say Started. Nobody but an adoption ends them."""
        return [
            audit
            for key, audit in zip(self.audit_keys, self.audits, strict=True)
            if audit.status is Status.STARTED and key in self.earlier
        ]


@dataclass(frozen=True, slots=True)
class UnlistedPage:
    """A part of the table, and the tenants in it that may be unlisted."""

    tenants: Sequence[str]
    """Their ids, as the rows have them: they need not be valid."""
    rows: int
    """How many rows were looked at."""
    read_units: float
    """What that took of the table's capacity."""
    cursor: str | None
    """Where the next part begins; ``None`` after the last one."""


@dataclass(frozen=True, slots=True)
class Adopted:
    """What an unlisted tenant's rows say once it is adopted."""

    metadata: Metadata | None
    audits: Sequence[Audit]
    closed: Sequence[Audit]
    """Those among the audits that had no end."""
    state: TenantState
    root_cause: RootCause | None


class UnlistedTenants(Protocol):
    """Tenants from before Berth, which only a look at the whole table finds."""

    def page(self, cursor: str | None, *, limit: int) -> UnlistedPage:
        """Look at so many rows, from there on.

        Raises :class:`orchestrator.common.errors.InvalidRequest` if the cursor is none that was returned before.
        """

    def unlisted(self, tenant: TenantId) -> UnlistedTenant | None:
        """The tenant, if the index does not have it, or if it is served and no stack is on record, or if an operation
        of the earlier system says Started.

        A tenant whose create is about to begin is not unlisted.

        Raises :class:`orchestrator.common.errors.UnreadableRows`.
        """

    def adopt(self, seen: UnlistedTenant, adopted: Adopted, change: RecordedChange) -> bool:
        """Have the rows say so, list the tenant, and append the change to its history.

        ``False`` when the tenant has changed since it was seen so, or an operation owns it. Nothing is written then.
        """


class ReconciliationLedger(Protocol):
    def record_reconciliation(self, reconciliation: Reconciliation) -> None:
        """Whatever was recorded under its id is replaced."""

    def reconciliation(self, reconciliation: str) -> Reconciliation | None: ...


class ReconciliationStarter(Protocol):
    def start_reconciliation(self, reconciliation: str) -> None:
        """Have it run, by itself. It reads from its row what it is to do."""
