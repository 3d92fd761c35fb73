"""Whether the control plane itself is well: every check, from the best verdict to the worst."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from orchestrator.pool.records import Member, MemberState, Pool, TierOfPool
from orchestrator.reconciling.health import EMPTY_TOO_LONG, SETTLING_EVERY, SURVEY_EVERY, Check, Concurrency, Verdict
from orchestrator.reconciling.reconciler import STUCK_AFTER
from orchestrator.reconciling.records import SETTLING, SURVEY, Coverage, Kind, Reconciliation, ReconciliationStatus
from orchestrator.tenants.listings import VersionsInUse
from orchestrator.tenants.messages import Messages
from orchestrator.tenants.records import Operation, Status
from tests.fakes import NEXT_VERSION, NOON, a_run, an_audit
from tests.unit.reconciling.world import LONG_AGO, FleetWithStacks, asked_for, tenant
from tests.unit.rollouts.world import ROLLOUT, a_rollout, a_stage

A_SECOND = timedelta(seconds=1)
QUEUES = {"events": "https://sqs/events", "schedules": "https://sqs/schedules"}


@pytest.fixture
def world() -> FleetWithStacks:
    world = FleetWithStacks()
    world.settings.dead_letter_queues = dict(QUEUES)
    return world


def checks(world: FleetWithStacks) -> dict[str, Check]:
    """By name; of the dead letters the last."""
    return {check.name: check for check in world.health.examine()}


def ran(world: FleetWithStacks, name: str, **more: Any) -> Reconciliation:
    now = world.clock.now()
    done = asked_for(id=name, status=ReconciliationStatus.DONE, started_at=now, updated_at=now, **more)
    world.reconciliation_table.record_reconciliation(done)
    return done


def test_a_control_plane_that_is_well_is_told_so(world: FleetWithStacks) -> None:
    world.add("acme")
    ran(world, SETTLING)
    ran(world, SURVEY, coverage=Coverage(all_stacks=7))
    assert world.health.examine() == [
        Check("operations", Verdict.OK, "none is past its deadline"),
        Check("rollouts", Verdict.OK, "none has lost its execution"),
        Check("tenants", Verdict.OK, "none has failed"),
        Check("reconciler", Verdict.OK, "ran 0 s ago"),
        Check("survey", Verdict.OK, "ran 0 s ago"),
        Check("dead letters", Verdict.OK, "events: none"),
        Check("dead letters", Verdict.OK, "schedules: none"),
        Check("tenant limit", Verdict.OK, "1 of at most 1900 tenants (berth:maxTenants)"),
        Check("stacks", Verdict.OK, "7 of at most 2000 stacks in this account and region"),
        Check("functions", Verdict.OK, "12 ran at once in the last day, of at most 1000 in this account"),
    ]


def test_every_problem_names_a_remedy(world: FleetWithStacks) -> None:
    world.begin(a_run(tenant=tenant("stuck")))
    world.clock.advance(STUCK_AFTER + SURVEY_EVERY * 3 + A_SECOND)
    world.table.plant_audit(an_audit(Status.FAILURE, tenant=tenant("failed")))
    world.queues.held[QUEUES["events"]] = Messages(1, 0, 0)
    ran(world, SURVEY, coverage=Coverage(all_stacks=2_000))
    found = [check for check in world.health.examine() if check.verdict is not Verdict.OK]
    names = {"operations", "tenants", "reconciler", "dead letters", "stacks"}
    assert {check.name for check in found} == names
    assert all(check.advice for check in found)


# Operations


def test_operations_are_well_until_they_are_past_their_deadline(world: FleetWithStacks) -> None:
    world.begin(a_run())
    world.clock.advance(STUCK_AFTER)
    assert checks(world)["operations"].verdict is Verdict.OK
    world.clock.advance(A_SECOND)
    stuck = checks(world)["operations"]
    assert stuck.verdict is Verdict.PROBLEM
    assert stuck.detail == "1 past their deadline: acme"


@pytest.mark.parametrize(("count", "more"), [(5, ""), (6, ", ...")])
def test_only_a_few_tenants_are_named_and_all_are_counted(world: FleetWithStacks, count: int, more: str) -> None:
    for number in range(count):
        world.begin(a_run(tenant=tenant(f"t{number}")))
    world.clock.advance(STUCK_AFTER + A_SECOND)
    assert checks(world)["operations"].detail == f"{count} past their deadline: t0, t1, t2, t3, t4{more}"


def test_a_tenant_with_several_is_named_once(world: FleetWithStacks) -> None:
    for operation in (Operation.CREATE, Operation.UPDATE, Operation.DELETE):
        world.table.plant_audit(an_audit(Status.STARTED, operation, at=LONG_AGO))
    assert checks(world)["operations"].detail == "3 past their deadline: acme"


# Rollouts


def test_a_rollout_whose_execution_died_is_a_problem_at_once(world: FleetWithStacks) -> None:
    assert world.rollout_table.register(a_rollout(), [a_stage()], revision=0)
    found = checks(world)["rollouts"]
    assert found.verdict is Verdict.PROBLEM
    assert found.detail == f"1 without a running execution: {ROLLOUT}"
    assert f"berth rollout resume {ROLLOUT}" in found.advice
    world.rollout_executions.running.add(str(a_rollout().execution))
    assert checks(world)["rollouts"].verdict is Verdict.OK


# Tenants


def test_tenants_that_failed_are_counted_by_state_at_whatever_version(world: FleetWithStacks) -> None:
    world.add("ready")
    for name in ("one", "two"):
        world.table.plant_audit(an_audit(Status.FAILURE, tenant=tenant(name)))
    for name, version in (("old", "0.1.0"), ("new", NEXT_VERSION)):
        who = world.add(name, version=version)
        world.table.plant_audit(an_audit(Status.FAILURE, Operation.UPDATE, tenant=who, version="0.3.0"))
    failed = checks(world)["tenants"]
    assert failed.verdict is Verdict.WARNING
    assert failed.detail == "2 FAILED, 2 UPDATE_FAILED"
    assert "berth tenants --state" in failed.advice


def test_the_fleet_is_counted_once(world: FleetWithStacks) -> None:
    counted = []
    count = world.table.versions_in_use

    def versions_in_use() -> VersionsInUse:
        counted.append(1)
        return count()

    world.table.versions_in_use = versions_in_use  # type: ignore[method-assign]
    world.health.examine()
    assert len(counted) == 1


# Schedules


@pytest.mark.parametrize(
    ("name", "check", "every"), [(SETTLING, "reconciler", SETTLING_EVERY), (SURVEY, "survey", SURVEY_EVERY)]
)
def test_a_scheduled_run_that_is_missing_is_reported(
    world: FleetWithStacks, name: str, check: str, every: timedelta
) -> None:
    assert checks(world)[check].verdict is Verdict.UNKNOWN
    ran(world, name)
    world.clock.advance(every * 3)
    assert checks(world)[check].verdict is Verdict.OK
    world.clock.advance(A_SECOND)
    assert checks(world)[check].verdict is Verdict.PROBLEM


def test_unrepaired_findings_are_reported(world: FleetWithStacks) -> None:
    ran(world, SURVEY, counts={Kind.ORPHAN_STACK: 2, Kind.DRIFTED: 1}, repaired=1)
    found = checks(world)["survey"]
    assert found.verdict is Verdict.WARNING
    assert "2 orphan-stack, 1 stack-drifted" in found.detail


def test_repaired_findings_are_not_a_problem(world: FleetWithStacks) -> None:
    ran(world, SETTLING, counts={Kind.UNFINISHED: 2}, repaired=2)
    assert checks(world)["reconciler"].verdict is Verdict.OK


def test_one_that_came_to_no_end_is_told_with_the_reason(world: FleetWithStacks) -> None:
    done = ran(world, SURVEY)
    world.reconciliation_table.recorded[SURVEY] = asked_for(
        id=SURVEY,
        status=ReconciliationStatus.INCOMPLETE,
        reason="There was not enough time.",
        updated_at=done.updated_at,
    )
    found = checks(world)["survey"]
    assert found.verdict is Verdict.WARNING
    assert found.advice == "There was not enough time."


@pytest.mark.parametrize(
    ("age", "found"),
    [
        (timedelta(seconds=59), "ran 59 s ago"),
        (timedelta(seconds=60), "ran 1 min ago"),
        (timedelta(minutes=119), "ran 119 min ago"),
        (timedelta(hours=2), "ran 2 h ago"),
        (timedelta(hours=17), "ran 17 h ago"),
    ],
)
def test_how_long_ago_is_told_in_words_that_fit(world: FleetWithStacks, age: timedelta, found: str) -> None:
    ran(world, SURVEY)
    world.clock.advance(age)
    assert checks(world)["survey"].detail == found


def test_how_often_it_runs_is_told_before_it_has(world: FleetWithStacks) -> None:
    assert checks(world)["reconciler"].advice == "It runs every 5 min."
    assert checks(world)["survey"].advice == "It runs every 6 h."


# Dead letters


def test_dead_letters_are_a_problem(world: FleetWithStacks) -> None:
    world.queues.held[QUEUES["schedules"]] = Messages(2, 1, 0)
    found = checks(world)["dead letters"]
    assert (found.verdict, found.detail) == (Verdict.PROBLEM, "schedules: 3 undelivered")
    assert QUEUES["schedules"] in found.advice


def test_a_queue_that_is_gone_is_a_problem(world: FleetWithStacks) -> None:
    world.queues.gone.add(QUEUES["schedules"])
    found = checks(world)["dead letters"]
    assert (found.verdict, found.detail) == (Verdict.PROBLEM, "schedules: the queue does not exist")


# How many tenants there may be


@pytest.mark.parametrize(
    ("limit", "verdict"), [(11, Verdict.OK), (10, Verdict.WARNING), (9, Verdict.WARNING), (8, Verdict.PROBLEM)]
)
def test_tenants_are_few_enough_or_not(world: FleetWithStacks, limit: int, verdict: Verdict) -> None:
    for number in range(8):
        world.add(f"tenant-{number}")
    world.settings.max_tenants = limit
    found = checks(world)["tenant limit"]
    assert (found.verdict, found.detail) == (verdict, f"8 of at most {limit} tenants (berth:maxTenants)")
    assert ("berth:maxTenants" in found.advice) is (verdict is not Verdict.OK)


def test_a_limit_that_the_account_does_not_allow_is_told_before_it_is_reached(world: FleetWithStacks) -> None:
    world.settings.max_tenants = world.max_stacks = 500
    found = checks(world)["tenant limit"]
    assert found.verdict is Verdict.WARNING
    assert found.advice.startswith("The account's quota is 500 stacks. Set berth:maxTenants below that")
    world.max_stacks = None
    assert checks(world)["tenant limit"].verdict is Verdict.OK


# Stacks


@pytest.mark.parametrize(
    ("used", "limit", "verdict"),
    [
        (0, 100, Verdict.OK),
        (79, 100, Verdict.OK),
        (80, 100, Verdict.WARNING),
        (94, 100, Verdict.WARNING),
        (95, 100, Verdict.PROBLEM),
        (101, 100, Verdict.PROBLEM),
        (0, 0, Verdict.PROBLEM),
    ],
)
def test_stacks_are_few_enough_or_not(world: FleetWithStacks, used: int, limit: int, verdict: Verdict) -> None:
    world.max_stacks = limit
    ran(world, SURVEY, coverage=Coverage(all_stacks=used))
    found = checks(world)["stacks"]
    assert found.verdict is verdict
    assert bool(found.advice) is (verdict is not Verdict.OK)
    assert found.detail.startswith(f"{used} of at most {limit} ")


def test_numbers_that_were_not_counted_are_unknown(world: FleetWithStacks) -> None:
    assert checks(world)["stacks"] == Check("stacks", Verdict.UNKNOWN, "the stacks have not been counted yet")
    ran(world, SURVEY)
    assert checks(world)["stacks"] == Check("stacks", Verdict.UNKNOWN, "the stacks have not been counted yet")
    world.max_stacks = None
    assert checks(world)["stacks"] == Check("stacks", Verdict.UNKNOWN, "AWS does not report the quota")


# Functions


@pytest.mark.parametrize(
    ("used", "limit", "verdict"),
    [
        (0, 1_000, Verdict.OK),
        (799, 1_000, Verdict.OK),
        (800, 1_000, Verdict.WARNING),
        (950, 1_000, Verdict.PROBLEM),
        (0, 100, Verdict.OK),
        (0, 99, Verdict.WARNING),
        (10, 10, Verdict.PROBLEM),
    ],
)
def test_the_account_may_run_enough_functions_at_once_or_not(
    world: FleetWithStacks, used: int, limit: int, verdict: Verdict
) -> None:
    world.function_concurrency = Concurrency(limit, used)
    found = checks(world)["functions"]
    assert found.verdict is verdict
    assert ("Service Quotas" in found.advice) is (verdict is not Verdict.OK)
    assert f"{used} ran at once" in found.detail


def test_how_many_functions_may_run_is_unknown_where_aws_does_not_say(world: FleetWithStacks) -> None:
    world.function_concurrency = None
    assert checks(world)["functions"].verdict is Verdict.UNKNOWN


# Stacks that are kept ready


def pool_checks(world: FleetWithStacks) -> list[Check]:
    return [check for check in world.health.examine() if check.name == "warm pool"]


def keep(world: FleetWithStacks, *members: Member, **tiers: TierOfPool) -> None:
    listed = {f"berth-warm-{number}": member for number, member in enumerate(members)}
    world.warm_stacks.store(Pool(listed, tiers, world.warm_stacks.pool().revision))


def test_without_a_pool_nothing_is_said_about_one(world: FleetWithStacks) -> None:
    assert pool_checks(world) == []


def test_each_tier_of_the_pool_says_how_it_stands(world: FleetWithStacks) -> None:
    world.settings.warm_pool = {"standard": 2, "gold": 3}
    ready = Member(NOON, "0.1.0", state=MemberState.READY)
    others = [Member(NOON, tier="gold", state=state) for state in MemberState if state is not MemberState.READY]
    keep(world, ready, ready, *others, gold=TierOfPool(empty_since=NOON))
    states = "1 being created, 1 failed, 1 being deleted, 1 taken and learning their tenants"
    assert pool_checks(world) == [
        Check("warm pool", Verdict.OK, f"gold: 0 of 3 ready, {states}"),
        Check("warm pool", Verdict.OK, "standard: 2 of 2 ready"),
    ]


def test_a_pool_that_was_not_filled_yet_is_not_known(world: FleetWithStacks) -> None:
    world.settings.warm_pool = {"standard": 2}
    (check,) = pool_checks(world)
    assert (check.verdict, check.detail) == (Verdict.UNKNOWN, "standard: 0 of 2 ready, it was not filled yet")


def test_a_pool_that_stays_empty_is_a_warning(world: FleetWithStacks) -> None:
    world.settings.warm_pool = {"standard": 2}
    keep(world, Member(NOON), standard=TierOfPool(empty_since=world.clock.now()))
    world.clock.advance(EMPTY_TOO_LONG - A_SECOND)
    assert pool_checks(world)[0].verdict is Verdict.OK
    world.clock.advance(A_SECOND)
    (check,) = pool_checks(world)
    assert check.verdict is Verdict.WARNING
    assert check.detail == "standard: 0 of 2 ready, 1 being created, empty for 15 min"
    assert "Raise berth:warmPool" in check.advice


def test_a_pool_whose_stacks_cannot_be_created_is_a_warning_with_the_reason(world: FleetWithStacks) -> None:
    world.settings.warm_pool = {"standard": 2}
    ready, failed = Member(NOON, "0.1.0", state=MemberState.READY), Member(NOON, state=MemberState.FAILED)
    keep(world, ready, failed, standard=TierOfPool(problem="Queue quota exceeded.", failed_at=NOON))
    (check,) = pool_checks(world)
    assert check.verdict is Verdict.WARNING
    assert check.detail == "standard: 1 of 2 ready, 1 failed: Queue quota exceeded."
    assert "berth tenants --prefix berth-warm-" in check.advice


def test_stacks_left_by_a_pool_that_was_switched_off_are_shown(world: FleetWithStacks) -> None:
    keep(world, Member(NOON, state=MemberState.LEAVING), standard=TierOfPool())
    assert pool_checks(world) == [Check("warm pool", Verdict.OK, "standard: 0 ready, none wanted, 1 being deleted")]


def test_stacks_that_are_kept_ready_count_for_the_limit_and_are_no_tenants(world: FleetWithStacks) -> None:
    world.add("acme")
    world.add("berth-warm-0123456789abcdef")
    world.table.plant_audit(an_audit(Status.FAILURE, tenant=tenant("berth-warm-failed")))
    found = checks(world)
    assert found["tenants"].verdict is Verdict.OK, "The check of the pool shows stacks that failed."
    assert found["tenant limit"].detail == (
        "3 of at most 1900 tenants (berth:maxTenants), 2 of them stacks that are kept ready"
    )
