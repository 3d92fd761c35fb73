"""Requesting a reconciliation. It is recorded and runs in the background, because many tenants take minutes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.common.times import Clock, new_id
from orchestrator.reconciling.ports import ReconciliationLedger, ReconciliationStarter
from orchestrator.reconciling.records import SETTLING, SURVEY, Reconciliation, ReconciliationStatus, Spec
from orchestrator.tenants.admission import Refusal, Refused

BY_ITSELF = "berth reconcile"

SCHEDULES = {
    SETTLING: Spec(survey=False),
    SURVEY: Spec(survey=True, repair=False),
}
"""The scheduled reconciliations. They settle operations whose executions died, and otherwise only report."""


@dataclass(frozen=True, slots=True)
class Reconciliations:
    ledger: ReconciliationLedger
    starter: ReconciliationStarter
    clock: Clock

    def start(self, spec: Spec, by: str) -> Reconciliation:
        now = self.clock.now()
        requested = Reconciliation(
            new_id(now, by, spec),
            f"{BY_ITSELF}, requested by {by}" if by else BY_ITSELF,
            spec,
            ReconciliationStatus.PENDING,
            now,
            now,
        )
        self.ledger.record_reconciliation(requested)
        self.starter.start_reconciliation(requested.id)
        return requested

    def find(self, reconciliation: str) -> Reconciliation | Refused:
        found = self.ledger.reconciliation(reconciliation)
        if found is not None:
            return found
        return Refused(
            Refusal.UNKNOWN_RECONCILIATION,
            f"There is no reconciliation {reconciliation}. Start one: berth reconcile",
            {"reconciliationId": reconciliation},
        )

    def newest(self, *, limit: int) -> Sequence[Reconciliation]:
        """The newest reconciliations that somebody has requested."""
        return self.ledger.requested_reconciliations(limit=limit)

    def latest_survey(self) -> Reconciliation | None:
        """The scheduled survey of all tenants that ran last."""
        return self.ledger.reconciliation(SURVEY)

    def to_run(self, reconciliation: str) -> Reconciliation | None:
        """The reconciliation to run with this id: a scheduled one, or a requested one that has not ended."""
        if reconciliation in SCHEDULES:
            now = self.clock.now()
            return Reconciliation(
                reconciliation, BY_ITSELF, SCHEDULES[reconciliation], ReconciliationStatus.PENDING, now, now
            )
        requested = self.ledger.reconciliation(reconciliation)
        return None if requested is None or requested.over else requested

    def unfinished(self) -> list[str]:
        """The reconciliations whose surveys have to be continued, because the time of a function was not enough."""
        unfinished: list[str] = []
        for reconciliation in sorted(self.ledger.unfinished_surveys()):
            if self.to_run(reconciliation) is None:
                # The function ended between the record of the result and this one.
                self.ledger.end_survey(reconciliation)
            else:
                unfinished.append(reconciliation)
        return unfinished
