"""What comes next for a rollout as a whole: stages, bakes, approvals, halts; and that nothing is lost on the way."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from orchestrator.common.errors import Conflict, Unsettled
from orchestrator.rollouts.advancing import (
    CHECKS_PER_BAKE,
    MOST_IDLE_ROUNDS,
    AwaitOperator,
    Bake,
    NotSucceeded,
    RunStage,
    Succeeded,
)
from orchestrator.rollouts.control import Underway
from orchestrator.rollouts.gate import Admitted, NoMore, Settled
from orchestrator.rollouts.records import Result, RolloutStatus, Share, Skip, StageStatus, TenantOutcome, Turn, Wish
from orchestrator.tenants.records import Operation, Request, RootCause, Status
from tests.fakes import NEXT_VERSION, QUEUE_TABOO, VERSION, a_run, an_audit, execution_arn
from tests.unit.rollouts.world import (
    A_SECOND,
    ADA,
    THROTTLED_CAUSE,
    World,
    a_stage_wish,
    a_wish,
    tenants,
)

TEN_PERCENT = Share(10, percent=True)
THREE_STAGES = a_wish(
    a_stage_wish(Share(1), bake_seconds=60),
    a_stage_wish(TEN_PERCENT, bake_seconds=120, tolerated=Share(1)),
    a_stage_wish(at_once=20, tolerated=Share(5, percent=True)),
)
TWO_STAGES = a_wish(a_stage_wish(Share(1)), a_stage_wish())


def started(count: int = 3, wish: Wish | None = None) -> tuple[World, str]:
    world = World(count)
    return world, world.start(wish)


def first_turn(world: World, rollout: str, *, child: str = "child") -> Turn:
    return Turn(rollout, 1, world.items(rollout)[0], child)


def admitted(world: World, turn: Turn) -> Admitted:
    answer = world.gate.admit(turn)
    assert isinstance(answer, Admitted), answer
    return answer


# The whole story


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
    assert [stage.succeeded for stage in world.ledger.stages(rollout)] == [1, 3, 26]
    assert world.ledger.registry().active == frozenset()


def test_the_execution_is_written_down_at_its_first_step() -> None:
    world, rollout = started()

    world.advance(rollout)

    assert world.rollout(rollout).execution == execution_arn(f"rollout-{rollout}-1")


def test_asking_again_after_it_is_over_gives_the_same_answer() -> None:
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


def test_who_was_being_deleted_when_the_rollout_came_by_is_moved_once_the_delete_was_refused() -> None:
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


def test_a_rollout_that_did_not_wait_for_a_busy_tenant_has_not_succeeded() -> None:
    """Rows of an earlier version, which a rollout goes on with."""
    world, rollout = started(2)
    world.advance(rollout)
    busy, other = (Turn(rollout, 1, item, "child") for item in world.items(rollout))
    row = TenantOutcome(rollout, 1, busy.item, Result.SKIPPED, world.clock.now(), skip=Skip.BUSY)
    assert world.ledger.record(world.stage(rollout), row)
    world.take_turn(other)

    assert world.drive(rollout) == NotSucceeded(
        RolloutStatus.FAILED, "1 of 2 tenants were skipped because they were busy."
    )


def test_a_rollout_has_succeeded_only_if_every_tenants_own_row_says_so() -> None:
    world, rollout = started(2, a_wish(a_stage_wish(bake_seconds=60)))
    world.run_stage(rollout, world.advance(rollout))
    assert isinstance(world.advance(rollout), Bake)
    del world.ledger._outcomes[rollout, tenants(2)[0]]
    world.clock.advance(timedelta(seconds=60))

    assert world.advance(rollout) == NotSucceeded(
        RolloutStatus.FAILED, "The outcome of 1 of 2 tenants was never recorded."
    )


def test_tenants_that_are_throttled_come_again_and_fail_nothing() -> None:
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
def test_every_step_may_be_repeated_because_its_answer_was_lost(times: int) -> None:
    world, rollout = started(30, THREE_STAGES)
    for _ in range(100):
        told = [world.advance(rollout) for _ in range(times)][-1]
        if isinstance(told, RunStage):
            world.run_stage(rollout, told)
        elif isinstance(told, Bake):
            world.bake(told)
        else:
            break

    assert told == Succeeded()
    assert len(world.at(NEXT_VERSION)) == 30
    assert all(world.metadata(who).version == NEXT_VERSION for who in tenants(30))
    assert {each.attempt for who in tenants(30) for each in world.table.audits(who)} == {1}, "nobody was moved twice"


def test_a_step_that_others_write_before_is_taken_again() -> None:
    world, rollout = started()
    world.ledger.meddlers.extend([lambda: world.touch(rollout), lambda: world.touch_stage(rollout)] * 3)

    assert isinstance(world.advance(rollout), RunStage)


def test_a_step_that_others_never_let_through_says_so() -> None:
    world, rollout = started()
    world.ledger.meddlers.extend([lambda: world.touch(rollout)] * 1_000)

    with pytest.raises(Unsettled, match=rollout):
        world.advance(rollout)


def test_counts_come_from_the_tenants_rows_whatever_the_stage_says() -> None:
    world, rollout = started(4, a_wish(a_stage_wish(tolerated=Share(1))))
    world.run_stage(rollout, world.advance(rollout), failing=["t003"])
    world.touch_stage(rollout, succeeded=17, failed=0, skipped=9, in_flight=3)

    told = world.advance(rollout)

    assert isinstance(told, NotSucceeded)
    stage = world.stage(rollout)
    assert (stage.succeeded, stage.failed, stage.skipped, stage.in_flight) == (3, 1, 0, 0)


def test_a_stage_that_lost_count_of_a_failure_halts_nevertheless() -> None:
    world, rollout = started(4)
    world.run_stage(rollout, world.advance(rollout), failing=["t001", "t002", "t003", "t004"])
    world.touch_stage(rollout, failed=0)

    assert isinstance(world.advance(rollout), NotSucceeded)
    assert world.status(rollout) is RolloutStatus.HALTED
    assert world.stage(rollout).failed == 1


def test_a_stage_that_counted_failures_that_were_none_does_not_halt() -> None:
    world, rollout = started(2)
    world.run_stage(rollout, world.advance(rollout))
    world.touch_stage(rollout, failed=2, succeeded=0)

    assert world.advance(rollout) == Succeeded()


def test_only_those_are_left_whose_turn_was_cut_short() -> None:
    world, rollout = started(5)
    run = world.advance(rollout)
    assert isinstance(run, RunStage)
    items = world.manifests.read(run.manifest)
    for item in items[:2]:
        world.take_turn(Turn(rollout, 1, item, "child"))
    admitted(world, Turn(rollout, 1, items[2], "child"))  # And then its child died.

    again = world.advance(rollout)

    assert isinstance(again, RunStage)
    assert world.manifests.read(again.manifest) == items[2:]
    assert again.manifest != run.manifest
    assert world.manifests.read(run.manifest) == items, "it still has a claim on all of them"
    assert world.stage(rollout).in_flight == 0
    world.run_stage(rollout, again)
    assert world.advance(rollout) == Succeeded()


def test_who_arrived_without_anybody_recording_it_is_settled() -> None:
    world, rollout = started(1)
    world.advance(rollout)
    world.update(admitted(world, first_turn(world, rollout)))

    assert world.advance(rollout) == Succeeded()
    assert world.outcome(rollout, "t001").from_version == VERSION


def test_who_failed_without_anybody_recording_it_is_settled() -> None:
    world, rollout = started(1)
    world.advance(rollout)
    world.update(admitted(world, first_turn(world, rollout)), cause=QUEUE_TABOO)

    told = world.advance(rollout)

    assert isinstance(told, NotSucceeded)
    assert str(QUEUE_TABOO) in told.reason
    assert world.outcome(rollout, "t001").result is Result.FAILED


def test_what_is_settled_while_it_is_decided_is_seen() -> None:
    world, rollout = started(1)
    world.advance(rollout)
    turn = first_turn(world, rollout)
    world.update(admitted(world, turn), cause=QUEUE_TABOO)
    world.ledger.meddlers.append(lambda: world.gate.record(turn))

    assert isinstance(world.advance(rollout), NotSucceeded)
    assert world.stage(rollout).failed == 1


def test_when_it_halts_the_stage_says_how_many_failed_also_if_others_write_meanwhile() -> None:
    world, rollout = started(1)
    world.run_stage(rollout, world.advance(rollout), failing=["t001"])
    world.touch_stage(rollout, failed=0)
    world.ledger.meddlers.append(lambda: world.touch_stage(rollout))

    assert isinstance(world.advance(rollout), NotSucceeded)
    assert world.stage(rollout).failed == 1, "or resuming would not forgive it"


def test_a_stage_that_makes_no_progress_halts() -> None:
    world, rollout = started(2)
    told = [world.advance(rollout) for _ in range(MOST_IDLE_ROUNDS + 1)]

    assert all(isinstance(each, RunStage) for each in told[:MOST_IDLE_ROUNDS])
    last = told[-1]
    assert isinstance(last, NotSucceeded)
    assert "none of the 2 tenants" in last.reason
    assert world.status(rollout) is RolloutStatus.HALTED


def test_a_stage_that_makes_some_progress_goes_on() -> None:
    world, rollout = started(MOST_IDLE_ROUNDS * 3)
    for number in range(MOST_IDLE_ROUNDS * 3):
        assert isinstance(world.advance(rollout), RunStage)
        world.take_turn(Turn(rollout, 1, world.items(rollout)[number], "child"))

    assert world.advance(rollout) == Succeeded()


# Failures


def test_too_many_failures_halt_it_with_the_reason_and_the_first_of_them() -> None:
    world, rollout = started(5, a_wish(a_stage_wish(tolerated=Share(1))))
    order = [item.tenant.value for item in world.items(rollout)]
    run = world.advance(rollout)

    answers = world.run_stage(rollout, run, failing=order[1:3])

    assert answers == [
        Settled(Result.SUCCEEDED),
        Settled(Result.FAILED),
        Settled(Result.FAILED),
        NoMore(),
        NoMore(),
    ]
    told = world.advance(rollout)
    assert told == NotSucceeded(
        RolloutStatus.HALTED,
        f"Stage 1: 2 of 5 tenants failed, 1 were tolerated. First, tenant {order[1]}: {QUEUE_TABOO}",
    )
    assert world.rollout(rollout).reason == told.reason
    assert world.ledger.registry().active == frozenset(), "it has no claim on its tenants any more"
    assert world.advance(rollout) == told


def test_a_halt_in_the_canary_keeps_everybody_else_where_they_are() -> None:
    world, rollout = started(30, THREE_STAGES)

    world.drive(rollout, failing=[who.value for who in tenants(30)])

    assert world.status(rollout) is RolloutStatus.HALTED
    assert [world.stage(rollout, number).settled for number in (1, 2, 3)] == [1, 0, 0]
    assert world.at(NEXT_VERSION) == []


def test_failures_that_are_tolerated_let_it_go_on_and_it_ends_as_failed() -> None:
    world, rollout = started(10, a_wish(a_stage_wish(Share(5), tolerated=Share(1)), a_stage_wish()))
    one = world.items(rollout)[0].tenant.value

    told = world.drive(rollout, failing=[one])

    assert told == NotSucceeded(RolloutStatus.FAILED, "1 of 10 tenants failed, which was tolerated.")
    assert len(world.at(NEXT_VERSION)) == 9


def test_resuming_after_a_halt_forgives_what_was_seen_and_goes_on_with_the_rest() -> None:
    world, rollout = started(5)
    order = [item.tenant.value for item in world.items(rollout)]
    assert isinstance(world.drive(rollout, failing=order[:1]), NotSucceeded)

    assert isinstance(world.rollouts.resume(rollout, "ada"), Underway)
    run = world.advance(rollout, 2)

    assert isinstance(run, RunStage)
    assert [item.tenant.value for item in world.manifests.read(run.manifest)] == order[1:]
    assert isinstance(world.drive(rollout, 2), NotSucceeded), "the first one is still not there"
    assert world.status(rollout) is RolloutStatus.FAILED
    assert len(world.at(NEXT_VERSION)) == 4


def test_a_further_failure_after_resuming_halts_again() -> None:
    world, rollout = started(5)
    order = [item.tenant.value for item in world.items(rollout)]
    world.drive(rollout, failing=order[:1])
    world.rollouts.resume(rollout, "ada")

    told = world.drive(rollout, 2, failing=order[2:3])

    assert isinstance(told, NotSucceeded)
    assert world.status(rollout) is RolloutStatus.HALTED
    assert world.stage(rollout).failed == 2


def test_giving_up_halts_it_so_that_it_can_be_resumed() -> None:
    world, rollout = started(3)
    world.advance(rollout)

    assert world.advancing.give_up(rollout, 1, "States.ItemReaderFailed: no such key") == NotSucceeded(
        RolloutStatus.HALTED, "States.ItemReaderFailed: no such key"
    )

    world.rollouts.resume(rollout, "ada")
    assert world.drive(rollout, 2) == Succeeded()


def test_giving_up_changes_nothing_about_a_rollout_that_is_over() -> None:
    world, rollout = started(1)
    world.drive(rollout)

    world.advancing.give_up(rollout, 1, "The answer was lost.")

    assert world.status(rollout) is RolloutStatus.SUCCEEDED


def test_giving_up_while_it_is_being_aborted_ends_it_as_aborted() -> None:
    world, rollout = started(1)
    world.advance(rollout)
    world.rollouts.abort(rollout, "ada")

    assert world.advancing.give_up(rollout, 1, "fault").status == RolloutStatus.ABORTED
    assert world.status(rollout) is RolloutStatus.ABORTED


def test_a_reason_of_any_length_fits() -> None:
    world, rollout = started(1)
    world.advance(rollout)

    world.advancing.give_up(rollout, 1, "x" * 40_000)

    assert len(world.rollout(rollout).reason) == 2_000


# Baking


@pytest.mark.parametrize("seconds", [1, 15, 60, 300, 3_600, 7 * 24 * 3_600])
def test_a_bake_is_looked_at_so_often_and_no_oftener(seconds: int) -> None:
    world, rollout = started(2, a_wish(a_stage_wish(Share(1), bake_seconds=seconds, alarm="errors"), a_stage_wish()))
    world.run_stage(rollout, world.advance(rollout))
    ended = world.clock.now()

    looks = 0
    while isinstance(told := world.advance(rollout), Bake):
        assert told.seconds >= 1
        world.bake(told)
        looks += 1

    assert isinstance(told, RunStage)
    assert 1 <= looks <= CHECKS_PER_BAKE
    assert world.clock.now() - ended == timedelta(seconds=seconds)


def test_without_a_bake_the_next_stage_follows_at_once() -> None:
    world, rollout = started(2, TWO_STAGES)
    world.run_stage(rollout, world.advance(rollout))

    told = world.advance(rollout)

    assert isinstance(told, RunStage)
    assert told.stage == 2


def test_an_alarm_during_the_bake_halts_it_with_its_reason() -> None:
    world, rollout = started(2, a_wish(a_stage_wish(Share(1), bake_seconds=60, alarm="errors"), a_stage_wish()))
    world.run_stage(rollout, world.advance(rollout))
    world.bake(world.advance(rollout))
    world.alarms.alarms["errors"] = "Threshold Crossed"

    told = world.advance(rollout)

    assert told == NotSucceeded(
        RolloutStatus.HALTED, "Stage 1: the alarm errors went off during the bake: Threshold Crossed"
    )
    assert len(world.at(NEXT_VERSION)) == 1


def test_an_alarm_is_looked_at_also_when_there_is_no_time_to_bake() -> None:
    world, rollout = started(2, a_wish(a_stage_wish(Share(1), alarm="errors"), a_stage_wish()))
    world.alarms.alarms["errors"] = "Threshold Crossed"

    assert isinstance(world.drive(rollout), NotSucceeded)
    assert len(world.at(NEXT_VERSION)) == 1


def test_resuming_after_an_alarm_halts_again_until_the_alarm_is_off() -> None:
    world, rollout = started(2, a_wish(a_stage_wish(Share(1), bake_seconds=60, alarm="errors"), a_stage_wish()))
    world.alarms.alarms["errors"] = "Threshold Crossed"
    world.drive(rollout)
    world.rollouts.resume(rollout, "ada")
    assert isinstance(world.drive(rollout, 2), NotSucceeded)

    world.alarms.alarms["errors"] = None
    world.rollouts.resume(rollout, "ada")

    assert world.drive(rollout, 3) == Succeeded()


BAKED_FOR_A_DAY = a_wish(a_stage_wish(Share(1), bake_seconds=86_400, alarm="errors"), a_stage_wish())


def baking() -> tuple[World, str]:
    world, rollout = started(2, BAKED_FOR_A_DAY)
    world.alarms.sound("errors", "Before its time.", at=world.clock.now())
    world.alarms.recover("errors")
    world.clock.advance(A_SECOND)
    world.run_stage(rollout, world.advance(rollout))
    assert isinstance(world.advance(rollout), Bake)
    return world, rollout


def sounds_and_recovers(world: World) -> None:
    world.clock.advance(timedelta(minutes=1))
    world.alarms.sound("errors", "Threshold Crossed", at=world.clock.now())
    world.clock.advance(timedelta(minutes=10))
    world.alarms.recover("errors")


HALTED_BY_THE_ALARM = NotSucceeded(
    RolloutStatus.HALTED, "Stage 1: the alarm errors went off during the bake: Threshold Crossed"
)


def test_an_alarm_that_recovers_between_two_looks_halts_it() -> None:
    world, rollout = baking()
    sounds_and_recovers(world)

    assert world.drive(rollout) == HALTED_BY_THE_ALARM
    assert len(world.at(NEXT_VERSION)) == 1


def test_an_alarm_that_recovers_while_it_is_paused_halts_it_when_it_is_resumed() -> None:
    world, rollout = baking()
    world.rollouts.pause(rollout, "ada")
    assert world.advance(rollout) == AwaitOperator()
    sounds_and_recovers(world)
    world.clock.advance(timedelta(days=2))
    world.rollouts.resume(rollout, "ada")

    assert world.drive(rollout) == HALTED_BY_THE_ALARM


def test_an_alarm_just_before_the_last_look_halts_it() -> None:
    world, rollout = baking()
    world.clock.advance(timedelta(days=1))
    world.alarms.sound("errors", "Threshold Crossed", at=world.clock.now())
    world.alarms.recover("errors")

    assert world.drive(rollout) == HALTED_BY_THE_ALARM


def test_an_alarm_that_recovered_before_the_stage_ended_halts_nothing() -> None:
    world, rollout = baking()

    assert world.drive(rollout) == Succeeded()


def test_what_an_operator_has_seen_does_not_halt_it_again() -> None:
    world, rollout = baking()
    sounds_and_recovers(world)
    world.drive(rollout)
    world.clock.advance(A_SECOND)
    world.rollouts.resume(rollout, "ada")

    assert world.drive(rollout, 2) == Succeeded()


def test_an_alarm_after_an_operator_has_resumed_it_halts_it_again() -> None:
    world, rollout = baking()
    sounds_and_recovers(world)
    world.drive(rollout)
    world.rollouts.resume(rollout, "ada")
    assert isinstance(world.advance(rollout, 2), Bake)
    sounds_and_recovers(world)

    assert world.drive(rollout, 2) == HALTED_BY_THE_ALARM


def test_an_alarm_of_no_stage_stops_nothing() -> None:
    world, rollout = started(2, a_wish(a_stage_wish(Share(1), bake_seconds=60), a_stage_wish()))
    world.alarms.alarms["errors"] = "Threshold Crossed"

    assert world.drive(rollout) == Succeeded()


# Approval


APPROVED_REST = a_wish(a_stage_wish(Share(1)), a_stage_wish(approval=True))


def test_a_stage_that_needs_approval_waits_for_it() -> None:
    world, rollout = started(3, APPROVED_REST)

    assert world.drive(rollout) == AwaitOperator()
    assert world.advance(rollout) == AwaitOperator()
    assert world.stage(rollout, 2).status is StageStatus.AWAITING_APPROVAL
    assert len(world.at(NEXT_VERSION)) == 1

    assert isinstance(world.rollouts.approve(rollout, 2, ADA), Underway)
    assert world.drive(rollout) == Succeeded()
    assert world.stage(rollout, 2).approved_by == ADA


def test_the_first_stage_may_need_approval_too() -> None:
    world, rollout = started(1, a_wish(a_stage_wish(approval=True)))

    assert world.advance(rollout) == AwaitOperator()


# Waiting for an operator


def test_who_waits_is_woken_by_the_approval() -> None:
    world, rollout = started(3, APPROVED_REST)
    world.drive(rollout)

    world.advancing.await_operator(rollout, 1, "token")
    assert world.executions.woken == []

    world.rollouts.approve(rollout, 2, ADA)
    assert world.executions.woken == ["token"]


def test_who_begins_to_wait_just_after_it_was_approved_is_woken_at_once() -> None:
    world, rollout = started(3, APPROVED_REST)
    world.drive(rollout)
    world.ledger.meddlers.append(lambda: world.rollouts.approve(rollout, 2, ADA))

    world.advancing.await_operator(rollout, 1, "token")

    assert "token" in world.executions.woken


def test_who_begins_to_wait_while_it_is_being_approved_is_woken() -> None:
    world, rollout = started(3, APPROVED_REST)
    world.drive(rollout)
    world.ledger.meddlers.append(lambda: world.advancing.await_operator(rollout, 1, "token"))

    world.rollouts.approve(rollout, 2, ADA)

    assert "token" in world.executions.woken


@pytest.mark.parametrize("verb", ["resume", "abort"])
def test_who_begins_to_wait_while_an_operator_speaks_is_woken(verb: str) -> None:
    world, rollout = started(3)
    world.advance(rollout)
    world.rollouts.pause(rollout, "ada")
    world.ledger.meddlers.append(lambda: world.advancing.await_operator(rollout, 1, "token"))

    getattr(world.rollouts, verb)(rollout, "ada")

    assert "token" in world.executions.woken


def test_the_token_may_be_left_twice() -> None:
    world, rollout = started(3)
    world.advance(rollout)
    world.rollouts.pause(rollout, "ada")

    for _ in range(2):
        world.advancing.await_operator(rollout, 1, "token")

    assert world.rollout(rollout).task_token == "token"
    assert world.executions.woken == []


def test_a_token_that_nobody_has_to_wait_with_is_woken() -> None:
    world, rollout = started(3)
    world.advance(rollout)

    world.advancing.await_operator(rollout, 1, "token")

    assert world.executions.woken == ["token"]
    assert world.rollout(rollout).task_token is None


# Pausing and aborting at every moment

MOMENTS = a_wish(a_stage_wish(Share(1), bake_seconds=60, approval=True), a_stage_wish(bake_seconds=30, approval=True))


def play(world: World, rollout: str, at: int, interrupt: Callable[[], object]) -> object:
    """The whole story, in which an operator says something after that many steps."""
    interrupted = False
    for step in range(200):
        if step == at:
            interrupt()
            interrupted = True
        told = world.advance(rollout)
        match told:
            case RunStage():
                items = list(world.manifests.read(told.manifest))
                if items:  # One at a time, so that there is a moment between any two of them.
                    world.take_turn(Turn(rollout, told.stage, items[0], f"child/{step}"))
            case Bake():
                world.bake(told)
            case AwaitOperator() if interrupted and world.status(rollout) is RolloutStatus.PAUSED:
                before = world.at(NEXT_VERSION)
                assert world.advance(rollout) == AwaitOperator()
                assert world.at(NEXT_VERSION) == before
                world.rollouts.resume(rollout, "ada")
            case AwaitOperator():
                world.rollouts.approve(rollout, world.rollout(rollout).current_stage, ADA)
            case _:
                assert interrupted
                return told
    raise AssertionError("It never ends.")


@pytest.mark.parametrize("moment", range(13))
def test_paused_at_any_moment_it_waits_and_then_goes_on_to_the_end(moment: int) -> None:
    world, rollout = started(4, MOMENTS)

    assert play(world, rollout, moment, lambda: world.rollouts.pause(rollout, "ada")) == Succeeded()
    assert len(world.at(NEXT_VERSION)) == 4


@pytest.mark.parametrize("moment", range(13))
def test_aborted_at_any_moment_it_ends_as_aborted_and_moves_nobody_any_more(moment: int) -> None:
    world, rollout = started(4, MOMENTS)
    moved: list[str] = []

    def abort() -> None:
        moved.extend(world.at(NEXT_VERSION))
        assert isinstance(world.rollouts.abort(rollout, "ada"), Underway)

    told = play(world, rollout, moment, abort)

    assert told == NotSucceeded(RolloutStatus.ABORTED, "Aborted by ada.")
    assert world.at(NEXT_VERSION) == moved
    assert world.ledger.registry().active == frozenset()


def test_who_is_in_flight_when_it_is_paused_is_finished_and_nobody_else_is_started() -> None:
    world, rollout = started(3)
    world.advance(rollout)
    first, second = (Turn(rollout, 1, item, "child") for item in world.items(rollout)[:2])
    run = admitted(world, first)

    world.rollouts.pause(rollout, "ada")

    assert world.gate.admit(second) == NoMore()
    world.update(run)
    assert world.gate.record(first) == Settled(Result.SUCCEEDED)
    assert world.advance(rollout) == AwaitOperator()


# Executions that died


def test_an_execution_that_died_is_replaced_by_another_attempt() -> None:
    world, rollout = started(5)
    run = world.advance(rollout)
    assert isinstance(run, RunStage)
    world.take_turn(Turn(rollout, 1, world.items(rollout)[0], "child"))
    world.executions.die(execution_arn(f"rollout-{rollout}-1"))

    assert isinstance(world.rollouts.resume(rollout, "ada"), Underway)

    assert world.rollout(rollout).attempt == 2
    assert world.executions.started[-1] == execution_arn(f"rollout-{rollout}-2")
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
def test_an_execution_that_was_replaced_may_write_nothing(step: Callable[[World, str], object]) -> None:
    world, rollout = started(5)
    world.advance(rollout)
    world.executions.die(execution_arn(f"rollout-{rollout}-1"))
    world.rollouts.resume(rollout, "ada")
    before = world.rollout(rollout), world.ledger.stages(rollout)

    with pytest.raises(Conflict, match=rollout):
        step(world, rollout)

    assert (world.rollout(rollout), world.ledger.stages(rollout)) == before


def test_a_rollout_that_nobody_knows_is_told() -> None:
    with pytest.raises(Conflict):
        World().advance("20261116-120000-0000")


def test_an_update_that_an_execution_left_behind_is_waited_for_and_not_counted_twice() -> None:
    world, rollout = started(1)
    world.advance(rollout)
    left_behind = admitted(world, first_turn(world, rollout, child="dead"))
    run = world.begin_update(left_behind)
    world.executions.die(execution_arn(f"rollout-{rollout}-1"))
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


def test_who_was_moved_further_by_others_while_its_turn_was_cut_short_is_skipped() -> None:
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


def test_a_dry_run_has_one_stage_and_halts_at_nothing() -> None:
    world, rollout = started(4, a_wish(*THREE_STAGES.stages, dry_run=True))

    run = world.advance(rollout)

    assert isinstance(run, RunStage)
    assert len(world.manifests.read(run.manifest)) == 4
    for item in world.manifests.read(run.manifest):
        turn = Turn(rollout, 1, item, "child")
        world.gate.admit(turn)
        world.gate.record(turn, "could not be looked at")
    assert isinstance(world.advance(rollout), NotSucceeded)
    assert world.status(rollout) is RolloutStatus.FAILED
    assert world.at(NEXT_VERSION) == []
