"""The counts of tenants: of now for a small fleet, and kept for a large one."""

from __future__ import annotations

from datetime import timedelta

from orchestrator.reconciling.fleet_counts import SMALL_FLEET, FleetCounter, FleetCounts
from orchestrator.reconciling.records import SETTLING, Reconciliation, ReconciliationStatus, Spec
from orchestrator.tenants.limits import TenantCount
from orchestrator.tenants.listings import VersionsInUse
from orchestrator.tenants.records import TenantState
from tests.fakes import NOON, VERSION, FakeClock, InMemoryTable, InMemoryTenantCounts, World
from tests.fakes.reconciling import InMemoryReconciliations

MINUTE = timedelta(minutes=1)


class CountedFleet(InMemoryTable):
    """A fleet of any size, which counts how often it is counted."""

    def __init__(self, tenants: int) -> None:
        super().__init__()
        self.tenants, self.listed = tenants, 0

    def versions_in_use(self) -> VersionsInUse:
        self.listed += 1
        return VersionsInUse({VERSION: {TenantState.READY: self.tenants}})


class Counted:
    def __init__(self, tenants: int) -> None:
        self.fleet, self.ledger, self.clock = CountedFleet(tenants), InMemoryReconciliations(), FakeClock(NOON)
        self.tenant_counts = InMemoryTenantCounts()
        self.counter = FleetCounter(self.fleet, self.ledger, self.clock, self.tenant_counts)


def test_a_small_fleet_is_counted_for_each_request() -> None:
    counted = Counted(SMALL_FLEET)
    counted.counter.renew()
    counted.fleet.tenants -= 1
    assert counted.counter.current().total == SMALL_FLEET - 1


def test_a_large_fleet_is_not_counted_for_a_request() -> None:
    counted = Counted(SMALL_FLEET + 1)
    counted.counter.renew()
    counted.fleet.tenants += 1
    counted.clock.advance(MINUTE)
    assert counted.counter.current() == FleetCounts(NOON, {VERSION: {TenantState.READY: SMALL_FLEET + 1}})
    assert counted.fleet.listed == 1


def test_a_fleet_that_was_never_counted_is_counted() -> None:
    counted = Counted(50_000)
    assert counted.counter.current().total == 50_000
    assert counted.ledger.counts is None


def test_counts_are_renewed_when_they_are_old() -> None:
    counted = Counted(5_000)
    for _ in range(3):
        counted.counter.renew()
        counted.clock.advance(MINUTE)
    assert counted.fleet.listed == 1
    counted.clock.advance(2 * MINUTE)
    counted.counter.renew()
    assert counted.fleet.listed == 2


def test_a_larger_fleet_is_counted_less_often() -> None:
    counted = Counted(100_000)
    for _ in range(12):
        counted.counter.renew()
        counted.clock.advance(5 * MINUTE)
    assert counted.fleet.listed == 2


def test_counts_that_nobody_renews_are_not_trusted() -> None:
    counted = Counted(5_000)
    counted.counter.renew()
    counted.fleet.tenants = 6_000
    counted.clock.advance(20 * MINUTE)
    assert counted.counter.current().total == 6_000


def test_the_scheduled_reconciliation_renews_the_counts() -> None:
    world = World()
    scheduled = Reconciliation(SETTLING, "schedule", Spec(), ReconciliationStatus.RUNNING, NOON, NOON)
    world.reconciler().run(scheduled)
    assert world.reconciliation_table.fleet_counts() == FleetCounts(world.clock.now(), {})


def test_renewed_counts_limit_creates_too() -> None:
    counted = Counted(5_000)
    counted.tenant_counts.start(3)
    counted.counter.renew()
    assert counted.tenant_counts.count == TenantCount(0, 5_000, NOON)
