"""Asking for a reconciliation, looking at it, and what is run under which id."""

from __future__ import annotations

import re

import pytest

from orchestrator.common.errors import Throttled
from orchestrator.common.times import ID_PATTERN
from orchestrator.reconciling.control import BY_ITSELF, SCHEDULES, Reconciliations
from orchestrator.reconciling.records import SETTLING, SURVEY, Reconciliation, ReconciliationStatus, Spec
from orchestrator.tenants.admission import Refusal, Refused
from tests.fakes import NOON, FakeClock
from tests.fakes.reconciling import InMemoryReconciliations
from tests.unit.reconciling.world import A_MINUTE, ADA, RECONCILIATION, asked_for


class Throttling(InMemoryReconciliations):
    def start_reconciliation(self, reconciliation: str) -> None:
        raise Throttled(f"Invoke {reconciliation}: Rate exceeded")


@pytest.fixture
def ledger() -> InMemoryReconciliations:
    return InMemoryReconciliations()


@pytest.fixture
def control(ledger: InMemoryReconciliations) -> Reconciliations:
    return Reconciliations(ledger, ledger, FakeClock())


# Asking


def test_a_requested_reconciliation_is_recorded_and_started(
    control: Reconciliations, ledger: InMemoryReconciliations
) -> None:
    spec = Spec(detect_drift=True, dry_run=True)
    asked = control.start(spec, ADA)
    assert re.fullmatch(ID_PATTERN, asked.id)
    assert asked == Reconciliation(
        asked.id, f"{BY_ITSELF}, requested by {ADA}", spec, ReconciliationStatus.PENDING, NOON, NOON
    )
    assert ledger.recorded == {asked.id: asked}
    assert ledger.started == [asked.id]


def test_an_unknown_requester_is_left_out(control: Reconciliations) -> None:
    assert control.start(Spec(), "").by == BY_ITSELF


def test_different_requests_have_different_ids(ledger: InMemoryReconciliations) -> None:
    clock = FakeClock()
    control = Reconciliations(ledger, ledger, clock)
    asked = [control.start(Spec(), ADA), control.start(Spec(dry_run=True), ADA), control.start(Spec(), "bob")]
    clock.advance(A_MINUTE)
    asked.append(control.start(Spec(), ADA))
    assert len({each.id for each in asked}) == 4
    assert [each.id for each in asked][-1] == max(each.id for each in asked)


def test_an_error_of_the_start_is_raised() -> None:
    ledger = Throttling()
    with pytest.raises(Throttled):
        Reconciliations(ledger, ledger, FakeClock()).start(Spec(), ADA)


# Looking


def test_a_reconciliation_is_found_by_its_id(control: Reconciliations) -> None:
    asked = control.start(Spec(), ADA)
    assert control.find(asked.id) == asked


def test_an_unknown_id_is_not_found(control: Reconciliations) -> None:
    refused = control.find(RECONCILIATION)
    assert isinstance(refused, Refused)
    assert refused.kind is Refusal.UNKNOWN_RECONCILIATION
    assert RECONCILIATION in refused.reason
    assert refused.details == {"reconciliationId": RECONCILIATION}


# Running


def test_a_requested_reconciliation_is_run(control: Reconciliations) -> None:
    asked = control.start(Spec(dry_run=True), ADA)
    assert control.to_run(asked.id) == asked


def test_an_unknown_reconciliation_is_not_run(control: Reconciliations) -> None:
    assert control.to_run(RECONCILIATION) is None


@pytest.mark.parametrize("status", list(ReconciliationStatus))
def test_an_unfinished_reconciliation_is_run_again_and_a_finished_one_is_not(
    control: Reconciliations, ledger: InMemoryReconciliations, status: ReconciliationStatus
) -> None:
    """A function that is started asynchronously is started again if it fails, and sometimes if it does not."""
    asked = asked_for(status=status)
    ledger.record_reconciliation(asked)
    over = status in (ReconciliationStatus.DONE, ReconciliationStatus.INCOMPLETE)
    assert asked.over is over
    assert control.to_run(asked.id) == (None if over else asked)


@pytest.mark.parametrize("name", [SETTLING, SURVEY])
def test_scheduled_reconciliations_are_always_run(
    control: Reconciliations, ledger: InMemoryReconciliations, name: str
) -> None:
    ledger.record_reconciliation(asked_for(id=name, status=ReconciliationStatus.DONE))
    asked = control.to_run(name)
    assert asked == Reconciliation(name, BY_ITSELF, SCHEDULES[name], ReconciliationStatus.PENDING, NOON, NOON)


def test_scheduled_reconciliations_settle_operations_and_repair_nothing() -> None:
    assert SCHEDULES.keys() == {SETTLING, SURVEY}
    assert not SCHEDULES[SETTLING].survey
    assert SCHEDULES[SURVEY].survey
    assert not SCHEDULES[SURVEY].repair
    assert not any(spec.dry_run or spec.detect_drift for spec in SCHEDULES.values())
