"""Sequences of events that once broke a rule about rollouts, step by step, with the fakes."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from orchestrator.common.times import timestamp
from orchestrator.rollouts.control import RolloutWithStages
from orchestrator.rollouts.counting import Count
from orchestrator.rollouts.gate import Admitted
from orchestrator.rollouts.records import RolloutStatus, Share, TenantOutcome, Turn
from orchestrator.rollouts.stalling import START_GRACE_PERIOD, stalled_rollouts
from orchestrator.tenants.admission import Refusal, Refused
from orchestrator.tenants.execution_input import machine_input
from orchestrator.tenants.order_results import Unchanged
from orchestrator.tenants.records import Attempt, Operation, Request, Run
from orchestrator.tenants.schemas import parse_run
from tests.fakes import NEXT_VERSION, QUEUE_TABOO, VERSION, execution_arn
from tests.unit.rollouts.world import A_SECOND, ADA, LAST_VERSION, Fleet, a_spec, a_stage_spec, tenant

ALARM = "errors"


def with_an_alarm(bake_seconds: int = 3600) -> tuple[Fleet, str]:
    world = Fleet(4)
    canary = a_stage_spec(Share(1), bake_seconds=bake_seconds, alarm=ALARM)
    return world, world.start(a_spec(canary, a_stage_spec()))


def rings_and_recovers(world: Fleet) -> None:
    world.clock.advance(timedelta(minutes=5))
    world.alarms.sound(ALARM, "5xx > 1", at=world.clock.now())
    world.clock.advance(timedelta(minutes=5))
    world.alarms.recover(ALARM)


def run_of(world: Fleet, attempt: Attempt) -> Run:
    given = machine_input(attempt, Request(by=ADA, explicit=True))
    execution = {"Id": execution_arn(attempt.name), "StartTime": timestamp(world.clock.now()), "Input": given}
    return parse_run({"execution": execution})


def test_an_alarm_during_a_pause_after_the_last_tenant_halts_the_rollout() -> None:
    world, rollout = with_an_alarm()
    step = world.advance(rollout)
    (item,) = world.manifests.read(step.manifest)  # type: ignore[union-attr]  # the step runs the canary
    turn = Turn(rollout, 1, item, "child/canary")
    admitted = world.gate.admit(turn)
    assert isinstance(admitted, Admitted)
    world.rollouts.pause(rollout, ADA)
    world.update(admitted)
    world.gate.record(turn)
    rings_and_recovers(world)
    world.rollouts.resume(rollout, ADA)
    world.drive(rollout)
    assert world.status(rollout) is RolloutStatus.HALTED


@pytest.mark.parametrize("halted_by_the_alarm", [False, True])
def test_a_resume_ignores_only_an_alarm_that_the_operator_has_seen(halted_by_the_alarm: bool) -> None:
    world, rollout = with_an_alarm()
    world.run_stage(rollout, world.advance(rollout))
    world.advance(rollout)
    rings_and_recovers(world)
    if halted_by_the_alarm:
        world.advance(rollout)
    else:
        world.advancing.give_up(rollout, 1, "Rate exceeded")
    assert world.status(rollout) is RolloutStatus.HALTED
    world.rollout_executions.die(execution_arn(f"rollout-{rollout}-1"))
    world.clock.advance(A_SECOND)
    assert isinstance(world.rollouts.resume(rollout, ADA), RolloutWithStages)
    world.drive(rollout, 2)
    ended = RolloutStatus.SUCCEEDED if halted_by_the_alarm else RolloutStatus.HALTED
    assert world.status(rollout) is ended


def test_a_resume_after_another_halt_ignores_no_alarm_though_one_was_seen_before() -> None:
    world, rollout = with_an_alarm()
    world.run_stage(rollout, world.advance(rollout))
    world.advance(rollout)
    rings_and_recovers(world)
    world.advance(rollout)
    assert world.status(rollout) is RolloutStatus.HALTED
    world.clock.advance(A_SECOND)
    world.rollouts.resume(rollout, ADA)
    world.advance(rollout, 2)

    rings_and_recovers(world)
    world.advancing.give_up(rollout, 2, "Rate exceeded")  # Nobody has seen the second alarm.
    world.clock.advance(A_SECOND)
    world.rollouts.resume(rollout, ADA)
    world.drive(rollout, 3)

    assert world.status(rollout) is RolloutStatus.HALTED
    assert "the alarm errors went off" in world.rollout(rollout).reason


def test_an_alarm_halts_a_rollout_once_though_the_function_dies_right_after_the_halt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, rollout = with_an_alarm()
    world.run_stage(rollout, world.advance(rollout))
    world.advance(rollout)
    rings_and_recovers(world)

    def die_after_the_write(*args: Any, **named: Any) -> bool:
        monkeypatch.undo()
        assert world.rollout_table.change(*args, **named)
        raise ConnectionError

    monkeypatch.setattr(world.rollout_table, "change", die_after_the_write)
    with pytest.raises(ConnectionError):
        world.advance(rollout)
    world.advance(rollout)
    assert world.status(rollout) is RolloutStatus.HALTED
    world.clock.advance(A_SECOND)
    world.rollouts.resume(rollout, ADA)

    world.drive(rollout, 2)

    assert world.status(rollout) is RolloutStatus.SUCCEEDED


def test_an_alarm_that_halts_is_remembered_though_an_order_changes_the_stage_at_that_moment() -> None:
    world, rollout = with_an_alarm()
    world.run_stage(rollout, world.advance(rollout))
    world.advance(rollout)
    rings_and_recovers(world)
    world.rollout_table.concurrent_writes.append(lambda: world.touch_stage(rollout, idle_rounds=0))
    world.advance(rollout)
    assert world.status(rollout) is RolloutStatus.HALTED
    assert world.stage(rollout).resumed_at == world.clock.now()


def halted_after_the_canary() -> tuple[Fleet, str]:
    world, rollout = with_an_alarm()
    world.run_stage(rollout, world.advance(rollout))
    world.advance(rollout)
    rings_and_recovers(world)
    world.advance(rollout)
    assert world.status(rollout) is RolloutStatus.HALTED
    return world, rollout


@pytest.mark.parametrize("is_complete", [False, True])
def test_a_halted_rollout_that_was_undone_cannot_be_resumed(is_complete: bool) -> None:
    world, rollout = halted_after_the_canary()
    undo = world.start(a_spec(version=None, undo=rollout))
    if is_complete:
        world.drive(undo)
    else:
        world.run_stage(undo, world.advance(undo))
    before = world.rollout(rollout), world.stage(rollout)

    response = world.rollouts.resume(rollout, ADA)

    assert isinstance(response, Refused)
    assert response.kind is Refusal.ROLLOUT_OVER
    assert f"was undone by rollout {undo}" in response.reason
    assert "start a new rollout" in response.reason
    assert (world.rollout(rollout), world.stage(rollout)) == before
    assert world.at(NEXT_VERSION) == []


def test_an_undo_that_runs_while_a_rollout_is_resumed_is_noticed() -> None:
    world, rollout = halted_after_the_canary()
    world.rollout_table.concurrent_writes.append(lambda: world.drive(world.start(a_spec(version=None, undo=rollout))))

    assert isinstance(world.rollouts.resume(rollout, ADA), Refused)
    assert world.status(rollout) is RolloutStatus.HALTED


def test_a_halted_rollout_whose_undo_moved_no_tenant_can_be_resumed() -> None:
    world, rollout = halted_after_the_canary()
    undo = world.start(a_spec(version=None, undo=rollout))
    world.rollouts.abort(undo, ADA)
    assert world.status(undo) is RolloutStatus.ABORTED

    assert isinstance(world.rollouts.resume(rollout, ADA), RolloutWithStages)
    world.drive(rollout, 2)
    assert len(world.at(NEXT_VERSION)) == 4


def test_the_failed_tenants_of_a_rollout_that_was_undone_are_not_retried() -> None:
    world = Fleet(2)
    rollout = world.start(a_spec(a_stage_spec(tolerated=Share(1))))
    world.drive(rollout, failing=["t001"])
    undo = world.start(a_spec(version=None, undo=rollout))
    world.drive(undo)

    response = world.rollouts.retry(rollout, ADA)

    assert isinstance(response, Refused)
    assert response.kind is Refusal.NOTHING_TO_RETRY
    assert f"was undone by rollout {undo}" in response.reason


def test_the_version_from_before_a_delete_does_not_count_while_a_tenant_is_created_again() -> None:
    world = Fleet(2)
    again = tenant("t001")
    world.change(again, version=NEXT_VERSION)
    delete = run_of(world, Attempt(again, Operation.DELETE, NEXT_VERSION, 1))
    world.table.begin(delete, at=world.clock.now())
    world.clock.advance(A_SECOND)
    world.table.fail(delete, QUEUE_TABOO, world.clock.now())
    world.clock.advance(A_SECOND)
    create = run_of(world, Attempt(again, Operation.CREATE, VERSION, 2))
    world.table.begin(create, at=world.clock.now(), release=world.table.release(VERSION))
    assert "t001" in world.planned_tenants(world.start(a_spec()))


def test_a_retry_of_an_undo_skips_a_tenant_that_was_moved_since() -> None:
    world = Fleet(2)
    rollout = world.start(a_spec())
    world.drive(rollout)
    undo = world.start(a_spec(a_stage_spec(tolerated=Share(1)), version=None, undo=rollout))
    world.drive(undo, failing=["t001"])
    world.change(tenant("t001"), version=LAST_VERSION)
    world.rollouts.retry(undo, ADA)
    assert world.metadata_of(tenant("t001")).version == LAST_VERSION


def test_repeated_pauses_and_resumes_do_not_halt_a_rollout() -> None:
    world = Fleet(3)
    rollout = world.start(a_spec())
    for _ in range(10):
        world.advance(rollout)
        world.rollouts.pause(rollout, ADA)
        world.rollouts.resume(rollout, ADA)
    world.drive(rollout)
    assert world.status(rollout) is RolloutStatus.SUCCEEDED


def test_pausing_a_paused_rollout_does_not_wake_its_execution() -> None:
    """Every wake-up adds to the execution's history, which is limited."""
    world = Fleet(1)
    rollout = world.start(a_spec())
    world.rollouts.pause(rollout, ADA)
    world.touch(rollout, task_token="token")
    world.rollout_executions.woken.clear()
    world.rollouts.pause(rollout, ADA)
    assert world.rollout_executions.woken == []


def test_an_outcome_that_could_not_be_recorded_does_not_count_as_settled() -> None:
    world = Fleet(2)
    rollout = world.start(a_spec())
    step = world.advance(rollout)
    first, second = world.manifests.read(step.manifest)  # type: ignore[union-attr]  # the step runs the stage
    world.take_turn(Turn(rollout, 1, first, "child/1"))
    turn = Turn(rollout, 1, second, "child/2")
    admitted = world.gate.admit(turn)
    assert isinstance(admitted, Admitted)
    world.update(admitted)
    record, refused = world.rollout_table.record, []

    def conflicting(count: Count, outcome: TenantOutcome, *, before: TenantOutcome | None) -> bool:
        if not refused:
            refused.append(outcome)
            return False
        return record(count, outcome, before=before)

    world.rollout_table.record = conflicting  # type: ignore[method-assign]
    world.drive(rollout)
    assert world.status(rollout) is RolloutStatus.SUCCEEDED


def test_undo_moves_back_a_tenant_whose_create_ended_during_its_admission() -> None:
    world = Fleet(1)
    newcomer = tenant("newcomer")
    create = run_of(world, Attempt(newcomer, Operation.CREATE, VERSION, 1))
    world.table.begin(create, at=world.clock.now())
    world.clock.advance(A_SECOND)
    rollout = world.start(a_spec())
    items = {item.tenant: item for item in world.manifests.read(world.advance(rollout).manifest)}  # type: ignore[union-attr]
    world.take_turn(Turn(rollout, 1, items[tenant("t001")], "child/t001"))

    class EndsMeanwhile:
        count = 0

        def throttles(self) -> int:
            if not self.count:
                self.count += 1
                world.publish(create)
                world.clock.advance(timedelta(milliseconds=5))
            return 0

    turn = Turn(rollout, 1, items[newcomer], "child/newcomer")
    admitted = replace(world.gate, throttling=EndsMeanwhile()).admit(turn)
    assert isinstance(admitted, Admitted)
    world.clock.advance(A_SECOND)
    world.update(admitted)
    world.gate.record(turn)
    world.drive(rollout)
    undo = world.start(a_spec(version=None, undo=rollout))
    world.drive(undo)
    assert world.metadata_of(newcomer).version == VERSION


@pytest.mark.parametrize(("age", "is_dead"), [(START_GRACE_PERIOD, False), (START_GRACE_PERIOD + A_SECOND, True)])
@pytest.mark.parametrize("attempt", [1, 2])
def test_an_execution_that_is_not_shown_yet_is_not_replaced(age: timedelta, is_dead: bool, attempt: int) -> None:
    """DescribeExecution is eventually consistent. A second execution would run a second map over the same tenants."""
    world = Fleet(2)
    rollout = world.start()
    world.advance(rollout)
    if attempt == 2:
        world.clock.advance(timedelta(days=1))
        world.rollout_executions.die(execution_arn(f"rollout-{rollout}-1"))
        world.rollouts.resume(rollout, ADA)
        world.advance(rollout, 2)
    execution = world.rollout(rollout).execution
    assert execution is not None
    world.rollout_executions.not_shown.add(execution)
    world.clock.advance(
        (world.rollout(rollout).attempted_at or world.rollout(rollout).created_at) + age - world.clock.now()
    )
    assert bool(stalled_rollouts(world.rollout_table, world.rollout_executions, world.clock.now())) is is_dead

    response = world.rollouts.resume(rollout, ADA)

    assert isinstance(response, RolloutWithStages if is_dead else Unchanged)
    assert world.rollout(rollout).attempt == attempt + is_dead


def test_a_rollout_whose_execution_is_not_shown_yet_is_not_aborted_while_tenants_are_in_flight() -> None:
    world = Fleet(2)
    rollout = world.start()
    world.advance(rollout)
    world.rollout_executions.not_shown.add(execution_arn(f"rollout-{rollout}-1"))

    world.rollouts.abort(rollout, ADA)

    assert world.status(rollout) is RolloutStatus.ABORTING
