"""Orders to a rollout that is under way: ending a wait early, and another pace."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from orchestrator.rollouts.advancing import AwaitOperator, Bake, NotSucceeded, RunStage
from orchestrator.rollouts.control import Changed, RolloutWithStages
from orchestrator.rollouts.gate import AdmissionStopped, Admitted, Settled
from orchestrator.rollouts.pacing import REACTION_TIME, Pace
from orchestrator.rollouts.records import (
    NewPace,
    Order,
    Result,
    RolloutStatus,
    Share,
    Spec,
    StageStatus,
    Turn,
)
from orchestrator.tenants.admission import Refusal, Refused
from orchestrator.tenants.order_results import Unchanged
from tests.unit.rollouts.world import ADA, BOB, Fleet, a_spec, a_stage_spec

BAKED = a_spec(a_stage_spec(Share(1), bake_seconds=600), a_stage_spec())
WATCHED = a_spec(a_stage_spec(Share(1), bake_seconds=600, alarm="errors"), a_stage_spec())
APPROVED = a_spec(a_stage_spec(Share(1)), a_stage_spec(approval=True))
FASTER = NewPace(max_concurrency=80)


def baking(spec: Spec = BAKED) -> tuple[Fleet, str]:
    """A rollout whose first stage bakes."""
    world = Fleet(4)
    rollout = world.start(spec)
    world.run_stage(rollout, world.advance(rollout))
    assert isinstance(world.advance(rollout), Bake)
    return world, rollout


def history(world: Fleet, rollout: str) -> list[tuple[Order, str, int | None, str, str]]:
    orders = world.rollout_table.orders(rollout)[1:]
    return [(each.order, each.by, each.stage, each.detail, each.reason) for each in orders]


class TestPromote:
    def test_the_rest_of_a_bake_is_skipped_and_recorded_under_the_operators_name(self) -> None:
        world, rollout = baking()
        promoted = world.rollout_adjusting.promote(rollout, 1, BOB, reason="All is well.")
        assert isinstance(promoted, RolloutWithStages)
        assert world.advance(rollout) == RunStage(2, f"rollouts/{rollout}/stage-2.json", 50)
        assert history(world, rollout) == [(Order.PROMOTE, BOB, 1, "", "All is well.")]

    def test_a_promotion_does_not_silence_the_alarm(self) -> None:
        world, rollout = baking(WATCHED)
        world.alarms.sound("errors", "Threshold crossed.", at=world.clock.now())
        world.rollout_adjusting.promote(rollout, 1, BOB)
        assert isinstance(world.advance(rollout), NotSucceeded)
        assert world.status(rollout) is RolloutStatus.HALTED

    def test_a_stage_that_awaits_approval_begins_only_if_the_promotion_approves_it(self) -> None:
        world = Fleet(4)
        rollout = world.start(APPROVED)
        assert world.drive(rollout) == AwaitOperator()
        world.advancing.await_operator(rollout, 1, "token")
        refused = world.rollout_adjusting.promote(rollout, 2, BOB)
        assert isinstance(refused, Refused)
        assert refused.kind is Refusal.NOTHING_TO_PROMOTE
        assert refused.reason.endswith(f"Approve it: berth rollout approve {rollout} --stage 2")
        assert (history(world, rollout), world.rollout_executions.woken) == ([], [])
        assert isinstance(world.rollout_adjusting.promote(rollout, 2, BOB, approve=True), RolloutWithStages)
        assert world.rollout_executions.woken == ["token"]
        assert world.stage(rollout, 2).approved_by == BOB
        assert isinstance(world.advance(rollout), RunStage)
        assert history(world, rollout) == [(Order.PROMOTE, BOB, 2, "", "")]

    def test_a_repeated_promotion_skips_one_wait_only(self) -> None:
        world, rollout = baking(a_spec(*BAKED.stages[:1], a_stage_spec(Share(1), bake_seconds=600), a_stage_spec()))
        world.rollout_adjusting.promote(rollout, 1, BOB)
        assert isinstance(world.rollout_adjusting.promote(rollout, 1, BOB), Unchanged)
        world.run_stage(rollout, world.advance(rollout))
        assert isinstance(world.rollout_adjusting.promote(rollout, 1, BOB), Unchanged)
        assert isinstance(world.advance(rollout), Bake)
        assert len(history(world, rollout)) == 1

    @pytest.mark.parametrize("number", [1, 2, 9])
    def test_a_stage_that_does_not_wait_is_not_promoted(self, number: int) -> None:
        world = Fleet(4)
        rollout = world.start(BAKED)
        world.advance(rollout)
        refused = world.rollout_adjusting.promote(rollout, number, BOB)
        assert isinstance(refused, Refused)
        assert refused.kind is Refusal.NOTHING_TO_PROMOTE
        assert history(world, rollout) == []

    def test_a_paused_rollout_continues_after_the_pause(self) -> None:
        world, rollout = baking()
        world.rollouts.pause(rollout, BOB)
        assert isinstance(world.rollout_adjusting.promote(rollout, 1, BOB), RolloutWithStages)
        assert world.advance(rollout) == AwaitOperator()
        world.rollouts.resume(rollout, BOB)
        assert isinstance(world.advance(rollout), RunStage)


class TestChange:
    def test_stages_that_are_left_are_changed_and_it_is_recorded(self) -> None:
        world, rollout = baking()
        new = NewPace(max_concurrency=7, tolerated=Share(50, percent=True), bake_seconds=30)
        assert isinstance(world.rollout_adjusting.change(rollout, new, BOB, reason="Slow down."), RolloutWithStages)
        first, second = world.rollout_table.stages(rollout)
        assert (first.spec.bake_seconds, second.spec.bake_seconds) == (30, 0)  # No stage follows the second.
        assert second.spec.max_concurrency == 7
        assert second.pace == Pace.initial(7)
        assert second.tolerated == 1
        assert history(world, rollout) == [
            (Order.CHANGE, BOB, None, "at once: 7, may fail: 50%, bake seconds: 30", "Slow down.")
        ]

    def test_stages_that_are_done_stay_as_they_were(self) -> None:
        world, rollout = baking()
        world.rollout_adjusting.promote(rollout, 1, BOB)
        world.advance(rollout)
        world.rollout_adjusting.change(rollout, NewPace(max_concurrency=7), BOB)
        first, second = world.rollout_table.stages(rollout)
        assert (first.spec.max_concurrency, second.spec.max_concurrency) == (50, 7)

    @pytest.mark.parametrize("seconds", [0, 60, 900])
    def test_a_bake_under_way_is_shortened_or_extended(self, seconds: int) -> None:
        world, rollout = baking()
        began = world.clock.now()
        world.rollout_adjusting.change(rollout, NewPace(bake_seconds=seconds), BOB)
        while isinstance(step := world.advance(rollout), Bake):
            world.bake(step)
        assert isinstance(step, RunStage)
        assert world.clock.now() - began == timedelta(seconds=seconds)

    def test_a_lower_tolerance_halts_the_rollout_at_its_next_step(self) -> None:
        world = Fleet(4)
        rollout = world.start(a_spec(a_stage_spec(tolerated=Share(2))))
        world.run_stage(rollout, world.advance(rollout), failing=["t001"])
        world.rollout_adjusting.change(rollout, NewPace(tolerated=Share(0)), BOB)
        assert isinstance(world.advance(rollout), NotSucceeded)
        assert world.status(rollout) is RolloutStatus.HALTED

    def test_a_lower_concurrency_applies_to_the_next_admission(self) -> None:
        world = Fleet(4)
        rollout = world.start(a_spec(a_stage_spec(at_once=2)))
        world.advance(rollout)
        first, second, *_ = (Turn(rollout, 1, item, "child") for item in world.items(rollout))
        assert isinstance(world.gate.admit(first), Admitted)
        world.rollout_adjusting.change(rollout, NewPace(max_concurrency=1), BOB)
        assert not isinstance(world.gate.admit(second), Admitted)

    def test_with_a_higher_concurrency_the_map_is_started_again(self) -> None:
        world = Fleet(4)
        rollout = world.start(a_spec(a_stage_spec(at_once=2)))
        assert world.advance(rollout) == RunStage(1, f"rollouts/{rollout}/stage-1.json", 2)
        first, second, *_ = (Turn(rollout, 1, item, "child") for item in world.items(rollout))
        admitted = world.gate.admit(first)
        assert isinstance(admitted, Admitted)
        world.rollout_adjusting.change(rollout, FASTER, BOB)
        assert world.gate.admit(second) == AdmissionStopped()
        world.update(admitted)
        assert world.gate.record(first) == Settled(Result.SUCCEEDED)
        again = world.advance(rollout)
        assert isinstance(again, RunStage)
        assert (again.max_concurrency, len(world.manifests.read(again.manifest))) == (80, 3)
        assert isinstance(world.gate.admit(second), Admitted)

    def test_the_same_pace_changes_nothing(self) -> None:
        world, rollout = baking()
        assert isinstance(world.rollout_adjusting.change(rollout, NewPace(bake_seconds=600), BOB), Unchanged)
        assert history(world, rollout) == []

    def test_a_turn_at_the_same_time_is_not_undone(self) -> None:
        world = Fleet(2)
        rollout = world.start()
        world.advance(rollout)
        turn = Turn(rollout, 1, world.items(rollout)[0], "child")
        world.rollout_table.concurrent_writes.append(lambda: world.gate.admit(turn))
        world.rollout_adjusting.change(rollout, FASTER, BOB)
        assert (world.stage(rollout).in_flight, world.stage(rollout).spec.max_concurrency) == (1, 80)


ORDERS: list[Callable[[Fleet, str], Changed]] = [
    lambda world, rollout: world.rollout_adjusting.promote(rollout, 1, ADA),
    lambda world, rollout: world.rollout_adjusting.change(rollout, FASTER, ADA),
]


@pytest.mark.parametrize("order", ORDERS, ids=["promote", "change"])
@pytest.mark.parametrize("status", [each for each in RolloutStatus if not each.active] + [RolloutStatus.ABORTING])
def test_a_rollout_that_is_over_takes_no_orders(status: RolloutStatus, order: Callable[[Fleet, str], Changed]) -> None:
    world, rollout = baking()
    world.touch(rollout, status=status)
    refused = order(world, rollout)
    assert isinstance(refused, Refused)
    assert refused.kind is Refusal.ROLLOUT_OVER
    assert world.stage(rollout).status is StageStatus.BAKING


@pytest.mark.parametrize("order", ORDERS, ids=["promote", "change"])
def test_an_unknown_rollout(order: Callable[[Fleet, str], Changed]) -> None:
    refused = order(Fleet(), "20261116-120000-ffff")
    assert isinstance(refused, Refused)
    assert refused.kind is Refusal.UNKNOWN_ROLLOUT


def test_a_turn_that_stores_throttles_does_not_undo_a_lower_concurrency() -> None:
    world = Fleet(12)
    rollout = world.start(a_spec(a_stage_spec(at_once=50)))
    world.advance(rollout)
    world.clock.advance(REACTION_TIME)
    world.throttling.count += 1
    slower = NewPace(max_concurrency=2)
    world.rollout_table.concurrent_writes.append(lambda: world.rollout_adjusting.change(rollout, slower, ADA))
    turns = [Turn(rollout, 1, item, f"child/{item.tenant}") for item in world.items(rollout)]

    admissions = [world.gate.admit(turn) for turn in turns]

    pace = world.stage(rollout).pace
    assert (pace.ceiling, pace.at_once, pace.throttles_seen) == (2, 2, 1)
    # The first turn has read the stage before the change.
    assert sum(isinstance(admission, Admitted) for admission in admissions) == 2


def test_a_concurrency_that_does_not_apply_can_be_ordered_again() -> None:
    world = Fleet(2)
    rollout = world.start(a_spec(a_stage_spec(at_once=2)))
    world.advance(rollout)
    world.touch_stage(rollout, pace=Pace.initial(50))

    assert isinstance(world.rollout_adjusting.change(rollout, NewPace(max_concurrency=2), ADA), RolloutWithStages)

    assert world.stage(rollout).pace.ceiling == 2
    assert isinstance(world.rollout_adjusting.change(rollout, NewPace(max_concurrency=2), ADA), Unchanged)
