"""How many tenants there may be, and how fast a caller may add to them: one rule, whoever starts the creates."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.admission import Refusal, Refused
from orchestrator.tenants.decisions import FleetFull, TooManyCreates
from orchestrator.tenants.limits import (
    COUNT_MAX_AGE,
    KEPT_COUNT_MAX_AGE,
    WINDOW,
    CreateRate,
    KeptTenantCount,
    Limits,
    Unlimited,
)
from orchestrator.tenants.order_results import Accepted
from orchestrator.tenants.provisioning import Provisioning
from orchestrator.tenants.records import START_GRACE_PERIOD, Operation, Request, Status
from tests.fakes import (
    ACME,
    VERSION,
    FakeClock,
    FakeSettings,
    InMemoryTenantCounts,
    World,
    an_audit,
)

PLATFORM = "arn:aws:sts::123456789012:assumed-role/platform"
PER_MINUTE = 60
A_SECOND = timedelta(seconds=1)


def tenant(number: int) -> TenantId:
    return TenantId.parse(f"made-up-{number}")


class Limited(World):
    """getQueue, and a fleet whose creates begin as soon as they are started. The fleet is counted for each create."""

    def __init__(self, *, per_minute: int = PER_MINUTE, max_tenants: int = 1_900) -> None:
        super().__init__(published=[VERSION], settings=FakeSettings(max_tenants=max_tenants))
        rate = CreateRate(self.create_counts, self.clock, per_minute)
        self.counted_creates = Limits(self.table.count_tenants, max_tenants, rate)

    def ask(self, who: TenantId, by: str = PLATFORM) -> object:
        answer = self.get_queue(who, by=by)
        if isinstance(answer, Provisioning) and not self.table.audits(who):
            self.table.plant_audit(an_audit(Status.STARTED, tenant=who, at=self.clock.now()))
        return answer


# The rate


def test_a_thousand_tenants_from_one_caller_start_the_maximum_number_of_creates() -> None:
    world = Limited()
    answers = [world.ask(tenant(number)) for number in range(1_000)]
    assert len(world.executions.inputs) == PER_MINUTE
    assert set(answers[PER_MINUTE:]) == {TooManyCreates(PER_MINUTE, 60)}


def test_a_thousand_session_names_are_one_caller_and_one_row() -> None:
    world = Limited()
    for number in range(1_000):
        world.ask(tenant(number), by=f"{PLATFORM}/session-{number}")
    assert len(world.executions.inputs) == PER_MINUTE
    assert len(world.create_counts.windows) == 1


def test_callers_are_limited_independently() -> None:
    world = Limited(per_minute=1)
    assert isinstance(world.ask(tenant(1)), Provisioning)
    assert isinstance(world.ask(tenant(2)), TooManyCreates)
    assert isinstance(world.ask(tenant(2), by="arn:aws:iam::123456789012:user/ada"), Provisioning)


def test_a_caller_that_retries_after_the_given_time_may_start_a_create() -> None:
    world = Limited(per_minute=1)
    world.clock.advance(timedelta(seconds=17, milliseconds=300))
    world.ask(tenant(1))
    refused = world.ask(tenant(2))
    assert refused == TooManyCreates(1, 43)
    world.clock.advance(refused.retry_after_seconds * A_SECOND)
    assert isinstance(world.ask(tenant(2)), Provisioning)


def test_many_callers_of_one_tenant_start_one_create() -> None:
    world = Limited(per_minute=2)
    assert {world.get_queue(ACME, by=PLATFORM) for _ in range(100)} == {world.get_queue(ACME, by=PLATFORM)}
    assert isinstance(world.ask(tenant(1)), Provisioning)
    assert isinstance(world.ask(tenant(2)), TooManyCreates)


def test_the_limit_does_not_apply_to_tenants_that_need_no_create() -> None:
    world = Limited(per_minute=1)
    world.ask(tenant(1))
    assert isinstance(world.ask(tenant(2)), TooManyCreates)
    assert isinstance(world.ask(tenant(1)), Provisioning)


def test_a_clock_that_is_ahead_does_not_give_a_caller_two_windows() -> None:
    world = Limited(per_minute=1)
    world.clock.advance(WINDOW)
    assert isinstance(world.ask(tenant(1)), Provisioning)
    world.clock.advance(-A_SECOND)
    assert world.ask(tenant(2)) == TooManyCreates(1, 60)


@settings(max_examples=50)
@given(
    st.lists(
        st.tuples(st.integers(0, 400), st.sampled_from([PLATFORM, f"{PLATFORM}/a", "another"]), st.integers(0, 30)),
        max_size=200,
    ),
    st.integers(1, 5),
)
def test_no_caller_exceeds_the_maximum_per_minute(asked: list[tuple[int, str, int]], per_minute: int) -> None:
    world = Limited(per_minute=per_minute)
    started: dict[tuple[str, object], set[str]] = {}
    for number, by, seconds in asked:
        world.clock.advance(seconds * A_SECOND)
        before = len(world.executions.inputs)
        world.ask(tenant(number), by=by)
        minute = world.clock.now().replace(second=0)
        caller = "another" if by == "another" else PLATFORM
        started.setdefault((caller, minute), set()).update(list(world.executions.inputs)[before:])
    assert all(len(executions) <= per_minute for executions in started.values())


# The cap


def test_at_the_maximum_no_caller_can_add_a_tenant() -> None:
    world = Limited(max_tenants=3)
    for number in range(100):
        world.ask(tenant(number), by=f"caller {number}")
    assert len(world.executions.inputs) == 3
    assert world.ask(tenant(99)) == FleetFull(3, 3)


def test_at_the_maximum_nothing_is_counted_for_the_caller() -> None:
    world = Limited(max_tenants=0)
    world.ask(tenant(1))
    assert not world.create_counts.windows


def test_at_the_maximum_a_create_that_was_started_and_has_not_begun_is_provisioning() -> None:
    world = Limited(max_tenants=1)
    started = world.get_queue(ACME, by=PLATFORM)
    world.ask(tenant(1), by="another")  # It begins first.
    world.clock.advance(timedelta(seconds=59))
    assert world.get_queue(ACME, by=PLATFORM) == started
    assert len(world.executions.inputs) == 2
    world.clock.advance(timedelta(minutes=2))
    assert world.get_queue(ACME, by=PLATFORM) == FleetFull(1, 1)


@pytest.mark.parametrize("world", [Limited(max_tenants=1), Limited(per_minute=0)], ids=["the cap", "the rate"])
def test_at_a_limit_an_accepted_create_of_an_operator_is_provisioning(world: Limited) -> None:
    world.lifecycle.create(ACME, Request(by="ada"))
    world.table.plant_audit(an_audit(Status.STARTED, tenant=tenant(1), at=world.clock.now()))
    (execution,) = world.executions.inputs
    assert world.get_queue(ACME, by=PLATFORM) == Provisioning(execution)
    world.clock.advance(START_GRACE_PERIOD)
    assert not isinstance(world.get_queue(ACME, by=PLATFORM), Provisioning)


def test_a_deleted_tenant_does_not_count() -> None:
    world = Limited(max_tenants=1)
    world.ask(tenant(1))
    world.table.plant_audit(an_audit(Status.SUCCESS, Operation.DELETE, tenant=tenant(1), version=None))
    assert isinstance(world.ask(tenant(2)), Provisioning)


@pytest.mark.parametrize(
    "there",
    [
        pytest.param(an_audit(Status.SUCCESS), id="its queue has vanished"),
        pytest.param(an_audit(Status.FAILURE, version="0.0.9"), id="its create failed at an earlier version"),
    ],
)
def test_an_existing_tenant_is_repaired_at_the_maximum_too(there: object) -> None:
    world = Limited(max_tenants=1)
    world.table.plant_audit(there)  # type: ignore[arg-type]
    assert isinstance(world.ask(ACME), Provisioning)


class Counting:
    """A fleet whose kept count all functions share, and which counts how often it is counted itself."""

    def __init__(self, tenants: int, max_tenants: int = 10) -> None:
        self.tenants, self.max_tenants, self.counts = tenants, max_tenants, 0
        self.kept, self.clock = InMemoryTenantCounts(), FakeClock()

    def counted(self) -> int:
        self.counts += 1
        return self.tenants

    def count(self, max_age: timedelta = COUNT_MAX_AGE) -> int:
        """The number of tenants for a create, in a function that has never counted."""
        return KeptTenantCount(self.counted, self.kept, self.clock, self.max_tenants, max_age)()


def test_below_the_maximum_the_tenants_are_counted_once() -> None:
    fleet = Counting(tenants=5, max_tenants=10)
    assert [fleet.count() for _ in range(5)] == [5, 6, 7, 8, 9]
    assert fleet.counts == 1


def test_a_fleet_that_seems_full_is_counted_at_most_once_per_minute_for_platforms() -> None:
    fleet = Counting(tenants=8, max_tenants=10)
    # Two creates were started, and their callers repeat their requests. No tenant is refused because of that.
    assert [fleet.count() for _ in range(6)] == [8, 9, 8, 8, 8, 8]
    assert fleet.counts == 1
    fleet.tenants = 10
    fleet.clock.advance(COUNT_MAX_AGE)
    assert [fleet.count() for _ in range(3)] == [10, 10, 10]
    assert fleet.counts == 2


def test_operators_are_refused_only_after_a_count() -> None:
    fleet = Counting(tenants=10, max_tenants=10)
    assert fleet.count(timedelta(0)) == 10
    fleet.tenants = 9  # The operator has made room.
    assert fleet.count(timedelta(0)) == 9
    assert fleet.counts == 2


def test_creates_that_start_during_a_count_still_count_as_started() -> None:
    fleet = Counting(tenants=5)
    seen = fleet.kept.start(1)
    fleet.kept.start(3)
    fleet.kept.keep(6, fleet.clock.now(), seen=seen)
    assert fleet.count() == 6 + 3


def test_a_count_that_is_not_renewed_is_not_trusted() -> None:
    fleet = Counting(tenants=5)
    fleet.count()
    fleet.tenants = 7
    fleet.clock.advance(KEPT_COUNT_MAX_AGE - A_SECOND)
    assert fleet.count() == 6
    fleet.clock.advance(A_SECOND)
    assert fleet.count() == 7


def test_repairs_are_not_limited() -> None:
    assert Unlimited().check(ACME, is_new=True, caller="anyone") is None


# Those who order creates: operators, and other teams' stacks


def ordered(world: Limited, who: TenantId, *, by_stack: bool = False) -> object:
    """``by_stack`` if another team's stack asks, and not an operator."""
    lifecycle = world.tenant_queue_lifecycle if by_stack else world.lifecycle
    return lifecycle.create(who, Request(by="ada"))


def test_at_the_maximum_an_operator_is_refused_with_the_count_and_advice() -> None:
    world = Limited(max_tenants=1)
    world.ask(tenant(1))
    refused = ordered(world, tenant(2))
    assert isinstance(refused, Refused)
    assert refused.kind is Refusal.FLEET_FULL
    for text in ("made-up-2", "there are 1 tenants", "maximum is 1", "berth:maxTenants", "berth doctor"):
        assert text in refused.reason
    assert refused.details == {"tenants": 1, "maxTenants": 1}
    assert world.table.metadata(tenant(2)) is None
    assert len(world.executions.inputs) == 1


def test_the_create_of_a_deleted_tenant_adds_a_tenant() -> None:
    world = Limited(max_tenants=1)
    world.ask(tenant(1))
    world.table.plant_audit(an_audit(Status.SUCCESS, Operation.DELETE, tenant=tenant(2), version=None))
    refused = ordered(world, tenant(2))
    assert isinstance(refused, Refused)
    assert refused.kind is Refusal.FLEET_FULL


def test_a_tenant_whose_create_failed_is_created_again_at_the_maximum_too() -> None:
    world = Limited(max_tenants=1)
    world.table.plant_audit(an_audit(Status.FAILURE))
    assert isinstance(ordered(world, ACME), Accepted)


def test_operators_have_no_limit_per_minute() -> None:
    world = Limited(per_minute=1)
    assert all(isinstance(ordered(world, tenant(number)), Accepted) for number in range(10))
    assert not world.create_counts.windows


def test_other_teams_stacks_are_limited_per_minute_and_a_waiting_tenant_has_no_rows() -> None:
    world = Limited(per_minute=1)
    assert isinstance(ordered(world, tenant(1), by_stack=True), Accepted)
    refused = ordered(world, tenant(2), by_stack=True)
    assert isinstance(refused, Refused)
    assert refused.kind is Refusal.TOO_MANY_CREATES
    assert world.table.metadata(tenant(2)) is None
    world.clock.advance(WINDOW)
    assert isinstance(ordered(world, tenant(2), by_stack=True), Accepted)


def test_an_accepted_create_that_has_not_begun_is_accepted_again_at_the_maximum_too() -> None:
    world = Limited(max_tenants=1)
    first = ordered(world, tenant(1))
    assert isinstance(first, Accepted)
    world.table.plant_audit(an_audit(Status.STARTED, tenant=tenant(2)))
    assert ordered(world, tenant(1)) == first
