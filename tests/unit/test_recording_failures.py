"""The failure of an operation is recorded with its root cause, the first resource that failed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from orchestrator.common.errors import LostOwnership, Throttled
from orchestrator.tenants.decisions import Failed
from orchestrator.tenants.operations import CHECK_HOLDER_AFTER, bounded, first_failure
from orchestrator.tenants.outcomes import Published, Removed
from orchestrator.tenants.ready import Ready
from orchestrator.tenants.records import THROTTLING, Lock, Operation, RootCause, Status
from orchestrator.tenants.stack_ports import ResourceEvent, Stack
from tests.fakes import (
    ACME,
    DONE,
    EXPLICIT,
    NAMES,
    NEXT_VERSION,
    NOON,
    QUEUE,
    QUEUE_TABOO,
    VERSION,
    FakeStacks,
    Operations,
    a_release,
    a_run,
    stack_arn,
)
from tests.unit.test_stack_status import SORTED

A_MOMENT = timedelta(milliseconds=1)


@pytest.fixture
def world() -> Operations:
    return Operations()


# Record the failure


def test_a_failure_is_recorded_with_its_cause_and_frees_the_lock(world: Operations) -> None:
    run = a_run()
    world.begin(run)
    world.clock.advance(timedelta(seconds=9))
    assert world.record_failure(run) == QUEUE_TABOO
    (audit,) = world.table.audits(ACME)
    assert (audit.status, audit.root_cause) == (Status.FAILURE, QUEUE_TABOO)
    assert world.table.history(ACME)[-1].root_cause == QUEUE_TABOO
    assert world.table.lock(ACME) is None


@pytest.mark.parametrize("operation", [Operation.CREATE, Operation.UPDATE])
def test_without_a_failed_stack_cloudformation_is_not_asked(world: Operations, operation: Operation) -> None:
    world.record_failure(a_run(operation=operation))
    assert not world.stacks.calls


def test_a_tenant_whose_update_failed_is_served_as_before(world: Operations) -> None:
    world.create()
    update = a_run(operation=Operation.UPDATE, version=NEXT_VERSION)
    world.begin(update)
    assert world.decision() == Ready(QUEUE, VERSION)
    world.record_failure(update)
    assert world.decision() == Ready(QUEUE, VERSION)


EVERY_STATUS = sorted(set().union(*SORTED.values()))
BEING_DELETED = [status for status in EVERY_STATUS if status.startswith("DELETE_")]


@pytest.mark.parametrize("status", sorted(set(EVERY_STATUS) - set(BEING_DELETED)))
def test_a_tenant_whose_delete_failed_before_its_stack_was_changed_is_served_again(
    world: Operations, status: str
) -> None:
    world.create()
    world.stacks.plant_done(ACME, status=status)
    delete = a_run(operation=Operation.DELETE)
    world.begin(delete)
    world.clock.advance(A_MOMENT)
    world.record_failure(delete)
    assert world.decision() == Ready(QUEUE, VERSION)
    assert world.table.lock(ACME) is None


@pytest.mark.parametrize("status", BEING_DELETED)
def test_a_tenant_whose_stack_the_delete_has_changed_is_not_served_again(world: Operations, status: str) -> None:
    world.create()
    world.stacks.plant_done(ACME, status=status)
    delete = a_run(operation=Operation.DELETE)
    world.begin(delete)
    world.clock.advance(A_MOMENT)
    world.record_failure(delete)
    assert isinstance(world.decision(), Failed)


def test_a_tenant_in_whose_place_somebody_elses_stack_stands_is_not_served_again(world: Operations) -> None:
    world.create()
    planted = world.stacks.plant_done(ACME)
    world.stacks.all[planted.stack_id].stack = replace(planted, tenant_id="other")
    delete = a_run(operation=Operation.DELETE)
    world.begin(delete)
    world.clock.advance(A_MOMENT)
    world.record_failure(delete)
    assert isinstance(world.decision(), Failed)


def test_a_tenant_whose_stack_was_deleted_is_not_served_again(world: Operations) -> None:
    world.create()
    delete = a_run(operation=Operation.DELETE)
    world.begin(delete)
    world.record_failure(delete)
    assert isinstance(world.decision(), Failed)
    assert world.metadata_of().withdrawn_by == delete.execution


def test_a_tenant_that_was_not_served_is_not_served_after_its_delete_was_refused(world: Operations) -> None:
    world.begin(a_run())
    world.record_failure(a_run())
    world.stacks.plant_done(ACME, status="ROLLBACK_COMPLETE")
    delete = a_run(operation=Operation.DELETE)
    world.begin(delete)
    world.clock.advance(A_MOMENT)
    world.record_failure(delete)
    assert not world.metadata_of().published
    assert isinstance(world.decision(), Failed)


def test_a_delete_that_never_owned_the_tenant_gives_nothing_back(world: Operations) -> None:
    world.create()
    world.stacks.plant_done(ACME)
    holder, waiting = a_run(1, operation=Operation.DELETE), a_run(2, operation=Operation.DELETE)
    world.begin(holder)
    with pytest.raises(LostOwnership):
        world.record_failure(waiting)
    assert world.metadata_of().withdrawn_by == holder.execution
    assert world.table.lock(ACME) == Lock(holder, None)
    assert [audit.execution for audit in world.table.unfinished_operations()] == [holder.execution]


def test_a_failure_is_not_recorded_while_the_check_of_the_stack_is_throttled(world: Operations) -> None:
    world.create()
    world.stacks.plant_done(ACME)
    delete = a_run(operation=Operation.DELETE)
    world.begin(delete)
    world.stacks.throttled_calls = 1
    with pytest.raises(Throttled):
        world.record_failure(delete)
    assert world.table.lock(ACME) == Lock(delete, None)
    world.record_failure(delete)
    assert world.metadata_of().published


def test_the_cause_of_a_failed_stack_is_its_first_failed_resource(world: Operations) -> None:
    run = a_run()
    world.begin(run)
    world.stacks.failures.append("Queue quota exceeded.")
    stack_id = world.stacks.create(ACME, release=a_release(), client_token="t")
    assert stack_id is not None
    world.stacks.settle()

    cause = world.record_failure(
        run, RootCause(NAMES.stack_of(ACME), "AWS::CloudFormation::Stack", "rolled back"), stack_id
    )

    assert cause == RootCause("InboundQueue", "AWS::SQS::Queue", "Queue quota exceeded.")
    assert world.table.audits(ACME)[0].root_cause == cause


def test_a_failed_stack_whose_events_name_nothing_leaves_the_cause_that_is_known(world: Operations) -> None:
    stack = world.stacks.plant(Stack(world.stacks.stack_id(ACME), "CREATE_COMPLETE", "", "acme", None, None, ours=True))
    assert world.record_failure(a_run(), QUEUE_TABOO, stack.stack_id) == QUEUE_TABOO


def test_a_run_that_failed_before_it_owned_the_tenant_is_recorded_and_leaves_the_owner_alone(world: Operations) -> None:
    holder, run = a_run(), a_run(operation=Operation.UPDATE)
    world.begin(holder)
    world.record_failure(run)
    assert world.table.lock(ACME) == Lock(holder, None)
    failed = [audit.execution for audit in world.table.audits(ACME) if audit.status is Status.FAILURE]
    assert failed == [run.execution]


def test_recording_a_failure_twice_is_recording_it_once(world: Operations) -> None:
    run = a_run()
    world.begin(run)
    world.clock.advance(timedelta(seconds=9))
    world.record_failure(run)
    world.clock.advance(timedelta(seconds=9))
    assert world.record_failure(run) == QUEUE_TABOO
    assert [entry.status for entry in world.table.history(ACME)] == [Status.STARTED, Status.FAILURE]


def test_a_failure_with_a_later_attempt_is_not_recorded_but_raised(world: Operations) -> None:
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


@pytest.mark.parametrize("reason", ["Rate exceeded", "x" * 5_000])
def test_a_throttled_operation_is_recorded_as_throttled(world: Operations, reason: str) -> None:
    run = a_run()
    world.begin(run)
    world.record_failure(run, RootCause(NAMES.stack_of(ACME), THROTTLING, reason))
    (audit,) = world.table.audits(ACME)
    assert audit.root_cause is not None
    assert audit.root_cause.is_throttling


def test_a_stack_that_failed_is_no_matter_of_throttling() -> None:
    assert not QUEUE_TABOO.is_throttling


def test_a_long_reason_is_recorded_cut(world: Operations) -> None:
    run = a_run()
    world.begin(run)
    world.record_failure(run, RootCause("a", "b", "x" * 5_000))
    cause = world.table.audits(ACME)[0].root_cause
    assert cause is not None
    assert len(cause.reason) == 1_000


# The first failure among a stack's events. CloudFormation lists them newest first; here they are in order.

STACK = "berth-tenant-acme-822b33ad"


def stack(status: str, reason: str = "") -> ResourceEvent:
    return ResourceEvent(NOON, STACK, "AWS::CloudFormation::Stack", status, reason, is_stack=True, cancelled=False)


def resource(name: str, status: str, reason: str = "", *, kind: str = "AWS::SQS::Queue") -> ResourceEvent:
    return ResourceEvent(NOON, name, kind, status, reason, is_stack=False, cancelled="cancelled" in reason)


def newest_first(*events: ResourceEvent) -> Iterator[ResourceEvent]:
    return reversed(events)


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


def test_a_cancelled_resource_is_not_the_cause_even_if_it_is_listed_first() -> None:
    events = (
        stack("CREATE_IN_PROGRESS"),
        resource("DeadLetterQueue", "CREATE_FAILED", "Resource creation cancelled"),
        resource("InboundQueue", "CREATE_FAILED", THE_CAUSE.reason),
        stack("ROLLBACK_IN_PROGRESS"),
    )
    assert first_failure(newest_first(*events)) == THE_CAUSE


def test_the_earlier_of_two_failures_is_the_cause() -> None:
    events = (
        stack("CREATE_IN_PROGRESS"),
        resource("InboundQueue", "CREATE_FAILED", THE_CAUSE.reason),
        resource("Metadata", "CREATE_FAILED", "Received response status [FAILED]", kind="Custom::TenantMetadata"),
        stack("ROLLBACK_IN_PROGRESS"),
    )
    assert first_failure(newest_first(*events)) == THE_CAUSE


def test_a_failure_during_the_rollback_is_not_the_cause() -> None:
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


def test_older_pages_of_events_are_not_read() -> None:
    def pages() -> Iterator[ResourceEvent]:
        yield from newest_first(*FAILED_CREATE)
        raise AssertionError("read on past the beginning of the latest operation")

    assert first_failure(pages()) == THE_CAUSE


def test_no_events_no_cause() -> None:
    assert first_failure([]) is None


def test_a_throttled_event_list_does_not_keep_the_failure_from_being_recorded(world: Operations) -> None:
    run = world.start(a_run())
    world.begin(run)
    world.stacks.throttled_calls = 1
    assert world.record_failure(run, QUEUE_TABOO, stack_arn()) == QUEUE_TABOO
    assert world.table.lock(ACME) is None


def test_finishing_a_delete_again_has_the_same_outcome_after_the_tenant_was_created_again(world: Operations) -> None:
    world.create()
    world.clock.advance(A_MOMENT)
    delete = a_run(operation=Operation.DELETE)
    world.begin(world.start(delete))
    assert world.finish(delete, None) == Removed()
    world.clock.advance(A_MOMENT)
    world.begin(world.start(a_run(2, request=EXPLICIT, started_at=world.clock.now())))
    stack = world.stacks.plant_done(ACME)
    world.table.record_queue(ACME, stack_id=stack.stack_id, queue=QUEUE, at=world.clock.now())
    before = world.metadata_of()
    assert world.finish(delete, None) == Removed()
    assert world.metadata_of() == before


def test_finishing_an_update_again_has_the_same_outcome_after_the_tenant_was_deleted(world: Operations) -> None:
    world.create()
    world.clock.advance(A_MOMENT)
    update = a_run(operation=Operation.UPDATE, version=NEXT_VERSION)
    world.begin(world.start(update))
    done = replace(DONE, version=NEXT_VERSION)
    assert world.finish(update, done) == Published()
    world.clock.advance(A_MOMENT)
    delete = a_run(operation=Operation.DELETE)
    world.begin(world.start(delete))
    world.finish(delete, None)
    assert world.with_other(stacks=FakeStacks()).finish(update, stack=done) == Published()
    assert world.table.metadata(ACME) is None
