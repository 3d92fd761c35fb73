"""A rollout waits: it bakes, awaits approval or an operator, is paused or aborted."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from orchestrator.rollouts.advancing import AwaitOperator, Bake, NotSucceeded, RunStage, Succeeded
from orchestrator.rollouts.control import RolloutWithStages
from orchestrator.rollouts.gate import AdmissionStopped, Settled
from orchestrator.rollouts.pacing import CHECKS_PER_BAKE
from orchestrator.rollouts.records import Result, RolloutStatus, Share, StageSpec, StageStatus, Turn
from tests.fakes import NEXT_VERSION
from tests.unit.rollouts.advances import THREE_STAGES, TWO_STAGES, admitted, started
from tests.unit.rollouts.world import A_SECOND, ADA, Fleet, a_spec, a_stage_spec

# Baking


@pytest.mark.parametrize("seconds", [1, 15, 60, 300, 3_600, 7 * 24 * 3_600])
def test_a_bake_is_checked_at_the_expected_interval(seconds: int) -> None:
    world, rollout = started(2, a_spec(a_stage_spec(Share(1), bake_seconds=seconds, alarm="errors"), a_stage_spec()))
    world.run_stage(rollout, world.advance(rollout))
    ended = world.clock.now()

    looks = 0
    while isinstance(result := world.advance(rollout), Bake):
        assert result.seconds >= 1
        world.bake(result)
        looks += 1

    assert isinstance(result, RunStage)
    assert 1 <= looks <= CHECKS_PER_BAKE
    assert world.clock.now() - ended == timedelta(seconds=seconds)


@pytest.mark.parametrize("stages", [(THREE_STAGES.stages[0],), THREE_STAGES.stages], ids=["one", "three"])
def test_there_is_no_bake_after_the_last_stage_that_has_tenants(stages: tuple[StageSpec, ...]) -> None:
    world, rollout = started(1, a_spec(*stages))
    world.run_stage(rollout, world.advance(rollout))

    assert world.advance(rollout) == Succeeded()
    assert world.rollout_table.registry().active == frozenset()


def test_the_last_stage_bakes_while_its_alarm_is_watched() -> None:
    world, rollout = started(1, a_spec(a_stage_spec(bake_seconds=60, alarm="errors")))
    world.run_stage(rollout, world.advance(rollout))
    world.bake(world.advance(rollout))
    world.alarms.sound("errors", "Threshold crossed.", at=world.clock.now())

    assert isinstance(world.advance(rollout), NotSucceeded)
    assert world.status(rollout) is RolloutStatus.HALTED


def test_without_a_bake_the_next_stage_starts_at_once() -> None:
    world, rollout = started(2, TWO_STAGES)
    world.run_stage(rollout, world.advance(rollout))

    result = world.advance(rollout)

    assert isinstance(result, RunStage)
    assert result.stage == 2


def test_an_alarm_during_the_bake_halts_the_rollout_with_the_alarms_reason() -> None:
    world, rollout = started(2, a_spec(a_stage_spec(Share(1), bake_seconds=60, alarm="errors"), a_stage_spec()))
    world.run_stage(rollout, world.advance(rollout))
    world.bake(world.advance(rollout))
    world.alarms.alarms["errors"] = "Threshold Crossed"

    result = world.advance(rollout)

    assert result == NotSucceeded(
        RolloutStatus.HALTED, "Stage 1: the alarm errors went off during the bake: Threshold Crossed"
    )
    assert len(world.at(NEXT_VERSION)) == 1


def test_an_alarm_is_checked_even_with_a_bake_of_zero_seconds() -> None:
    world, rollout = started(2, a_spec(a_stage_spec(Share(1), alarm="errors"), a_stage_spec()))
    world.alarms.alarms["errors"] = "Threshold Crossed"

    assert isinstance(world.drive(rollout), NotSucceeded)
    assert len(world.at(NEXT_VERSION)) == 1


def test_a_resumed_rollout_halts_again_while_the_alarm_is_on() -> None:
    world, rollout = started(2, a_spec(a_stage_spec(Share(1), bake_seconds=60, alarm="errors"), a_stage_spec()))
    world.alarms.alarms["errors"] = "Threshold Crossed"
    world.drive(rollout)
    world.rollouts.resume(rollout, "ada")
    assert isinstance(world.drive(rollout, 2), NotSucceeded)

    world.alarms.alarms["errors"] = None
    world.rollouts.resume(rollout, "ada")

    assert world.drive(rollout, 3) == Succeeded()


BAKED_FOR_A_DAY = a_spec(a_stage_spec(Share(1), bake_seconds=86_400, alarm="errors"), a_stage_spec())


def baking() -> tuple[Fleet, str]:
    world, rollout = started(2, BAKED_FOR_A_DAY)
    world.alarms.sound("errors", "Before its time.", at=world.clock.now())
    world.alarms.recover("errors")
    world.clock.advance(A_SECOND)
    world.run_stage(rollout, world.advance(rollout))
    assert isinstance(world.advance(rollout), Bake)
    return world, rollout


def sounds_and_recovers(world: Fleet) -> None:
    world.clock.advance(timedelta(minutes=1))
    world.alarms.sound("errors", "Threshold Crossed", at=world.clock.now())
    world.clock.advance(timedelta(minutes=10))
    world.alarms.recover("errors")


HALTED_BY_THE_ALARM = NotSucceeded(
    RolloutStatus.HALTED, "Stage 1: the alarm errors went off during the bake: Threshold Crossed"
)


def test_an_alarm_that_recovers_between_two_checks_halts_the_rollout() -> None:
    world, rollout = baking()
    sounds_and_recovers(world)

    assert world.drive(rollout) == HALTED_BY_THE_ALARM
    assert len(world.at(NEXT_VERSION)) == 1


def test_an_alarm_that_recovers_during_a_pause_halts_the_rollout_after_the_resume() -> None:
    world, rollout = baking()
    world.rollouts.pause(rollout, "ada")
    assert world.advance(rollout) == AwaitOperator()
    sounds_and_recovers(world)
    world.clock.advance(timedelta(days=2))
    world.rollouts.resume(rollout, "ada")

    assert world.drive(rollout) == HALTED_BY_THE_ALARM


def test_an_alarm_just_before_the_last_check_halts_the_rollout() -> None:
    world, rollout = baking()
    world.clock.advance(timedelta(days=1))
    world.alarms.sound("errors", "Threshold Crossed", at=world.clock.now())
    world.alarms.recover("errors")

    assert world.drive(rollout) == HALTED_BY_THE_ALARM


def test_an_alarm_that_recovered_before_the_stage_ended_does_not_halt_the_rollout() -> None:
    world, rollout = baking()

    assert world.drive(rollout) == Succeeded()


def test_an_alarm_that_the_operator_has_seen_does_not_halt_the_rollout_again() -> None:
    world, rollout = baking()
    sounds_and_recovers(world)
    world.drive(rollout)
    world.clock.advance(A_SECOND)
    world.rollouts.resume(rollout, "ada")

    assert world.drive(rollout, 2) == Succeeded()


def test_an_alarm_after_the_resume_halts_the_rollout_again() -> None:
    world, rollout = baking()
    sounds_and_recovers(world)
    world.drive(rollout)
    world.rollouts.resume(rollout, "ada")
    assert isinstance(world.advance(rollout, 2), Bake)
    sounds_and_recovers(world)

    assert world.drive(rollout, 2) == HALTED_BY_THE_ALARM


def test_an_alarm_that_no_stage_names_does_not_halt_the_rollout() -> None:
    world, rollout = started(2, a_spec(a_stage_spec(Share(1), bake_seconds=60), a_stage_spec()))
    world.alarms.alarms["errors"] = "Threshold Crossed"

    assert world.drive(rollout) == Succeeded()


# Approval


APPROVED_REST = a_spec(a_stage_spec(Share(1)), a_stage_spec(approval=True))


def test_a_stage_that_needs_approval_waits_for_it() -> None:
    world, rollout = started(3, APPROVED_REST)

    assert world.drive(rollout) == AwaitOperator()
    assert world.advance(rollout) == AwaitOperator()
    assert world.stage(rollout, 2).status is StageStatus.AWAITING_APPROVAL
    assert len(world.at(NEXT_VERSION)) == 1

    assert isinstance(world.rollouts.approve(rollout, 2, ADA), RolloutWithStages)
    assert world.drive(rollout) == Succeeded()
    assert world.stage(rollout, 2).approved_by == ADA


def test_the_first_stage_may_need_approval_too() -> None:
    world, rollout = started(1, a_spec(a_stage_spec(approval=True)))

    assert world.advance(rollout) == AwaitOperator()


# Waiting for an operator


def test_an_approval_wakes_the_waiting_execution() -> None:
    world, rollout = started(3, APPROVED_REST)
    world.drive(rollout)

    world.advancing.await_operator(rollout, 1, "token")
    assert world.rollout_executions.woken == []

    world.rollouts.approve(rollout, 2, ADA)
    assert world.rollout_executions.woken == ["token"]


def test_an_execution_that_begins_to_wait_after_the_approval_is_woken_at_once() -> None:
    world, rollout = started(3, APPROVED_REST)
    world.drive(rollout)
    world.rollout_table.concurrent_writes.append(lambda: world.rollouts.approve(rollout, 2, ADA))

    world.advancing.await_operator(rollout, 1, "token")

    assert "token" in world.rollout_executions.woken


def test_an_execution_that_begins_to_wait_during_the_approval_is_woken() -> None:
    world, rollout = started(3, APPROVED_REST)
    world.drive(rollout)
    world.rollout_table.concurrent_writes.append(lambda: world.advancing.await_operator(rollout, 1, "token"))

    world.rollouts.approve(rollout, 2, ADA)

    assert "token" in world.rollout_executions.woken


@pytest.mark.parametrize("verb", ["resume", "abort"])
def test_an_execution_that_begins_to_wait_during_an_order_is_woken(verb: str) -> None:
    world, rollout = started(3)
    world.advance(rollout)
    world.rollouts.pause(rollout, "ada")
    world.rollout_table.concurrent_writes.append(lambda: world.advancing.await_operator(rollout, 1, "token"))

    getattr(world.rollouts, verb)(rollout, "ada")

    assert "token" in world.rollout_executions.woken


def test_the_task_token_may_be_stored_twice() -> None:
    world, rollout = started(3)
    world.advance(rollout)
    world.rollouts.pause(rollout, "ada")

    for _ in range(2):
        world.advancing.await_operator(rollout, 1, "token")

    assert world.rollout(rollout).task_token == "token"
    assert world.rollout_executions.woken == []


def test_an_execution_that_need_not_wait_is_woken_at_once() -> None:
    world, rollout = started(3)
    world.advance(rollout)

    world.advancing.await_operator(rollout, 1, "token")

    assert world.rollout_executions.woken == ["token"]
    assert world.rollout(rollout).task_token is None


# Pausing and aborting at every step

MOMENTS = a_spec(
    a_stage_spec(Share(1), bake_seconds=60, approval=True),
    a_stage_spec(bake_seconds=30, approval=True, alarm="errors"),
)


def play(world: Fleet, rollout: str, at: int, interrupt: Callable[[], object]) -> object:
    """Run a whole rollout, with an operator's order after that many steps."""
    interrupted = False
    for step in range(200):
        if step == at:
            interrupt()
            interrupted = True
        result = world.advance(rollout)
        match result:
            case RunStage():
                items = list(world.manifests.read(result.manifest))
                if items:  # One tenant at a time, so that the order can come between any two of them.
                    world.take_turn(Turn(rollout, result.stage, items[0], f"child/{step}"))
            case Bake():
                world.bake(result)
            case AwaitOperator() if interrupted and world.status(rollout) is RolloutStatus.PAUSED:
                before = world.at(NEXT_VERSION)
                assert world.advance(rollout) == AwaitOperator()
                assert world.at(NEXT_VERSION) == before
                world.rollouts.resume(rollout, "ada")
            case AwaitOperator():
                world.rollouts.approve(rollout, world.rollout(rollout).current_stage, ADA)
            case _:
                assert interrupted
                return result
    raise AssertionError("The rollout never ends.")


@pytest.mark.parametrize("moment", range(13))
def test_a_rollout_paused_at_any_step_waits_and_then_succeeds(moment: int) -> None:
    world, rollout = started(4, MOMENTS)

    assert play(world, rollout, moment, lambda: world.rollouts.pause(rollout, "ada")) == Succeeded()
    assert len(world.at(NEXT_VERSION)) == 4


@pytest.mark.parametrize("moment", range(13))
def test_a_rollout_aborted_at_any_step_ends_as_aborted_and_moves_no_further_tenant(moment: int) -> None:
    world, rollout = started(4, MOMENTS)
    moved: list[str] = []

    def abort() -> None:
        moved.extend(world.at(NEXT_VERSION))
        assert isinstance(world.rollouts.abort(rollout, "ada"), RolloutWithStages)

    result = play(world, rollout, moment, abort)

    assert result == NotSucceeded(RolloutStatus.ABORTED, "Aborted by ada.")
    assert world.at(NEXT_VERSION) == moved
    assert world.rollout_table.registry().active == frozenset()


def test_after_a_pause_updates_in_flight_finish_and_no_other_starts() -> None:
    world, rollout = started(3)
    world.advance(rollout)
    first, second = (Turn(rollout, 1, item, "child") for item in world.items(rollout)[:2])
    run = admitted(world, first)

    world.rollouts.pause(rollout, "ada")

    assert world.gate.admit(second) == AdmissionStopped()
    world.update(run)
    assert world.gate.record(first) == Settled(Result.SUCCEEDED)
    assert world.advance(rollout) == AwaitOperator()
