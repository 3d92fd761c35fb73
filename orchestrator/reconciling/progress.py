"""The results of a reconciliation while it runs, and its time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from orchestrator.common.times import Clock
from orchestrator.reconciling.ports import ReconciliationLedger
from orchestrator.reconciling.records import (
    MAX_FINDINGS,
    SETTLING,
    SURVEY,
    Coverage,
    Finding,
    Kind,
    Reconciliation,
    ReconciliationStatus,
)


class OutOfTime(Exception):
    """The remaining time is just enough to record the findings so far."""


@dataclass
class Progress:
    """The results so far. ``has_time`` returns False when the time has run out; ``pause`` sleeps."""

    requested: Reconciliation
    ledger: ReconciliationLedger
    clock: Clock
    has_time: Callable[[], bool]
    pause: Callable[[float], None]
    coverage: Coverage = field(default_factory=Coverage)
    findings: list[Finding] = field(default_factory=list)
    """The first findings, as many as are stored. All are counted."""
    counts: Counter[Kind] = field(default_factory=Counter)
    repaired: int = 0
    ordered: int = 0
    stuck: int = 0

    def resume(self, saved: Reconciliation) -> None:
        """Continue with the results of an earlier function."""
        self.requested = saved
        self.coverage, self.findings = saved.coverage, list(saved.findings)
        self.counts = Counter(saved.counts)
        self.repaired, self.ordered, self.stuck = saved.repaired, saved.ordered, saved.stuck

    def found(self, finding: Finding) -> None:
        self.counts[finding.kind] += 1
        self.repaired += finding.repaired
        self.ordered += finding.ordered
        if len(self.findings) < MAX_FINDINGS:
            self.findings.append(finding)

    def so_far(self, status: ReconciliationStatus = ReconciliationStatus.RUNNING, reason: str = "") -> Reconciliation:
        return replace(
            self.requested,
            status=status,
            reason=reason,
            updated_at=self.clock.now(),
            coverage=self.coverage,
            counts=dict(self.counts),
            findings=tuple(self.findings),
            repaired=self.repaired,
            ordered=self.ordered,
            stuck=self.stuck,
        )

    def show(self) -> None:
        """Record the progress of a requested reconciliation. Scheduled ones record only their end."""
        if self.requested.id not in (SETTLING, SURVEY):
            self.ledger.record_reconciliation(self.so_far())

    def check_time(self) -> None:
        if not self.has_time():
            raise OutOfTime
