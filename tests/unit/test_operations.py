"""The life of one operation: it begins, is refused or finishes."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from orchestrator.common.errors import LostOwnership, Throttled
from orchestrator.tenants.deadlines import DEADLINE, overdue
from orchestrator.tenants.decisions import Deleted, Failed, Wait
from orchestrator.tenants.operations import CHECK_HOLDER_AFTER, is_dead
from orchestrator.tenants.outcomes import Begun, Busy, Done, GaveUp, Published, Removed
from orchestrator.tenants.ready import Ready
from orchestrator.tenants.records import Lock, Metadata, Operation, Request, Run, Status
from orchestrator.tenants.stack_ports import Stack
from orchestrator.tenants.writes import Transition
from tests.fakes import (
    ACME,
    DONE,
    EXPLICIT,
    NEXT_VERSION,
    NOON,
    QUEUE,
    QUEUE_TABOO,
    VERSION,
    FakeClock,
    FakeExecutions,
    FakeStacks,
    InMemoryTable,
    Operations,
    a_release,
    a_run,
    some_metadata,
    stack_arn,
    take,
)

A_MOMENT = timedelta(milliseconds=1)
NOBODY_ASKED = Request(by="arn:aws:sts::000000000000:assumed-role/platform")


@pytest.fixture
def world() -> Operations:
    return Operations()


def revived_by(world: Operations) -> str | None:
    (delete,) = [audit for audit in world.table.audits(ACME) if audit.operation is Operation.DELETE]
    return delete.revived_by


def told_why(outcome: object) -> str:
    assert isinstance(outcome, GaveUp)
    assert outcome.failed_stack is None
    return outcome.reason


# Time


def test_an_operation_is_overdue_after_its_deadline() -> None:
    run, clock = a_run(), FakeClock()
    clock.advance(DEADLINE)
    assert not overdue(run, clock)
    clock.advance(A_MOMENT)
    assert overdue(run, clock)


def test_a_holder_is_dead_when_it_has_held_for_long_and_its_execution_does_not_run() -> None:
    run, clock, executions = a_run(), FakeClock(), FakeExecutions()
    clock.advance(CHECK_HOLDER_AFTER)
    assert not is_dead(Lock(run, None), executions=executions, clock=clock)
    assert not executions.asked_about
    clock.advance(A_MOMENT)
    assert is_dead(Lock(run, None), executions=executions, clock=clock)
    executions.start(run.attempt, run.request)
    assert not is_dead(Lock(run, None), executions=executions, clock=clock)


# Begin


def test_a_free_tenant_is_taken_and_its_operation_recorded_as_started(world: Operations) -> None:
    run = world.start(a_run())
    assert world.begin(run) == Begun()
    assert world.table.lock(ACME) == Lock(run, None)
    assert [audit.status for audit in world.table.audits(ACME)] == [Status.STARTED]
    assert [entry.status for entry in world.table.history(ACME)] == [Status.STARTED]


def test_an_operation_begins_in_the_history_after_the_end_of_the_one_before(world: Operations) -> None:
    """Its function read the clock before the other one had ended, or has a clock that is slow."""
    world.create()
    ended_at = NOON + timedelta(seconds=3)
    update = a_run(operation=Operation.UPDATE, version=NEXT_VERSION)
    take(world.table, update)
    world.table.fail(update, QUEUE_TABOO, ended_at)
    delete = a_run(operation=Operation.DELETE)
    world.table.begin(delete, at=NOON + timedelta(seconds=2))
    last = world.table.history(ACME)[-1]
    assert (last.execution, last.status, last.at) == (delete.execution, Status.STARTED, ended_at + A_MOMENT)


def test_an_operation_fails_in_the_history_after_its_beginning(world: Operations) -> None:
    """Otherwise the tenant would not be listed as failed: the latest of its operations decides."""
    world.create()
    update = a_run(operation=Operation.UPDATE, version=NEXT_VERSION)
    began_at = NOON + timedelta(seconds=3)
    world.table.begin(update, at=began_at)
    world.table.fail(update, QUEUE_TABOO, began_at - timedelta(seconds=1))
    last = world.table.history(ACME)[-1]
    assert (last.execution, last.status, last.at) == (update.execution, Status.FAILURE, began_at + A_MOMENT)


def test_the_time_of_the_request_is_never_later_than_the_start(world: Operations) -> None:
    """Whoever may start the machine gives it any input."""
    world.create()
    request = Request(asked_at=NOON + timedelta(days=365))
    world.begin(world.start(a_run(operation=Operation.DELETE, request=request)))
    assert max(audit.asked_at for audit in world.table.audits(ACME) if audit.asked_at) == NOON


def test_beginning_twice_is_beginning_once(world: Operations) -> None:
    run = world.start(a_run())
    world.begin(run)
    assert world.begin(run) == Begun()
    assert len(world.table.history(ACME)) == 1


def test_a_run_that_had_to_wait_is_recorded_as_started_when_it_begins(world: Operations) -> None:
    world.clock.advance(timedelta(minutes=3))
    world.begin(a_run(started_at=NOON))
    assert world.table.audits(ACME)[0].updated_at == NOON + timedelta(minutes=3)


def test_a_busy_tenant_is_waited_for(world: Operations) -> None:
    holder, run = world.start(a_run()), world.start(a_run(operation=Operation.UPDATE))
    world.begin(holder)
    assert world.begin(run) == Busy(holder.execution)
    assert world.table.lock(ACME) == Lock(holder, None)


def test_a_waiting_delete_is_neither_refused_nor_withdraws_the_queue_before_its_turn(world: Operations) -> None:
    world.create()
    holder = a_run(operation=Operation.UPDATE, version=NEXT_VERSION)
    world.begin(holder)
    assert world.begin(a_run(operation=Operation.DELETE)) == Busy(holder.execution)
    assert world.begin(a_run(2, version="9.9.9")) == Busy(holder.execution)
    assert world.metadata_of().published


def test_a_lock_that_is_young_is_believed_without_asking(world: Operations) -> None:
    world.begin(a_run())
    world.clock.advance(CHECK_HOLDER_AFTER)
    assert isinstance(world.begin(a_run(operation=Operation.UPDATE)), Busy)
    assert not world.executions.asked_about


def test_a_lock_that_is_old_is_respected_while_its_execution_runs(world: Operations) -> None:
    holder = world.start(a_run())
    world.begin(holder)
    world.clock.advance(CHECK_HOLDER_AFTER + A_MOMENT)
    assert world.begin(a_run(operation=Operation.UPDATE)) == Busy(holder.execution)


@pytest.mark.parametrize(
    "successor",
    [a_run(2), a_run(version=NEXT_VERSION), a_run(operation=Operation.DELETE)],
    ids=["next attempt", "next version", "delete"],
)
def test_a_lock_whose_execution_is_dead_is_taken_over_and_its_operation_closed(
    world: Operations, successor: Run
) -> None:
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


def test_a_dead_updates_lock_is_taken_over_by_the_next_update(world: Operations) -> None:
    world.create()
    dead = a_run(operation=Operation.UPDATE, version=NEXT_VERSION)
    world.begin(dead)
    world.clock.advance(CHECK_HOLDER_AFTER + A_MOMENT)
    successor = a_run(2, operation=Operation.UPDATE, version=NEXT_VERSION, started_at=world.clock.now())
    assert world.begin(successor) == Begun()
    assert world.metadata_of().published


def test_the_loser_of_a_race_for_a_dead_holders_lock_waits_for_the_winner(world: Operations) -> None:
    dead, winner, loser = a_run(1), a_run(operation=Operation.UPDATE), a_run(version=NEXT_VERSION)

    class Raced(InMemoryTable):
        def begin(self, run: Run, *, at: datetime, instead_of: Lock | None = None, **named: Any) -> Lock | None:
            if run == loser and instead_of:
                super().begin(winner, at=at, instead_of=instead_of)
            return super().begin(run, at=at, instead_of=instead_of, **named)

    world.table = Raced()
    world.begin(dead)
    world.clock.advance(CHECK_HOLDER_AFTER + A_MOMENT)
    assert world.begin(loser) == Busy(winner.execution)
    assert world.table.lock(ACME) == Lock(winner, None)


def test_waiting_for_a_busy_tenant_ends_at_the_deadline_and_names_the_holder(world: Operations) -> None:
    holder, run = world.start(a_run()), a_run(operation=Operation.UPDATE)
    world.begin(holder)
    world.clock.advance(DEADLINE)
    assert isinstance(world.begin(run), Busy)
    world.clock.advance(A_MOMENT)
    assert holder.execution in told_why(world.begin(run))


def test_a_free_tenant_is_taken_even_after_the_deadline(world: Operations) -> None:
    world.clock.advance(DEADLINE * 2)
    assert world.begin(a_run()) == Begun()


# Refusals. Only the run that owns the tenant refuses: before that, everything may still change


@pytest.mark.parametrize("operation", [Operation.CREATE, Operation.UPDATE])
def test_a_version_that_was_never_published_is_refused(world: Operations, operation: Operation) -> None:
    world.table.plant_metadata(some_metadata())
    assert "9.9.9 was never published" in told_why(world.begin(a_run(operation=operation, version="9.9.9")))


def test_a_delete_needs_no_release(world: Operations) -> None:
    world.table.plant_metadata(some_metadata(version="0.0.9"))
    assert world.begin(a_run(operation=Operation.DELETE, version="9.9.9")) == Begun()


def test_an_update_of_a_tenant_that_is_not_served_is_refused(world: Operations) -> None:
    world.begin(a_run())
    world.record_failure(a_run())
    update = a_run(operation=Operation.UPDATE, version=NEXT_VERSION)
    assert "it was not updated" in told_why(world.begin(update))


def test_an_update_that_a_delete_has_overtaken_is_refused(world: Operations) -> None:
    world.delete()
    assert "was deleted" in told_why(world.begin(a_run(operation=Operation.UPDATE, version=NEXT_VERSION)))


def test_a_downgrade_is_refused_unless_the_request_allows_it(world: Operations) -> None:
    world.table.plant_metadata(some_metadata(version=NEXT_VERSION))
    down = a_run(operation=Operation.UPDATE, version=VERSION)
    assert "older" in told_why(world.begin(down))
    world.record_failure(down)
    request = replace(EXPLICIT, allow_downgrade=True)
    assert world.begin(a_run(2, operation=Operation.UPDATE, version=VERSION, request=request)) == Begun()


def test_a_pin_that_was_set_while_the_update_waited_is_kept(world: Operations) -> None:
    world.table.plant_metadata(some_metadata(pinned_version=VERSION))
    assert "pinned to version 0.1.0" in told_why(world.begin(a_run(operation=Operation.UPDATE, version=NEXT_VERSION)))


OUT_OF_REACH = "arn:aws:cloudformation:eu-west-1:000000000000:stack/old-tenant-acme/1"


@pytest.mark.parametrize("operation", Operation)
def test_a_tenant_whose_stack_is_out_of_reach_fails_at_once_and_is_served_as_before(
    world: Operations, operation: Operation
) -> None:
    """It was adopted, and a later deployment has left out the prefix of its stack's name."""
    world.table.plant_metadata(replace(some_metadata(), stack_id=OUT_OF_REACH))
    run = world.start(a_run(operation=operation, version=NEXT_VERSION))
    outcome = world.begin(run)
    assert isinstance(outcome, GaveUp)
    assert "old-tenant-acme" in outcome.reason
    assert "berth:legacyStackPrefixes" in outcome.reason
    world.clock.advance(A_MOMENT)
    world.record_failure(run)
    assert world.decision() == Ready(QUEUE, VERSION)
    assert world.stacks.calls == [], "this deployment's roles may not look at it"


def test_a_refused_run_owns_the_tenant_until_its_failure_is_recorded(world: Operations) -> None:
    world.table.plant_metadata(some_metadata())
    refused = a_run(operation=Operation.UPDATE, version="9.9.9")
    world.begin(refused)
    assert world.table.lock(ACME) == Lock(refused, None)
    world.record_failure(refused)
    assert world.table.lock(ACME) is None
    assert world.decision() == Ready(QUEUE, VERSION)


# A deleted tenant stays deleted until someone creates it explicitly


def test_a_create_that_is_not_explicit_does_not_restore_a_deleted_tenant(world: Operations) -> None:
    world.delete()
    run = a_run(2, request=NOBODY_ASKED)
    assert "berth create acme" in told_why(world.begin(run))
    assert revived_by(world) is None
    world.clock.advance(A_MOMENT)
    world.record_failure(run)
    assert isinstance(world.decision(), Deleted)


def test_an_explicit_create_restores_a_deleted_tenant(world: Operations) -> None:
    world.delete()
    run = a_run(2)
    assert world.begin(run) == Begun()
    assert revived_by(world) == run.execution
    assert world.decision() == Wait(run.execution)


def test_an_explicit_create_that_fails_leaves_the_tenant_failed_and_no_longer_deleted(world: Operations) -> None:
    world.delete()
    run = a_run(2)
    world.begin(run)
    world.record_failure(run)
    decision = world.decision()
    assert isinstance(decision, Failed)
    assert decision.audit.execution == run.execution


def test_a_restored_tenant_may_be_created_again_by_anyone(world: Operations) -> None:
    world.delete()
    world.begin(a_run(2))
    world.record_failure(a_run(2))
    assert world.begin(a_run(3, request=NOBODY_ASKED)) == Begun()
    assert revived_by(world) == a_run(2).execution


@pytest.mark.parametrize("request_", [EXPLICIT, NOBODY_ASKED], ids=["explicit", "implicit"])
def test_a_tenant_that_was_never_deleted_is_not_revived(world: Operations, request_: Request) -> None:
    assert world.begin(a_run(request=request_)) == Begun()
    assert [audit.operation for audit in world.table.audits(ACME)] == [Operation.CREATE]


def test_a_crash_between_taking_the_lock_and_refusing_is_mended_by_beginning_again(world: Operations) -> None:
    world.delete()
    run = a_run(2, request=NOBODY_ASKED)
    take(world.table, run)
    assert isinstance(world.begin(run), GaveUp)
    assert revived_by(world) is None


def test_a_create_that_died_before_it_lifted_the_delete_leaves_the_tenant_deleted(world: Operations) -> None:
    world.delete()
    world.table.begin(a_run(2), at=NOON)
    world.clock.advance(CHECK_HOLDER_AFTER + A_MOMENT)
    assert isinstance(world.begin(a_run(3, request=NOBODY_ASKED)), GaveUp)
    world.record_failure(a_run(3, request=NOBODY_ASKED))
    assert isinstance(world.decision(), Deleted)


def test_an_explicit_create_overcomes_a_delete_that_failed_half_way(world: Operations) -> None:
    world.create()
    delete = a_run(operation=Operation.DELETE)
    world.begin(delete)
    world.record_failure(delete)
    assert isinstance(world.decision(), Failed)

    run = a_run(2)
    assert world.begin(run) == Begun()
    assert revived_by(world) == run.execution
    assert world.decision() == Wait(run.execution)
    world.clock.advance(A_MOMENT)
    world.finish(run)
    assert world.decision() == Ready(QUEUE, VERSION)


def test_an_explicit_create_overcomes_a_delete_that_died_half_way(world: Operations) -> None:
    world.create()
    world.begin(a_run(operation=Operation.DELETE))
    world.stacks.plant_done(ACME, status="DELETE_FAILED")
    world.clock.advance(CHECK_HOLDER_AFTER + A_MOMENT)
    run = a_run(2, started_at=world.clock.now())
    assert world.begin(run) == Begun()
    assert world.decision() == Wait(run.execution)


def test_a_create_that_is_not_explicit_does_not_supersede_a_delete_that_failed_half_way(world: Operations) -> None:
    world.create()
    delete = a_run(operation=Operation.DELETE)
    world.begin(delete)
    world.record_failure(delete)
    world.begin(a_run(2, request=NOBODY_ASKED))
    assert revived_by(world) is None


@pytest.mark.parametrize("pinned", [False, True], ids=["deleted again", "pinned elsewhere"])
def test_whose_tenant_changes_just_before_it_begins_revives_nothing(world: Operations, *, pinned: bool) -> None:
    """Its function was slow. It begins again, and then is refused."""

    class Overtaken(InMemoryTable):
        undisturbed = True

        def apply(self, transition: Transition) -> bool:
            if not self.undisturbed:
                self.undisturbed = True
                if pinned:
                    self.change_metadata(ACME, pinned_version=NEXT_VERSION)
                else:
                    again = a_run(2, operation=Operation.DELETE)
                    self.begin(again, at=NOON)
                    self.remove(again, at=NOON)
            return super().apply(transition)

    world.table = Overtaken()
    world.table.record_release(a_release())
    world.delete()
    world.table.plant_metadata(Metadata(ACME, None, None, None, None, None), listed=False)
    world.table.undisturbed = False
    with pytest.raises(LostOwnership):
        world.begin(a_run(2))
    assert revived_by(world) is None


# Finish


def test_finishing_publishes_the_queue_records_success_and_frees_the_lock(world: Operations) -> None:
    run = a_run()
    world.begin(run)
    world.clock.advance(timedelta(seconds=9))

    assert world.finish(run) == Published()
    metadata = world.metadata_of()
    assert (metadata.queue, metadata.version, metadata.stack_id) == (QUEUE, VERSION, stack_arn())
    assert metadata.created_at == metadata.updated_at == world.clock.now()
    assert [audit.status for audit in world.table.audits(ACME)] == [Status.SUCCESS]
    assert world.table.lock(ACME) is None


def test_finishing_an_update_publishes_the_version_that_the_stack_is_at(world: Operations) -> None:
    world.create()
    update = a_run(operation=Operation.UPDATE, version=NEXT_VERSION)
    world.begin(update)
    assert world.finish(update, replace(DONE, version=NEXT_VERSION)) == Published()
    assert world.decision() == Ready(QUEUE, NEXT_VERSION)


def test_finishing_a_delete_forgets_the_tenant_records_success_and_frees_the_lock(world: Operations) -> None:
    world.create()
    delete = a_run(operation=Operation.DELETE)
    world.begin(delete)
    assert world.finish(delete, None) == Removed()
    assert world.table.metadata(ACME) is None
    assert world.table.lock(ACME) is None
    assert isinstance(world.decision(), Deleted)


def test_finishing_late_is_finishing(world: Operations) -> None:
    run = a_run()
    world.begin(run)
    world.clock.advance(DEADLINE * 2)
    assert world.finish(run) == Published()


@pytest.mark.parametrize(
    ("run", "stack", "outcome"),
    [(a_run(), DONE, Published()), (a_run(operation=Operation.DELETE), None, Removed())],
    ids=["published", "removed"],
)
def test_finishing_twice_is_finishing_once(
    world: Operations, run: Run, stack: Done | None, outcome: Published | Removed
) -> None:
    world.begin(run)
    world.finish(run, stack)
    world.clock.advance(timedelta(seconds=9))
    assert world.finish(run, stack) == outcome
    assert [entry.status for entry in world.table.history(ACME)] == [Status.STARTED, Status.SUCCESS]


def test_a_run_that_lost_its_lock_publishes_nothing(world: Operations) -> None:
    dead, successor = a_run(1), a_run(2)
    world.begin(dead)
    world.clock.advance(CHECK_HOLDER_AFTER + A_MOMENT)
    world.begin(successor)
    with pytest.raises(LostOwnership):
        world.finish(dead)
    assert not world.metadata_of().published
    assert world.table.lock(ACME) == Lock(successor, None)


def test_a_delete_that_lost_its_lock_forgets_nothing(world: Operations) -> None:
    world.create()
    dead, successor = a_run(1, operation=Operation.DELETE), a_run(2, operation=Operation.DELETE)
    world.begin(dead)
    world.stacks.plant_done(ACME)
    world.clock.advance(CHECK_HOLDER_AFTER + A_MOMENT)
    world.begin(successor)
    with pytest.raises(LostOwnership):
        world.finish(dead, None)
    assert world.metadata_of().queue == QUEUE
    assert world.table.lock(ACME) == Lock(successor, None)


# The other outputs of the stack


class WithOutputs(FakeStacks):
    """CloudFormation shows these outputs of every stack."""

    def __init__(self, **outputs: str) -> None:
        super().__init__()
        self.outputs = outputs

    def find(self, name_or_id: str) -> Stack | None:
        found = super().find(name_or_id)
        return found and replace(found, outputs={"InboundQueueUrl": QUEUE.url, "Version": VERSION, **self.outputs})


def finished(world: Operations, run: Run, done: Done = DONE, **outputs: str) -> None:
    stacks = WithOutputs(**outputs)
    stacks.let_stand(run.tenant, done)
    world.with_other(stacks=stacks).finish(run, stack=done)


def test_every_other_output_of_the_stack_is_recorded_and_answered(world: Operations) -> None:
    world.begin(a_run())
    finished(world, a_run(), FilesBucket="files-1", OrdersTable="orders-1")
    resources = {"FilesBucket": "files-1", "OrdersTable": "orders-1"}
    assert world.metadata_of().resources == resources
    assert world.decision() == Ready(QUEUE, VERSION, resources)


def test_an_update_replaces_the_recorded_outputs(world: Operations) -> None:
    world.begin(a_run())
    finished(world, a_run(), FilesBucket="files-1", OrdersTable="orders-1")
    world.table.record_release(a_release("0.3.0"))
    changes: dict[str, dict[str, str]] = {NEXT_VERSION: {"FilesBucket": "files-2"}, "0.3.0": {}}
    for version, outputs in changes.items():
        update = a_run(operation=Operation.UPDATE, version=version)
        world.begin(update)
        finished(world, update, replace(DONE, version=version), **outputs)
        assert world.metadata_of().resources == outputs


def test_a_deleted_tenant_has_no_resources(world: Operations) -> None:
    world.begin(a_run())
    finished(world, a_run(), FilesBucket="files-1")
    world.begin(a_run(operation=Operation.DELETE))
    world.finish(a_run(operation=Operation.DELETE), None)
    metadata = world.table.metadata(ACME)
    assert metadata is None or metadata.resources == {}


def test_if_cloudformation_throttles_a_tenant_of_an_operators_release_waits_for_its_outputs(world: Operations) -> None:
    world.table.record_release(a_release("2.1.0"))
    run, done = a_run(version="2.1.0"), replace(DONE, version="2.1.0")
    world.begin(run)
    stacks = WithOutputs(FilesBucket="files-1")
    stacks.let_stand(ACME, done)
    world.table.record_queue(ACME, stack_id=done.stack_id, queue=QUEUE, at=NOON, seen=None, change=None)
    stacks.throttled_calls = 1
    with pytest.raises(Throttled):
        world.with_other(stacks=stacks).finish(run, stack=done)
    world.with_other(stacks=stacks).finish(run, stack=done)
    assert world.metadata_of().resources == {"FilesBucket": "files-1"}
