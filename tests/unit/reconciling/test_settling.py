"""An operation whose execution died is given the end that is true: no other, not twice, and not too early."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from orchestrator.common.errors import Conflict, Throttled
from orchestrator.reconciling import settling
from orchestrator.reconciling.settling import NothingToSettle, Settled, StillOpen
from orchestrator.tenants.deadlines import DEADLINE
from orchestrator.tenants.ports import Publication
from orchestrator.tenants.records import Operation, Queue, RootCause, Run, Status
from orchestrator.tenants.stack_status import StackCondition
from orchestrator.tenants.writes import MetadataKey
from tests.fakes import (
    ACME,
    NEXT_VERSION,
    NOON,
    OTHER_QUEUE,
    VERSION,
    a_run,
    an_audit,
    take,
)
from tests.unit.reconciling.world import A_MINUTE, FleetWithStacks, queue_of
from tests.unit.test_stack_status import SORTED

QUEUE = queue_of(ACME)
EVERY_STATUS = [None, *(status for statuses in SORTED.values() for status in sorted(statuses))]
OPEN = None
"""In a table of truths: not decided yet."""


def a_run_of(operation: Operation) -> Run:
    return a_run(operation=operation, version=NEXT_VERSION)


def world_with(operation: Operation, stack: str | None, *, at: str = NEXT_VERSION) -> tuple[FleetWithStacks, Run]:
    """The operation has begun, and its stack is in that state, at that version."""
    world = FleetWithStacks()
    if operation is not Operation.CREATE:
        world.add(ACME.value)
        world.take_stack_away(ACME)
    if stack is not None:
        world.stacks.plant_done(ACME, status=stack, version=at, queue=QUEUE)
    return world, world.begin(a_run_of(operation))


def conditions(status: str | None) -> StackCondition | None:
    return next((meant for meant, statuses in SORTED.items() if status in statuses), None)


# The actual state, as CloudFormation describes the stack

FAILURE, SUCCESS = Status.FAILURE, Status.SUCCESS
TRUTHS: dict[Operation, dict[StackCondition | None, Status | None]] = {
    Operation.CREATE: {
        None: FAILURE,
        StackCondition.WORKING: OPEN,
        StackCondition.DONE: SUCCESS,
        StackCondition.DONE_AT_OLD_VERSION: SUCCESS,
        StackCondition.GONE: FAILURE,
        StackCondition.CREATION_FAILED: FAILURE,
        StackCondition.NEEDS_ROLLBACK: FAILURE,
        StackCondition.NEEDS_ROLLBACK_CONTINUED: FAILURE,
        StackCondition.BROKEN: FAILURE,
    },
    Operation.UPDATE: {
        None: FAILURE,
        StackCondition.WORKING: OPEN,
        StackCondition.DONE: SUCCESS,
        StackCondition.DONE_AT_OLD_VERSION: FAILURE,
        StackCondition.GONE: FAILURE,
        StackCondition.CREATION_FAILED: FAILURE,
        StackCondition.NEEDS_ROLLBACK: FAILURE,
        StackCondition.NEEDS_ROLLBACK_CONTINUED: FAILURE,
        StackCondition.BROKEN: FAILURE,
    },
    Operation.DELETE: {
        None: SUCCESS,
        StackCondition.WORKING: OPEN,
        StackCondition.DONE: FAILURE,
        StackCondition.DONE_AT_OLD_VERSION: FAILURE,
        StackCondition.GONE: SUCCESS,
        StackCondition.CREATION_FAILED: FAILURE,
        StackCondition.NEEDS_ROLLBACK: FAILURE,
        StackCondition.NEEDS_ROLLBACK_CONTINUED: FAILURE,
        StackCondition.BROKEN: FAILURE,
    },
}


def test_the_cases_cover_every_condition_of_a_stack() -> None:
    assert all(set(truths) == {None, *StackCondition} for truths in TRUTHS.values())


@pytest.mark.parametrize(("operation", "stack"), [*product(Operation, EVERY_STATUS)])
def test_the_stack_decides_how_an_operation_ended(operation: Operation, stack: str | None) -> None:
    world, run = world_with(operation, stack)
    world.executions.end(run.execution)
    settlement = world.settling.settle(run)
    expected = TRUTHS[operation][conditions(stack)]
    if expected is OPEN:
        assert isinstance(settlement, StillOpen)
        assert world.table.lock(ACME) is not None
        assert world.audit(ACME, operation).status is Status.STARTED
    else:
        assert isinstance(settlement, Settled)
        assert settlement.status is expected
        assert world.table.lock(ACME) is None
        assert world.audit(ACME, operation).status is expected


@pytest.mark.parametrize(("operation", "stack"), [*product(Operation, EVERY_STATUS)])
def test_past_its_deadline_an_operation_is_always_settled(operation: Operation, stack: str | None) -> None:
    world, run = world_with(operation, stack)
    world.executions.end(run.execution)
    world.clock.advance(DEADLINE + A_MINUTE)
    settlement = world.settling.settle(run)
    assert isinstance(settlement, Settled)
    assert settlement.status is (TRUTHS[operation][conditions(stack)] or Status.FAILURE)
    assert world.table.lock(ACME) is None


@pytest.mark.parametrize(("operation", "stack"), [*product(Operation, [None, "CREATE_COMPLETE", "UPDATE_FAILED"])])
def test_an_operation_with_a_running_execution_is_not_settled(operation: Operation, stack: str | None) -> None:
    world, run = world_with(operation, stack)
    before = world.rows()
    world.stacks.calls.clear()
    assert isinstance(world.settling.settle(run), StillOpen)
    assert world.rows() == before
    assert not world.stacks.calls


@pytest.mark.parametrize(("operation", "stack"), [*product(Operation, EVERY_STATUS)])
def test_an_operation_that_lost_its_lock_has_failed_whatever_the_stack(operation: Operation, stack: str | None) -> None:
    """Whoever owns the tenant now may have brought the stack about."""
    world, run = world_with(operation, stack)
    world.executions.end(run.execution)
    world.table.plant_lock(ACME, None)
    before = world.table.metadata(ACME)
    settlement = world.settling.settle(run)
    assert isinstance(settlement, Settled)
    assert settlement.status is Status.FAILURE
    assert "no longer held the tenant's lock" in settlement.reason
    assert world.table.metadata(ACME) == before


def test_somebody_elses_stack_is_not_a_success() -> None:
    for operation in Operation:
        world, run = world_with(operation, "CREATE_COMPLETE")
        (stack,) = world.stacks.living
        world.stacks.change(stack.stack_id, "CREATE_COMPLETE", tenant_id="someone-else")
        world.executions.end(run.execution)
        settlement = world.settling.settle(run)
        assert isinstance(settlement, Settled)
        assert settlement.status is Status.FAILURE
        assert "was made for someone-else" in settlement.reason


def test_a_delete_has_not_succeeded_if_the_tenants_stack_is_unknown() -> None:
    """A tenant from before Berth, whose stack has another name: it would be left behind."""
    world, run = world_with(Operation.DELETE, None)
    old = Queue("arn:aws:sqs:eu-west-1:0:old-acme", "https://sqs.eu-west-1.amazonaws.com/0/old-acme")
    metadata = replace(world.metadata_of(ACME), queue=old, version="0.0.9", stack_id=None, gone_stack_id=None)
    world.table.plant_metadata(metadata)
    world.executions.end(run.execution)
    settlement = world.settling.settle(run)
    assert isinstance(settlement, Settled)
    assert settlement.status is Status.FAILURE
    assert "berth adopt" in settlement.reason
    assert world.metadata_of(ACME).published, "it is served as before"


# The records afterwards


def test_a_create_that_succeeded_is_published() -> None:
    world, run = world_with(Operation.CREATE, "CREATE_COMPLETE")
    world.executions.end(run.execution)
    world.clock.advance(A_MINUTE)
    assert world.settling.settle(run) == Settled(Status.SUCCESS, "the stack is as requested")
    metadata = world.metadata_of(ACME)
    (stack,) = world.stacks.living
    assert (metadata.queue, metadata.version, metadata.stack_id) == (QUEUE, NEXT_VERSION, stack.stack_id)
    assert metadata.published
    assert metadata.created_at == NOON + A_MINUTE
    assert [entry.status for entry in world.table.history(ACME)] == [Status.STARTED, Status.SUCCESS]


def test_an_update_that_succeeded_is_published() -> None:
    world, run = world_with(Operation.UPDATE, "UPDATE_COMPLETE")
    world.executions.end(run.execution)
    world.settling.settle(run)
    assert world.metadata_of(ACME).version == NEXT_VERSION


def test_an_update_to_the_tenants_own_version_that_never_reached_cloudformation_has_failed() -> None:
    """The stack is at that version because it was there before."""
    world = FleetWithStacks()
    world.add("acme", version=NEXT_VERSION)
    run = world.begin_and_die(a_run(operation=Operation.UPDATE, version=NEXT_VERSION))
    settled = world.settling.settle(run)
    assert isinstance(settled, Settled)
    assert settled.status is Status.FAILURE
    assert "has not begun" in settled.reason
    assert world.metadata_of(ACME).version == NEXT_VERSION


def test_a_tenant_is_served_as_before_after_an_update_that_never_began() -> None:
    world, run = world_with(Operation.UPDATE, "CREATE_COMPLETE", at=VERSION)
    world.executions.end(run.execution)
    settlement = world.settling.settle(run)
    assert isinstance(settlement, Settled)
    assert settlement.status is Status.FAILURE
    assert "the update has not begun" in settlement.reason
    assert world.metadata_of(ACME).published
    assert world.metadata_of(ACME).version == VERSION


def test_a_delete_that_succeeded_leaves_no_metadata() -> None:
    world, run = world_with(Operation.DELETE, None)
    world.executions.end(run.execution)
    world.settling.settle(run)
    assert world.table.metadata(ACME) is None


@pytest.mark.parametrize(
    ("stack", "served"), [("CREATE_COMPLETE", True), ("UPDATE_ROLLBACK_FAILED", True), ("DELETE_FAILED", False)]
)
def test_a_tenant_is_served_again_only_if_its_delete_did_not_change_the_stack(stack: str, served: bool) -> None:
    world, run = world_with(Operation.DELETE, stack)
    assert not world.metadata_of(ACME).published
    world.executions.end(run.execution)
    world.settling.settle(run)
    assert world.metadata_of(ACME).published is served


def test_a_failure_has_the_end_of_the_execution_and_the_state_of_the_stack() -> None:
    world, run = world_with(Operation.CREATE, None)
    world.executions.end(run.execution)
    world.executions.endings[run.execution] = "timed out"
    reason = "The execution timed out and did not record how the operation ended: there is no stack"
    cause = RootCause(run.attempt.name, "AWS::StepFunctions::Execution", reason)
    assert world.settling.settle(run) == Settled(Status.FAILURE, str(cause))
    assert world.audit(ACME).root_cause == cause


def test_if_the_stack_failed_its_first_failure_is_the_root_cause() -> None:
    world, run = world_with(Operation.CREATE, "CREATE_IN_PROGRESS")
    world.stacks.failures.append("Access to the resource is denied.")
    world.stacks.settle()
    world.executions.end(run.execution)
    settlement = world.settling.settle(run)
    cause = world.audit(ACME).root_cause
    assert cause is not None
    assert (cause.resource, cause.reason) == ("InboundQueue", "Access to the resource is denied.")
    assert settlement == Settled(Status.FAILURE, str(cause))


# Tenants that may have to stay unserved


@pytest.mark.parametrize("how_the_delete_ended", list(Status))
def test_a_create_is_never_settled_as_a_success_while_a_delete_is_in_effect(how_the_delete_ended: Status) -> None:
    """It died in its first step: before it was refused, or before it had revived the tenant."""
    world, run = world_with(Operation.CREATE, "CREATE_COMPLETE")
    world.table.plant_audit(an_audit(how_the_delete_ended, Operation.DELETE, version=None, at=NOON - A_MINUTE))
    world.executions.end(run.execution)
    settlement = world.settling.settle(run)
    assert isinstance(settlement, Settled)
    assert settlement.status is Status.FAILURE
    assert not (metadata := world.table.metadata(ACME)) or not metadata.published


def test_a_create_that_has_superseded_the_delete_succeeds() -> None:
    world, run = world_with(Operation.CREATE, "CREATE_COMPLETE")
    delete = an_audit(Status.SUCCESS, Operation.DELETE, version=None, at=NOON - A_MINUTE)
    world.table.plant_audit(replace(delete, revived_by=run.execution))
    world.executions.end(run.execution)
    world.settling.settle(run)
    assert world.metadata_of(ACME).published


@pytest.mark.parametrize(
    "withdrawn",
    [{"withdrawn_by": "a delete"}, {"version": None}, {"queue": None}],
    ids=["withdrawn", "never published", "no queue"],
)
def test_an_update_of_a_tenant_that_is_not_served_is_never_settled_as_a_success(withdrawn: dict[str, Any]) -> None:
    world, run = world_with(Operation.UPDATE, "UPDATE_COMPLETE")
    world.table.plant_metadata(replace(world.metadata_of(ACME), **withdrawn))
    world.executions.end(run.execution)
    settlement = world.settling.settle(run)
    assert isinstance(settlement, Settled)
    assert settlement.status is Status.FAILURE
    assert not world.metadata_of(ACME).published


def test_an_update_of_an_unknown_tenant_is_never_settled_as_a_success() -> None:
    world, run = world_with(Operation.UPDATE, "UPDATE_COMPLETE")
    world.table.drop(MetadataKey(ACME))
    world.executions.end(run.execution)
    settlement = world.settling.settle(run)
    assert isinstance(settlement, Settled)
    assert settlement.status is Status.FAILURE


@pytest.mark.parametrize("operation", [Operation.CREATE, Operation.UPDATE])
def test_while_its_queue_cannot_be_used_an_operation_is_open_and_at_its_deadline_it_has_failed(
    operation: Operation,
) -> None:
    world, run = world_with(operation, "UPDATE_COMPLETE")
    world.queues.silent_for = 2
    world.executions.end(run.execution)
    assert isinstance(world.settling.settle(run), StillOpen)
    world.clock.advance(DEADLINE + A_MINUTE)
    settlement = world.settling.settle(run)
    assert isinstance(settlement, Settled)
    assert settlement.status is Status.FAILURE
    assert "cannot be used yet" in settlement.reason


@pytest.mark.parametrize("stack", ["CREATE_COMPLETE", "UPDATE_COMPLETE"])
def test_a_stack_that_is_another_one_whenever_it_is_published_does_not_lock_its_tenant_for_ever(
    monkeypatch: pytest.MonkeyPatch, stack: str
) -> None:
    def has_changed(*_given: object, **_more: object) -> None:
        raise Conflict("its stack is another one")

    world, run = world_with(Operation.CREATE, stack)
    monkeypatch.setattr(settling, "finish", has_changed)
    world.executions.end(run.execution)
    assert isinstance(world.settling.settle(run), StillOpen)
    world.clock.advance(DEADLINE + A_MINUTE)
    settlement = world.settling.settle(run)
    assert isinstance(settlement, Settled)
    assert settlement.status is Status.FAILURE
    assert "its stack is another one" in settlement.reason
    assert world.table.lock(ACME) is None


# Once, and only if nobody else was faster


@pytest.mark.parametrize(("operation", "stack"), [*product(Operation, [None, "CREATE_COMPLETE", "DELETE_FAILED"])])
def test_a_settled_operation_is_not_settled_again(operation: Operation, stack: str | None) -> None:
    world, run = world_with(operation, stack)
    world.executions.end(run.execution)
    assert isinstance(world.settling.settle(run), Settled)
    before = world.rows()
    world.clock.advance(A_MINUTE)
    assert world.settling.settle(run) == NothingToSettle()
    assert world.rows() == before


@pytest.mark.parametrize(("operation", "stack"), [*product(Operation, [None, "CREATE_COMPLETE", "DELETE_FAILED"])])
def test_one_of_two_simultaneous_settlements_is_recorded(operation: Operation, stack: str | None) -> None:
    """Each of the two has looked before the other has written."""
    world, run = world_with(operation, stack)
    world.executions.end(run.execution)
    settlements: list[object] = []

    def the_other() -> None:
        world.table.meddler = lambda: None
        settlements.append(world.settling.settle(run))

    world.table.meddler = the_other
    settlements.append(world.settling.settle(run))
    assert [entry.status for entry in world.table.history(ACME)].count(Status.STARTED) == 1
    assert len(world.table.history(ACME)) == 2
    statuses = {settled.status for settled in settlements if isinstance(settled, Settled)}
    assert statuses == {world.audit(ACME, operation).status}


def test_an_operation_that_has_recorded_its_end_is_not_settled() -> None:
    world, run = world_with(Operation.CREATE, "CREATE_COMPLETE")
    (stack,) = world.stacks.living
    world.table.publish(run, Publication(stack.stack_id, QUEUE, NEXT_VERSION, None), at=NOON)
    world.executions.end(run.execution)
    before = world.rows()
    assert world.settling.settle(run) == NothingToSettle()
    assert world.rows() == before
    assert world.executions.asked_about == []


def test_an_operation_that_never_began_has_nothing_to_settle() -> None:
    world = FleetWithStacks()
    assert world.settling.settle(a_run()) == NothingToSettle()
    assert not world.table.audits(ACME)


@pytest.mark.parametrize("stack", [None, "CREATE_COMPLETE"])
def test_an_operation_with_a_later_attempt_is_not_recorded(stack: str | None) -> None:
    world, run = world_with(Operation.CREATE, stack)
    world.executions.end(run.execution)
    later = a_run(2, version=NEXT_VERSION, started_at=NOON + A_MINUTE)
    world.table.meddler = lambda: take(world.table, later, instead_of=world.table.lock(ACME))
    assert world.settling.settle(run) == NothingToSettle()
    lock = world.table.lock(ACME)
    assert lock is not None
    assert lock.run == later
    assert world.audit(ACME).execution == later.execution
    assert world.audit(ACME).status is Status.STARTED


def test_an_event_about_an_earlier_attempt_does_not_change_the_later_one() -> None:
    world, first = world_with(Operation.CREATE, "CREATE_COMPLETE")
    world.executions.end(first.execution)
    later = a_run(2, version=NEXT_VERSION, started_at=NOON + A_MINUTE)
    take(world.table, later, instead_of=world.table.lock(ACME))
    before = world.rows()
    assert world.settling.settle(first) == NothingToSettle()
    assert world.rows() == before


def test_the_run_is_read_from_the_lock_not_from_the_report() -> None:
    """An audit row does not say when the run began, and a delete's may lack the version."""
    world, run = world_with(Operation.DELETE, "DELETE_IN_PROGRESS")
    world.executions.end(run.execution)
    world.clock.advance(DEADLINE + A_MINUTE)
    reported = Run(replace(run.attempt, version=""), run.execution, world.clock.now(), run.request)
    assert isinstance(world.settling.settle(reported), Settled)
    assert {entry.version for entry in world.table.history(ACME)} == {NEXT_VERSION}


# A dry run


@pytest.mark.parametrize(("operation", "stack"), [*product(Operation, EVERY_STATUS)])
def test_a_dry_run_has_the_same_result_and_writes_nothing(operation: Operation, stack: str | None) -> None:
    world, run = world_with(operation, stack)
    world.executions.end(run.execution)
    before, world.stacks.calls = world.rows(), []
    dry = world.settling.settle(run, dry_run=True)
    assert world.rows() == before
    assert set(world.stacks.calls) <= {"find", "queue", "events"}
    real = world.settling.settle(run)
    assert type(dry) is type(real)
    if isinstance(dry, Settled) and isinstance(real, Settled):
        assert dry.status is real.status


# Being throttled


@pytest.mark.parametrize("call", [1, 2, 3])
@pytest.mark.parametrize("late", [False, True], ids=["in time", "past the deadline"])
@pytest.mark.parametrize("operation", list(Operation))
def test_throttling_never_decides_how_an_operation_ended(operation: Operation, late: bool, call: int) -> None:
    """A stack that could not be described is described again later, however late it is."""
    world, run = world_with(operation, "DELETE_COMPLETE" if operation is Operation.DELETE else "UPDATE_COMPLETE")
    world.executions.end(run.execution)
    world.clock.advance(DEADLINE + A_MINUTE if late else A_MINUTE)
    world.stacks.throttle(call)
    with suppress(Throttled):
        world.settling.settle(run)
    world.settling.settle(run)
    assert world.audit(ACME, operation).status is Status.SUCCESS


def test_throttling_is_raised() -> None:
    world, run = world_with(Operation.CREATE, "CREATE_COMPLETE")
    world.executions.end(run.execution)
    world.stacks.throttle(1)
    with pytest.raises(Throttled):
        world.settling.settle(run)
    assert world.audit(ACME).status is Status.STARTED


# Publishing


def test_the_fingerprint_is_recorded_if_it_is_known() -> None:
    world, run = world_with(Operation.CREATE, "CREATE_COMPLETE", at=VERSION)
    world.executions.end(run.execution)
    world.settling.settle(run)
    assert world.metadata_of(ACME).version == VERSION
    assert world.metadata_of(ACME).deployed is None


def test_the_queue_of_the_stack_is_published_whatever_was_recorded() -> None:
    world, run = world_with(Operation.UPDATE, "UPDATE_COMPLETE")
    world.table.plant_metadata(replace(world.metadata_of(ACME), queue=OTHER_QUEUE))
    world.executions.end(run.execution)
    world.settling.settle(run)
    assert world.metadata_of(ACME).queue == QUEUE
