"""No tenant is missed by a plan, even if the fleet changes while it is being listed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from orchestrator.common.tenant_ids import TenantId
from orchestrator.rollouts.advancing import Succeeded
from orchestrator.rollouts.finding import TenantFinder
from orchestrator.rollouts.records import Share, Skip
from orchestrator.tenants.admission import Refusal, Refused
from orchestrator.tenants.fleet import LISTED_STATES
from orchestrator.tenants.listings import TenantInBrief
from orchestrator.tenants.records import Audit, Operation, Request, TenantState
from orchestrator.tenants.turns import Place
from tests.fakes import NEXT_VERSION, QUEUE_TABOO, VERSION, InMemoryTable, a_run
from tests.unit.rollouts.world import ADA, Fleet, a_spec, a_stage_spec, tenant, tenants

T1, T2 = tenants(2)


@dataclass
class ChangingFleet:
    """An index with an event after each listed state."""

    table: InMemoryTable
    happens: Callable[[TenantState, int], object]
    """Called with the state, and the number of times that it was listed."""
    listed: dict[TenantState, int] = field(default_factory=dict)

    def tenants_in_brief(self, state: TenantState) -> Sequence[TenantInBrief]:
        page = list(self.table.tenants_in_brief(state))
        self.listed[state] = self.listed.get(state, 0) + 1
        self.happens(state, self.listed[state])
        return page

    def __getattr__(self, name: str) -> Any:
        return getattr(self.table, name)


def changing(world: Fleet, happens: Callable[[TenantState, int], object]) -> ChangingFleet:
    fleet = ChangingFleet(world.table, happens)
    world.index = fleet
    return fleet


def being_updated(world: Fleet, who: TenantId, version: str = VERSION) -> Callable[[], None]:
    """Start another update of the tenant at its version. The returned function ends the update."""
    run = a_run(tenant=who, operation=Operation.UPDATE, version=version, request=Request(), number=7)
    world.table.begin(run, at=world.clock.now())

    def end() -> None:
        if world.table.lock(who):
            world.publish(run)

    return end


def test_a_tenant_that_becomes_ready_after_the_ready_tenants_were_listed_is_planned() -> None:
    world = Fleet(3)
    end = being_updated(world, T1)
    changing(world, lambda state, _: state is TenantState.READY and end())

    rollout = world.start()

    assert sorted(world.planned_tenants(rollout)) == ["t001", "t002", "t003"]
    assert world.drive(rollout) == Succeeded()
    assert world.at(VERSION) == []


def test_the_fleet_is_listed_once() -> None:
    world = Fleet(3)
    fleet = changing(world, lambda *_: None)

    world.start()

    assert fleet.listed == dict.fromkeys(LISTED_STATES, 1)


def test_a_tenant_whose_state_changes_with_every_list_is_planned() -> None:
    """It is never in the state that is being listed, however often that happens."""
    world = Fleet(3)
    runs = (
        a_run(tenant=T1, operation=Operation.UPDATE, version=VERSION, request=Request(), number=number)
        for number in range(7, 1_000)
    )
    world.table.begin(run := next(runs), at=world.clock.now())

    class Elusive(ChangingFleet):
        def tenants_in_brief(self, state: TenantState) -> Sequence[TenantInBrief]:
            nonlocal run
            if state is TenantState.READY and self.table.lock(T1) is None:
                self.table.begin(run := next(runs), at=world.clock.now())
            if state is TenantState.UPDATING and self.table.lock(T1):
                world.publish(run)
            return super().tenants_in_brief(state)

    index = Elusive(world.table, lambda *_: None)
    world.index = index
    listed = TenantFinder(index, world.table, world.clock).list_once()

    rollout = world.start()

    assert sorted(each.value for each in listed) == ["t002", "t003"]
    assert sorted(world.planned_tenants(rollout)) == ["t001", "t002", "t003"]


def test_a_tenant_that_the_index_lists_nowhere_for_a_while_is_planned() -> None:
    """The index loses a tenant from one state before it has the tenant in the other, and may take seconds for that."""
    world = Fleet(3)
    end = being_updated(world, T1)
    world.clock.advance(timedelta(minutes=4))
    index = world.table.as_of_now()
    index.tenants.pop(T1)
    world.index = index
    end()

    assert sorted(world.planned_tenants(world.start())) == ["t001", "t002", "t003"]


def test_a_tenant_whose_create_has_just_been_put_into_the_line_is_planned() -> None:
    """It waits for its turn at an earlier release, and the index does not show it yet."""
    world = Fleet(2)
    world.index = world.table.as_of_now()
    at = world.clock.now()
    world.table.wait_for_turn(a_run(tenant=tenant("another")), Place(1, at, at), at=at)

    assert sorted(world.planned_tenants(world.start())) == ["another", "t001", "t002"]


def test_only_tenants_that_the_list_may_have_missed_are_looked_up() -> None:
    world = Fleet(4, table=CountingTable())
    assert isinstance(world.table, CountingTable)
    being_updated(world, T1)()
    deleted = a_run(tenant=T2, operation=Operation.DELETE, request=Request(), number=8)
    world.table.begin(deleted, at=world.clock.now())
    world.table.remove(deleted, at=world.clock.now())
    world.table.looked_up.clear()

    assert sorted(world.planned_tenants(world.start())) == ["t001", "t003", "t004"]
    assert world.table.looked_up == []


def test_a_tenant_that_is_pinned_after_it_was_listed_is_skipped_at_its_turn() -> None:
    world = Fleet(2)

    def pin(state: TenantState, _: int) -> None:
        if state is TenantState.READY:
            world.change(T1, pinned_version=VERSION)

    changing(world, pin)

    rollout = world.start()

    assert world.drive(rollout) == Succeeded()
    assert world.at(VERSION) == ["t001"]
    assert world.outcome(rollout, "t001").skip is Skip.PINNED


def test_a_fleet_to_which_tenants_are_added_all_the_time_is_planned_for() -> None:
    world = Fleet(2)
    number = iter(range(1_000))

    def create(*_: object) -> None:
        who = tenant(f"another-{next(number)}")
        world.table.begin(a_run(tenant=who), at=world.clock.now())

    changing(world, create)

    assert {"t001", "t002"} < set(world.planned_tenants(world.start()))


# Undo and retry


def test_undo_does_not_skip_a_tenant_that_the_index_missed_as_deleted() -> None:
    world = Fleet(2)
    rollout = world.start()
    world.drive(rollout)
    end = being_updated(world, T1, NEXT_VERSION)
    changing(world, lambda state, _: state is TenantState.READY and end())

    undoing = world.start(a_spec(version=None, undo=rollout))

    assert sorted(world.planned_tenants(undoing)) == ["t001", "t002"]
    assert world.drive(undoing) == Succeeded()
    assert world.at(NEXT_VERSION) == []


def test_undo_does_not_skip_a_tenant_with_a_stale_index_entry_as_current() -> None:
    world = Fleet(2)
    before = world.table.as_of_now()
    rollout = world.start()
    world.drive(rollout)
    world.index = before

    undoing = world.start(a_spec(version=None, undo=rollout))

    assert sorted(world.planned_tenants(undoing)) == ["t001", "t002"]


def test_retry_does_not_skip_a_tenant_that_the_index_missed_as_deleted() -> None:
    world = Fleet(2)
    rollout = world.start(a_spec(a_stage_spec(tolerated=Share(2))))
    world.drive(rollout, failing=["t001"])
    run = a_run(tenant=T1, operation=Operation.UPDATE, version=VERSION, request=Request(), number=7)

    def another_update_fails(state: TenantState, _: int) -> None:
        """Move the tenant from UPDATE_FAILED, which is listed later, to UPDATING, which was listed before."""
        if state is TenantState.UPDATING:
            world.table.begin(run, at=world.clock.now())
        if state is TenantState.DELETING and world.table.lock(T1):
            world.table.fail(run, QUEUE_TABOO, world.clock.now())

    changing(world, another_update_fails)

    retrying = world.rollouts.retry(rollout, ADA)

    assert world.planned_tenants(retrying.rollout.id) == ["t001"]  # type: ignore[union-attr]


class CountingTable(InMemoryTable):
    def __init__(self) -> None:
        super().__init__()
        self.looked_up: list[TenantId] = []

    def audits(self, tenant: TenantId) -> Sequence[Audit]:
        self.looked_up.append(tenant)
        return super().audits(tenant)


def test_an_undo_for_some_labels_reads_no_other_tenants() -> None:
    world = Fleet(2, table=CountingTable())
    assert isinstance(world.table, CountingTable)
    world.change(T1, labels={"tier": "free"})
    rollout = world.start()
    world.drive(rollout)
    world.table.looked_up.clear()

    undoing = world.start(a_spec(version=None, undo=rollout, labels={"tier": "free"}))

    assert world.planned_tenants(undoing) == ["t001"]
    assert world.table.looked_up == []


WARM = tenant("berth-warm-0123456789abcdef")


def test_stacks_that_are_kept_ready_are_left_to_the_pool() -> None:
    world = Fleet(2)
    world.add(WARM)
    planned = world.rollout_table.rollout(world.start())
    assert planned is not None
    assert (planned.total, planned.skipped) == (2, {})


def test_a_stack_that_is_kept_ready_is_no_tenant_if_it_is_named() -> None:
    world = Fleet(1)
    world.add(WARM)
    refused = world.rollouts.start(a_spec(tenants=(T1, WARM)), ADA)
    assert isinstance(refused, Refused)
    assert refused.kind is Refusal.UNKNOWN_SELECTION
