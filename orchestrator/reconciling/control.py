"""Asking for a reconciliation: it is written down, and runs by itself, because a large fleet takes minutes."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.common.times import Clock, new_id
from orchestrator.reconciling.ports import ReconciliationLedger, ReconciliationStarter
from orchestrator.reconciling.records import SETTLING, SURVEY, Reconciliation, ReconciliationStatus, Spec
from orchestrator.tenants.admission import Refusal, Refused

BY_ITSELF = "berth reconcile"
ADOPTION = "berth adopt"

SCHEDULES = {
    SETTLING: Spec(survey=False),
    SURVEY: Spec(survey=True, repair=False),
}
"""What runs by itself settles operations that died, and otherwise only reports."""


@dataclass(frozen=True, slots=True)
class Reconciliations:
    ledger: ReconciliationLedger
    starter: ReconciliationStarter
    clock: Clock

    def start(self, spec: Spec, by: str) -> Reconciliation:
        now = self.clock.now()
        what = ADOPTION if spec.adopt else BY_ITSELF
        asked = Reconciliation(
            new_id(now, by, spec),
            f"{what}, asked for by {by}" if by else what,
            spec,
            ReconciliationStatus.PENDING,
            now,
            now,
        )
        self.ledger.record_reconciliation(asked)
        self.starter.start_reconciliation(asked.id)
        return asked

    def find(self, reconciliation: str) -> Reconciliation | Refused:
        found = self.ledger.reconciliation(reconciliation)
        if found is not None and not found.spec.adopt:
            return found
        return Refused(
            Refusal.UNKNOWN_RECONCILIATION,
            f"There is no reconciliation {reconciliation}. Ask for one: berth reconcile",
            {"reconciliationId": reconciliation},
        )

    def find_adoption(self, adoption: str) -> Reconciliation | Refused:
        found = self.ledger.reconciliation(adoption)
        if found is not None and found.spec.adopt:
            return found
        return Refused(
            Refusal.UNKNOWN_ADOPTION,
            f"There is no adoption {adoption}. Ask for one: berth adopt",
            {"adoptionId": adoption},
        )

    def to_run(self, reconciliation: str) -> Reconciliation | None:
        """What is to be run under that id: what was asked for, or what is on the schedule. ``None`` if neither."""
        if reconciliation in SCHEDULES:
            now = self.clock.now()
            return Reconciliation(
                reconciliation, BY_ITSELF, SCHEDULES[reconciliation], ReconciliationStatus.PENDING, now, now
            )
        asked = self.ledger.reconciliation(reconciliation)
        return None if asked is None or asked.over else asked
