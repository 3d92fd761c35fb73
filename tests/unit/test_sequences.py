"""Sequences of events that once broke a promise, step by step, over the fakes.

The simulation finds their kind by itself; here each can be read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from orchestrator.common.errors import LostOwnership, StackHasGone
from orchestrator.composition import UseCases
from orchestrator.reconciling.settling import NothingToSettle
from orchestrator.releases.published import fingerprint
from orchestrator.tenants.admission import Refusal, Refused
from orchestrator.tenants.decisions import BeingDeleted, Deleted
from orchestrator.tenants.operations import CHECK_HOLDER_AFTER
from orchestrator.tenants.order_results import Accepted, Changed, Unchanged
from orchestrator.tenants.outcomes import Begun, Busy, Done, GaveUp, Start
from orchestrator.tenants.provisioning import Provisioning
from orchestrator.tenants.ready import Ready
from orchestrator.tenants.records import (
    START_GRACE_PERIOD,
    Attempt,
    Audit,
    Metadata,
    Operation,
    Request,
    RootCause,
    Run,
    Status,
)
from orchestrator.tenants.resource_requests import Kind, OnDelete, TenantQueueRequest
from orchestrator.tenants.tenant_queue import NotProvided, Provided, Waiting, settle
from tests.fakes import (
    ACME,
    NEXT_VERSION,
    VERSION,
    FakeExecutions,
    InMemoryTable,
    a_release,
    a_run,
    execution_arn,
    inspect_stack,
    parameters_of,
    start_stack,
)
from tests.simulation.world import OPERATOR, Around, World, a_served_tenant, undisturbed

A_SECOND = timedelta(seconds=1)
RESOURCE = "arn:aws:cloudformation:eu-west-1:000000000000:stack/billing/1/Queue"
DRAIN = replace(OPERATOR, drain_seconds=1_200)


class Sequence:
    """One tenant, and the steps that machines and people take on it."""

    def __init__(self, world: World | None = None) -> None:
        self.world = world or World()
        self.table, self.stacks, self.clock = self.world.table, self.world.stacks, self.world.clock

    # The machines' steps

    def run_of(self, ordered: object) -> Run:
        """The execution of an order that was accepted. It starts at that moment."""
        assert isinstance(ordered, Accepted), ordered
        request = dict(self.world.executions.started)[ordered.attempt]
        return Run(ordered.attempt, ordered.execution, self.clock.now(), request)

    def start(self, run: Run) -> Run:
        self.world.executions.start(run.attempt, run.request)
        return run

    @property
    def use_cases(self) -> UseCases:
        return self.world.use_cases()

    def begin(self, run: Run) -> Begun | Busy | Done | GaveUp:
        return self.use_cases.begin(run)

    def start_stack(self, run: Run) -> Start:
        return start_stack(self.use_cases, run, empty_since=self.clock.now() - timedelta(minutes=1))

    def inspect(self, run: Run, started: Start) -> Any:
        return inspect_stack(self.use_cases, run, started)

    def finish(self, run: Run, stack: Done | None) -> None:
        self.clock.advance(A_SECOND)
        self.use_cases.finish(run, stack=stack)
        self.world.executions.running.discard(run.execution)

    def fail(self, run: Run, reason: str = "it did not work out") -> None:
        self.clock.advance(A_SECOND)
        cause = RootCause(run.attempt.name, "AWS::CloudFormation::Stack", reason)
        self.use_cases.record_failure(run, failure=cause, failed_stack=None)
        self.world.executions.running.discard(run.execution)

    def play(self, run: Run) -> None:
        """A create or a delete, from its begin to its end."""
        assert self.begin(run) == Begun()
        started = self.start_stack(run)
        self.world.let_time_pass()
        stack = self.inspect(run, started)
        self.finish(run, stack if isinstance(stack, Done) else None)

    # Events outside

    def delete_the_stack_by_hand(self) -> None:
        (stack,) = self.stacks.living
        self.stacks.change(stack.stack_id, "DELETE_IN_PROGRESS")
        self.use_cases.forget_queue(ACME, stack_id=stack.stack_id)
        self.stacks.change(stack.stack_id, "DELETE_COMPLETE")

    # Observations

    @property
    def metadata(self) -> Metadata:
        metadata = self.table.metadata(ACME)
        assert metadata is not None
        return metadata

    def audit(self, operation: Operation, version: str | None = None) -> Audit:
        found = [
            audit
            for audit in self.table.audits(ACME)
            if audit.operation is operation and version in (None, audit.version)
        ]
        (audit,) = found
        return audit

    def settle(self, asked: TenantQueueRequest, *, since: Any = None, around: Around = undisturbed) -> Any:
        return settle(asked, since=since or self.clock.now(), lifecycle=self.world.lifecycle(around))


def served() -> Sequence:
    return Sequence(a_served_tenant())


def asks(kind: Kind, on_delete: OnDelete = OnDelete.RETAIN, **request: Any) -> TenantQueueRequest:
    return TenantQueueRequest(kind, ACME, Request(by=RESOURCE, **request), on_delete, None)


# A queue that is gone


def test_a_stack_that_goes_after_a_create_has_seen_it_is_not_published() -> None:
    sequence = Sequence()
    run = sequence.start(a_run(request=Request()))
    sequence.begin(run)
    started = sequence.start_stack(run)
    sequence.world.let_time_pass()
    done = sequence.inspect(run, started)
    assert isinstance(done, Done)
    sequence.delete_the_stack_by_hand()
    with pytest.raises(StackHasGone, match="acme"):
        sequence.finish(run, done)
    assert not isinstance(sequence.world.ask(), Ready)


def test_a_stack_that_goes_after_an_update_was_found_to_change_nothing_is_not_published() -> None:
    sequence = served()
    made_from = fingerprint(a_release(NEXT_VERSION), parameters_of(ACME))
    sequence.table.plant_metadata(replace(sequence.metadata, deployed=made_from))
    run = sequence.start(a_run(operation=Operation.UPDATE, version=NEXT_VERSION, request=Request()))
    done = sequence.begin(run)
    assert isinstance(done, Done)
    sequence.delete_the_stack_by_hand()
    with pytest.raises(StackHasGone):
        sequence.finish(run, done)
    assert not isinstance(sequence.world.ask(), Ready)


def test_the_stack_that_takes_the_place_of_one_that_has_gone_is_published() -> None:
    sequence = Sequence()
    sequence.play(sequence.start(a_run(request=Request())))
    sequence.delete_the_stack_by_hand()
    assert isinstance(sequence.world.ask(), Provisioning)
    sequence.play(sequence.start(a_run(2, request=Request())))
    assert isinstance(sequence.world.ask(), Ready)


def test_a_stack_that_a_create_has_found_and_that_goes_then_is_not_published() -> None:
    """No row names the stack: nobody ever published it."""
    sequence = Sequence()
    sequence.stacks.plant_done(ACME)
    run = sequence.start(a_run(request=Request()))
    sequence.begin(run)
    done = sequence.inspect(run, sequence.start_stack(run))
    assert isinstance(done, Done)
    sequence.delete_the_stack_by_hand()
    with pytest.raises(StackHasGone):
        sequence.finish(run, done)


# A create on a tenant that is served


def test_a_create_that_waited_does_not_take_the_version_back_after_an_update_that_was_only_recorded() -> None:
    sequence = Sequence()
    sequence.world.table = sequence.table = InMemoryTable()
    for version in (VERSION, NEXT_VERSION):
        sequence.table.record_release(a_release(version, content="the same"))
    first, second = a_run(request=Request()), a_run(version=NEXT_VERSION, request=Request())
    sequence.begin(sequence.start(first))
    assert isinstance(sequence.begin(sequence.start(second)), Busy)
    started = sequence.start_stack(first)
    sequence.world.let_time_pass()
    sequence.finish(first, sequence.inspect(first, started))
    update = sequence.start(a_run(operation=Operation.UPDATE, version=NEXT_VERSION, request=Request()))
    recorded = sequence.begin(update)
    assert isinstance(recorded, Done)
    sequence.finish(update, recorded)
    made_from = sequence.metadata.deployed
    sequence.play(second)
    assert sequence.metadata.version == NEXT_VERSION
    assert sequence.metadata.deployed == made_from


def test_a_create_of_a_tenant_that_is_served_does_not_claim_to_know_what_its_stack_was_made_from() -> None:
    sequence = served()
    assert sequence.metadata.deployed is None
    sequence.play(sequence.start(a_run(2, request=Request())))
    assert sequence.metadata.deployed is None


# Deletes that die


def a_delete_that_drains_with_an_update_waiting() -> tuple[Sequence, Run, Run]:
    sequence = served()
    sequence.world.executions = FakeExecutions(sequence.clock, linger=timedelta(seconds=60))
    delete = sequence.start(a_run(operation=Operation.DELETE, request=DRAIN))
    sequence.begin(delete)
    sequence.clock.advance(CHECK_HOLDER_AFTER)
    update = a_run(operation=Operation.UPDATE, version=NEXT_VERSION, request=OPERATOR, started_at=sequence.clock.now())
    assert isinstance(sequence.begin(sequence.start(update)), Busy)
    sequence.world.executions.cut_short(delete.execution, "was aborted")
    sequence.clock.advance(timedelta(seconds=61))
    return sequence, delete, update


def test_taking_over_from_a_delete_that_died_before_it_touched_the_stack_restores_the_tenant() -> None:
    sequence, delete, update = a_delete_that_drains_with_an_update_waiting()
    assert sequence.begin(update) == Begun()
    assert isinstance(sequence.world.ask(), Ready)
    assert sequence.use_cases.settling.settle(delete) == NothingToSettle()


def test_an_update_that_takes_over_from_a_delete_and_fails_leaves_no_fingerprint_and_the_next_one_repairs() -> None:
    sequence, _, update = a_delete_that_drains_with_an_update_waiting()
    sequence.table.change_metadata(ACME, deployed=fingerprint(a_release(VERSION), parameters_of(ACME)))
    assert sequence.begin(update) == Begun()
    sequence.fail(update)
    assert sequence.metadata.deployed is None
    again = replace(OPERATOR, allow_downgrade=True)
    repair = a_run(1, operation=Operation.UPDATE, request=again, started_at=sequence.clock.now())
    assert sequence.begin(sequence.start(repair)) == Begun()


def test_taking_over_from_a_delete_whose_stack_is_going_does_not_serve_the_tenant() -> None:
    sequence, _, update = a_delete_that_drains_with_an_update_waiting()
    (stack,) = sequence.stacks.living
    sequence.stacks.change(stack.stack_id, "DELETE_IN_PROGRESS")
    assert isinstance(sequence.begin(update), GaveUp)
    assert not isinstance(sequence.world.ask(), Ready)


def test_a_delete_that_takes_over_from_a_delete_keeps_the_tenant_withdrawn() -> None:
    sequence, _, _ = a_delete_that_drains_with_an_update_waiting()
    again = a_run(2, operation=Operation.DELETE, request=OPERATOR, started_at=sequence.clock.now())
    assert sequence.begin(sequence.start(again)) == Begun()
    assert isinstance(sequence.world.ask(), BeingDeleted)


# Deleted tenants stay deleted


def a_delete_that_ran_out_of_time(sequence: Sequence) -> None:
    """It is recorded as failed, and CloudFormation takes the stack down after all."""
    delete = sequence.start(a_run(operation=Operation.DELETE, request=OPERATOR, started_at=sequence.clock.now()))
    sequence.begin(delete)
    started = sequence.start_stack(delete)
    sequence.clock.advance(timedelta(minutes=31))
    gave_up = sequence.inspect(delete, started)
    assert isinstance(gave_up, GaveUp)
    sequence.fail(delete, gave_up.reason)
    sequence.world.let_time_pass()
    assert sequence.stacks.living == []
    sequence.clock.advance(A_SECOND)


def test_new_labels_of_a_resource_do_not_bring_back_a_tenant_whose_delete_failed_half_way() -> None:
    sequence = served()
    a_delete_that_ran_out_of_time(sequence)
    answer = sequence.settle(asks(Kind.UPDATE, labels={"team": "billing"}))
    assert isinstance(answer, NotProvided)
    assert "operator" in answer.reason
    assert not any(attempt.operation is Operation.CREATE for attempt, _ in sequence.world.executions.started)


def test_new_labels_of_a_resource_do_not_bring_back_a_tenant_whose_delete_ends_while_it_is_looked_at() -> None:
    sequence = served()
    delete = sequence.start(a_run(operation=Operation.DELETE, request=OPERATOR))
    sequence.begin(delete)
    sequence.delete_the_stack_by_hand()
    seen: list[str] = []

    def around(name: str, call: Callable[[], Any]) -> Any:
        result = call()
        seen.append(name)
        if name == "table.audits" and seen.count(name) == 1:
            sequence.finish(delete, None)
        return result

    assert isinstance(sequence.settle(asks(Kind.UPDATE, labels={}), around=around), NotProvided)
    assert isinstance(sequence.world.ask(), Deleted)


def test_a_resource_that_is_created_does_not_bring_back_a_tenant_that_was_deleted_since() -> None:
    sequence = Sequence()
    asked, since = asks(Kind.CREATE), sequence.clock.now()
    assert sequence.settle(asked, since=since) == Waiting()
    sequence.play(sequence.run_of(_latest(sequence)))
    sequence.clock.advance(A_SECOND)
    sequence.play(sequence.run_of(sequence.world.lifecycle().delete(ACME, OPERATOR)))
    assert isinstance(sequence.settle(asked, since=since), NotProvided)
    assert isinstance(sequence.world.ask(), Deleted)


def test_a_retry_after_a_failed_delete_deletes() -> None:
    """A create that nobody had asked for explicitly was refused meanwhile, and is the latest that failed."""
    sequence = served()
    waiting = sequence.start(a_run(version=NEXT_VERSION, request=Request()))
    a_delete_that_ran_out_of_time(sequence)
    refused = sequence.begin(replace(waiting, started_at=sequence.clock.now()))
    assert isinstance(refused, GaveUp)
    sequence.fail(replace(waiting, started_at=sequence.clock.now()), refused.reason)
    retried = sequence.run_of(sequence.world.lifecycle().retry(ACME, OPERATOR.by))
    assert retried.attempt.operation is Operation.DELETE


# A create and a delete, one right after the other


@pytest.mark.parametrize("created_before", [False, True])
def test_a_delete_right_after_a_create_is_told_that_the_tenant_is_busy(created_before: bool) -> None:
    sequence = Sequence()
    if created_before:
        sequence.play(sequence.run_of(sequence.world.lifecycle().create(ACME, OPERATOR)))
        sequence.play(sequence.run_of(sequence.world.lifecycle().delete(ACME, OPERATOR)))
        sequence.clock.advance(A_SECOND)
    create = sequence.run_of(sequence.world.lifecycle().create(ACME, OPERATOR))
    sequence.clock.advance(timedelta(milliseconds=20))
    busy = sequence.world.lifecycle().delete(ACME, OPERATOR)
    assert isinstance(busy, Refused)
    assert busy.kind is Refusal.BUSY
    sequence.play(create)
    sequence.play(sequence.run_of(sequence.world.lifecycle().delete(ACME, OPERATOR)))
    assert isinstance(sequence.world.ask(), Deleted)
    assert sequence.stacks.living == []


def test_a_create_that_was_killed_before_it_began_is_in_nobodys_way_for_long() -> None:
    sequence = Sequence()
    lifecycle = sequence.world.lifecycle()
    create = sequence.run_of(lifecycle.create(ACME, replace(OPERATOR, labels={"tier": "gold"})))
    sequence.world.executions.end(create.execution)
    assert isinstance(lifecycle.delete(ACME, OPERATOR), Refused)
    sequence.clock.advance(START_GRACE_PERIOD)
    sequence.play(sequence.run_of(lifecycle.delete(ACME, OPERATOR)))
    assert sequence.table.metadata(ACME) is None
    assert isinstance(lifecycle.delete(ACME, OPERATOR), Unchanged)


def test_a_create_that_is_about_to_begin_is_not_forgotten_when_an_update_before_it_fails() -> None:
    sequence = served()
    sequence.play(sequence.run_of(sequence.world.lifecycle().delete(ACME, OPERATOR)))
    sequence.clock.advance(A_SECOND)
    create = sequence.run_of(sequence.world.lifecycle().create(ACME, OPERATOR))
    sequence.clock.advance(START_GRACE_PERIOD - 2 * A_SECOND)
    update = sequence.start(a_run(operation=Operation.UPDATE, started_at=sequence.clock.now(), request=Request()))
    assert isinstance(sequence.begin(update), GaveUp)
    sequence.fail(update)
    busy = sequence.world.lifecycle().delete(ACME, OPERATOR)
    assert isinstance(busy, Refused)
    assert busy.kind is Refusal.BUSY
    sequence.play(create)


def test_a_create_that_waits_for_the_lock_is_not_forgotten_when_a_create_before_it_succeeds() -> None:
    sequence = Sequence()
    first = sequence.start(a_run(version=NEXT_VERSION, request=Request()))
    waiting = sequence.run_of(sequence.world.lifecycle().create(ACME, replace(OPERATOR, labels={"tier": "gold"})))
    assert waiting.attempt != first.attempt
    sequence.play(first)
    sequence.clock.advance(START_GRACE_PERIOD)
    busy = sequence.world.lifecycle().delete(ACME, OPERATOR)
    assert isinstance(busy, Refused)
    assert busy.kind is Refusal.BUSY
    sequence.play(waiting)
    assert isinstance(sequence.world.lifecycle().delete(ACME, OPERATOR), Accepted)


def test_a_delete_right_after_a_retried_create_is_told_that_the_tenant_is_busy() -> None:
    sequence = Sequence()
    failed = sequence.run_of(sequence.world.lifecycle().create(ACME, OPERATOR))
    assert sequence.begin(failed) == Begun()
    sequence.fail(failed)
    retried = sequence.run_of(sequence.world.lifecycle().retry(ACME, OPERATOR.by))
    busy = sequence.world.lifecycle().delete(ACME, OPERATOR)
    assert isinstance(busy, Refused)
    assert busy.kind is Refusal.BUSY
    sequence.play(retried)
    sequence.play(sequence.run_of(sequence.world.lifecycle().delete(ACME, OPERATOR)))
    assert isinstance(sequence.world.ask(), Deleted)


def test_retrying_a_create_that_getqueue_started_brings_nobody_back_after_a_delete_that_was_about_to_begin() -> None:
    sequence = served()
    delete = sequence.run_of(sequence.world.lifecycle().delete(ACME, OPERATOR))
    sequence.clock.advance(A_SECOND)
    failed = sequence.start(a_run(2, started_at=sequence.clock.now(), request=Request()))
    assert isinstance(sequence.begin(failed), Begun)
    sequence.fail(failed)
    retried = sequence.run_of(sequence.world.lifecycle().retry(ACME, OPERATOR.by))
    sequence.play(delete)
    assert isinstance(sequence.begin(retried), GaveUp)


def test_a_create_is_accepted_after_a_delete_whose_clock_was_ahead() -> None:
    """It is asked for after everything that is recorded, whatever the times in the records say."""
    sequence = served()
    sequence.play(sequence.run_of(sequence.world.lifecycle().delete(ACME, OPERATOR)))
    deleted = sequence.audit(Operation.DELETE)
    sequence.table.plant_audit(replace(deleted, asked_at=sequence.clock.now() + timedelta(minutes=1)))
    assert isinstance(sequence.world.lifecycle().create(ACME, OPERATOR), Accepted)


def test_another_create_than_the_one_that_is_about_to_begin_is_told_that_the_tenant_is_busy() -> None:
    sequence = Sequence()
    lifecycle = sequence.world.lifecycle()
    assert isinstance(lifecycle.create(ACME, OPERATOR), Accepted)
    assert isinstance(lifecycle.create(ACME, OPERATOR), Accepted)
    other = lifecycle.create(ACME, replace(OPERATOR, pin=NEXT_VERSION))
    assert isinstance(other, Refused)
    assert other.kind is Refusal.BUSY


def test_a_create_that_waited_behind_a_delete_that_was_asked_for_later_brings_nobody_back() -> None:
    sequence = served()
    create = sequence.start(a_run(2))
    sequence.clock.advance(timedelta(milliseconds=20))
    sequence.play(sequence.run_of(sequence.world.lifecycle().delete(ACME, OPERATOR)))
    refused = sequence.begin(create)
    assert isinstance(refused, GaveUp)
    assert "was deleted" in refused.reason
    sequence.fail(create, refused.reason)
    assert isinstance(sequence.world.ask(), Deleted)


def test_a_delete_that_waited_behind_a_create_that_was_asked_for_later_deletes_nobody() -> None:
    sequence = Sequence()
    sequence.play(sequence.run_of(sequence.world.lifecycle().create(ACME, OPERATOR)))
    sequence.play(sequence.run_of(sequence.world.lifecycle().delete(ACME, OPERATOR)))
    late = sequence.start(a_run(2, operation=Operation.DELETE, started_at=sequence.clock.now(), request=OPERATOR))
    sequence.clock.advance(A_SECOND)
    sequence.play(sequence.run_of(sequence.world.lifecycle().create(ACME, OPERATOR)))
    refused = sequence.begin(late)
    assert isinstance(refused, GaveUp)
    assert "created again" in refused.reason
    sequence.fail(late, refused.reason)
    assert isinstance(sequence.world.ask(), Ready)


def test_a_create_right_after_a_delete_is_not_lost() -> None:
    sequence = served()
    delete = sequence.run_of(sequence.world.lifecycle().delete(ACME, OPERATOR))
    sequence.begin(delete)
    sequence.clock.advance(timedelta(milliseconds=20))
    create = sequence.start(a_run(2, started_at=sequence.clock.now()))
    assert isinstance(sequence.begin(create), Busy)
    sequence.delete_the_stack_by_hand()
    sequence.finish(delete, None)
    sequence.play(create)
    assert isinstance(sequence.world.ask(), Ready)


def test_a_delete_right_after_getqueue_has_started_a_create_is_not_lost() -> None:
    sequence = Sequence()
    assert isinstance(sequence.world.ask(), Provisioning)
    delete = sequence.run_of(sequence.world.lifecycle().delete(ACME, OPERATOR))
    sequence.play(delete)
    refused = sequence.begin(a_run(request=Request()))
    assert isinstance(refused, GaveUp)
    sequence.fail(a_run(request=Request()), refused.reason)
    assert isinstance(sequence.world.ask(), Deleted)


@pytest.mark.parametrize("create", [a_run(2, request=Request()), a_run(version=NEXT_VERSION, request=Request())])
def test_a_delete_finds_a_create_that_getqueue_of_another_release_or_a_second_attempt_has_started(create: Run) -> None:
    sequence = Sequence()
    sequence.start(create)
    assert isinstance(sequence.world.lifecycle().delete(ACME, OPERATOR), Accepted)


def test_a_pin_is_lifted_by_a_create_after_a_delete_that_failed_half_way() -> None:
    sequence = served()
    sequence.world.lifecycle().pin(ACME, NEXT_VERSION, OPERATOR)
    a_delete_that_ran_out_of_time(sequence)
    create = sequence.run_of(sequence.world.lifecycle().create(ACME, OPERATOR, unpin=True))
    assert create.attempt.version == VERSION
    assert sequence.begin(create) == Begun()


def test_a_delete_of_a_tenant_that_nobody_has_asked_for_has_nothing_to_do() -> None:
    sequence = Sequence()
    assert isinstance(sequence.world.lifecycle().delete(ACME, OPERATOR), Unchanged)
    assert not sequence.world.executions.started


def test_labels_and_pin_are_not_lost_on_a_create_that_getqueue_has_started_at_the_same_version() -> None:
    sequence = Sequence()
    assert isinstance(sequence.world.ask(), Provisioning)
    asked = replace(OPERATOR, labels={"tier": "gold"}, pin=VERSION)
    assert isinstance(sequence.world.lifecycle().create(ACME, asked), Accepted)
    sequence.play(a_run(request=Request()))
    assert sequence.metadata.labels == {"tier": "gold"}
    assert sequence.metadata.pinned_version == VERSION


def test_a_create_that_getqueue_has_started_at_another_version_makes_way_for_the_pin() -> None:
    sequence = Sequence()
    assert isinstance(sequence.world.ask(), Provisioning)
    pinned = sequence.run_of(sequence.world.lifecycle().create(ACME, replace(OPERATOR, pin=NEXT_VERSION)))
    unpinned = a_run(request=Request())
    refused = sequence.begin(unpinned)
    assert isinstance(refused, GaveUp)
    assert NEXT_VERSION in refused.reason
    sequence.fail(unpinned, refused.reason)
    sequence.play(pinned)
    assert sequence.metadata.version == NEXT_VERSION


def test_a_retry_of_a_create_at_another_version_than_the_pin_is_told_about_the_pin() -> None:
    sequence = Sequence()
    lifecycle = sequence.world.lifecycle()
    create = sequence.run_of(lifecycle.create(ACME, OPERATOR))
    sequence.begin(create)
    sequence.fail(create)
    assert isinstance(lifecycle.pin(ACME, NEXT_VERSION, OPERATOR), Changed)
    retried = lifecycle.retry(ACME, OPERATOR.by)
    assert isinstance(retried, Refused)
    assert retried.kind is Refusal.PINNED


# The owners of tenants


def test_a_resource_does_not_become_the_creator_of_a_tenant_that_was_there_before() -> None:
    """Its create raced with a delete that was refused. Then its stack is rolled back."""
    sequence = served()
    delete = sequence.start(a_run(operation=Operation.DELETE, request=OPERATOR))
    sequence.begin(delete)
    seen: list[str] = []

    def around(name: str, call: Callable[[], Any]) -> Any:
        result = call()
        seen.append(name)
        if name == "table.metadata" and seen.count(name) == 2:
            sequence.fail(delete, "There are still messages.")
        return result

    assert sequence.settle(asks(Kind.CREATE), around=around) == Waiting()
    sequence.play(sequence.run_of(_latest(sequence)))
    assert isinstance(sequence.world.ask(), Ready)
    sequence.clock.advance(A_SECOND)
    assert sequence.settle(asks(Kind.DELETE, OnDelete.DELETE)) == Provided(None)
    assert isinstance(sequence.world.ask(), Ready)


@pytest.mark.parametrize("ends_well", [False, True])
def test_a_resource_that_brought_a_tenant_into_being_takes_it_away_again(ends_well: bool) -> None:
    sequence = Sequence()
    sequence.settle(asks(Kind.CREATE))
    create = sequence.run_of(_latest(sequence))
    if ends_well:
        sequence.play(create)
    else:
        sequence.begin(create)
        sequence.fail(create)
    sequence.clock.advance(A_SECOND)
    assert sequence.settle(asks(Kind.DELETE, OnDelete.DELETE)) == Waiting()
    assert sequence.run_of(_latest(sequence)).attempt.operation is Operation.DELETE


def test_a_resource_has_no_claim_on_a_tenant_that_has_become_somebody_elses_before_its_delete_begins() -> None:
    sequence = Sequence()
    sequence.settle(asks(Kind.CREATE))
    create = sequence.run_of(_latest(sequence))
    sequence.begin(create)
    sequence.fail(create)
    sequence.clock.advance(A_SECOND)
    assert sequence.settle(asks(Kind.DELETE, OnDelete.DELETE)) == Waiting()
    delete = sequence.run_of(_latest(sequence))
    sequence.play(sequence.run_of(sequence.world.lifecycle().create(ACME, OPERATOR)))
    refused = sequence.begin(delete)
    assert isinstance(refused, GaveUp)
    assert "does not belong to" in refused.reason
    sequence.fail(delete, refused.reason)
    assert isinstance(sequence.world.ask(), Ready)
    assert sequence.settle(asks(Kind.DELETE, OnDelete.DELETE), since=delete.started_at) == Provided(None)


def test_a_resource_does_not_become_the_creator_of_a_tenant_whose_queue_had_vanished() -> None:
    """The tenant is from before creators were recorded."""
    sequence = served()
    sequence.delete_the_stack_by_hand()
    sequence.settle(asks(Kind.CREATE))
    create = sequence.run_of(_latest(sequence))
    sequence.begin(create)
    sequence.fail(create)
    assert sequence.settle(asks(Kind.DELETE, OnDelete.DELETE)) == Provided(None)


def test_a_resource_has_no_claim_on_a_tenant_that_was_deleted_and_is_asked_for_by_somebody_else() -> None:
    sequence = Sequence()
    sequence.settle(asks(Kind.CREATE))
    sequence.play(sequence.run_of(_latest(sequence)))
    sequence.clock.advance(A_SECOND)
    sequence.play(sequence.run_of(sequence.world.lifecycle().delete(ACME, OPERATOR)))
    sequence.clock.advance(A_SECOND)
    theirs = sequence.run_of(sequence.world.lifecycle().create(ACME, OPERATOR))
    started = len(sequence.world.executions.started)
    assert sequence.settle(asks(Kind.DELETE, OnDelete.DELETE)) == Waiting()
    sequence.begin(theirs)
    assert sequence.settle(asks(Kind.DELETE, OnDelete.DELETE)) == Provided(None)
    assert len(sequence.world.executions.started) == started


def test_a_resources_delete_waits_for_its_create_that_is_about_to_begin() -> None:
    sequence = Sequence()
    sequence.settle(asks(Kind.CREATE))
    create = sequence.run_of(_latest(sequence))
    sequence.clock.advance(A_SECOND)
    assert sequence.settle(asks(Kind.DELETE, OnDelete.DELETE)) == Waiting()
    sequence.play(create)
    sequence.clock.advance(A_SECOND)
    assert sequence.settle(asks(Kind.DELETE, OnDelete.DELETE)) == Waiting()
    assert sequence.run_of(_latest(sequence)).attempt.operation is Operation.DELETE


def test_a_resource_with_a_version_is_not_told_of_the_failure_of_a_create_at_another() -> None:
    sequence = Sequence()
    assert isinstance(sequence.world.ask(), Provisioning)
    asked, since = asks(Kind.CREATE, pin=NEXT_VERSION), sequence.clock.now()
    assert sequence.settle(asked, since=since) == Waiting()
    own = sequence.run_of(_latest(sequence))
    platforms = a_run(request=Request())
    refused = sequence.begin(platforms)
    assert isinstance(refused, GaveUp)
    sequence.fail(platforms, refused.reason)
    assert sequence.settle(asked, since=since) == Waiting()
    sequence.play(own)
    assert isinstance(sequence.settle(asked, since=since), Provided)


def test_a_create_after_a_delete_is_not_taken_for_one_that_get_queue_had_started_before_it() -> None:
    """The first function of getQueue's create is throttled. It begins last, and is refused."""
    sequence = Sequence()
    assert isinstance(sequence.world.ask(), Provisioning)
    late = sequence.run_of(_latest(sequence))
    sequence.clock.advance(A_SECOND)
    delete = sequence.run_of(sequence.world.lifecycle().delete(ACME, OPERATOR))
    sequence.play(delete)
    sequence.clock.advance(A_SECOND)
    create = sequence.run_of(sequence.world.lifecycle().create(ACME, OPERATOR))
    assert create.execution != late.execution
    sequence.play(create)
    assert isinstance(sequence.world.ask(), Ready)
    with pytest.raises(LostOwnership):
        sequence.begin(late)
    assert isinstance(sequence.world.ask(), Ready)


# CloudFormation is asked for one thing with one token


def test_a_create_that_clears_its_own_failed_stack_away_asks_for_another_one_with_another_token() -> None:
    sequence = Sequence()
    sequence.stacks.failures.append("Access denied.")
    run = sequence.start(a_run(request=Request()))
    sequence.begin(run)
    tokens = []
    for _ in range(2):
        sequence.start_stack(run)
        tokens += [fake.client_token for fake in sequence.stacks.all.values()]
        sequence.world.let_time_pass()
        sequence.start_stack(run)
        tokens += [fake.client_token for fake in sequence.stacks.all.values()]
        sequence.world.let_time_pass()
    created = {token for token in tokens if "-create" in token}
    assert len(sequence.stacks.all) == 2
    assert len(created) == 2


def _latest(sequence: Sequence) -> Accepted:
    """The order that was accepted last."""
    attempt: Attempt = sequence.world.executions.started[-1][0]
    return Accepted(attempt, execution_arn(attempt.name))


def test_the_audit_says_when_an_operation_was_asked_for() -> None:
    sequence = Sequence()
    since = sequence.clock.now()
    sequence.clock.advance(timedelta(minutes=1))
    sequence.settle(asks(Kind.CREATE), since=since)
    sequence.begin(sequence.run_of(_latest(sequence)))
    assert sequence.audit(Operation.CREATE).asked_at == since
    assert sequence.audit(Operation.CREATE).status is Status.STARTED
