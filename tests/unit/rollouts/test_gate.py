"""One tenant's turn: its admission, and changes of the tenant before it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from orchestrator.common.tenant_ids import TenantId
from orchestrator.rollouts.gate import AdmissionStopped, Admitted, NoRoom, Settled, ToReview
from orchestrator.rollouts.pacing import REACTION_TIME
from orchestrator.rollouts.records import Item, Result, RolloutStatus, Share, Skip, TenantOutcome, Turn
from orchestrator.tenants.deadlines import DEADLINE
from orchestrator.tenants.records import Attempt, Metadata, Operation, Request, Run, Status
from tests.fakes import NEXT_VERSION, QUEUE_TABOO, VERSION, InMemoryTable, a_run, an_audit
from tests.fakes.noting import Noting
from tests.unit.rollouts.turns import (
    INITIAL_LIMIT,
    T1,
    Turns,
    begin_to_delete,
    delete,
    lose_the_queue,
    move_further,
    move_there,
    pin,
)
from tests.unit.rollouts.world import LAST_VERSION, Fleet, a_spec, a_stage_spec, tenant

# Admission


def test_an_admitted_tenant_gets_a_name_and_input_that_the_update_machine_accepts() -> None:
    turns = Turns(spec=a_spec(allow_downgrade=True, allow_replacement=True))

    admitted = turns.admitted()

    attempt = Attempt(T1, Operation.UPDATE, NEXT_VERSION, 1)
    request = Request(by=f"rollout/{turns.rollout}", allow_downgrade=True, allow_replacement=True)
    assert admitted.name == attempt.name
    assert turns.world.run_of(admitted) == Run(
        attempt, turns.world.run_of(admitted).execution, turns.world.clock.now(), request
    )


def test_an_admitted_tenant_is_in_flight_and_its_earlier_version_is_recorded() -> None:
    turns = Turns()

    turns.admitted()

    assert turns.in_flight == 1
    assert turns.outcome() == TenantOutcome(
        turns.rollout,
        1,
        Item(T1, NEXT_VERSION),
        Result.RUNNING,
        turns.world.clock.now(),
        execution="child/t001",
        operation_attempt=1,
        from_version=VERSION,
    )


def test_a_repeated_request_returns_the_same_execution_and_counts_once() -> None:
    turns = Turns()

    assert turns.admit() == turns.admit()
    assert turns.in_flight == 1


def test_a_tenant_whose_update_could_not_be_started_is_not_started_after_a_pause() -> None:
    turns = Turns()
    turns.admitted()
    turns.world.rollouts.pause(turns.rollout, "ada")

    assert turns.admit() == AdmissionStopped()


def test_a_tenant_whose_update_could_not_be_started_before_the_deadline_fails() -> None:
    turns = Turns()
    turns.admitted()
    turns.world.clock.advance(DEADLINE)
    turns.admitted()
    turns.world.clock.advance(timedelta(seconds=1))

    assert turns.admit() == Settled(Result.FAILED)
    assert "could not be started in time" in str(turns.outcome().root_cause)
    assert turns.in_flight == 0


def test_in_a_dry_run_an_admitted_tenant_is_reviewed() -> None:
    turns = Turns(spec=a_spec(dry_run=True))

    assert turns.admit() == ToReview()
    assert turns.admit() == ToReview()
    assert turns.in_flight == 1


def test_the_attempt_number_is_one_more_than_the_last() -> None:
    turns = Turns()
    failed = an_audit(Status.FAILURE, Operation.UPDATE, tenant=T1, version=NEXT_VERSION, attempt=6)
    turns.world.table.plant_audit(failed)

    assert turns.admitted().input["attempt"] == 7


def test_attempts_at_other_versions_do_not_count() -> None:
    turns = Turns()
    turns.world.table.plant_audit(
        an_audit(Status.FAILURE, Operation.UPDATE, tenant=T1, version=LAST_VERSION, attempt=6)
    )

    assert turns.admitted().input["attempt"] == 1


def test_another_child_for_the_same_tenant_is_another_attempt_from_the_same_version() -> None:
    turns = Turns()
    first = turns.admitted(child="dead")
    turns.world.update(first)  # After all, and nobody was there to record it.

    second = turns.admitted(child="living")

    assert second.input["attempt"] == 2
    assert turns.outcome().from_version == VERSION, "so that an undo can move it back"


@pytest.mark.parametrize("status", [status for status in RolloutStatus if status is not RolloutStatus.RUNNING])
def test_no_tenant_is_admitted_unless_the_rollout_is_running(status: RolloutStatus) -> None:
    turns = Turns()
    turns.world.touch(turns.rollout, status=status)

    assert turns.admit() == AdmissionStopped()
    assert turns.in_flight == 0


@pytest.mark.parametrize("status", [RolloutStatus.PAUSED, RolloutStatus.ABORTING, RolloutStatus.HALTED])
def test_no_tenant_is_admitted_if_the_rollout_stops_during_the_admission(status: RolloutStatus) -> None:
    turns = Turns()
    turns.world.rollout_table.concurrent_writes.append(lambda: turns.world.touch(turns.rollout, status=status))

    assert turns.admit() == AdmissionStopped()
    assert turns.world.results(turns.rollout) == {}


@pytest.mark.parametrize(("failures", "goes_on"), [(1, True), (2, False)])
def test_no_tenant_is_admitted_after_too_many_failures(failures: int, goes_on: bool) -> None:
    turns = Turns(3, a_spec(a_stage_spec(tolerated=Share(1))))
    for number in range(1, failures + 1):
        turns.world.update(turns.admitted(number), cause=QUEUE_TABOO)
        turns.record(number)

    assert isinstance(turns.admit(3), Admitted if goes_on else AdmissionStopped)


def test_failures_that_were_forgiven_do_not_count() -> None:
    turns = Turns(2)
    turns.world.update(turns.admitted(1), cause=QUEUE_TABOO)
    turns.record(1)
    assert turns.admit(2) == AdmissionStopped()

    turns.world.touch_stage(turns.rollout, forgiven=1)

    turns.admitted(2)


def test_no_tenant_is_admitted_above_the_limit() -> None:
    turns = Turns(INITIAL_LIMIT + 1)
    for number in range(1, INITIAL_LIMIT + 1):
        turns.admitted(number)

    admission = turns.admit(INITIAL_LIMIT + 1)

    assert isinstance(admission, NoRoom)
    assert 1 <= admission.seconds <= 20
    assert turns.in_flight == INITIAL_LIMIT


def test_only_one_of_two_concurrent_requests_gets_the_last_slot() -> None:
    turns = Turns(2, a_spec(a_stage_spec(at_once=1)))
    turns.world.rollout_table.concurrent_writes.append(lambda: turns.admitted(2))

    assert isinstance(turns.admit(1), NoRoom)
    assert turns.in_flight == 1
    assert turns.world.results(turns.rollout) == {"t002": Result.RUNNING}


def test_two_turns_that_have_read_the_same_stage_are_both_admitted() -> None:
    turns = Turns(2)
    before = turns.world.stage(turns.rollout)
    turns.world.rollout_table.concurrent_writes.append(lambda: turns.admitted(2))

    turns.admitted(1)

    stage = turns.world.stage(turns.rollout)
    assert (stage.in_flight, stage.revision) == (2, before.revision + 2)


def test_a_request_that_always_conflicts_is_told_to_wait_briefly() -> None:
    turns = Turns()
    children = iter(range(100))
    turns.world.rollout_table.concurrent_writes.extend([lambda: turns.admit(child=f"other-{next(children)}")] * 100)

    assert turns.admit() == NoRoom(1)


def test_concurrent_children_of_one_tenant_get_different_attempts() -> None:
    turns = Turns()
    turns.world.rollout_table.concurrent_writes.append(lambda: turns.admitted(child="other"))

    assert turns.admitted().input["attempt"] == 2


def test_a_settled_tenant_gets_no_other_turn() -> None:
    turns = Turns()
    turns.succeed()

    assert turns.admit() == Settled(Result.SUCCEEDED)
    assert turns.admit(child="other") == Settled(Result.SUCCEEDED)
    assert turns.in_flight == 0


def test_throttling_lowers_the_limit_for_admissions() -> None:
    turns = Turns(INITIAL_LIMIT)
    for number in range(1, INITIAL_LIMIT):
        turns.admitted(number)
    turns.world.clock.advance(REACTION_TIME)
    turns.world.throttling.count += 1

    assert isinstance(turns.admit(INITIAL_LIMIT), NoRoom)
    assert turns.pace.limit < INITIAL_LIMIT
    assert turns.pace.throttles_seen == 1


def test_throttling_by_the_first_calls_of_a_stage_does_not_lower_the_limit() -> None:
    turns = Turns(2)
    turns.admitted(1)
    turns.world.throttling.count += 1

    turns.admitted(2)

    assert (turns.pace.limit, turns.pace.throttles_seen) == (INITIAL_LIMIT, 1)


def test_throttling_before_the_stage_began_does_not_count() -> None:
    world = Fleet(1)
    world.throttling.count = 41
    rollout = world.start()
    world.advance(rollout)

    assert isinstance(world.gate.admit(Turn(rollout, 1, world.items(rollout)[0], "child")), Admitted)
    assert world.stage(rollout).pace.limit == INITIAL_LIMIT


def test_every_success_raises_the_limit_until_calls_are_throttled() -> None:
    turns = Turns(20)
    runs = {number: turns.admitted(number) for number in range(1, INITIAL_LIMIT + 1)}
    turns.world.update(runs[1])
    turns.record(1)

    turns.admitted(INITIAL_LIMIT + 1)
    turns.admitted(INITIAL_LIMIT + 2)

    assert turns.in_flight == INITIAL_LIMIT + 1
    assert isinstance(turns.admit(INITIAL_LIMIT + 3), NoRoom)


def test_slots_of_dead_children_are_freed_after_the_deadline() -> None:
    turns = Turns(3, a_spec(a_stage_spec(at_once=1)))
    turns.admitted(1)
    turns.world.clock.advance(DEADLINE + timedelta(minutes=10))
    assert isinstance(turns.admit(2), NoRoom)

    turns.world.clock.advance(timedelta(seconds=1))

    turns.admitted(2)
    assert turns.in_flight == 1


def test_slots_are_not_freed_while_other_tenants_make_progress() -> None:
    turns = Turns(4, a_spec(a_stage_spec(at_once=2)))
    turns.admitted(1)
    turns.world.clock.advance(DEADLINE)
    turns.admitted(2)
    turns.world.clock.advance(DEADLINE)

    assert isinstance(turns.admit(3), NoRoom)


# Changes of the tenant since it was selected


@pytest.mark.parametrize(
    ("happens", "why"),
    [
        (delete, Skip.DELETED),
        (pin, Skip.PINNED),
        (move_there, Skip.CURRENT),
        (move_further, Skip.NEWER),
        (lose_the_queue, Skip.NOT_PROVISIONED),
    ],
)
def test_a_tenant_that_changed_since_it_was_selected_is_skipped(happens: Callable[[Fleet], None], why: Skip) -> None:
    turns = Turns()
    happens(turns.world)

    assert turns.admit() == Settled(Result.SKIPPED)

    assert turns.outcome().skip is why
    assert (turns.in_flight, turns.world.stage(turns.rollout).skipped) == (0, 1)
    assert turns.admit() == Settled(Result.SKIPPED)
    assert turns.world.stage(turns.rollout).skipped == 1


def test_a_tenant_without_rows_is_skipped() -> None:
    turns = Turns()
    turn = Turn(turns.rollout, 1, Item(tenant("nobody"), NEXT_VERSION), "child")

    assert turns.world.gate.admit(turn) == Settled(Result.SKIPPED)
    assert turns.world.outcome(turns.rollout, "nobody").skip is Skip.UNKNOWN


def test_a_tenant_that_is_pinned_to_the_release_is_admitted() -> None:
    turns = Turns()
    turns.world.change(T1, pinned_version=NEXT_VERSION)

    turns.admitted()


def test_a_tenant_that_is_being_updated_is_admitted_because_its_update_waits() -> None:
    turns = Turns()
    turns.world.table.plant_audit(
        an_audit(Status.STARTED, Operation.UPDATE, tenant=T1, version=LAST_VERSION, at=turns.world.clock.now())
    )

    turns.admitted()


def test_a_tenant_that_is_being_deleted_is_admitted_because_the_delete_may_be_refused() -> None:
    turns = Turns()
    begin_to_delete(turns.world)

    turns.admitted()


def test_a_tenant_whose_delete_begins_during_the_read_is_admitted_too() -> None:
    """Its audits are read before that, and its metadata after."""
    turns = Turns()

    class Deleted(InMemoryTable):
        def metadata(self, tenant: TenantId) -> Metadata | None:
            if tenant == T1 and not self.lock(T1):
                run = a_run(tenant=T1, operation=Operation.DELETE, request=Request(drain_seconds=9))
                self.begin(run, at=turns.world.clock.now())
            return super().metadata(tenant)

    turns.world.table.__class__ = Deleted

    turns.admitted()


def test_a_tenant_that_is_being_created_is_admitted_and_its_created_version_is_its_earlier_one() -> None:
    turns = Turns()
    turns.world.change(T1, queue=None, version=None)
    turns.world.table.plant_audit(an_audit(Status.STARTED, tenant=T1, at=turns.world.clock.now()))
    admitted = turns.admitted()
    turns.world.clock.advance(timedelta(seconds=9))
    turns.world.add(T1)
    turns.world.table.plant_audit(an_audit(Status.SUCCESS, tenant=T1, at=turns.world.clock.now()))
    turns.world.clock.advance(timedelta(seconds=9))
    turns.world.update(admitted)

    assert turns.record() == Settled(Result.SUCCEEDED)
    assert turns.outcome().from_version == VERSION


def test_the_created_version_is_the_earlier_one_even_after_an_interrupted_first_turn() -> None:
    turns = Turns()
    turns.world.change(T1, queue=None, version=None)
    turns.world.table.plant_audit(an_audit(Status.STARTED, tenant=T1, at=turns.world.clock.now()))
    turns.admitted(child="first")
    turns.world.clock.advance(timedelta(seconds=9))
    turns.world.add(T1)
    turns.world.table.plant_audit(an_audit(Status.SUCCESS, tenant=T1, at=turns.world.clock.now()))
    turns.world.clock.advance(timedelta(seconds=9))

    turns.world.update(turns.admitted(child="second"))

    assert turns.record(child="second") == Settled(Result.SUCCEEDED)
    assert turns.outcome().from_version == VERSION


def test_a_dry_run_skips_a_tenant_that_is_being_deleted() -> None:
    turns = Turns(spec=a_spec(dry_run=True))
    begin_to_delete(turns.world)

    assert turns.admit() == Settled(Result.SKIPPED)
    assert turns.outcome().skip is Skip.BUSY


def test_a_skipped_tenant_takes_no_slot() -> None:
    turns = Turns(INITIAL_LIMIT + 1)
    for number in range(2, INITIAL_LIMIT + 1):
        turns.admitted(number)
    turns.world.delete(T1)

    assert turns.admit(1) == Settled(Result.SKIPPED)
    assert turns.in_flight == INITIAL_LIMIT - 1
    assert isinstance(turns.admit(INITIAL_LIMIT + 1), Admitted)


def test_a_tenant_that_waits_reads_only_the_rollout_its_stage_and_its_outcome() -> None:
    turns = Turns(INITIAL_LIMIT + 1)
    for number in range(2, INITIAL_LIMIT + 2):
        turns.admitted(number)
    world = turns.world
    ledger, tenants_rows, throttling, states = (
        Noting(fake) for fake in (world.rollout_table, world.table, world.throttling, world.release_states)
    )
    gate = replace(world.gate, ledger=ledger, tenants=tenants_rows, throttling=throttling, release_states=states)

    assert isinstance(gate.admit(turns.turn(1)), NoRoom)

    assert ledger.called == ["rollout", "stage", "tenant_outcome"]
    assert tenants_rows.called == throttling.called == states.called == []


def test_an_admitted_tenant_whose_answer_was_lost_does_not_wait_for_its_own_slot() -> None:
    turns = Turns(INITIAL_LIMIT + 1)
    for number in range(1, INITIAL_LIMIT + 1):
        turns.admitted(number)

    assert isinstance(turns.admit(1), Admitted)
    assert isinstance(turns.admit(INITIAL_LIMIT + 1), NoRoom)
