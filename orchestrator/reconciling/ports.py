"""The interfaces that reconciling needs from the outside, in addition to :mod:`orchestrator.tenants.ports`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from orchestrator.common.errors import QueueOutOfReach
from orchestrator.reconciling.checkpoints import Checkpoint
from orchestrator.reconciling.fleet_counts import FleetCounts
from orchestrator.reconciling.records import Reconciliation
from orchestrator.tenants.ports import Queues
from orchestrator.tenants.records import Metadata, Request
from orchestrator.tenants.stack_ports import Stack


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
        """The newest reconciliations that somebody has requested, the newest first."""


class ReconciliationStarter(Protocol):
    def start_reconciliation(self, reconciliation: str) -> None:
        """Start the reconciliation in the background. It reads its spec from its row."""
