"""One tenant's turn: its outcome, from the tenant's own rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from orchestrator.common.errors import Unsettled
from orchestrator.rollouts.gate import Replaced, Settled, TryAgain
from orchestrator.rollouts.pacing import REACTION_TIME
from orchestrator.rollouts.records import Result, RolloutStatus, Skip
from orchestrator.tenants.records import Operation, RootCause, Status
from tests.fakes import NEXT_VERSION, NOON, QUEUE_TABOO, VERSION, an_audit
from tests.unit.rollouts.turns import INITIAL_LIMIT, T1, Turns, begin_to_delete, delete, move_further, pin
from tests.unit.rollouts.world import LAST_VERSION, THROTTLED_CAUSE, Fleet, a_spec

FAULT = "States.TaskFailed: the function could not be called"


NAME_IS_TAKEN = "StepFunctions.ExecutionAlreadyExistsException: Execution Already Exists"


def test_success_depends_on_the_tenants_metadata() -> None:
    turns = Turns()
    turns.world.update(turns.admitted())

    assert turns.record() == Settled(Result.SUCCEEDED)

    assert (turns.outcome().result, turns.outcome().from_version) == (Result.SUCCEEDED, VERSION)
    stage = turns.world.stage(turns.rollout)
    assert (stage.succeeded, stage.failed, stage.in_flight) == (1, 0, 0)


def test_a_tenant_at_the_release_has_succeeded_despite_a_fault() -> None:
    turns = Turns()
    turns.world.update(turns.admitted())

    assert turns.record(fault=FAULT) == Settled(Result.SUCCEEDED)


@pytest.mark.parametrize("moved", [True, False])
def test_while_another_update_runs_a_tenant_succeeds_only_through_its_own_update(moved: bool) -> None:
    turns = Turns(spec=a_spec(version=VERSION, allow_downgrade=True), version=NEXT_VERSION)
    admitted = turns.admitted()
    if moved:
        turns.world.update(admitted)
    else:
        turns.world.change(T1, version=VERSION)
    turns.world.clock.advance(timedelta(seconds=9))
    turns.world.table.plant_audit(
        an_audit(Status.STARTED, Operation.UPDATE, tenant=T1, version=NEXT_VERSION, at=turns.world.clock.now())
    )

    assert turns.record(fault=FAULT) == Settled(Result.SUCCEEDED if moved else Result.FAILED)


def test_a_successful_execution_alone_is_not_a_success() -> None:
    turns = Turns()
    turns.admitted()

    assert turns.record() == Settled(Result.FAILED)
    assert "without recording" in str(turns.outcome().root_cause)


def test_a_tenant_at_the_release_that_is_not_served_has_not_succeeded() -> None:
    turns = Turns()
    turns.world.update(turns.admitted())
    turns.world.change(T1, queue=None)

    assert turns.record() == Settled(Result.FAILED)


def test_a_failure_has_the_recorded_root_cause() -> None:
    turns = Turns()
    turns.world.update(turns.admitted(), cause=QUEUE_TABOO)

    assert turns.record(fault=FAULT) == Settled(Result.FAILED)

    assert turns.outcome().root_cause == QUEUE_TABOO
    stage = turns.world.stage(turns.rollout)
    assert (stage.succeeded, stage.failed, stage.in_flight) == (0, 1, 0)


def test_a_failure_from_before_the_turn_is_not_the_root_cause() -> None:
    turns = Turns()
    turns.world.table.plant_audit(
        an_audit(Status.FAILURE, Operation.UPDATE, tenant=T1, version=NEXT_VERSION, root_cause=QUEUE_TABOO)
    )
    turns.admitted()

    turns.record(fault=FAULT)

    assert turns.outcome().root_cause == RootCause("t001", "Berth::Tenant", FAULT)


@pytest.mark.parametrize("cause", [QUEUE_TABOO, THROTTLED_CAUSE])
def test_a_tenant_that_could_not_be_admitted_fails_with_the_current_fault(cause: RootCause) -> None:
    turns = Turns()
    turns.world.table.plant_audit(
        an_audit(Status.FAILURE, Operation.UPDATE, tenant=T1, version=NEXT_VERSION, root_cause=cause)
    )

    assert turns.record(fault=FAULT) == Settled(Result.FAILED)

    assert turns.outcome().root_cause == RootCause("t001", "Berth::Tenant", FAULT)
    assert turns.in_flight == 0


def test_a_long_fault_is_shortened() -> None:
    turns = Turns()
    turns.admitted()

    turns.record(fault="x" * 100_000)

    cause = turns.outcome().root_cause
    assert cause is not None
    assert len(cause.reason) == 1_000


def test_a_throttled_update_is_not_a_failure_and_is_retried_as_the_next_attempt() -> None:
    turns = Turns()
    turns.world.update(turns.admitted(), cause=THROTTLED_CAUSE)

    assert turns.record() == TryAgain()

    stage = turns.world.stage(turns.rollout)
    assert (stage.settled, stage.in_flight) == (0, 0)
    again = turns.admitted()
    assert again.input["attempt"] == 2
    assert turns.outcome().from_version == VERSION
    turns.world.update(again)
    assert turns.record() == Settled(Result.SUCCEEDED)


@pytest.mark.parametrize("ends_well", [True, False])
def test_a_tenant_whose_operation_is_still_open_gets_another_turn(ends_well: bool) -> None:
    """The update's execution was stopped. CloudFormation goes on, and the reconciliation settles the operation."""
    turns = Turns()
    run = turns.world.begin_update(turns.admitted())
    turns.world.clock.advance(timedelta(seconds=9))

    assert turns.record(fault=FAULT) == turns.record(fault=FAULT) == TryAgain()

    stage = turns.world.stage(turns.rollout)
    assert (stage.settled, stage.in_flight) == (0, 0)
    again = turns.admitted()
    assert (again.input["attempt"], turns.outcome().interruptions) == (2, 1)
    if ends_well:
        turns.world.publish(run)
    else:
        turns.world.table.fail(run, QUEUE_TABOO, turns.world.clock.now())
    turns.world.clock.advance(timedelta(seconds=9))
    turns.world.update(again)
    assert turns.record() == Settled(Result.SUCCEEDED)
    assert turns.outcome().from_version == VERSION


def test_a_tenant_whose_updates_are_interrupted_again_and_again_has_failed() -> None:
    turns = Turns()
    for _ in range(3):
        run = turns.world.begin_update(turns.admitted())
        assert turns.record(fault=FAULT) == TryAgain()
        turns.world.clock.advance(timedelta(seconds=9))
        turns.world.table.fail(run, QUEUE_TABOO, turns.world.clock.now())
        turns.world.clock.advance(timedelta(seconds=9))
    turns.world.begin_update(turns.admitted())

    assert turns.record(fault=FAULT) == Settled(Result.FAILED)
    assert turns.outcome().root_cause == RootCause("t001", "Berth::Tenant", FAULT)


def test_an_execution_name_that_is_taken_is_retried_as_the_next_attempt() -> None:
    turns = Turns()
    turns.admitted()

    assert turns.record(fault=NAME_IS_TAKEN) == TryAgain()
    assert turns.admitted().input["attempt"] == 2


def test_an_execution_name_taken_by_a_failed_attempt_is_a_failure() -> None:
    turns = Turns()
    turns.world.update(turns.admitted(), cause=QUEUE_TABOO)

    assert turns.record(fault=NAME_IS_TAKEN) == Settled(Result.FAILED)
    assert turns.outcome().root_cause == QUEUE_TABOO


@pytest.mark.parametrize(
    ("happens", "why"),
    [(delete, Skip.DELETED), (pin, Skip.PINNED), (move_further, Skip.NEWER)],
)
def test_a_tenant_whose_update_was_refused_after_a_change_is_skipped(
    happens: Callable[[Fleet], None], why: Skip
) -> None:
    turns = Turns()
    run = turns.world.begin_update(turns.admitted())
    happens(turns.world)
    turns.world.table.fail(run, QUEUE_TABOO, turns.world.clock.now() + timedelta(seconds=1))

    assert turns.record() == Settled(Result.SKIPPED)
    assert turns.outcome().skip is why
    assert turns.in_flight == 0


def test_a_tenant_whose_update_gave_up_waiting_for_a_delete_has_failed() -> None:
    turns = Turns()
    begin_to_delete(turns.world)
    run = turns.world.run_of(turns.admitted())
    turns.world.table.fail(run, QUEUE_TABOO, turns.world.clock.now())

    assert turns.record() == Settled(Result.FAILED)
    assert turns.outcome().root_cause == QUEUE_TABOO


def test_a_tenant_that_was_moved_and_is_now_being_deleted_has_succeeded() -> None:
    turns = Turns()
    turns.world.update(turns.admitted())
    turns.world.change(T1, withdrawn_by="delete")
    begin_to_delete(turns.world)

    assert turns.record() == Settled(Result.SUCCEEDED)


def test_a_tenant_whose_create_failed_during_the_wait_is_skipped() -> None:
    turns = Turns()
    turns.world.change(T1, queue=None, version=None)
    turns.world.table.plant_audit(an_audit(Status.STARTED, tenant=T1, at=turns.world.clock.now()))
    run = turns.world.run_of(turns.admitted())
    turns.world.clock.advance(timedelta(seconds=9))
    now = turns.world.clock.now()
    turns.world.table.plant_audit(an_audit(Status.FAILURE, tenant=T1, at=now, root_cause=QUEUE_TABOO))
    turns.world.table.fail(run, RootCause("t001", "Berth::Tenant", "no queue in service"), now)

    assert turns.record() == Settled(Result.SKIPPED)
    assert turns.outcome().skip is Skip.NOT_PROVISIONED


def test_a_tenant_whose_delete_failed_half_way_during_the_wait_is_skipped() -> None:
    turns = Turns()
    begin_to_delete(turns.world)
    run = turns.world.run_of(turns.admitted())
    turns.world.clock.advance(timedelta(seconds=9))
    now = turns.world.clock.now()
    turns.world.change(T1, withdrawn_by="delete")
    turns.world.table.plant_audit(
        an_audit(Status.FAILURE, Operation.DELETE, tenant=T1, version=None, at=now, root_cause=QUEUE_TABOO)
    )
    turns.world.table.fail(run, RootCause("t001", "Berth::Tenant", "no queue in service"), now)

    assert turns.record() == Settled(Result.SKIPPED)
    assert turns.outcome().skip is Skip.NOT_PROVISIONED


def test_a_move_by_another_operation_during_the_wait_sets_the_earlier_version() -> None:
    turns = Turns(spec=a_spec(version=LAST_VERSION))
    admitted = turns.admitted()
    turns.world.clock.advance(timedelta(seconds=9))
    turns.world.table.plant_audit(
        an_audit(Status.SUCCESS, Operation.UPDATE, tenant=T1, version=NEXT_VERSION, at=turns.world.clock.now())
    )
    turns.world.clock.advance(timedelta(seconds=9))
    turns.world.update(admitted)

    assert turns.record() == Settled(Result.SUCCEEDED)
    assert turns.outcome().from_version == NEXT_VERSION


def test_a_tenant_whose_downgrade_failed_has_failed_and_is_not_skipped_as_newer() -> None:
    turns = Turns(spec=a_spec(version=VERSION, allow_downgrade=True), version=NEXT_VERSION)
    turns.world.update(turns.admitted(), cause=QUEUE_TABOO)

    assert turns.record() == Settled(Result.FAILED)


def test_recording_twice_counts_once() -> None:
    turns = Turns(2)
    turns.admitted(2)
    turns.world.update(turns.admitted(1), cause=QUEUE_TABOO)

    assert turns.record(1) == turns.record(1) == Settled(Result.FAILED)

    stage = turns.world.stage(turns.rollout)
    assert (stage.failed, stage.in_flight) == (1, 1)


def test_recording_a_retry_twice_frees_one_slot() -> None:
    turns = Turns(3)
    for number in (2, 3):
        turns.admitted(number)
    turns.world.update(turns.admitted(1), cause=THROTTLED_CAUSE)

    assert turns.record(1) == turns.record(1) == TryAgain()
    assert turns.in_flight == 2
    turns.world.update(turns.admitted(1))
    assert turns.record(1) == Settled(Result.SUCCEEDED)
    assert turns.in_flight == 2


def test_a_recorded_result_never_changes() -> None:
    turns = Turns()
    turns.world.update(turns.admitted(), cause=QUEUE_TABOO)
    turns.record()
    turns.world.change(T1, version=NEXT_VERSION)

    assert turns.record() == Settled(Result.FAILED)


@pytest.mark.parametrize(
    "status", [RolloutStatus.PAUSED, RolloutStatus.ABORTING, RolloutStatus.ABORTED, RolloutStatus.HALTED]
)
def test_the_outcome_of_a_started_tenant_is_recorded_after_the_rollout_stopped(status: RolloutStatus) -> None:
    turns = Turns()
    admitted = turns.admitted()
    turns.world.touch(turns.rollout, status=status)
    turns.world.update(admitted)

    assert turns.record() == Settled(Result.SUCCEEDED)
    assert turns.world.stage(turns.rollout).succeeded == 1


def test_a_concurrent_record_is_not_lost() -> None:
    turns = Turns(2)
    for number in (1, 2):
        turns.world.update(turns.admitted(number))
    turns.world.rollout_table.concurrent_writes.append(lambda: turns.record(2))

    turns.record(1)

    stage = turns.world.stage(turns.rollout)
    assert (stage.succeeded, stage.in_flight) == (2, 0)


def test_a_turn_that_was_replaced_records_nothing() -> None:
    """The rollout was resumed after its execution died, and a function of the former map is still running."""
    turns = Turns()
    turns.world.update(turns.admitted(child="former"), cause=THROTTLED_CAUSE)
    turns.world.clock.advance(timedelta(seconds=9))
    run = turns.world.begin_update(turns.admitted(child="current"))
    before = turns.outcome(), turns.world.stage(turns.rollout)

    assert turns.record(child="former") == Replaced()

    assert (turns.outcome(), turns.world.stage(turns.rollout)) == before
    turns.world.publish(run)
    assert turns.record(child="current") == Settled(Result.SUCCEEDED)


def test_a_turn_that_is_replaced_while_it_is_recorded_records_nothing() -> None:
    turns = Turns()
    turns.world.update(turns.admitted(), cause=THROTTLED_CAUSE)
    turns.world.clock.advance(timedelta(seconds=9))
    turns.world.rollout_table.concurrent_writes.append(lambda: turns.admitted(child="other"))

    assert turns.record() == Replaced()
    assert turns.outcome().execution == "other/t001"


def test_a_late_record_of_an_earlier_attempt_of_the_same_child_records_nothing() -> None:
    """A call of the function is slow. It was repeated, and its child has been admitted again since."""
    turns = Turns()
    turns.world.update(turns.admitted(), cause=THROTTLED_CAUSE)
    turns.world.clock.advance(timedelta(seconds=9))
    runs = []

    def admit_again() -> None:
        assert turns.record() == TryAgain()
        runs.append(turns.world.begin_update(turns.admitted()))

    turns.world.rollout_table.concurrent_writes.append(admit_again)

    assert turns.record() == Replaced()

    assert (turns.outcome().result, turns.outcome().operation_attempt) == (Result.RUNNING, 2)
    assert turns.in_flight == 1
    turns.world.publish(*runs)
    assert turns.record() == Settled(Result.SUCCEEDED)


def test_an_outcome_that_always_conflicts_raises_an_error_with_the_tenant(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns()
    turns.world.update(turns.admitted())
    monkeypatch.setattr(turns.world.rollout_table, "record", lambda *_, **__: False)

    with pytest.raises(Unsettled, match="t001"):
        turns.record()


def test_recording_an_outcome_also_reads_the_throttles() -> None:
    turns = Turns(INITIAL_LIMIT)
    for number in range(1, INITIAL_LIMIT + 1):
        admitted = turns.admitted(number)
    turns.world.throttling.count = 7
    turns.world.clock.advance(REACTION_TIME)
    turns.world.update(admitted)

    turns.record(INITIAL_LIMIT)

    assert (turns.pace.throttles_seen, turns.pace.slow_start) == (7, False)
    assert turns.pace.limit < INITIAL_LIMIT


def test_a_turn_in_an_unknown_stage_raises_an_error() -> None:
    turns = Turns()

    with pytest.raises(Unsettled, match="no stage 9"):
        turns.world.gate.admit(replace(turns.turn(), stage=9))


def test_an_outcome_has_the_time_of_its_latest_change() -> None:
    turns = Turns()
    turns.world.update(turns.admitted())
    turns.world.clock.advance(timedelta(minutes=3))

    turns.record()

    assert turns.outcome().updated_at == turns.world.clock.now() > NOON
