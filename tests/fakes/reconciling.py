"""Reconciliations, and all stacks at a glance, in memory."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.reconciling.fleet_counts import FleetCounts
from orchestrator.reconciling.ports import Drift, SurveyedStack
from orchestrator.reconciling.records import Reconciliation
from orchestrator.tenants.ports import Stack
from tests.fakes.stacks import FakeStacks


class InMemoryReconciliations:
    def __init__(self) -> None:
        self.recorded: dict[str, Reconciliation] = {}
        self.started: list[str] = []
        self.counts: FleetCounts | None = None

    def record_reconciliation(self, reconciliation: Reconciliation) -> None:
        self.recorded[reconciliation.id] = reconciliation

    def reconciliation(self, reconciliation: str) -> Reconciliation | None:
        return self.recorded.get(reconciliation)

    def fleet_counts(self) -> FleetCounts | None:
        return self.counts

    def keep_fleet_counts(self, counts: FleetCounts) -> None:
        self.counts = counts

    def start_reconciliation(self, reconciliation: str) -> None:
        self.started.append(reconciliation)


class FakeSurvey:
    """All stacks that the fake CloudFormation has, and some of other people."""

    def __init__(self, stacks: FakeStacks, others: list[SurveyedStack] | None = None) -> None:
        self._stacks = stacks
        self.others = others or []
        self.drifted: dict[str, str] = {}
        """Stacks whose resources differ from their templates: how, by stack id."""
        self.looks_needed = 1
        """How often a detection has to be looked at until it is done."""
        self.cannot_be_compared: set[str] = set()
        self._looks: dict[str, int] = {}

    def all(self) -> Iterator[SurveyedStack]:
        yield from self.others
        for stack in self._stacks.living:
            yield SurveyedStack(_name(stack), stack)

    def start_drift_detection(self, stack_id: str) -> str | None:
        return None if stack_id in self.cannot_be_compared else f"detection of {stack_id}"

    def drift(self, detection: str) -> Drift:
        self._looks[detection] = self._looks.get(detection, 0) + 1
        if self._looks[detection] < self.looks_needed:
            return Drift(done=False)
        differs = self.drifted.get(detection.removeprefix("detection of "))
        return Drift(done=True, drifted=differs is not None, detail=differs or "")


def _name(stack: Stack) -> str:
    return stack.stack_id.split("/")[1]
