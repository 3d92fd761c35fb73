"""The life of one operation: begin, finish, record the failure, and what the failure was."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from orchestrator.errors import LostOwnership
from orchestrator.operations import (
    CHECK_HOLDER_AFTER,
    DEADLINE,
    Begun,
    Busy,
    GaveUp,
    NotReady,
    Published,
    begin,
    bounded,
    finish,
    first_failure,
    machine_input,
    record_failure,
)
from orchestrator.ports import ResourceEvent, Stack
from orchestrator.records import Lock, Operation, RootCause, Run, Status
from tests.fakes import (
    ACME,
    NOON,
    QUEUE,
    QUEUE_TABOO,
    VERSION,
    FakeClock,
    FakeExecutions,
    FakeQueues,
    FakeStacks,
    InMemoryTable,
    a_run,
    an_attempt,
)

A_MOMENT = timedelta(milliseconds=1)


class World:
    def __init__(self) -> None:
        self.table, self.executions, self.clock = InMemoryTable(), FakeExecutions(), FakeClock()
        self.stacks, self.queues = FakeStacks(), FakeQueues()

    def start(self, run: Run) -> Run:
        started = self.executions.start(machine_input(run.attempt), run.attempt.name)
        assert started == run.execution
        return run

    def begin(self, run: Run) -> Begun | Busy | GaveUp:
        return begin(run, ledger=self.table, executions=self.executions, clock=self.clock)

    def finish(self, run: Run) -> Published | NotReady | GaveUp:
        return finish(
            run,
            stack_id="stack-1",
            queue=QUEUE,
            version=VERSION,
            ledger=self.table,
            queues=self.queues,
            clock=self.clock,
        )

    def record_failure(self, run: Run, failure: RootCause = QUEUE_TABOO, failed_stack: str | None = None) -> RootCause:
        return record_failure(
            run,
            failure=failure,
            failed_stack=failed_stack,
            ledger=self.table,
            stacks=self.stacks,
            clock=self.clock,
        )


@pytest.fixture
def world() -> World:
    return World()


def test_equal_attempts_have_equal_inputs() -> None:
    assert machine_input(an_attempt(2)) == machine_input(an_attempt(2))
    assert machine_input(an_attempt(2)) != machine_input(an_attempt(3))


# Begin


def test_a_free_tenant_is_taken_and_its_operation_recorded_as_started(world: World) -> None:
    run = world.start(a_run())
    assert world.begin(run) == Begun()
    assert world.table.lock(ACME) == Lock(run, None)
    assert [audit.status for audit in world.table.audits(ACME)] == [Status.STARTED]
    assert [entry.status for entry in world.table.history(ACME)] == [Status.STARTED]


def test_beginning_twice_is_beginning_once(world: World) -> None:
    run = world.start(a_run())
    world.begin(run)
    assert world.begin(run) == Begun()
    assert len(world.table.history(ACME)) == 1


def test_a_run_that_had_to_wait_is_recorded_as_started_when_it_begins(world: World) -> None:
    world.clock.advance(timedelta(minutes=3))
    world.begin(a_run(started_at=NOON))
    assert world.table.audits(ACME)[0].updated_at == NOON + timedelta(minutes=3)


def test_a_busy_tenant_is_waited_for(world: World) -> None:
    holder, run = world.start(a_run()), world.start(a_run(operation=Operation.UPDATE))
    world.begin(holder)
    assert world.begin(run) == Busy(holder.execution)
    assert world.table.lock(ACME) == Lock(holder, None)


def test_a_lock_that_is_young_is_believed_without_asking(world: World) -> None:
    world.begin(a_run())
    world.clock.advance(CHECK_HOLDER_AFTER)
    assert isinstance(world.begin(a_run(operation=Operation.UPDATE)), Busy)
    assert not world.executions.asked_about


def test_a_lock_that_is_old_is_respected_while_its_execution_runs(world: World) -> None:
    holder = world.start(a_run())
    world.begin(holder)
    world.clock.advance(CHECK_HOLDER_AFTER + A_MOMENT)
    assert world.begin(a_run(operation=Operation.UPDATE)) == Busy(holder.execution)


@pytest.mark.parametrize(
    "successor",
    [a_run(2), a_run(version="0.2.0"), a_run(operation=Operation.UPDATE), a_run(operation=Operation.DELETE)],
    ids=["next attempt", "next version", "update", "delete"],
)
def test_a_lock_whose_execution_is_gone_is_taken_over_and_its_operation_closed(world: World, successor: Run) -> None:
    dead = world.start(a_run())
    world.begin(dead)
    world.executions.end(dead.execution)
    world.clock.advance(CHECK_HOLDER_AFTER + A_MOMENT)

    assert world.begin(successor) == Begun()
    assert world.table.lock(ACME) == Lock(successor, None)
    outcome = [entry.status for entry in world.table.history(ACME) if entry.execution == dead.execution]
    assert sorted(outcome) == [Status.FAILURE, Status.STARTED]
    still_started = [a.execution for a in world.table.audits(ACME) if a.status is Status.STARTED]
    assert still_started == [successor.execution]


def test_who_loses_the_race_for_a_dead_holders_lock_waits_for_the_winner(world: World) -> None:
    dead, winner, loser = a_run(1), a_run(operation=Operation.UPDATE), a_run(version="0.2.0")

    class Raced(InMemoryTable):
        def begin(self, run: Run, *, at: datetime, instead_of: Lock | None = None) -> Lock | None:
            if run == loser and instead_of:
                super().begin(winner, at=at, instead_of=instead_of)
            return super().begin(run, at=at, instead_of=instead_of)

    world.table = Raced()
    world.begin(dead)
    world.clock.advance(CHECK_HOLDER_AFTER + A_MOMENT)
    assert world.begin(loser) == Busy(winner.execution)
    assert world.table.lock(ACME) == Lock(winner, None)


def test_waiting_for_a_busy_tenant_ends_at_the_deadline_and_names_the_holder(world: World) -> None:
    holder, run = world.start(a_run()), a_run(operation=Operation.UPDATE)
    world.begin(holder)
    world.clock.advance(DEADLINE)
    assert isinstance(world.begin(run), Busy)
    world.clock.advance(A_MOMENT)
    outcome = world.begin(run)
    assert isinstance(outcome, GaveUp)
    assert holder.execution in outcome.reason
    assert outcome.failed_stack is None


def test_a_free_tenant_is_taken_even_after_the_deadline(world: World) -> None:
    world.clock.advance(DEADLINE * 2)
    assert world.begin(a_run()) == Begun()


# Finish


def test_finishing_publishes_the_queue_records_success_and_frees_the_lock(world: World) -> None:
    run = a_run()
    world.begin(run)
    world.clock.advance(timedelta(seconds=9))

    assert world.finish(run) == Published()
    metadata = world.table.metadata(ACME)
    assert metadata is not None
    assert (metadata.queue, metadata.version, metadata.stack_id) == (QUEUE, VERSION, "stack-1")
    assert metadata.created_at == metadata.updated_at == world.clock.now()
    assert [audit.status for audit in world.table.audits(ACME)] == [Status.SUCCESS]
    assert world.table.lock(ACME) is None


def test_a_queue_that_does_not_answer_yet_is_not_published(world: World) -> None:
    world.queues.silent_for = 2
    run = a_run()
    world.begin(run)
    assert [world.finish(run) for _ in range(2)] == [NotReady(), NotReady()]
    assert world.table.metadata(ACME) is None
    assert world.table.lock(ACME) is not None
    assert world.finish(run) == Published()
    assert world.queues.asked == [QUEUE] * 3


def test_a_queue_that_never_answers_is_given_up_at_the_deadline(world: World) -> None:
    world.queues.silent_for = 99
    run = a_run()
    world.begin(run)
    world.clock.advance(DEADLINE)
    assert world.finish(run) == NotReady()
    world.clock.advance(A_MOMENT)
    outcome = world.finish(run)
    assert isinstance(outcome, GaveUp)
    assert QUEUE.arn in outcome.reason
    assert world.table.metadata(ACME) is None


def test_a_queue_that_answers_after_the_deadline_is_still_published(world: World) -> None:
    run = a_run()
    world.begin(run)
    world.clock.advance(DEADLINE * 2)
    assert world.finish(run) == Published()


def test_finishing_twice_is_finishing_once(world: World) -> None:
    run = a_run()
    world.begin(run)
    world.finish(run)
    world.clock.advance(timedelta(seconds=9))
    assert world.finish(run) == Published()
    assert [entry.status for entry in world.table.history(ACME)] == [Status.STARTED, Status.SUCCESS]


def test_a_run_that_lost_its_lock_publishes_nothing(world: World) -> None:
    dead, successor = a_run(1), a_run(2)
    world.begin(dead)
    world.clock.advance(CHECK_HOLDER_AFTER + A_MOMENT)
    world.begin(successor)
    with pytest.raises(LostOwnership):
        world.finish(dead)
    assert world.table.metadata(ACME) is None
    assert world.table.lock(ACME) == Lock(successor, None)


# Record the failure


def test_a_failure_is_recorded_with_its_cause_and_frees_the_lock(world: World) -> None:
    run = a_run()
    world.begin(run)
    world.clock.advance(timedelta(seconds=9))
    assert world.record_failure(run) == QUEUE_TABOO
    (audit,) = world.table.audits(ACME)
    assert (audit.status, audit.root_cause) == (Status.FAILURE, QUEUE_TABOO)
    assert world.table.history(ACME)[-1].root_cause == QUEUE_TABOO
    assert world.table.lock(ACME) is None


def test_without_a_failed_stack_cloudformation_is_not_asked(world: World) -> None:
    world.record_failure(a_run())
    assert not world.stacks.calls


def test_the_cause_of_a_failed_stack_is_its_first_failed_resource(world: World) -> None:
    run = a_run()
    world.begin(run)
    world.stacks.failures.append("Queue quota exceeded.")
    stack_id = world.stacks.create(ACME, template_url="https://example.com/t", client_token="t")
    assert stack_id is not None
    world.stacks.settle()

    cause = world.record_failure(run, RootCause(ACME.stack_name, "AWS::CloudFormation::Stack", "rolled back"), stack_id)

    assert cause == RootCause("InboundQueue", "AWS::SQS::Queue", "Queue quota exceeded.")
    assert world.table.audits(ACME)[0].root_cause == cause


def test_a_failed_stack_whose_events_name_nothing_leaves_the_cause_that_is_known(world: World) -> None:
    stack = world.stacks.plant(Stack(world.stacks.stack_id(ACME), "CREATE_COMPLETE", "", "acme", None, None))
    assert world.record_failure(a_run(), QUEUE_TABOO, stack.stack_id) == QUEUE_TABOO


def test_a_run_that_failed_before_it_owned_the_tenant_is_recorded_and_leaves_the_owner_alone(world: World) -> None:
    holder, run = a_run(), a_run(operation=Operation.UPDATE)
    world.begin(holder)
    world.record_failure(run)
    assert world.table.lock(ACME) == Lock(holder, None)
    failed = [audit.execution for audit in world.table.audits(ACME) if audit.status is Status.FAILURE]
    assert failed == [run.execution]


def test_recording_a_failure_twice_is_recording_it_once(world: World) -> None:
    run = a_run()
    world.begin(run)
    world.clock.advance(timedelta(seconds=9))
    world.record_failure(run)
    world.clock.advance(timedelta(seconds=9))
    assert world.record_failure(run) == QUEUE_TABOO
    assert [entry.status for entry in world.table.history(ACME)] == [Status.STARTED, Status.FAILURE]


def test_a_failure_that_a_later_attempt_has_overtaken_is_not_recorded_but_told(world: World) -> None:
    dead, successor = a_run(1), a_run(2)
    world.begin(dead)
    world.clock.advance(CHECK_HOLDER_AFTER + A_MOMENT)
    world.begin(successor)
    with pytest.raises(LostOwnership, match=QUEUE_TABOO.reason):
        world.record_failure(dead)
    (audit,) = world.table.audits(ACME)
    assert (audit.status, audit.execution) == (Status.STARTED, successor.execution)


def test_a_long_reason_is_cut_and_an_empty_one_is_said_to_be_empty() -> None:
    cut = bounded(RootCause("a", "b", "é" * 5_000))
    assert len(cut.reason) == 1_000
    assert cut.reason.endswith("…")
    assert bounded(RootCause("a", "b", "x" * 1_000)).reason == "x" * 1_000
    assert bounded(RootCause("a", "b", "")) == RootCause("a", "b", "No reason was given.")


def test_a_long_reason_is_recorded_cut(world: World) -> None:
    run = a_run()
    world.begin(run)
    world.record_failure(run, RootCause("a", "b", "x" * 5_000))
    cause = world.table.audits(ACME)[0].root_cause
    assert cause is not None
    assert len(cause.reason) == 1_000


# The first failure among a stack's events. CloudFormation lists them newest first; here they are told in order.

STACK = "berth-tenant-acme-822b33ad"


def stack(status: str, reason: str = "") -> ResourceEvent:
    return ResourceEvent(NOON, STACK, "AWS::CloudFormation::Stack", status, reason, is_stack=True, cancelled=False)


def resource(name: str, status: str, reason: str = "", *, kind: str = "AWS::SQS::Queue") -> ResourceEvent:
    return ResourceEvent(NOON, name, kind, status, reason, is_stack=False, cancelled="cancelled" in reason)


def newest_first(*told: ResourceEvent) -> Iterator[ResourceEvent]:
    return reversed(told)


FAILED_CREATE = (
    stack("CREATE_IN_PROGRESS", "User Initiated"),
    resource("DeadLetterQueue", "CREATE_IN_PROGRESS"),
    resource("InboundQueue", "CREATE_IN_PROGRESS"),
    resource("InboundQueue", "CREATE_FAILED", "Access denied (Service: Sqs, Status Code: 403)"),
    resource("DeadLetterQueue", "CREATE_FAILED", "Resource creation cancelled"),
    stack("ROLLBACK_IN_PROGRESS", "The following resource(s) failed to create: [InboundQueue, DeadLetterQueue]."),
    resource("DeadLetterQueue", "DELETE_COMPLETE"),
    stack("ROLLBACK_COMPLETE"),
)
THE_CAUSE = RootCause("InboundQueue", "AWS::SQS::Queue", "Access denied (Service: Sqs, Status Code: 403)")


def test_the_first_failed_resource_is_the_cause_and_what_was_cancelled_is_not() -> None:
    assert first_failure(newest_first(*FAILED_CREATE)) == THE_CAUSE


def test_a_cancelled_resource_is_not_the_cause_even_when_it_is_told_first() -> None:
    events = (
        stack("CREATE_IN_PROGRESS"),
        resource("DeadLetterQueue", "CREATE_FAILED", "Resource creation cancelled"),
        resource("InboundQueue", "CREATE_FAILED", THE_CAUSE.reason),
        stack("ROLLBACK_IN_PROGRESS"),
    )
    assert first_failure(newest_first(*events)) == THE_CAUSE


def test_of_two_failures_the_earlier_is_the_cause() -> None:
    events = (
        stack("CREATE_IN_PROGRESS"),
        resource("InboundQueue", "CREATE_FAILED", THE_CAUSE.reason),
        resource("Metadata", "CREATE_FAILED", "Received response status [FAILED]", kind="Custom::TenantMetadata"),
        stack("ROLLBACK_IN_PROGRESS"),
    )
    assert first_failure(newest_first(*events)) == THE_CAUSE


def test_what_fails_while_undoing_is_not_the_cause() -> None:
    events = (
        *FAILED_CREATE[:-2],
        resource("DeadLetterQueue", "DELETE_FAILED", "Queue is in use"),
        stack("ROLLBACK_FAILED", "The following resource(s) failed to delete: [DeadLetterQueue]."),
    )
    assert first_failure(newest_first(*events)) == THE_CAUSE


def test_the_failure_of_an_older_operation_is_not_the_cause_of_the_latest() -> None:
    update = (
        stack("UPDATE_IN_PROGRESS", "User Initiated"),
        resource("QueuePolicy", "UPDATE_FAILED", "Invalid policy", kind="AWS::SQS::QueuePolicy"),
        stack("UPDATE_ROLLBACK_IN_PROGRESS", "The following resource(s) failed to update: [QueuePolicy]."),
        stack("UPDATE_ROLLBACK_COMPLETE"),
    )
    cause = first_failure(newest_first(*FAILED_CREATE, *update))
    assert cause == RootCause("QueuePolicy", "AWS::SQS::QueuePolicy", "Invalid policy")


def test_an_operation_without_a_failure_has_no_cause_even_above_one_that_failed() -> None:
    deletion = (stack("DELETE_IN_PROGRESS"), resource("InboundQueue", "DELETE_COMPLETE"), stack("DELETE_COMPLETE"))
    assert first_failure(newest_first(*FAILED_CREATE, *deletion)) is None


def test_a_failed_delete_has_the_resource_that_could_not_be_deleted_as_its_cause() -> None:
    deletion = (
        stack("DELETE_IN_PROGRESS"),
        resource("InboundQueue", "DELETE_FAILED", "Queue is in use"),
        stack("DELETE_FAILED", "The following resource(s) failed to delete: [InboundQueue]."),
    )
    cause = first_failure(newest_first(*FAILED_CREATE, *deletion))
    assert cause == RootCause("InboundQueue", "AWS::SQS::Queue", "Queue is in use")


def test_a_stack_that_failed_before_any_resource_did_is_its_own_cause() -> None:
    events = (
        stack("CREATE_IN_PROGRESS", "User Initiated"),
        stack("ROLLBACK_IN_PROGRESS", "Role arn:aws:iam::0:role/x is invalid or cannot be assumed"),
        stack("ROLLBACK_COMPLETE"),
    )
    assert first_failure(newest_first(*events)) == RootCause(
        STACK, "AWS::CloudFormation::Stack", "Role arn:aws:iam::0:role/x is invalid or cannot be assumed"
    )


def test_older_pages_of_events_are_not_asked_for() -> None:
    def pages() -> Iterator[ResourceEvent]:
        yield from newest_first(*FAILED_CREATE)
        raise AssertionError("read on past the beginning of the latest operation")

    assert first_failure(pages()) == THE_CAUSE


def test_no_events_no_cause() -> None:
    assert first_failure([]) is None


def test_a_throttled_event_list_does_not_keep_the_failure_from_being_recorded(world: World) -> None:
    run = world.start(a_run())
    world.begin(run)
    world.stacks.throttled_calls = 1
    assert world.record_failure(run, QUEUE_TABOO, "stack-1") == QUEUE_TABOO
    assert world.table.lock(ACME) is None
