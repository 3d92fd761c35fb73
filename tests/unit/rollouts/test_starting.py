"""Operators start rollouts: plans, dry runs, conflicts, and starts that fail half-way."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.common.errors import Throttled, Unsettled
from orchestrator.common.times import ID_PATTERN
from orchestrator.rollouts.advancing import NotSucceeded, RunStage, Succeeded
from orchestrator.rollouts.control import NothingToDo
from orchestrator.rollouts.pacing import Pace
from orchestrator.rollouts.records import Rollout, RolloutStatus, Share, Skip, Skipped, Spec, Stage
from orchestrator.tenants.admission import Refusal, Refused
from tests.fakes import NEXT_VERSION, VERSION, execution_arn
from tests.unit.rollouts.ordering import naming, refused, underway
from tests.unit.rollouts.world import ADA, BOB, LAST_VERSION, Fleet, a_rollout, a_spec, a_stage_spec, tenant, tenants

TEN_PERCENT = Share(10, percent=True)


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
