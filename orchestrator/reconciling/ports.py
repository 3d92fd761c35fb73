"""What reconciling needs from the outside, beyond :mod:`orchestrator.ports`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from orchestrator.ports import Stack
from orchestrator.reconciling.records import Reconciliation
from orchestrator.records import Metadata, Request


class StackSurvey(Protocol):
    """All stacks of the account and region. Every method may raise :class:`orchestrator.errors.Throttled`."""

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


class ReconciliationLedger(Protocol):
    def record_reconciliation(self, reconciliation: Reconciliation) -> None:
        """Whatever was recorded under its id is replaced."""

    def reconciliation(self, reconciliation: str) -> Reconciliation | None: ...


class ReconciliationStarter(Protocol):
    def start_reconciliation(self, reconciliation: str) -> None:
        """Have it run, by itself. It reads from its row what it is to do."""
