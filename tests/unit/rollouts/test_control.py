"""Operators' orders to rollouts, in every state."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from orchestrator.common.errors import Throttled, Unsettled
from orchestrator.common.times import ID_PATTERN
from orchestrator.rollouts.advancing import AwaitOperator, Bake, NotSucceeded, RunStage, Succeeded
from orchestrator.rollouts.control import NothingToDo, RolloutWithStages
from orchestrator.rollouts.gate import Admitted
from orchestrator.rollouts.pacing import Pace
from orchestrator.rollouts.records import (
    Item,
    Order,
    Repairs,
    Result,
    Rollout,
    RolloutStatus,
    Share,
    Skip,
    Skipped,
    Spec,
    Stage,
    StageStatus,
    TenantOutcome,
    Turn,
)
from orchestrator.tenants.admission import Refusal, Refused
from orchestrator.tenants.order_results import Unchanged
from orchestrator.tenants.records import TenantState
from tests.fakes import NEXT_VERSION, NOON, VERSION, execution_arn
from tests.unit.rollouts.world import (
    A_SECOND,
    ADA,
    BOB,
    LAST_VERSION,
    ROLLOUT,
    Fleet,
    a_rollout,
    a_spec,
    a_stage,
    a_stage_spec,
    tenant,
    tenants,
)

TEN_PERCENT = Share(10, percent=True)
EXECUTION = execution_arn("rollout")


def refused(response: object) -> Refusal:
    assert isinstance(response, Refused), response
    return response.kind


def underway(response: object) -> Rollout:
    assert isinstance(response, RolloutWithStages), response
    return response.rollout


def naming(*names: str, **more: Any) -> Spec:
    return a_spec(tenants=tuple(tenant(name) for name in names), **more)


# Starting


def test_a_rollout_is_planned_and_recorded_when_it_is_started() -> None:
    world = Fleet(30)
    world.change(tenant("t030"), pinned_version=VERSION)
    spec = a_spec(
        a_stage_spec(Share(1)),
        a_stage_spec(TEN_PERCENT, at_once=7, tolerated=Share(50, percent=True)),
        a_stage_spec(tolerated=Share(5, percent=True)),
    )

    response = world.rollouts.start(spec, ADA)

    rollout = underway(response)
    assert world.rollout_table.rollout(rollout.id) == rollout
    assert (rollout.status, rollout.by, rollout.spec) == (RolloutStatus.PENDING, ADA, spec)
    assert (rollout.planned, rollout.total) == ((1, 3, 25), 29)
    assert rollout.skipped == {Skip.PINNED: Skipped(1, ("t030",))}
    stages = world.rollout_table.stages(rollout.id)
    assert [stage.total for stage in stages] == [1, 3, 25]
    assert [stage.tolerated for stage in stages] == [0, 1, 1]
    assert [stage.number for stage in stages] == [1, 2, 3]
    assert stages[1].pace == Pace.initial(7)
    assert sorted(world.planned_tenants(rollout.id)) == [who.value for who in tenants(29)]
    assert world.rollout_executions.started == [execution_arn(f"rollout-{rollout.id}-1")]
    assert world.rollout_table.registry().active == {rollout.id}


def test_the_id_contains_the_time_and_is_valid_for_the_api() -> None:
    rollout = Fleet(1).start()

    assert rollout.startswith("20261116-120000-")
    assert re.fullmatch(ID_PATTERN, rollout)


def test_the_default_version_is_the_current_one() -> None:
    world = Fleet(1)

    rollout = world.start(a_spec(version=None))

    assert world.rollout(rollout).spec.version == NEXT_VERSION
    assert world.items(rollout)[0].version == NEXT_VERSION


def test_stages_without_tenants_are_not_planned() -> None:
    world = Fleet(2)

    rollout = world.start(a_spec(a_stage_spec(Share(1)), a_stage_spec(Share(1)), a_stage_spec(approval=True)))

    assert world.rollout(rollout).planned == (1, 1)
    assert [stage.number for stage in world.rollout_table.stages(rollout)] == [1, 2]


def test_the_whole_fleet_is_found_however_large_it_is() -> None:
    world = Fleet(0)
    for number in range(2_001):
        world.add(tenant(f"many-{number}"))
    world.add(tenant("failed"), version=None, queue=None)

    rollout = world.start()

    assert world.rollout(rollout).total == 2_001
    assert world.rollout(rollout).skipped == {Skip.NOT_PROVISIONED: Skipped(1, ("failed",))}


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (a_spec(version="9.9.9"), Refusal.UNKNOWN_RELEASE),
        (a_spec(a_stage_spec(Share(1), alarm="none"), a_stage_spec()), Refusal.UNKNOWN_ALARM),
        (a_spec(version="0.0.1"), Refusal.UNKNOWN_RELEASE),
        (a_spec(undo="20261116-120000-0000"), Refusal.UNKNOWN_ROLLOUT),
    ],
)
def test_a_spec_that_names_an_unknown_release_alarm_or_rollout_is_refused(spec: Spec, why: Refusal) -> None:
    world = Fleet(1)

    assert refused(world.rollouts.start(spec, ADA)) is why
    assert world.rollout_executions.started == []
    assert world.rollout_table.rollouts(limit=10) == []


def test_a_downgrade_is_refused_unless_it_is_allowed() -> None:
    world = Fleet(2, version=LAST_VERSION)

    assert refused(world.rollouts.start(a_spec(), ADA)) is Refusal.DOWNGRADE
    assert underway(world.rollouts.start(a_spec(allow_downgrade=True), ADA)).total == 2


def test_newer_tenants_are_skipped_if_there_are_others_to_move() -> None:
    world = Fleet(2)
    world.change(tenant("t001"), version=LAST_VERSION)

    assert underway(world.rollouts.start(a_spec(), ADA)).skipped == {Skip.NEWER: Skipped(1, ("t001",))}


def test_there_is_nothing_to_do_if_all_tenants_are_at_the_release() -> None:
    world = Fleet(3, version=NEXT_VERSION)

    response = world.rollouts.start(a_spec(), ADA)

    assert isinstance(response, NothingToDo)
    assert response.reason == "No tenant has to be moved (3 current)."
    assert world.rollout_executions.started == []
    assert world.rollout_table.registry().active == frozenset()


def test_there_is_nothing_to_do_for_an_empty_fleet() -> None:
    response = Fleet().rollouts.start(a_spec(), ADA)

    assert isinstance(response, NothingToDo)
    assert response.reason == "No tenant has to be moved."


def test_named_tenants_are_read_from_their_own_rows() -> None:
    world = Fleet(3)
    world.table.plant_metadata(replace(world.metadata_of(tenant("t002")), pinned_version=VERSION), listed=False)
    world.delete(tenant("t003"))

    rollout = world.start(naming("t001", "t002", "t003"))

    assert world.planned_tenants(rollout) == ["t001"]
    assert world.rollout(rollout).skipped == {
        Skip.PINNED: Skipped(1, ("t002",)),
        Skip.DELETED: Skipped(1, ("t003",)),
    }


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (naming("t001", "t02"), "No such tenant: t02. Similar ids: t002."),
        (naming("zzz", "yyy"), "No such tenants: yyy, zzz. There are these tenants: t001, t002."),
        (a_spec(labels={"tier": "free"}), "No tenant has a label tier. Labels in use: plan, team."),
        (a_spec(labels={"plan": "glod"}), "No tenant has the label plan=glod. Values of plan: free, gold."),
        (naming("t001", labels={"plan": "glod"}), "No tenant has the label plan=glod. Values of plan: free, gold."),
    ],
)
def test_tenants_and_labels_that_do_not_exist_are_refused_with_those_that_do(spec: Spec, expected: str) -> None:
    world = Fleet(2)
    for name, plan in (("t001", "gold"), ("t002", "free")):
        labels = {"plan": plan, "team": "blue"}
        world.table.plant_metadata(replace(world.metadata_of(tenant(name)), labels=labels))

    refused = world.rollouts.start(spec, ADA)

    assert refused == Refused(Refusal.UNKNOWN_SELECTION, expected)


def test_labels_that_no_tenant_has_together_select_nothing() -> None:
    world = Fleet(2)
    for name, labels in (("t001", {"plan": "gold"}), ("t002", {"team": "blue"})):
        world.table.plant_metadata(replace(world.metadata_of(tenant(name)), labels=labels))

    assert isinstance(world.rollouts.start(a_spec(labels={"plan": "gold", "team": "blue"}), ADA), NothingToDo)


# One rollout at a time per tenant


def test_a_rollout_of_the_same_tenants_is_refused_while_one_is_active() -> None:
    world = Fleet(20)
    first = world.start()

    response = world.rollouts.start(naming("t007", version=LAST_VERSION), BOB)

    assert isinstance(response, Refused)
    assert response.kind is Refusal.ROLLOUT_IN_THE_WAY
    assert response.details == {"rolloutId": first}
    assert f"Rollout {first} is moving 1 of the same tenants (t007)." in response.reason


def test_a_refused_rollout_stores_no_lists() -> None:
    world = Fleet(20)
    world.start()
    lists = dict(world.manifests.written)

    assert refused(world.rollouts.start(naming("t007", version=LAST_VERSION), BOB)) is Refusal.ROLLOUT_IN_THE_WAY
    assert world.manifests.written == lists


def test_a_refusal_names_only_a_few_of_many_conflicting_tenants() -> None:
    world = Fleet(20)
    world.start()

    response = world.rollouts.start(a_spec(version=LAST_VERSION), BOB)

    assert isinstance(response, Refused)
    assert "20 of the same tenants" in response.reason
    assert "t010 and 10 more)" in response.reason


def test_rollouts_of_different_tenants_run_concurrently() -> None:
    world = Fleet(4)
    first, second = world.start(naming("t001", "t002")), world.start(naming("t003", "t004"))

    assert world.rollout_table.registry().active == {first, second}
    assert world.drive(first) == world.drive(second) == Succeeded()


def test_an_ended_rollout_does_not_block_others() -> None:
    world = Fleet(3)
    world.drive(world.start())

    world.start(a_spec(version=LAST_VERSION))


def test_a_settled_tenant_is_claimed_until_the_rollout_ends() -> None:
    world = Fleet(3)
    rollout = world.start(a_spec(a_stage_spec(Share(1), bake_seconds=60), a_stage_spec()))
    world.run_stage(rollout, world.advance(rollout))
    moved = world.items(rollout)[0].tenant.value

    assert refused(world.rollouts.start(naming(moved, version=LAST_VERSION), BOB)) is Refusal.ROLLOUT_IN_THE_WAY


def test_one_of_two_conflicting_rollouts_started_concurrently_is_refused() -> None:
    world = Fleet(3)
    others: list[object] = []
    world.rollout_table.concurrent_writes.append(lambda: others.append(world.rollouts.start(a_spec(), BOB)))

    response = world.rollouts.start(a_spec(), ADA)

    assert underway(others[0]).by == BOB
    assert refused(response) is Refusal.ROLLOUT_IN_THE_WAY
    assert world.rollout_table.registry().active == {underway(others[0]).id}
    assert len(world.rollout_executions.started) == 1
    assert {name.split("/")[1] for name in world.manifests.written} == {underway(others[0]).id}, "no list is left"


def test_rollouts_of_different_tenants_may_be_started_concurrently() -> None:
    world = Fleet(2)
    world.rollout_table.concurrent_writes.append(lambda: world.rollouts.start(naming("t001"), BOB))

    assert underway(world.rollouts.start(naming("t002"), ADA)).by == ADA
    assert len(world.rollout_table.registry().active) == 2


def test_a_start_that_always_conflicts_asks_to_try_again() -> None:
    world = Fleet(2)

    def bump() -> None:
        other = a_rollout(replace(a_spec(), dry_run=False))
        number = world.rollout_table.registry().revision
        world.rollout_table.register(replace(other, id=f"other-{number}"), [], revision=number)

    world.rollout_table.concurrent_writes.extend([bump] * 100)

    with pytest.raises(Unsettled, match="Try again"):
        world.rollouts.start(a_spec(), ADA)
    assert world.rollout_executions.started == []
    assert world.manifests.written == {}


def test_a_recorded_rollout_keeps_its_lists_even_if_the_response_was_lost() -> None:
    """The response to the write was lost, so the rollout seems to conflict with itself."""
    world = Fleet(2)
    register = world.rollout_table.register

    def answer_is_lost(rollout: Rollout, stages: Sequence[Stage], **more: Any) -> bool:
        assert register(rollout, stages, **more)
        return False

    world.rollout_table.register = answer_is_lost  # type: ignore[method-assign]

    assert refused(world.rollouts.start(a_spec(), ADA)) is Refusal.ROLLOUT_IN_THE_WAY
    (rollout,) = world.rollout_table.registry().active
    assert [name.split("/")[1] for name in world.manifests.written] == [rollout]


# Dry runs


def test_a_dry_run_claims_no_tenants_and_does_not_block_others() -> None:
    world = Fleet(5)
    real = world.start(naming("t001"))

    dry = world.start(a_spec(dry_run=True))

    assert world.rollout_table.registry().active == {real}
    assert world.planned_tenants(dry).count("t001") == 1
    world.start(naming("t002"))


def test_a_dry_run_plans_the_stages_and_reviews_all_tenants_in_one() -> None:
    world = Fleet(20)
    spec = a_spec(a_stage_spec(Share(1), approval=True, bake_seconds=60, alarm="errors"), a_stage_spec(at_once=3))

    rollout = world.rollout(world.start(replace(spec, dry_run=True)))

    assert (rollout.planned, rollout.total) == ((1, 19), 20)
    (stage,) = world.rollout_table.stages(rollout.id)
    assert (stage.total, stage.tolerated) == (20, 20)
    assert (stage.spec.approval, stage.spec.bake_seconds, stage.spec.alarm) == (False, 0, None)


def test_a_dry_run_may_review_a_sample_that_begins_with_the_canary() -> None:
    world = Fleet(20)
    dry = world.start(a_spec(a_stage_spec(Share(1)), a_stage_spec(), dry_run=True, sample=TEN_PERCENT))
    real = world.start(a_spec(a_stage_spec(Share(1)), a_stage_spec()))

    assert world.rollout(dry).planned == (1, 19)
    assert world.rollout(dry).total == 2
    assert world.planned_tenants(dry) == world.planned_tenants(real)[:2]


# Starts that fail half-way


def test_a_recorded_rollout_that_was_not_started_is_started_by_resuming_it() -> None:
    world = Fleet(3)
    world.rollout_executions.throttled_starts = 1
    with pytest.raises(Throttled):
        world.rollouts.start(a_spec(), ADA)
    (rollout,) = world.rollout_table.rollouts(limit=10)
    assert (rollout.status, world.rollout_executions.started) == (RolloutStatus.PENDING, [])

    response = world.rollouts.resume(rollout.id, "ada")

    assert underway(response).attempt == 1
    assert world.rollout_executions.started == [execution_arn(f"rollout-{rollout.id}-1")]
    assert world.drive(rollout.id) == Succeeded()


def test_resuming_a_started_rollout_before_its_first_step_starts_no_other_execution() -> None:
    world = Fleet(3)
    rollout = world.start()

    assert underway(world.rollouts.resume(rollout, "ada")).attempt == 1
    assert len(world.rollout_executions.started) == 1


def test_an_execution_that_died_before_its_first_step_is_replaced() -> None:
    world = Fleet(3)
    rollout = world.start()
    world.rollout_executions.die(execution_arn(f"rollout-{rollout}-1"))

    assert underway(world.rollouts.resume(rollout, "ada")).attempt == 2
    assert world.rollout_executions.started[-1] == execution_arn(f"rollout-{rollout}-2")
    assert world.drive(rollout, 2) == Succeeded()


def test_a_resume_that_fails_half_way_may_be_repeated() -> None:
    world = Fleet(3)
    rollout = world.start()
    world.drive(rollout, failing=["t001", "t002", "t003"])
    assert world.status(rollout) is RolloutStatus.HALTED
    world.rollout_executions.throttled_starts = 1
    with pytest.raises(Throttled):
        world.rollouts.resume(rollout, "ada")

    underway(world.rollouts.resume(rollout, "ada"))

    assert world.rollout(rollout).attempt == 2
    assert isinstance(world.advance(rollout, 2), RunStage)


def test_a_rollout_that_was_not_started_may_be_aborted() -> None:
    world = Fleet(3)
    world.rollout_executions.throttled_starts = 1
    with pytest.raises(Throttled):
        world.rollouts.start(a_spec(), ADA)
    (rollout,) = world.rollout_table.rollouts(limit=10)

    world.rollouts.abort(rollout.id, "ada")

    assert world.status(rollout.id) is RolloutStatus.ABORTED
    assert world.rollout_table.registry().active == frozenset()


def test_an_execution_that_starts_after_the_abort_ends_as_aborted() -> None:
    world = Fleet(3)
    rollout = world.start()
    world.rollouts.abort(rollout, "ada")

    assert world.advance(rollout) == NotSucceeded(RolloutStatus.ABORTED, "Aborted by ada.")


# Every order in every status

UNCHANGED, OVER = "unchanged", "over"
ALIVE = [
    ("pause", RolloutStatus.PENDING, RolloutStatus.PAUSED),
    ("pause", RolloutStatus.RUNNING, RolloutStatus.PAUSED),
    ("pause", RolloutStatus.PAUSED, UNCHANGED),
    ("pause", RolloutStatus.ABORTING, OVER),
    ("pause", RolloutStatus.SUCCEEDED, OVER),
    ("pause", RolloutStatus.FAILED, OVER),
    ("pause", RolloutStatus.HALTED, OVER),
    ("pause", RolloutStatus.ABORTED, OVER),
    ("resume", RolloutStatus.PENDING, RolloutStatus.RUNNING),
    ("resume", RolloutStatus.RUNNING, UNCHANGED),
    ("resume", RolloutStatus.PAUSED, RolloutStatus.RUNNING),
    ("resume", RolloutStatus.ABORTING, OVER),
    ("resume", RolloutStatus.SUCCEEDED, OVER),
    ("resume", RolloutStatus.FAILED, OVER),
    ("resume", RolloutStatus.HALTED, RolloutStatus.PENDING),
    ("resume", RolloutStatus.ABORTED, OVER),
    ("abort", RolloutStatus.PENDING, RolloutStatus.ABORTING),
    ("abort", RolloutStatus.RUNNING, RolloutStatus.ABORTING),
    ("abort", RolloutStatus.PAUSED, RolloutStatus.ABORTING),
    ("abort", RolloutStatus.ABORTING, UNCHANGED),
    ("abort", RolloutStatus.SUCCEEDED, OVER),
    ("abort", RolloutStatus.FAILED, OVER),
    ("abort", RolloutStatus.HALTED, RolloutStatus.ABORTED),
    ("abort", RolloutStatus.ABORTED, UNCHANGED),
]
DEAD = [
    ("pause", RolloutStatus.RUNNING, RolloutStatus.PAUSED),
    ("resume", RolloutStatus.RUNNING, RolloutStatus.PENDING),
    ("resume", RolloutStatus.PAUSED, RolloutStatus.PENDING),
    ("resume", RolloutStatus.ABORTING, OVER),
    ("abort", RolloutStatus.PENDING, RolloutStatus.ABORTED),
    ("abort", RolloutStatus.RUNNING, RolloutStatus.ABORTED),
    ("abort", RolloutStatus.PAUSED, RolloutStatus.ABORTED),
    ("abort", RolloutStatus.ABORTING, RolloutStatus.ABORTED),
    ("abort", RolloutStatus.SUCCEEDED, OVER),
]


def planted(status: RolloutStatus, *, alive: bool = True, **more: Any) -> Fleet:
    world = Fleet(1)
    stage = a_stage()
    world.manifests.written[stage.manifest] = [Item(tenant("t001"), NEXT_VERSION)]
    world.plant(a_rollout(status=RolloutStatus.RUNNING, task_token="token", **more), [stage])
    world.touch(ROLLOUT, status=status)
    if alive:
        world.rollout_executions.running.add(EXECUTION)
    return world


def send_order(world: Fleet, verb: str) -> object:
    return getattr(world.rollouts, verb)(ROLLOUT, ADA)


@pytest.mark.parametrize(("verb", "status", "becomes"), ALIVE)
def test_the_effect_of_an_order_while_the_execution_runs(verb: str, status: RolloutStatus, becomes: str) -> None:
    check_order(planted(status), verb, status, becomes)


@pytest.mark.parametrize(("verb", "status", "becomes"), DEAD)
def test_the_effect_of_an_order_after_the_execution_died(verb: str, status: RolloutStatus, becomes: str) -> None:
    check_order(planted(status, alive=False), verb, status, becomes)


def check_order(world: Fleet, verb: str, status: RolloutStatus, becomes: str) -> None:
    before = world.rollout(ROLLOUT)

    response = send_order(world, verb)

    if becomes == UNCHANGED:
        assert isinstance(response, Unchanged)
        assert world.rollout(ROLLOUT) == before
    elif becomes == OVER:
        assert isinstance(response, Refused)
        assert response.kind is Refusal.ROLLOUT_OVER
        assert response.details == {"rolloutId": ROLLOUT, "rolloutStatus": status.value}
        assert world.rollout(ROLLOUT) == before
    else:
        assert underway(response).status == becomes == world.status(ROLLOUT)
    after = world.rollout(ROLLOUT)
    assert (ROLLOUT in world.rollout_table.registry().active) == after.status.active
    if before.status.active and isinstance(response, RolloutWithStages):
        assert set(world.rollout_executions.woken) == {"token"}, "a waiting execution is woken"
    if after.status is RolloutStatus.ABORTED and before.status.active:
        assert after.ended_at == world.clock.now()
    if becomes is RolloutStatus.PENDING:
        assert (after.attempt, after.execution, after.task_token) == (2, None, None)
        assert world.rollout_executions.started == [execution_arn(f"rollout-{ROLLOUT}-2")]
    else:
        assert world.rollout_executions.started == []


@pytest.mark.parametrize("verb", ["pause", "resume", "abort"])
def test_an_order_to_an_unknown_rollout_is_refused(verb: str) -> None:
    assert refused(send_order(Fleet(), verb)) is Refusal.UNKNOWN_ROLLOUT


def test_an_approval_or_retry_of_an_unknown_rollout_is_refused() -> None:
    assert refused(Fleet().rollouts.approve(ROLLOUT, 1, ADA)) is Refusal.UNKNOWN_ROLLOUT
    assert refused(Fleet().rollouts.retry(ROLLOUT, ADA)) is Refusal.UNKNOWN_ROLLOUT


@pytest.mark.parametrize(("verb", "becomes"), [("pause", RolloutStatus.PAUSED), ("abort", RolloutStatus.ABORTING)])
def test_a_concurrent_write_is_kept(verb: str, becomes: RolloutStatus) -> None:
    world = planted(RolloutStatus.RUNNING)
    world.rollout_table.concurrent_writes.append(lambda: world.touch(ROLLOUT, current_stage=2))

    send_order(world, verb)

    assert (world.status(ROLLOUT), world.rollout(ROLLOUT).current_stage) == (becomes, 2)


@pytest.mark.parametrize("verb", ["pause", "abort"])
def test_an_order_is_refused_if_the_rollout_ends_at_the_same_time(verb: str) -> None:
    world = planted(RolloutStatus.RUNNING)
    world.rollout_table.concurrent_writes.append(lambda: world.touch(ROLLOUT, status=RolloutStatus.SUCCEEDED))

    assert refused(send_order(world, verb)) is Refusal.ROLLOUT_OVER
    assert world.status(ROLLOUT) is RolloutStatus.SUCCEEDED


def test_an_order_that_always_conflicts_asks_to_try_again() -> None:
    world = planted(RolloutStatus.RUNNING)
    world.rollout_table.concurrent_writes.extend([lambda: world.touch(ROLLOUT)] * 1_000)

    with pytest.raises(Unsettled, match="Try again"):
        send_order(world, "pause")


def test_a_rollout_paused_before_its_first_step_continues_when_resumed() -> None:
    world = Fleet(2)
    rollout = world.start()
    world.rollouts.pause(rollout, "ada")
    assert world.advance(rollout) == AwaitOperator()

    underway(world.rollouts.resume(rollout, "ada"))

    assert world.drive(rollout) == Succeeded()


def test_a_rollout_paused_and_resumed_before_its_first_step_is_pending() -> None:
    world = Fleet(2)
    rollout = world.start()
    world.rollouts.pause(rollout, "ada")

    assert underway(world.rollouts.resume(rollout, "ada")).status is RolloutStatus.PENDING
    assert len(world.rollout_executions.started) == 1
    assert world.drive(rollout) == Succeeded()


def test_one_of_two_concurrent_resumes_replaces_a_dead_execution() -> None:
    world = planted(RolloutStatus.RUNNING, alive=False)

    def other() -> None:
        underway(send_order(world, "resume"))
        world.advance(ROLLOUT, 2)

    world.rollout_table.concurrent_writes.append(other)

    assert isinstance(send_order(world, "resume"), Unchanged)
    assert world.rollout(ROLLOUT).attempt == 2


def test_one_of_two_concurrent_resumes_reopens_a_halted_rollout() -> None:
    world = Fleet(4)
    rollout = world.start()
    world.drive(rollout, failing=["t001", "t002", "t003", "t004"])
    world.rollout_table.concurrent_writes.append(lambda: underway(world.rollouts.resume(rollout, "ada")))

    assert isinstance(world.rollouts.resume(rollout, "ada"), Unchanged)

    assert world.rollout(rollout).attempt == 2
    assert len(world.rollout_executions.started) == 2


def test_a_late_resume_does_not_accept_later_failures() -> None:
    world = Fleet(4)
    rollout = world.start()
    everybody = ["t001", "t002", "t003", "t004"]
    world.drive(rollout, failing=everybody)

    def other() -> None:
        world.rollouts.resume(rollout, "ada")
        world.run_stage(rollout, world.advance(rollout, 2), failing=everybody)

    world.rollout_table.concurrent_writes.append(other)

    world.rollouts.resume(rollout, "ada")

    assert world.stage(rollout).forgiven == 1
    assert isinstance(world.advance(rollout, 2), NotSucceeded)


def test_a_rollout_aborted_during_its_first_step_is_ended_by_its_execution() -> None:
    world = Fleet(2)
    rollout = world.start()
    world.rollout_table.concurrent_writes.append(lambda: world.advance(rollout))

    assert underway(world.rollouts.abort(rollout, "ada")).status is RolloutStatus.ABORTING
    assert world.advance(rollout) == NotSucceeded(RolloutStatus.ABORTED, "Aborted by ada.")


def test_a_halted_rollout_is_not_resumed_while_another_claims_its_tenants() -> None:
    world = Fleet(3)
    rollout = world.start()
    world.drive(rollout, failing=["t001", "t002", "t003"])
    other = world.start(a_spec(version=LAST_VERSION))

    response = world.rollouts.resume(rollout, "ada")

    assert isinstance(response, Refused)
    assert (response.kind, response.details) == (Refusal.ROLLOUT_IN_THE_WAY, {"rolloutId": other})
    assert world.status(rollout) is RolloutStatus.HALTED


def test_a_halted_rollout_is_not_resumed_if_another_claims_its_tenants_concurrently() -> None:
    world = Fleet(3)
    rollout = world.start()
    world.drive(rollout, failing=["t001", "t002", "t003"])
    world.rollout_table.concurrent_writes.append(lambda: world.start(a_spec(version=LAST_VERSION)))

    assert refused(world.rollouts.resume(rollout, "ada")) is Refusal.ROLLOUT_IN_THE_WAY
    assert world.status(rollout) is RolloutStatus.HALTED


def test_a_resumed_rollout_has_its_claim_again() -> None:
    world = Fleet(3)
    rollout = world.start()
    world.drive(rollout, failing=["t001", "t002", "t003"])
    world.rollouts.resume(rollout, "ada")

    assert world.rollout_table.registry().active == {rollout}
    assert refused(world.rollouts.start(a_spec(version=LAST_VERSION), BOB)) is Refusal.ROLLOUT_IN_THE_WAY
    assert (world.rollout(rollout).ended_at, world.rollout(rollout).reason) == (None, "Resumed by ada.")


# Approving


def awaiting_approval(status: RolloutStatus = RolloutStatus.RUNNING) -> Fleet:
    world = planted(status)
    world.touch_stage(ROLLOUT, spec=a_stage_spec(approval=True), status=StageStatus.AWAITING_APPROVAL)
    return world


@pytest.mark.parametrize(
    ("status", "approved"),
    [
        (RolloutStatus.PENDING, True),
        (RolloutStatus.RUNNING, True),
        (RolloutStatus.PAUSED, True),
        (RolloutStatus.ABORTING, False),
        (RolloutStatus.SUCCEEDED, False),
        (RolloutStatus.FAILED, False),
        (RolloutStatus.HALTED, False),
        (RolloutStatus.ABORTED, False),
    ],
)
def test_a_stage_can_be_approved_while_the_rollout_is_active(status: RolloutStatus, approved: bool) -> None:
    world = awaiting_approval(status)

    response = world.rollouts.approve(ROLLOUT, 1, ADA)

    if approved:
        assert underway(response).status is status
        assert world.rollout_executions.woken == ["token"]
    else:
        assert refused(response) is Refusal.NOTHING_TO_APPROVE
    assert world.stage(ROLLOUT).approved_by == (ADA if approved else None)


@pytest.mark.parametrize("status", [status for status in StageStatus if status is not StageStatus.AWAITING_APPROVAL])
def test_only_a_stage_that_awaits_approval_is_approved(status: StageStatus) -> None:
    world = awaiting_approval()
    world.touch_stage(ROLLOUT, status=status)

    assert refused(world.rollouts.approve(ROLLOUT, 1, ADA)) is Refusal.NOTHING_TO_APPROVE


def test_a_stage_is_approved_once_by_the_first_operator() -> None:
    world = awaiting_approval()
    world.rollout_table.concurrent_writes.append(lambda: world.rollouts.approve(ROLLOUT, 1, BOB))

    assert isinstance(world.rollouts.approve(ROLLOUT, 1, ADA), Unchanged)
    assert world.stage(ROLLOUT).approved_by == BOB


APPROVED_STAGES = a_spec(a_stage_spec(Share(1)), a_stage_spec(Share(1), approval=True), a_stage_spec(approval=True))


def test_one_approval_sent_twice_approves_one_stage() -> None:
    world = Fleet(3)
    rollout = world.start(APPROVED_STAGES)
    world.drive(rollout)
    underway(world.rollouts.approve(rollout, 2, ADA))
    assert world.drive(rollout) == AwaitOperator()

    assert isinstance(world.rollouts.approve(rollout, 2, BOB), Unchanged)

    assert world.drive(rollout) == AwaitOperator()
    assert world.stage(rollout, 3).approved_by is None
    assert len(world.at(NEXT_VERSION)) == 2


@pytest.mark.parametrize(("number", "awaiting"), [(1, 2), (3, 2), (4, 2)])
def test_only_the_waiting_stage_can_be_approved(number: int, awaiting: int) -> None:
    world = Fleet(3)
    rollout = world.start(APPROVED_STAGES)
    world.drive(rollout)

    response = world.rollouts.approve(rollout, number, ADA)

    assert response == Refused(
        Refusal.NOTHING_TO_APPROVE,
        f"Rollout {rollout}: stage {number} does not await approval. Stage {awaiting} does.",
        {"rolloutId": rollout, "awaitingStage": awaiting},
    )
    assert [stage.approved_by for stage in world.rollout_table.stages(rollout)] == [None] * 3


def test_the_refusal_says_that_no_stage_awaits_approval() -> None:
    world = Fleet(1)
    rollout = world.start(APPROVED_STAGES)
    world.drive(rollout)

    response = world.rollouts.approve(rollout, 1, ADA)

    assert isinstance(response, Refused)
    assert response.reason.endswith("No stage does: the rollout is SUCCEEDED, in stage 1 (DONE).")
    assert response.details == {"rolloutId": rollout}


def test_a_stage_approved_during_a_pause_starts_after_the_resume() -> None:
    world = Fleet(2)
    rollout = world.start(a_spec(a_stage_spec(approval=True)))
    world.advance(rollout)
    world.rollouts.pause(rollout, "ada")

    underway(world.rollouts.approve(rollout, 1, ADA))

    assert world.advance(rollout) == AwaitOperator()
    world.rollouts.resume(rollout, "ada")
    assert world.drive(rollout) == Succeeded()


# Aborting while no tenant is in flight


def test_a_baking_rollout_is_aborted_at_once_and_can_be_undone() -> None:
    world = Fleet(2)
    rollout = world.start(a_spec(a_stage_spec(Share(1), bake_seconds=7 * 86_400), a_stage_spec()))
    world.run_stage(rollout, world.advance(rollout))
    assert isinstance(world.advance(rollout), Bake)

    aborted = underway(world.rollouts.abort(rollout, "ada"))

    assert (aborted.status, aborted.reason) == (RolloutStatus.ABORTED, "Aborted by ada.")
    assert aborted.ended_at == world.clock.now()
    assert world.rollout_table.registry().active == frozenset()
    undoing = world.start(a_spec(version=None, undo=rollout))
    assert world.drive(undoing) == Succeeded()
    assert world.advance(rollout) == NotSucceeded(RolloutStatus.ABORTED, "Aborted by ada.")


@pytest.mark.parametrize("status", [status for status in StageStatus if status is not StageStatus.RUNNING])
def test_a_rollout_is_aborted_at_once_unless_its_stage_is_running(status: StageStatus) -> None:
    world = planted(RolloutStatus.RUNNING)
    world.touch_stage(ROLLOUT, status=status)

    assert underway(world.rollouts.abort(ROLLOUT, "ada")).status is RolloutStatus.ABORTED
    assert set(world.rollout_executions.woken) == {"token"}


def test_an_abort_waits_for_a_stage_that_begins_at_the_same_time() -> None:
    world = Fleet(1)
    rollout = world.start()
    world.touch(rollout, status=RolloutStatus.RUNNING, execution=execution_arn(f"rollout-{rollout}-1"))

    def begin() -> None:
        world.advance(rollout)
        assert isinstance(world.gate.admit(Turn(rollout, 1, world.items(rollout)[0], "child")), Admitted)

    world.rollout_table.concurrent_writes.append(begin)

    assert underway(world.rollouts.abort(rollout, "ada")).status is RolloutStatus.ABORTING
    assert rollout in world.rollout_table.registry().active


def test_an_interrupted_abort_is_finished_by_the_next_one() -> None:
    world = planted(RolloutStatus.ABORTING)
    world.touch_stage(ROLLOUT, status=StageStatus.BAKING)

    assert underway(world.rollouts.abort(ROLLOUT, "ada")).status is RolloutStatus.ABORTED


def test_an_abort_that_the_execution_finishes_first_returns_the_aborted_rollout() -> None:
    world = planted(RolloutStatus.RUNNING)
    world.touch_stage(ROLLOUT, status=StageStatus.BAKING)
    world.rollout_table.concurrent_writes.extend([lambda: None, lambda: world.advancing.advance(ROLLOUT, 1, EXECUTION)])

    assert underway(world.rollouts.abort(ROLLOUT, "ada")).status is RolloutStatus.ABORTED


# Undoing


def rolled_out(count: int = 3, *, failing: tuple[str, ...] = ()) -> tuple[Fleet, str]:
    world = Fleet(count)
    rollout = world.start(a_spec(a_stage_spec(tolerated=Share(count))))
    world.drive(rollout, failing=failing)
    return world, rollout


def test_undo_moves_each_tenant_back_to_its_own_earlier_version() -> None:
    world = Fleet(3)
    world.table.record_release(replace(world.table.releases()[0], version="0.0.9"))
    world.change(tenant("t002"), version="0.0.9")
    rollout = world.start(a_spec(a_stage_spec(tolerated=Share(1))))
    world.drive(rollout, failing=["t003"])

    undoing = world.start(a_spec(version=None, undo=rollout))

    items = {item.tenant.value: item.version for item in world.items(undoing)}
    assert items == {"t001": VERSION, "t002": "0.0.9", "t003": VERSION}
    assert world.drive(undoing) == Succeeded()
    assert [world.metadata_of(who).version for who in tenants(3)] == [VERSION, "0.0.9", VERSION]


def test_undo_may_move_all_tenants_to_one_version() -> None:
    world, rollout = rolled_out()

    undoing = world.start(a_spec(version=LAST_VERSION, undo=rollout))

    assert world.drive(undoing) == Succeeded()
    assert len(world.at(LAST_VERSION)) == 3


def test_undo_skips_tenants_that_were_moved_since() -> None:
    world, rollout = rolled_out()
    world.drive(world.start(naming("t002", version=LAST_VERSION)))

    undoing = world.start(a_spec(version=None, undo=rollout))

    assert sorted(world.planned_tenants(undoing)) == ["t001", "t003"]
    assert world.rollout(undoing).skipped == {Skip.MOVED_SINCE: Skipped(1, ("t002",))}


def test_undo_reports_tenants_that_were_deleted_since() -> None:
    world, rollout = rolled_out()
    world.delete(tenant("t002"))

    undoing = world.start(a_spec(version=None, undo=rollout))

    assert world.rollout(undoing).skipped == {Skip.DELETED: Skipped(1, ("t002",))}


def test_a_running_rollout_is_not_undone() -> None:
    world = Fleet(3)
    rollout = world.start()

    assert refused(world.rollouts.start(a_spec(version=None, undo=rollout), ADA)) is Refusal.ROLLOUT_IN_THE_WAY


@pytest.mark.parametrize("how", ["halted", "aborted"])
def test_undo_of_a_stopped_rollout_moves_back_the_moved_tenants_and_repairs_the_failed_ones(how: str) -> None:
    world = Fleet(4)
    rollout = world.start(a_spec(a_stage_spec(Share(2)), a_stage_spec()))
    world.run_stage(rollout, world.advance(rollout))
    if how == "halted":
        world.drive(rollout, failing=[item.tenant.value for item in world.items(rollout, 2)])
    else:
        world.rollouts.abort(rollout, "ada")
        world.drive(rollout)
    moved = sorted(item.tenant.value for item in world.items(rollout))
    assert world.at(NEXT_VERSION) == moved

    undoing = world.start(a_spec(version=None, undo=rollout))

    failed = [who.value for who in tenants(4) if world.results(rollout).get(who.value) is Result.FAILED]
    assert sorted(world.planned_tenants(undoing)) == sorted([*moved, *failed])
    assert world.rollout(undoing).repairs == (Repairs(len(failed), tuple(failed)) if failed else None)
    assert world.drive(undoing) == Succeeded()
    assert [each.state for each in world.table.tenants_in(TenantState.UPDATE_FAILED, limit=10)] == []


def test_a_dry_run_has_nothing_to_undo() -> None:
    world = Fleet(1)
    dry = world.start(a_spec(dry_run=True))

    response = world.rollouts.start(a_spec(version=None, undo=dry), ADA)
    assert refused(response) is Refusal.UNKNOWN_ROLLOUT
    assert f"Rollout {dry} is a dry run, which moved no tenant" in response.reason


def test_there_is_nothing_to_do_for_a_second_undo() -> None:
    world, rollout = rolled_out()
    world.drive(world.start(a_spec(version=None, undo=rollout)))

    response = world.rollouts.start(a_spec(version=None, undo=rollout), ADA)

    assert isinstance(response, NothingToDo)
    assert response.selected.skipped[Skip.CURRENT].count == 3


def test_undo_does_not_ask_step_functions_about_successful_updates() -> None:
    """Step Functions allows 15 such requests per second, and a fleet has thousands of tenants."""
    world, rollout = rolled_out()
    world.drive(world.start(a_spec(version=None, undo=rollout)))
    world.executions.looked_for.clear()

    world.rollouts.start(a_spec(version=None, undo=rollout), ADA)

    assert world.executions.looked_for == []


def test_an_undo_may_be_undone() -> None:
    world, rollout = rolled_out()
    undoing = world.start(a_spec(version=None, undo=rollout))
    world.drive(undoing)

    world.drive(world.start(a_spec(version=None, undo=undoing)))

    assert len(world.at(NEXT_VERSION)) == 3


def test_undo_moves_back_tenants_that_a_dead_execution_moved() -> None:
    world = Fleet(1)
    rollout = world.start()
    world.advance(rollout)
    left_behind = world.gate.admit(Turn(rollout, 1, world.items(rollout)[0], "dead"))
    assert isinstance(left_behind, Admitted)
    world.rollout_executions.die(execution_arn(f"rollout-{rollout}-1"))
    world.rollouts.resume(rollout, "ada")
    run = world.advance(rollout, 2)
    world.update(left_behind)
    world.run_stage(rollout, run)
    assert world.advance(rollout, 2) == Succeeded()

    undoing = world.start(a_spec(version=None, undo=rollout))

    assert [item.version for item in world.items(undoing)] == [VERSION]


def test_undo_moves_back_a_tenant_whose_update_finished_after_the_rollout() -> None:
    world = Fleet(2)
    rollout = world.start()
    world.advance(rollout)
    arriving, staying = (world.gate.admit(Turn(rollout, 1, item, "child")) for item in world.items(rollout))
    world.rollout_executions.die(execution_arn(f"rollout-{rollout}-1"))
    world.rollouts.abort(rollout, "ada")
    assert isinstance(arriving, Admitted)
    assert isinstance(staying, Admitted)
    world.update(arriving)

    undoing = world.start(a_spec(version=None, undo=rollout))

    assert world.planned_tenants(undoing) == [arriving.input["tenantId"]]
    assert world.rollout(undoing).skipped == {Skip.CURRENT: Skipped(1, (str(staying.input["tenantId"]),))}


def test_undo_moves_back_a_tenant_that_succeeded_after_it_was_recorded_as_failed() -> None:
    world = Fleet(2)
    rollout = world.start(a_spec(a_stage_spec(tolerated=Share(1))))
    world.advance(rollout)
    cut_short, other = (Turn(rollout, 1, item, "child") for item in world.items(rollout))
    admitted = world.gate.admit(cut_short)
    assert isinstance(admitted, Admitted)
    world.gate.record(cut_short, "States.TaskFailed: ABORTED")  # Before the update's first function took the lock.
    world.take_turn(other)
    world.update(admitted)  # CloudFormation went on, and what died was settled by what is true.
    world.drive(rollout)
    assert world.outcome(rollout, cut_short.item.tenant).result is Result.FAILED

    undoing = world.start(a_spec(version=None, undo=rollout))

    assert sorted(world.planned_tenants(undoing)) == ["t001", "t002"]
    assert world.drive(undoing) == Succeeded()
    assert world.at(NEXT_VERSION) == []


def test_undo_moves_back_a_tenant_that_was_skipped_while_its_update_ran() -> None:
    world = Fleet(1)
    rollout = world.start()
    world.advance(rollout)
    turn = Turn(rollout, 1, world.items(rollout)[0], "child")
    admitted = world.gate.admit(turn)
    assert isinstance(admitted, Admitted)
    run = world.begin_update(admitted)
    world.change(turn.item.tenant, pinned_version=VERSION)
    world.drive(rollout)
    assert world.outcome(rollout, "t001").skip is Skip.PINNED
    world.publish(run)

    assert world.planned_tenants(world.start(a_spec(version=None, undo=rollout))) == ["t001"]


@pytest.mark.parametrize("begun", [True, False])
def test_undo_skips_a_tenant_whose_update_has_not_begun_and_reports_it(begun: bool) -> None:
    world = Fleet(2)
    rollout = world.start()
    world.advance(rollout)
    cut_short, other = (Turn(rollout, 1, item, "child") for item in world.items(rollout))
    admitted = world.gate.admit(cut_short)
    assert isinstance(admitted, Admitted)
    world.executions.running.add(execution_arn(admitted.name))
    if begun:
        world.begin_update(admitted)
    world.take_turn(other)
    world.rollout_executions.die(execution_arn(f"rollout-{rollout}-1"))
    world.rollouts.abort(rollout, "ada")

    undoing = world.start(a_spec(version=None, undo=rollout))

    name = cut_short.item.tenant.value
    assert (name in world.planned_tenants(undoing)) == begun
    assert world.rollout(undoing).skipped == ({} if begun else {Skip.UNDER_WAY: Skipped(1, (name,))})


def test_a_rollout_to_the_version_that_tenants_are_at_repairs_those_whose_update_failed() -> None:
    world, _rollout = rolled_out(3, failing=("t001", "t002"))

    repairing = world.start(a_spec(version=VERSION, allow_downgrade=False))

    assert sorted(world.planned_tenants(repairing)) == ["t001", "t002"]
    assert world.rollout(repairing).repairs == Repairs(2, ("t001", "t002"))
    assert world.rollout(repairing).skipped == {Skip.NEWER: Skipped(1, ("t003",))}
    assert world.drive(repairing) == Succeeded()
    assert list(world.table.tenants_in(TenantState.UPDATE_FAILED, limit=10)) == []


def test_a_repair_that_fails_is_not_called_a_success() -> None:
    world, _rollout = rolled_out(2, failing=("t001",))
    repairing = world.start(a_spec(version=VERSION))

    assert isinstance(world.drive(repairing, failing=["t001"]), NotSucceeded)
    assert world.results(repairing) == {"t001": Result.FAILED}


def test_undo_includes_a_failed_tenant_that_was_not_moved_and_says_so() -> None:
    world, rollout = rolled_out(2, failing=("t001",))

    undoing = world.start(a_spec(version=None, undo=rollout))

    assert sorted(world.planned_tenants(undoing)) == ["t001", "t002"]
    assert world.rollout(undoing).repairs == Repairs(1, ("t001",))
    assert world.rollout(undoing).skipped == {}


def test_undo_ignores_tenants_that_were_never_started() -> None:
    world = Fleet(2)
    rollout = world.start()
    world.change(tenant("t001"), pinned_version=VERSION)
    world.drive(rollout)

    undoing = world.start(a_spec(version=None, undo=rollout))

    assert world.planned_tenants(undoing) == ["t002"]
    assert world.rollout(undoing).skipped == {}


# Retrying


def test_retry_starts_another_rollout_with_only_the_failed_tenants() -> None:
    world, rollout = rolled_out(5, failing=("t002", "t004"))
    world.add(tenant("newcomer"))

    response = world.rollouts.retry(rollout, BOB)

    retrying = underway(response)
    assert (retrying.by, retrying.spec.retry, retrying.spec.version) == (BOB, rollout, NEXT_VERSION)
    assert sorted(world.planned_tenants(retrying.id)) == ["t002", "t004"]
    assert world.drive(retrying.id) == Succeeded()
    assert len(world.at(NEXT_VERSION)) == 5


def test_a_retried_update_is_the_next_attempt() -> None:
    world, rollout = rolled_out(1, failing=("t001",))
    retrying = underway(world.rollouts.retry(rollout, BOB)).id
    world.advance(retrying)

    response = world.gate.admit(Turn(retrying, 1, world.items(retrying)[0], "child"))

    assert isinstance(response, Admitted)
    assert response.input["attempt"] == 2


def test_a_retry_ignores_the_tenants_and_share_of_the_first_spec() -> None:
    world = Fleet(4)
    spec = naming("t001", "t002", share=Share(50, percent=True))
    rollout = world.start(replace(spec, stages=(a_stage_spec(tolerated=Share(9)),)))
    world.drive(rollout, failing=["t001", "t002"])

    retrying = underway(world.rollouts.retry(rollout, BOB))

    assert (retrying.spec.tenants, retrying.spec.share) == (None, None)
    assert world.planned_tenants(retrying.id) == world.planned_tenants(rollout)


def test_a_retry_of_an_undo_moves_back_the_tenants_that_failed() -> None:
    world, rollout = rolled_out()
    undoing = world.start(a_spec(a_stage_spec(tolerated=Share(3)), version=None, undo=rollout))
    world.drive(undoing, failing=["t002"])
    world.clock.advance(A_SECOND)

    retrying = underway(world.rollouts.retry(undoing, ADA))

    assert [(item.tenant.value, item.version) for item in world.items(retrying.id)] == [("t002", VERSION)]
    assert world.drive(retrying.id) == Succeeded()
    assert len(world.at(VERSION)) == 3


def test_retry_includes_tenants_that_an_earlier_version_skipped_as_busy() -> None:
    world = Fleet(2)
    stage = a_stage(total=2)
    items = [Item(who, NEXT_VERSION) for who in tenants(2)]
    world.manifests.written[stage.manifest] = items
    skipped, moved = (
        TenantOutcome(ROLLOUT, 1, item, result, NOON, skip=skip, operation_attempt=number)
        for item, result, skip, number in zip(
            items, (Result.SKIPPED, Result.SUCCEEDED), (Skip.BUSY, None), (None, 1), strict=True
        )
    )
    world.plant(a_rollout(), [stage], skipped, moved)
    world.touch(ROLLOUT, status=RolloutStatus.SUCCEEDED)

    retrying = underway(world.rollouts.retry(ROLLOUT, ADA))

    assert world.planned_tenants(retrying.id) == ["t001"]


def test_without_failures_there_is_nothing_to_retry() -> None:
    world, rollout = rolled_out()

    assert refused(world.rollouts.retry(rollout, ADA)) is Refusal.NOTHING_TO_RETRY


def test_retry_skips_a_failed_tenant_that_was_moved_since() -> None:
    world, rollout = rolled_out(2, failing=("t001",))
    world.drive(world.start(naming("t001")))

    assert refused(world.rollouts.retry(rollout, ADA)) is Refusal.NOTHING_TO_RETRY


def test_an_active_rollout_is_not_retried() -> None:
    world = Fleet(1)

    assert refused(world.rollouts.retry(world.start(), ADA)) is Refusal.ROLLOUT_IN_THE_WAY


def test_after_an_update_failed_the_tenant_is_served_and_can_be_moved() -> None:
    world, rollout = rolled_out(1, failing=("t001",))
    (listed,) = world.table.tenants_in(TenantState.UPDATE_FAILED, limit=10)

    assert listed.version == VERSION
    assert world.results(rollout) == {"t001": Result.FAILED}
    world.clock.advance(timedelta(minutes=1))
    assert underway(world.rollouts.start(a_spec(), ADA)).total == 1


# The history of orders


def orders(world: Fleet, rollout: str) -> list[tuple[Order, str, str]]:
    return [(each.order, each.by, each.reason) for each in world.rollout_table.orders(rollout)]


def test_every_accepted_order_is_recorded_with_its_operator_and_reason() -> None:
    world = Fleet(3)
    response = world.rollouts.start(a_spec(a_stage_spec(approval=True)), ADA, reason="The new release.")
    rollout = underway(response).id
    world.advance(rollout)
    for verb in ("pause", "resume"):
        world.clock.advance(A_SECOND)
        assert isinstance(getattr(world.rollouts, verb)(rollout, BOB, reason=f"{verb}!"), RolloutWithStages)
    world.clock.advance(A_SECOND)
    world.rollouts.approve(rollout, 1, BOB, reason="Looks good.")
    world.clock.advance(A_SECOND)
    world.rollouts.abort(rollout, ADA)
    assert orders(world, rollout) == [
        (Order.START, ADA, "The new release."),
        (Order.PAUSE, BOB, "pause!"),
        (Order.RESUME, BOB, "resume!"),
        (Order.APPROVE, BOB, "Looks good."),
        (Order.ABORT, ADA, ""),
    ]


def test_the_status_reason_contains_the_operators_reason() -> None:
    world = Fleet(3)
    rollout = world.start(a_spec())
    assert underway(world.rollouts.pause(rollout, BOB, reason="Errors.")).reason == f"Paused by {BOB}: Errors."
    assert underway(world.rollouts.resume(rollout, BOB)).reason == f"Resumed by {BOB}."


def test_the_status_reason_of_a_resumed_rollout_names_the_operator() -> None:
    world, rollout = rolled_out(3, failing=("t001",))
    world.rollout_table.change(replace(world.rollout(rollout), status=RolloutStatus.HALTED))
    assert isinstance(world.rollouts.resume(rollout, BOB, reason="It was the network."), RolloutWithStages)
    assert orders(world, rollout)[-1] == (Order.RESUME, BOB, "It was the network.")


@pytest.mark.parametrize("verb", ["pause", "abort"])
def test_a_refused_order_is_not_recorded(verb: str) -> None:
    world, rollout = rolled_out()
    before = orders(world, rollout)
    assert isinstance(getattr(world.rollouts, verb)(rollout, BOB), Refused)
    assert orders(world, rollout) == before


def test_a_repeated_order_is_recorded_once() -> None:
    world = Fleet(3)
    rollout = world.start(a_spec())
    for _ in range(2):
        world.rollouts.pause(rollout, BOB)
    assert [order for order, *_ in orders(world, rollout)] == [Order.START, Order.PAUSE]


def test_an_undo_is_in_the_history_of_both_rollouts() -> None:
    world, rollout = rolled_out()
    undoing = underway(world.rollouts.start(a_spec(version=None, undo=rollout), BOB, reason="Too slow.")).id
    assert orders(world, rollout)[-1] == (Order.UNDO, BOB, "Too slow.")
    assert world.rollout_table.orders(rollout)[-1].other == undoing
    (start,) = world.rollout_table.orders(undoing)
    assert (start.order, start.other) == (Order.START, rollout)


def test_a_retry_is_in_the_history_of_both_rollouts() -> None:
    world, rollout = rolled_out(3, failing=("t001",))
    retrying = underway(world.rollouts.retry(rollout, BOB, reason="Mended.")).id
    assert orders(world, rollout)[-1] == (Order.RETRY, BOB, "Mended.")
    assert world.rollout_table.orders(rollout)[-1].other == retrying
    assert orders(world, retrying) == [(Order.START, BOB, "Mended.")]


def test_a_dry_run_of_an_undo_is_not_in_the_history_of_the_other() -> None:
    world, rollout = rolled_out()
    before = orders(world, rollout)
    world.rollouts.start(a_spec(version=None, undo=rollout, dry_run=True), BOB)
    assert orders(world, rollout) == before


def test_the_updates_of_a_rollout_have_its_reason() -> None:
    world = Fleet(1)
    rollout = underway(world.rollouts.start(a_spec(), ADA, reason="The new release.")).id
    world.advance(rollout)
    admitted = world.gate.admit(Turn(rollout, 1, world.items(rollout)[0], "child"))
    assert isinstance(admitted, Admitted)
    assert admitted.input["request"] == {"by": f"rollout/{rollout}", "reason": "The new release."}
