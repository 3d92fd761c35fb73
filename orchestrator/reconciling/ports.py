"""The interfaces that reconciling needs from the outside, in addition to :mod:`orchestrator.tenants.ports`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from orchestrator.common.errors import QueueOutOfReach
from orchestrator.common.tenant_ids import TenantId
from orchestrator.reconciling.checkpoints import Checkpoint
from orchestrator.reconciling.fleet_counts import FleetCounts
from orchestrator.reconciling.records import Reconciliation
from orchestrator.tenants.history import RecordedChange
from orchestrator.tenants.ports import Queues
from orchestrator.tenants.records import Audit, Lock, Metadata, Request, RootCause, Status, TenantState
from orchestrator.tenants.stack_ports import Stack
from orchestrator.tenants.writes import AuditKey


class TokenRefused(Exception):
    """CloudFormation does not accept the token of a page, for example because the token is too old."""


class StackSurvey(Protocol):
    """All stacks of the account and region. Every method may raise :class:`orchestrator.common.errors.Throttled`."""

    def page(self, token: str | None) -> StackPage:
        """The first page of stacks, or the one after the page that had returned the token.

        Raises :class:`TokenRefused`.
        """

    def start_drift_detection(self, stack_id: str) -> str | None:
        """Start the drift detection of the stack and return its id. ``None`` if that is not possible now."""

    def drift(self, detection: str) -> Drift:
        """The state and the result of a drift detection."""


@dataclass(frozen=True, slots=True)
class StackPage:
    stacks: Sequence[SurveyedStack]
    token: str | None
    """The token of the next page; ``None`` on the last one."""


@dataclass(frozen=True, slots=True)
class SurveyedStack:
    name: str
    stack: Stack


@dataclass(frozen=True, slots=True)
class Drift:
    done: bool
    drifted: bool = False
    detail: str = ""
    """How many resources differ."""
    failure: str = ""
    """Why some resources could not be compared, for instance because Berth may not read them."""


class SurveyedQueues(Queues, Protocol):
    def exist(self, urls: Sequence[str]) -> Mapping[str, bool | QueueOutOfReach]:
        """Whether each of the queues exists, or why that cannot be told. Many are asked for at the same time."""


class Corrections(Protocol):
    def correct(self, seen: Metadata, stack: Stack, *, request: Request, at: datetime, tier: str | None = None) -> bool:
        """Make the metadata match the stack, and append the change to the tenant's history.

        ``tier`` is the tier of the stack's release; ``None`` keeps the recorded one.
        ``False`` if the metadata is no longer as ``seen``, or an operation owns the tenant.
        """


@dataclass(frozen=True, slots=True)
class UnlistedTenant:
    """The rows of a tenant that is not in the index, whose stack is not recorded, or that has an unfinished operation
    of the earlier system."""

    tenant: TenantId
    metadata: Metadata | None
    audits: Sequence[Audit]
    audit_keys: Sequence[AuditKey]
    """The keys of the audits' rows, in the same order. Old keys have no version, even if the audit has one."""
    lock: Lock | None
    earlier: frozenset[AuditKey] = frozenset()
    """The keys of the audits that the earlier system has written."""
    listed: bool = False
    """True if the tenant is in the index, because of an operation of Berth's or an earlier adoption."""
    stored_metadata: Mapping[str, object] | None = None
    """The metadata's row as the table stores it, for :class:`orchestrator.tenants.writes.StoredAs`."""

    @property
    def unfinished(self) -> Sequence[Audit]:
        """The earlier system's operations with the status Started. Only an adoption ends them."""
        return [
            audit
            for key, audit in zip(self.audit_keys, self.audits, strict=True)
            if audit.status is Status.STARTED and key in self.earlier
        ]


@dataclass(frozen=True, slots=True)
class UnlistedPage:
    """A page of the table, with the tenants in it that may be unlisted."""

    tenants: Sequence[str]
    """The tenants' ids as in the rows, which may be invalid."""
    rows: int
    """The number of rows that were scanned."""
    read_units: float
    """The capacity that the scan has used."""
    cursor: str | None
    """Where the next page begins; ``None`` after the last one."""


@dataclass(frozen=True, slots=True)
class Adopted:
    """The records of an unlisted tenant after its adoption."""

    metadata: Metadata | None
    audits: Sequence[Audit]
    closed: Sequence[Audit]
    """The audits that the adoption ends, because their operations were unfinished."""
    state: TenantState
    root_cause: RootCause | None


class UnlistedTenants(Protocol):
    """Tenants from before Berth, which only a scan of the whole table finds."""

    def page(self, cursor: str | None, *, limit: int) -> UnlistedPage:
        """Scan ``limit`` rows from the cursor on.

        Raises :class:`orchestrator.common.errors.InvalidRequest` if the cursor was not returned by an earlier page.
        """

    def unlisted(self, tenant: TenantId) -> UnlistedTenant | None:
        """The tenant, if it is not in the index, if it is served and its stack is not recorded, or if an operation of
        the earlier system is unfinished.

        A tenant whose create is about to begin does not count as unlisted.

        Raises :class:`orchestrator.common.errors.UnreadableRows`.
        """

    def adopt(self, seen: UnlistedTenant, adopted: Adopted, change: RecordedChange) -> bool:
        """Write the adopted records, add the tenant to the index, and append the change to its history.

        ``False`` if the tenant is no longer as ``seen``, or an operation owns it. Then nothing is written.
        """


class FleetCountsLedger(Protocol):
    def fleet_counts(self) -> FleetCounts | None:
        """The counts that were kept last."""

    def keep_fleet_counts(self, counts: FleetCounts) -> None: ...


class Checkpoints(Protocol):
    """The saved positions of surveys that are not finished."""

    def unfinished_surveys(self) -> frozenset[str]:
        """The ids of the reconciliations whose surveys were saved and have not ended."""

    def checkpoint(self, reconciliation: str) -> Checkpoint | None: ...

    def save_checkpoint(self, checkpoint: Checkpoint) -> bool:
        """Store the position, and list the survey as unfinished.

        ``False`` if another function has stored a position of this survey since the checkpoint's revision.
        """

    def end_survey(self, reconciliation: str) -> None:
        """The survey is not unfinished any more."""

    def store_stacks(
        self, reconciliation: Reconciliation, list_id: str, number: int, stacks: Sequence[SurveyedStack]
    ) -> None:
        """Store a part of a list of all stacks. Parts are numbered from 0."""

    def stored_stacks(self, reconciliation: Reconciliation, list_id: str, number: int) -> Sequence[SurveyedStack]: ...


class ReconciliationLedger(FleetCountsLedger, Checkpoints, Protocol):
    def record_reconciliation(self, reconciliation: Reconciliation) -> None:
        """Record the reconciliation. An earlier record with the same id is replaced."""

    def reconciliation(self, reconciliation: str) -> Reconciliation | None: ...

    def requested_reconciliations(self, *, limit: int) -> Sequence[Reconciliation]:
        """The newest reconciliations and adoptions that somebody has requested, the newest first."""


class ReconciliationStarter(Protocol):
    def start_reconciliation(self, reconciliation: str) -> None:
        """Start the reconciliation in the background. It reads its spec from its row."""
