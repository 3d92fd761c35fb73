"""The steps of a rollout as a whole: stages, failures and halts, with concurrent writes and lost responses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from orchestrator.common.errors import Conflict, Unsettled
from orchestrator.rollouts.advancing import MAX_IDLE_ROUNDS, Bake, NotSucceeded, RunStage, Succeeded
from orchestrator.rollouts.control import RolloutWithStages
from orchestrator.rollouts.gate import AdmissionStopped, Settled
from orchestrator.rollouts.records import Result, RolloutStatus, Share, Skip, StageStatus, Turn
from orchestrator.tenants.records import Operation, Request, RootCause, Status
from tests.fakes import NEXT_VERSION, QUEUE_TABOO, VERSION, a_run, an_audit, execution_arn
from tests.fakes.noting import Noting
from tests.unit.rollouts.advances import THREE_STAGES, TWO_STAGES, admitted, first_turn, started
from tests.unit.rollouts.world import A_SECOND, THROTTLED_CAUSE, Fleet, a_spec, a_stage_spec, tenants

# Whole rollouts


def test_three_stages_from_the_canary_to_the_rest() -> None:
    world, rollout = started(30, THREE_STAGES)
    assert world.status(rollout) is RolloutStatus.PENDING

    canary = world.advance(rollout)
    assert canary == RunStage(1, f"rollouts/{rollout}/stage-1.json", 50)
    assert world.status(rollout) is RolloutStatus.RUNNING
    assert world.run_stage(rollout, canary) == [Settled(Result.SUCCEEDED)]
    assert len(world.at(NEXT_VERSION)) == 1

    baking = world.advance(rollout)
    assert isinstance(baking, Bake)
    assert world.stage(rollout).status is StageStatus.BAKING
    world.clock.advance(timedelta(seconds=60))

    few = world.advance(rollout)
    assert few == RunStage(2, f"rollouts/{rollout}/stage-2.json", 50)
    assert world.stage(rollout).status is StageStatus.DONE
    assert world.rollout(rollout).current_stage == 2
    world.run_stage(rollout, few)
    assert len(world.at(NEXT_VERSION)) == 4
    assert isinstance(world.advance(rollout), Bake)
    world.clock.advance(timedelta(seconds=120))

    rest = world.advance(rollout)
    assert rest == RunStage(3, f"rollouts/{rollout}/stage-3.json", 20)
    world.run_stage(rollout, rest)

    assert world.advance(rollout) == Succeeded()
    assert len(world.at(NEXT_VERSION)) == 30
    ended = world.rollout(rollout)
    assert (ended.status, ended.reason, ended.ended_at) == (RolloutStatus.SUCCEEDED, "", world.clock.now())
    assert [stage.succeeded for stage in world.rollout_table.stages(rollout)] == [1, 3, 26]
    assert world.rollout_table.registry().active == frozenset()


def test_the_execution_is_recorded_at_its_first_step() -> None:
    world, rollout = started()

    world.advance(rollout)

    assert world.rollout(rollout).execution == execution_arn(f"rollout-{rollout}-1")


def test_advancing_an_ended_rollout_returns_the_same_result() -> None:
    world, rollout = started()
    assert world.drive(rollout) == Succeeded()
    ended_at = world.rollout(rollout).ended_at
    world.clock.advance(timedelta(hours=1))

    assert world.advance(rollout) == Succeeded()
    assert world.rollout(rollout).ended_at == ended_at


def test_a_stage_whose_tenants_are_all_skipped_is_done() -> None:
    world, rollout = started(2, TWO_STAGES)
    for who in tenants(2):
        world.change(who, pinned_version=VERSION)

    assert world.drive(rollout) == Succeeded()
    assert {world.outcome(rollout, who).skip for who in tenants(2)} == {Skip.PINNED}


def test_a_tenant_whose_delete_is_refused_during_its_turn_is_moved() -> None:
    world, rollout = started(2)
    who = tenants(2)[0]
    delete = a_run(tenant=who, operation=Operation.DELETE, request=Request(drain_seconds=1_200))
    world.table.begin(delete, at=world.clock.now())
    assert isinstance(world.advance(rollout), RunStage)
    waiting, other = sorted(
        (Turn(rollout, 1, item, "child") for item in world.items(rollout)), key=lambda turn: turn.item.tenant != who
    )
    admitted_while_busy = admitted(world, waiting)
    world.take_turn(other)
    world.clock.advance(A_SECOND)
    world.table.fail(delete, QUEUE_TABOO, world.clock.now(), restore=True)
    world.clock.advance(A_SECOND)
    world.update(admitted_while_busy)
    assert world.gate.record(waiting) == Settled(Result.SUCCEEDED)

    assert world.drive(rollout) == Succeeded()
    assert world.at(VERSION) == []


def test_the_outcomes_of_all_tenants_are_read_at_the_end_of_each_stage_and_of_the_rollout() -> None:
    world, rollout = started(6, a_spec(a_stage_spec(Share(1)), a_stage_spec(Share(2)), a_stage_spec()))
    ledger = Noting(world.rollout_table)
    advancing = replace(world.advancing, ledger=ledger)
    execution = execution_arn(f"rollout-{rollout}-1")

    read = []
    while not isinstance(step := advancing.advance(rollout, 1, execution), Succeeded):
        read.append(ledger.called.count("outcomes"))
        ledger.called.clear()
        world.run_stage(rollout, step)

    assert [*read, ledger.called.count("outcomes")] == [0, 1, 1, 2]


def test_a_rollout_succeeds_only_if_every_tenant_has_a_recorded_outcome() -> None:
    world, rollout = started(2, a_spec(a_stage_spec(bake_seconds=60, alarm="errors")))
    world.run_stage(rollout, world.advance(rollout))
    assert isinstance(world.advance(rollout), Bake)
    del world.rollout_table._outcomes[rollout, tenants(2)[0]]
    world.clock.advance(timedelta(seconds=60))

    assert world.advance(rollout) == NotSucceeded(
        RolloutStatus.FAILED, "The outcome of 1 of 2 tenants was never recorded."
    )


def test_throttled_tenants_get_another_turn_and_do_not_count_as_failed() -> None:
    world, rollout = started(3)
    run = world.advance(rollout)
    world.run_stage(rollout, run, failing=["t002"], cause=THROTTLED_CAUSE)

    again = world.advance(rollout)

    assert isinstance(again, RunStage)
    assert [item.tenant.value for item in world.manifests.read(again.manifest)] == ["t002"]
    world.run_stage(rollout, again)
    assert world.advance(rollout) == Succeeded()


# Repeated steps


@pytest.mark.parametrize("times", [2, 3])
def test_every_step_may_be_repeated(times: int) -> None:
    world, rollout = started(30, THREE_STAGES)
    for _ in range(100):
        result = [world.advance(rollout) for _ in range(times)][-1]
        if isinstance(result, RunStage):
            world.run_stage(rollout, result)
        elif isinstance(result, Bake):
            world.bake(result)
        else:
            break

    assert result == Succeeded()
    assert len(world.at(NEXT_VERSION)) == 30
    assert all(world.metadata_of(who).version == NEXT_VERSION for who in tenants(30))
    assert {each.attempt for who in tenants(30) for each in world.table.audits(who)} == {1}, "no tenant was moved twice"


def test_a_step_that_conflicts_with_another_write_is_repeated() -> None:
    world, rollout = started()
    world.rollout_table.concurrent_writes.extend([lambda: world.touch(rollout), lambda: world.touch_stage(rollout)] * 3)

    assert isinstance(world.advance(rollout), RunStage)


def test_a_step_that_always_conflicts_raises_an_error() -> None:
    world, rollout = started()
    world.rollout_table.concurrent_writes.extend([lambda: world.touch(rollout)] * 1_000)

    with pytest.raises(Unsettled, match=rollout):
        world.advance(rollout)


def test_counts_come_from_the_tenants_rows_not_from_the_stage() -> None:
    world, rollout = started(4, a_spec(a_stage_spec(tolerated=Share(1))))
    world.run_stage(rollout, world.advance(rollout), failing=["t003"])
    world.touch_stage(rollout, succeeded=17, failed=0, skipped=9, in_flight=3)

    result = world.advance(rollout)

    assert isinstance(result, NotSucceeded)
    stage = world.stage(rollout)
    assert (stage.succeeded, stage.failed, stage.skipped, stage.in_flight) == (3, 1, 0, 0)


def test_a_failure_that_the_stage_did_not_count_still_halts_the_rollout() -> None:
    world, rollout = started(4)
    world.run_stage(rollout, world.advance(rollout), failing=["t001", "t002", "t003", "t004"])
    world.touch_stage(rollout, failed=0)

    assert isinstance(world.advance(rollout), NotSucceeded)
    assert world.status(rollout) is RolloutStatus.HALTED
    assert world.stage(rollout).failed == 1


def test_failures_that_the_stage_counted_wrongly_do_not_halt_the_rollout() -> None:
    world, rollout = started(2)
    world.run_stage(rollout, world.advance(rollout))
    world.touch_stage(rollout, failed=2, succeeded=0)

    assert world.advance(rollout) == Succeeded()


def test_only_tenants_whose_turn_was_interrupted_get_another() -> None:
    world, rollout = started(5)
    run = world.advance(rollout)
    assert isinstance(run, RunStage)
    items = world.manifests.read(run.manifest)
    for item in items[:2]:
        world.take_turn(Turn(rollout, 1, item, "child"))
    admitted(world, Turn(rollout, 1, items[2], "child"))  # Its child then dies.

    again = world.advance(rollout)

    assert isinstance(again, RunStage)
    assert world.manifests.read(again.manifest) == items[2:]
    assert again.manifest != run.manifest
    assert world.manifests.read(run.manifest) == items, "the rollout still claims all of them"
    assert world.stage(rollout).in_flight == 0
    world.run_stage(rollout, again)
    assert world.advance(rollout) == Succeeded()


def test_a_success_that_was_not_recorded_in_the_turn_is_settled_later() -> None:
    world, rollout = started(1)
    world.advance(rollout)
    world.update(admitted(world, first_turn(world, rollout)))

    assert world.advance(rollout) == Succeeded()
    assert world.outcome(rollout, "t001").from_version == VERSION


def test_a_failure_that_was_not_recorded_in_the_turn_is_settled_later() -> None:
    world, rollout = started(1)
    world.advance(rollout)
    world.update(admitted(world, first_turn(world, rollout)), cause=QUEUE_TABOO)

    result = world.advance(rollout)

    assert isinstance(result, NotSucceeded)
    assert str(QUEUE_TABOO) in result.reason
    assert world.outcome(rollout, "t001").result is Result.FAILED


def test_an_outcome_recorded_during_the_decision_is_counted() -> None:
    world, rollout = started(1)
    world.advance(rollout)
    turn = first_turn(world, rollout)
    world.update(admitted(world, turn), cause=QUEUE_TABOO)
    world.rollout_table.concurrent_writes.append(lambda: world.gate.record(turn))

    assert isinstance(world.advance(rollout), NotSucceeded)
    assert world.stage(rollout).failed == 1


def test_a_halt_records_the_number_of_failures_despite_a_concurrent_write() -> None:
    world, rollout = started(1)
    world.run_stage(rollout, world.advance(rollout), failing=["t001"])
    world.touch_stage(rollout, failed=0)
    world.rollout_table.concurrent_writes.append(lambda: world.touch_stage(rollout))

    assert isinstance(world.advance(rollout), NotSucceeded)
    assert world.stage(rollout).failed == 1, "so that a resume accepts it"


def test_a_stage_without_progress_halts_the_rollout() -> None:
    world, rollout = started(2)
    result = [world.advance(rollout) for _ in range(MAX_IDLE_ROUNDS + 1)]

    assert all(isinstance(each, RunStage) for each in result[:MAX_IDLE_ROUNDS])
    last = result[-1]
    assert isinstance(last, NotSucceeded)
    assert "none of the 2 tenants" in last.reason
    assert world.status(rollout) is RolloutStatus.HALTED


def test_a_stage_with_some_progress_continues() -> None:
    world, rollout = started(MAX_IDLE_ROUNDS * 3)
    for number in range(MAX_IDLE_ROUNDS * 3):
        assert isinstance(world.advance(rollout), RunStage)
        world.take_turn(Turn(rollout, 1, world.items(rollout)[number], "child"))

    assert world.advance(rollout) == Succeeded()


# Failures


def test_too_many_failures_halt_the_rollout_and_the_reason_names_the_first() -> None:
    world, rollout = started(5, a_spec(a_stage_spec(tolerated=Share(1))))
    order = [item.tenant.value for item in world.items(rollout)]
    run = world.advance(rollout)

    answers = world.run_stage(rollout, run, failing=order[1:3])

    assert answers == [
        Settled(Result.SUCCEEDED),
        Settled(Result.FAILED),
        Settled(Result.FAILED),
        AdmissionStopped(),
        AdmissionStopped(),
    ]
    result = world.advance(rollout)
    assert result == NotSucceeded(
        RolloutStatus.HALTED,
        f"Stage 1: 2 of 5 tenants failed, 1 were tolerated. First, tenant {order[1]}: {QUEUE_TABOO}",
    )
    assert world.rollout(rollout).reason == result.reason
    assert world.rollout_table.registry().active == frozenset(), "the rollout no longer claims its tenants"
    assert world.advance(rollout) == result


def test_a_halt_in_the_canary_stage_leaves_all_other_tenants_unchanged() -> None:
    world, rollout = started(30, THREE_STAGES)

    world.drive(rollout, failing=[who.value for who in tenants(30)])

    assert world.status(rollout) is RolloutStatus.HALTED
    assert [world.stage(rollout, number).settled for number in (1, 2, 3)] == [1, 0, 0]
    assert world.at(NEXT_VERSION) == []


def test_a_rollout_with_tolerated_failures_continues_and_ends_as_failed() -> None:
    world, rollout = started(10, a_spec(a_stage_spec(Share(5), tolerated=Share(1)), a_stage_spec()))
    one = world.items(rollout)[0].tenant.value

    result = world.drive(rollout, failing=[one])

    assert result == NotSucceeded(RolloutStatus.FAILED, "1 of 10 tenants failed, which was tolerated.")
    assert len(world.at(NEXT_VERSION)) == 9


def test_resuming_after_a_halt_accepts_the_failures_and_continues_with_the_rest() -> None:
    world, rollout = started(5)
    order = [item.tenant.value for item in world.items(rollout)]
    assert isinstance(world.drive(rollout, failing=order[:1]), NotSucceeded)

    assert isinstance(world.rollouts.resume(rollout, "ada"), RolloutWithStages)
    run = world.advance(rollout, 2)

    assert isinstance(run, RunStage)
    assert [item.tenant.value for item in world.manifests.read(run.manifest)] == order[1:]
    assert isinstance(world.drive(rollout, 2), NotSucceeded), "the first tenant has still failed"
    assert world.status(rollout) is RolloutStatus.FAILED
    assert len(world.at(NEXT_VERSION)) == 4


def test_a_further_failure_after_resuming_halts_again() -> None:
    world, rollout = started(5)
    order = [item.tenant.value for item in world.items(rollout)]
    world.drive(rollout, failing=order[:1])
    world.rollouts.resume(rollout, "ada")

    result = world.drive(rollout, 2, failing=order[2:3])

    assert isinstance(result, NotSucceeded)
    assert world.status(rollout) is RolloutStatus.HALTED
    assert world.stage(rollout).failed == 2


def test_giving_up_halts_the_rollout_and_it_can_be_resumed() -> None:
    world, rollout = started(3)
    world.advance(rollout)

    assert world.advancing.give_up(rollout, 1, "States.ItemReaderFailed: no such key") == NotSucceeded(
        RolloutStatus.HALTED, "States.ItemReaderFailed: no such key"
    )

    world.rollouts.resume(rollout, "ada")
    assert world.drive(rollout, 2) == Succeeded()


def test_giving_up_does_not_change_an_ended_rollout() -> None:
    world, rollout = started(1)
    world.drive(rollout)

    world.advancing.give_up(rollout, 1, "The response was lost.")

    assert world.status(rollout) is RolloutStatus.SUCCEEDED


def test_giving_up_while_aborting_ends_the_rollout_as_aborted() -> None:
    world, rollout = started(1)
    world.advance(rollout)
    world.rollouts.abort(rollout, "ada")

    assert world.advancing.give_up(rollout, 1, "fault").status == RolloutStatus.ABORTED
    assert world.status(rollout) is RolloutStatus.ABORTED


def test_a_long_reason_is_shortened() -> None:
    world, rollout = started(1)
    world.advance(rollout)

    world.advancing.give_up(rollout, 1, "x" * 40_000)

    assert len(world.rollout(rollout).reason) == 2_000


# Executions that died


def test_an_execution_that_died_is_replaced_by_another_attempt() -> None:
    world, rollout = started(5)
    run = world.advance(rollout)
    assert isinstance(run, RunStage)
    world.take_turn(Turn(rollout, 1, world.items(rollout)[0], "child"))
    world.rollout_executions.die(execution_arn(f"rollout-{rollout}-1"))

    assert isinstance(world.rollouts.resume(rollout, "ada"), RolloutWithStages)

    assert world.rollout(rollout).attempt == 2
    assert world.rollout_executions.started[-1] == execution_arn(f"rollout-{rollout}-2")
    assert world.drive(rollout, 2) == Succeeded()
    assert len(world.at(NEXT_VERSION)) == 5


@pytest.mark.parametrize(
    "step",
    [
        lambda world, rollout: world.advance(rollout, 1),
        lambda world, rollout: world.advancing.await_operator(rollout, 1, "token"),
        lambda world, rollout: world.advancing.give_up(rollout, 1, "fault"),
    ],
)
def test_a_replaced_execution_cannot_write(step: Callable[[Fleet, str], object]) -> None:
    world, rollout = started(5)
    world.advance(rollout)
    world.rollout_executions.die(execution_arn(f"rollout-{rollout}-1"))
    world.rollouts.resume(rollout, "ada")
    before = world.rollout(rollout), world.rollout_table.stages(rollout)

    with pytest.raises(Conflict, match=rollout):
        step(world, rollout)

    assert (world.rollout(rollout), world.rollout_table.stages(rollout)) == before


def test_advancing_an_unknown_rollout_raises_an_error() -> None:
    with pytest.raises(Conflict):
        Fleet().advance("20261116-120000-0000")


def test_an_update_of_a_dead_execution_is_waited_for_and_not_counted_twice() -> None:
    world, rollout = started(1)
    world.advance(rollout)
    left_behind = admitted(world, first_turn(world, rollout, child="dead"))
    run = world.begin_update(left_behind)
    world.rollout_executions.die(execution_arn(f"rollout-{rollout}-1"))
    world.rollouts.resume(rollout, "ada")

    again = world.advance(rollout, 2)

    assert isinstance(again, RunStage)
    assert world.outcome(rollout, "t001").result is Result.RUNNING
    second = admitted(world, first_turn(world, rollout, child="living"))
    assert second.input["attempt"] == 2
    assert world.table.begin(world.run_of(second), at=world.clock.now()) is not None, "it is busy"
    world.table.fail(run, RootCause("x", "y", "z"), world.clock.now())
    world.update(second)
    assert world.gate.record(first_turn(world, rollout, child="living")) == Settled(Result.SUCCEEDED)
    assert world.advance(rollout, 2) == Succeeded()


def test_a_tenant_that_another_operation_moved_to_a_newer_version_is_skipped() -> None:
    world, rollout = started(1)
    world.advance(rollout)
    admitted(world, first_turn(world, rollout))
    world.table.plant_audit(
        an_audit(Status.SUCCESS, Operation.UPDATE, tenant=tenants(1)[0], version="0.3.0", at=world.clock.now())
    )
    world.change(tenants(1)[0], version="0.3.0")

    assert world.advance(rollout) == Succeeded()
    assert world.outcome(rollout, "t001").skip is Skip.NEWER


# Dry runs


def test_a_dry_run_has_one_stage_and_never_halts() -> None:
    world, rollout = started(4, a_spec(*THREE_STAGES.stages, dry_run=True))

    run = world.advance(rollout)

    assert isinstance(run, RunStage)
    assert len(world.manifests.read(run.manifest)) == 4
    for item in world.manifests.read(run.manifest):
        turn = Turn(rollout, 1, item, "child")
        world.gate.admit(turn)
        world.gate.record(turn, "could not be reviewed")
    assert isinstance(world.advance(rollout), NotSucceeded)
    assert world.status(rollout) is RolloutStatus.FAILED
    assert world.at(NEXT_VERSION) == []
