"""Reconciliations, and all stacks at a glance, in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from orchestrator.reconciling.checkpoints import Checkpoint
from orchestrator.reconciling.fleet_counts import FleetCounts
from orchestrator.reconciling.ports import Drift, StackPage, SurveyedStack, TokenRefused
from orchestrator.reconciling.records import Finding, Kind, Reconciliation
from orchestrator.tenants.stack_ports import Stack
from tests.fakes.stacks import FakeStacks


class InMemoryReconciliations:
    """``tests/adapters`` holds the checkpoints of it and of DynamoDB's to one contract."""

    def __init__(self) -> None:
        self.recorded: dict[str, Reconciliation] = {}
        self.started: list[str] = []
        self.counts: FleetCounts | None = None
        self.unfinished: set[str] = set()
        self.checkpoints: dict[str, Checkpoint] = {}
        self.stacks: dict[tuple[str, str, int], Sequence[SurveyedStack]] = {}

    def record_reconciliation(self, reconciliation: Reconciliation) -> None:
        self.recorded[reconciliation.id] = reconciliation

    def reconciliation(self, reconciliation: str) -> Reconciliation | None:
        return self.recorded.get(reconciliation)

    def requested_reconciliations(self, *, limit: int) -> Sequence[Reconciliation]:
        newest_first = sorted((each for each in self.recorded if each[0].isdigit()), reverse=True)
        return [self.recorded[each] for each in newest_first[:limit]]

    def fleet_counts(self) -> FleetCounts | None:
        return self.counts

    def keep_fleet_counts(self, counts: FleetCounts) -> None:
        self.counts = counts

    def unfinished_surveys(self) -> frozenset[str]:
        return frozenset(self.unfinished)

    def checkpoint(self, reconciliation: str) -> Checkpoint | None:
        return self.checkpoints.get(reconciliation)

    def save_checkpoint(self, checkpoint: Checkpoint) -> bool:
        saved = checkpoint.reconciliation
        before = self.checkpoints.get(saved.id)
        is_same = before is not None and before.reconciliation.started_at == saved.started_at
        if checkpoint.revision != (before.revision if before and is_same else 0):
            return False
        self.checkpoints[saved.id] = replace(checkpoint, revision=checkpoint.revision + 1)
        self.unfinished.add(saved.id)
        return True

    def end_survey(self, reconciliation: str) -> None:
        self.unfinished.discard(reconciliation)

    def store_stacks(
        self, reconciliation: Reconciliation, list_id: str, number: int, stacks: Sequence[SurveyedStack]
    ) -> None:
        self.stacks[reconciliation.id, list_id, number] = stacks

    def stored_stacks(self, reconciliation: Reconciliation, list_id: str, number: int) -> Sequence[SurveyedStack]:
        return self.stacks[reconciliation.id, list_id, number]

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
        self.failing: dict[str, str] = {}
        """Why the detection fails, by the stack's id."""
        self._looks: dict[str, int] = {}
        self.per_page: int | None = None
        """The number of stacks per page. ``None`` if one page has all of them."""
        self.pages: list[str | None] = []
        """The tokens of the pages that were requested."""
        self.refused: set[str] = set()
        """The tokens that are too old."""

    def page(self, token: str | None) -> StackPage:
        self.pages.append(token)
        if token in self.refused:
            raise TokenRefused(f"The token {token} has expired")
        every = [*self.others, *(SurveyedStack(_name(stack), stack) for stack in self._stacks.living)]
        begin = int(token or 0)
        end = len(every) if self.per_page is None else begin + self.per_page
        return StackPage(every[begin:end], str(end) if end < len(every) else None)

    def start_drift_detection(self, stack_id: str) -> str | None:
        return None if stack_id in self.cannot_be_compared else f"detection of {stack_id}"

    def drift(self, detection: str) -> Drift:
        self._looks[detection] = self._looks.get(detection, 0) + 1
        if self._looks[detection] < self.looks_needed:
            return Drift(done=False)
        stack_id = detection.removeprefix("detection of ")
        differs = self.drifted.get(stack_id)
        failure = self.failing.get(stack_id, "")
        return Drift(done=True, drifted=differs is not None, detail=differs or "", failure=failure)


def _name(stack: Stack) -> str:
    return stack.stack_id.split("/")[1]


def counted(findings: Sequence[Finding]) -> Mapping[Kind, int]:
    return dict(Counter(finding.kind for finding in findings))
