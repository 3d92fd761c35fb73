"""One tenant's turn: its admission, its update, and its outcome."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from orchestrator.common.errors import Unsettled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.rollouts.gate import AdmissionStopped, Admitted, NoRoom, Replaced, Settled, ToReview, TryAgain
from orchestrator.rollouts.pacing import REACTION_TIME, Pace
from orchestrator.rollouts.records import Item, Result, RolloutStatus, Share, Skip, Spec, TenantOutcome, Turn
from orchestrator.tenants.deadlines import DEADLINE
from orchestrator.tenants.records import Attempt, Metadata, Operation, Request, RootCause, Run, Status
from tests.fakes import NEXT_VERSION, NOON, QUEUE_TABOO, VERSION, InMemoryTable, a_run, an_audit
from tests.fakes.noting import Noting
from tests.unit.rollouts.world import (
    LAST_VERSION,
    THROTTLED_CAUSE,
    Fleet,
    a_spec,
    a_stage_spec,
    tenant,
    tenants,
)

FAULT = "States.TaskFailed: the function could not be called"
INITIAL_LIMIT = Pace.initial(50).at_once
"""The limit at the start of a rollout with the stages of this module."""
NAME_IS_TAKEN = "StepFunctions.ExecutionAlreadyExistsException: Execution Already Exists"


class Turns:
    """A rollout whose first stage is running."""

    def __init__(self, count: int = 1, spec: Spec | None = None, *, version: str = VERSION) -> None:
        self.world = Fleet(count, version=version)
        self.rollout = self.world.start(spec)
        self.world.advance(self.rollout)

    def turn(self, number: int = 1, *, child: str = "child") -> Turn:
        who = tenants(self.world.count)[number - 1]
        item = next(item for item in self.world.items(self.rollout) if item.tenant == who)
        return Turn(self.rollout, 1, item, f"{child}/{who}")

    def admit(self, number: int = 1, *, child: str = "child") -> object:
        return self.world.gate.admit(self.turn(number, child=child))

    def admitted(self, number: int = 1, *, child: str = "child") -> Admitted:
        admission = self.admit(number, child=child)
        assert isinstance(admission, Admitted), admission
        return admission

    def record(
        self, number: int = 1, fault: str | None = None, *, child: str = "child"
    ) -> Settled | TryAgain | Replaced:
        return self.world.gate.record(self.turn(number, child=child), fault)

    def succeed(self, number: int = 1) -> None:
        self.world.update(self.admitted(number))
        assert self.record(number) == Settled(Result.SUCCEEDED)

    def outcome(self, number: int = 1) -> TenantOutcome:
        return self.world.outcome(self.rollout, tenants(self.world.count)[number - 1])

    @property
    def in_flight(self) -> int:
        return self.world.stage(self.rollout).in_flight

    @property
    def pace(self) -> Pace:
        return self.world.stage(self.rollout).pace


T1 = tenant("t001")


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


def delete(world: Fleet) -> None:
    world.delete(T1)


def pin(world: Fleet) -> None:
    world.change(T1, pinned_version=VERSION)


def move_there(world: Fleet) -> None:
    world.change(T1, version=NEXT_VERSION)


def move_further(world: Fleet) -> None:
    world.change(T1, version=LAST_VERSION)


def begin_to_delete(world: Fleet) -> None:
    world.table.plant_audit(an_audit(Status.STARTED, Operation.DELETE, tenant=T1, version=None))


def lose_the_queue(world: Fleet) -> None:
    world.change(T1, queue=None, version=None)


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


# Outcomes


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
