"""Waiting for the tenant's stack: with which outcome the execution that waits is resumed, by whom, and when."""

from __future__ import annotations

from datetime import timedelta

import pytest

from orchestrator.common.errors import LostOwnership, StackNotOurs, Throttled
from orchestrator.tenants.awaiting import Resumption
from orchestrator.tenants.deadlines import DEADLINE
from orchestrator.tenants.messages import Messages
from orchestrator.tenants.outcomes import (
    Again,
    Clearing,
    Done,
    Draining,
    GaveUp,
    Gone,
    Inspection,
    NotReady,
    Reviewing,
    Settled,
    Start,
    Started,
    Unchanged,
    Waiting,
    Working,
)
from orchestrator.tenants.records import Lock, Operation, Request, Run
from orchestrator.tenants.stack_ports import Stack
from orchestrator.tenants.stack_status import StackCondition
from tests.fakes import (
    ACME,
    NEXT_VERSION,
    NOON,
    QUEUE,
    TASK_TOKEN,
    VERSION,
    FakeQueues,
    FakeSettings,
    FakeStacks,
    InMemoryTable,
    OwnedTenant,
    a_run,
    some_metadata,
    stack_arn,
    take,
)
from tests.unit.test_stack_status import SORTED

CREATE = a_run()
UPDATE = a_run(operation=Operation.UPDATE, version=NEXT_VERSION)
DELETE = a_run(operation=Operation.DELETE)
FORCED = a_run(operation=Operation.DELETE, request=Request(force=True))
NOT_THERE = stack_arn(number=99)
A_MINUTE = timedelta(minutes=1)

for_each_operation = pytest.mark.parametrize("run", [CREATE, UPDATE, FORCED], ids=["create", "update", "delete"])


class WaitingTenant(OwnedTenant):
    """A run that starts its stack and waits."""

    def __init__(self, run: Run = CREATE, *, stack_events: bool = True) -> None:
        is_new = run.attempt.operation is Operation.CREATE
        super().__init__(
            run, metadata=None if is_new else some_metadata(), settings=FakeSettings(stack_events=stack_events)
        )

    def start_waiting(self) -> Waiting | Inspection | Draining:
        return self.start_and_wait(self.run, task_token=TASK_TOKEN, empty_since=self.empty_since)

    def settle(self, stack_id: str, client_token: str = "") -> Resumption | None:
        """CloudFormation's event comes."""
        return self.stack_settled(stack_id, client_token=client_token)

    def inspect_later(self) -> Inspection:
        """The state's timeout ends the wait."""
        return self.inspect_stack(self.run)

    @property
    def lock(self) -> Lock:
        lock = self.table.lock(ACME)
        assert lock
        return lock

    def remembered(self) -> tuple[str | None, str | None, str | None]:
        return self.lock.task_token, self.lock.started_stack, self.lock.started_as


@pytest.fixture
def world() -> WaitingTenant:
    return WaitingTenant()


def statuses(*meant: StackCondition) -> list[str]:
    return sorted(status for each in meant for status in SORTED[each])


# Start and wait


def test_a_create_waits_for_the_stack_that_it_creates(world: WaitingTenant) -> None:
    assert world.start_waiting() == Waiting()
    (stack_id,) = world.stacks.all
    assert world.remembered() == (TASK_TOKEN, stack_id, "started")
    assert world.stacks.calls == ["find", "create"]


def test_nothing_can_resume_the_run_before_the_change_was_requested(world: WaitingTenant) -> None:
    tokens: list[str | None] = []

    class Watched(FakeStacks):
        def create(self, *args: object, **named: object) -> str | None:
            tokens.append(world.lock.task_token)
            return super().create(*args, **named)  # type: ignore[arg-type]

    world.stacks = Watched()
    world.start_waiting()
    assert tokens == [None]


def test_a_stack_that_is_being_cleared_away_is_waited_for(world: WaitingTenant) -> None:
    stack_id = world.plant("ROLLBACK_COMPLETE")
    assert world.start_waiting() == Waiting()
    assert world.remembered() == (TASK_TOKEN, stack_id, "clearing")


def test_a_change_that_is_under_way_is_waited_for(world: WaitingTenant) -> None:
    stack_id = world.plant("CREATE_IN_PROGRESS")
    assert world.start_waiting() == Waiting()
    assert world.remembered() == (TASK_TOKEN, stack_id, "started")


def test_a_stack_that_needs_no_change_ends_the_wait_at_once(world: WaitingTenant) -> None:
    stack_id = world.plant("CREATE_COMPLETE")
    assert world.start_waiting() == Done(stack_id, QUEUE, VERSION)


def test_a_stack_that_settled_before_the_answer_was_lost_ends_the_wait_at_once(world: WaitingTenant) -> None:
    """The function died after CloudFormation had accepted the change, so the state was tried again."""
    world.start()
    world.stacks.settle()
    assert isinstance(world.start_waiting(), Done)
    assert world.stacks.calls.count("create") == 1


def test_an_update_without_changes_ends_the_wait_at_once() -> None:
    world = WaitingTenant(UPDATE)
    stack_id = world.plant(version=NEXT_VERSION)
    assert world.start_waiting() == Reviewing()
    assert world.start_waiting() == Done(stack_id, QUEUE, NEXT_VERSION)
    assert world.lock.started_as == "unchanged"


def test_an_update_that_is_reviewed_ends_the_wait_until_its_change_set_is_ready() -> None:
    world = WaitingTenant(UPDATE)
    world.plant()
    assert world.start_waiting() == Reviewing()
    assert world.start_waiting() == Waiting()
    assert world.lock.started_as == "started"


def test_throttling_ends_the_wait_at_once(world: WaitingTenant) -> None:
    world.stacks.throttled_calls = 1
    assert world.start_waiting() == Again("find: Rate exceeded", throttled=True)
    assert world.lock.task_token is None


def test_after_the_deadline_nothing_is_started_again(world: WaitingTenant) -> None:
    world.clock.advance(DEADLINE + A_MINUTE)
    world.stacks.throttled_calls = 1
    assert isinstance(world.start_waiting(), GaveUp)


@for_each_operation
def test_without_events_the_wait_ends_at_once_and_the_stack_is_known(run: Run) -> None:
    world = WaitingTenant(run, stack_events=False)
    if run is not CREATE:
        world.plant()
    outcome = world.start_waiting()
    if outcome == Reviewing():
        outcome = world.start_waiting()
    assert outcome == Working()
    assert world.lock.started_as == "started"


@for_each_operation
def test_a_run_that_lost_its_tenant_starts_nothing(run: Run) -> None:
    world = WaitingTenant(run)
    world.plant()
    take(world.table, a_run(2), instead_of=world.lock)
    with pytest.raises(LostOwnership):
        world.start_waiting()
    assert not world.stacks.calls
    assert world.lock.task_token is None


def test_a_run_that_loses_its_tenant_meanwhile_does_not_leave_its_token(world: WaitingTenant) -> None:
    class Slow(FakeStacks):
        def create(self, *args: object, **named: object) -> str | None:
            take(world.table, a_run(2), instead_of=world.lock)
            return super().create(*args, **named)  # type: ignore[arg-type]

    world.stacks = Slow()
    with pytest.raises(LostOwnership):
        world.start_waiting()
    assert world.lock.task_token is None


# Start a delete, which counts the messages first


def test_a_delete_counts_twice_before_it_deletes_the_stack() -> None:
    world = WaitingTenant(DELETE)
    stack_id = world.plant()
    assert world.start_waiting() == Draining("none were counted", NOON, 60)
    assert not world.stacks.calls
    world.empty_since = NOON
    world.clock.advance(A_MINUTE)
    assert world.start_waiting() == Waiting()
    assert world.remembered() == (TASK_TOKEN, stack_id, "started")
    assert world.stacks.calls == ["find", "delete"]


def test_a_message_that_comes_between_two_counts_is_not_lost() -> None:
    world = WaitingTenant(DELETE)
    world.plant()
    world.start_waiting()
    world.empty_since = NOON
    world.clock.advance(A_MINUTE)
    world.queues.held[QUEUE.url] = Messages(1, 0, 0)
    outcome = world.start_waiting()
    assert isinstance(outcome, GaveUp)
    assert "still has messages" in outcome.reason
    assert "delete" not in world.stacks.calls


def test_unfinished_work_is_not_lost() -> None:
    world = WaitingTenant(DELETE)
    world.plant()
    world.unfinished_work.held[ACME] = {"inbox": 1}
    outcome = world.start_waiting()
    assert isinstance(outcome, GaveUp)
    assert "unfinished work" in outcome.reason


def test_a_delete_that_drains_waits_for_the_messages() -> None:
    world = WaitingTenant(a_run(operation=Operation.DELETE, request=Request(drain_seconds=600)))
    world.plant()
    world.queues.held[QUEUE.url] = Messages(1, 0, 0)
    outcome = world.start_waiting()
    assert isinstance(outcome, Draining)
    assert outcome.empty_since is None


def test_a_delete_that_cannot_count_before_the_deadline_fails() -> None:
    world = WaitingTenant(DELETE)
    world.plant()
    world.clock.advance(DEADLINE + A_MINUTE)
    assert isinstance(world.start_waiting(), GaveUp)


def test_without_a_stack_there_is_nothing_to_delete_or_to_wait_for() -> None:
    world = WaitingTenant(FORCED)
    assert world.start_waiting() == Gone()


# CloudFormation's event


def test_the_event_resumes_the_run_with_the_finished_stack(world: WaitingTenant) -> None:
    world.start_waiting()
    (stack_id,) = world.stacks.all
    world.stacks.settle()
    assert world.settle(stack_id) == Resumption(TASK_TOKEN, Done(stack_id, QUEUE, VERSION))


def test_the_event_of_a_deleted_stack_resumes_the_delete() -> None:
    world = WaitingTenant(FORCED)
    stack_id = world.plant()
    world.start_waiting()
    world.stacks.settle()
    assert world.settle(stack_id) == Resumption(TASK_TOKEN, Gone())


def test_the_event_of_a_failed_creation_resumes_the_run_with_the_failure(world: WaitingTenant) -> None:
    world.start_waiting()
    (stack_id,) = world.stacks.all
    world.stacks.change(stack_id, "ROLLBACK_COMPLETE")
    found = world.settle(stack_id)
    assert found
    assert isinstance(found.outcome, GaveUp)
    assert found.outcome.failed_stack == stack_id


def test_the_event_of_a_stack_that_was_cleared_away_has_the_run_start_again(world: WaitingTenant) -> None:
    stack_id = world.plant("ROLLBACK_COMPLETE")
    world.start_waiting()
    world.stacks.settle()
    found = world.settle(stack_id)
    assert found
    assert isinstance(found.outcome, Again)


def test_a_queue_that_cannot_be_used_yet_resumes_the_run_which_inspects_again(world: WaitingTenant) -> None:
    world.start_waiting()
    (stack_id,) = world.stacks.all
    world.stacks.settle()
    world.queues = FakeQueues(silent_for=1)
    assert world.settle(stack_id) == Resumption(TASK_TOKEN, NotReady())
    assert world.inspect_later() == Done(stack_id, QUEUE, VERSION)


def test_the_event_of_an_earlier_change_resumes_no_run(world: WaitingTenant) -> None:
    world.start_waiting()
    (stack_id,) = world.stacks.all
    assert world.settle(stack_id) is None


def test_an_event_before_the_change_was_requested_resumes_no_run(world: WaitingTenant) -> None:
    """Its stack is what an earlier run left behind, and says nothing about this run."""
    stack_id = world.plant("ROLLBACK_COMPLETE")
    assert world.settle(stack_id) is None


def test_an_event_that_is_throttled_leaves_the_run_to_the_timeout(world: WaitingTenant) -> None:
    world.start_waiting()
    (stack_id,) = world.stacks.all
    world.stacks.settle()
    world.stacks.throttled_calls = 1
    assert world.settle(stack_id) is None
    assert isinstance(world.inspect_later(), Done)


def test_an_event_that_no_run_waits_for_resumes_no_run(world: WaitingTenant) -> None:
    stack_id = world.plant("CREATE_COMPLETE")
    assert world.settle(stack_id) is None
    world.table = InMemoryTable()
    assert world.settle(stack_id) is None


def test_the_event_of_a_stack_that_is_no_tenants_is_an_error(world: WaitingTenant) -> None:
    with pytest.raises(StackNotOurs):
        world.settle("arn:aws:cloudformation:eu-west-1:0:stack/x/1")


# The timeout ends the wait


def test_without_an_event_the_stack_is_inspected_that_was_started(world: WaitingTenant) -> None:
    world.start_waiting()
    (stack_id,) = world.stacks.all
    assert world.inspect_later() == Working()
    world.stacks.settle()
    assert world.inspect_later() == Done(stack_id, QUEUE, VERSION)


def test_a_stack_that_is_cleared_away_is_still_known_as_such_after_the_timeout(world: WaitingTenant) -> None:
    stack_id = world.plant("ROLLBACK_COMPLETE")
    world.start_waiting()
    world.stacks.change(stack_id, "ROLLBACK_COMPLETE")
    assert isinstance(world.inspect_later(), Again)


def test_a_run_that_has_started_nothing_starts_again(world: WaitingTenant) -> None:
    assert world.inspect_later() == Again("no change of the stack was started")


def test_a_run_that_lost_its_tenant_inspects_nothing(world: WaitingTenant) -> None:
    world.start_waiting()
    take(world.table, a_run(2), instead_of=world.lock)
    with pytest.raises(LostOwnership):
        world.inspect_later()


# Await: wait once more


@pytest.mark.parametrize("kind", [Started, Clearing])
@pytest.mark.parametrize("status", statuses(StackCondition.WORKING))
def test_while_the_stack_is_being_changed_the_token_is_stored(
    world: WaitingTenant, status: str, kind: type[Started | Clearing]
) -> None:
    started = kind(world.plant(status))
    assert world.wait_for(started) == Waiting()
    assert world.remembered() == (TASK_TOKEN, started.stack_id, started.outcome)


@pytest.mark.parametrize("kind", [Started, Clearing])
@pytest.mark.parametrize("status", statuses(*set(SORTED) - {StackCondition.WORKING}))
def test_a_stack_that_settled_before_the_token_was_there_ends_the_wait_at_once(
    world: WaitingTenant, status: str, kind: type[Started | Clearing]
) -> None:
    assert world.wait_for(kind(world.plant(status))) == Settled()


def test_the_token_is_stored_before_the_stack_is_read_so_that_no_event_is_missed(world: WaitingTenant) -> None:
    stack_id = world.plant("CREATE_IN_PROGRESS")
    tokens: list[str | None] = []

    class Watched(FakeStacks):
        def find(self, name_or_id: str) -> Stack | None:
            tokens.append(world.lock.task_token)
            return super().find(name_or_id)

    watched = Watched()
    watched.all = world.stacks.all
    world.stacks = watched
    world.wait_for(Started(stack_id))
    assert tokens == [TASK_TOKEN]


@pytest.mark.parametrize(
    "started",
    [Started(NOT_THERE), Again("Rate exceeded"), Gone(), GaveUp("It would lose messages."), Unchanged(NOT_THERE)],
    ids=lambda started: started.outcome,
)
def test_without_a_stack_that_is_being_changed_there_is_nothing_to_wait_for(
    world: WaitingTenant, started: Start
) -> None:
    assert world.wait_for(started) == Settled()


def test_being_throttled_while_awaiting_leaves_it_to_the_event_or_the_timeout(world: WaitingTenant) -> None:
    stack_id = world.plant("CREATE_COMPLETE")
    world.stacks.throttled_calls = 1
    assert world.wait_for(Started(stack_id)) == Waiting()
    assert world.lock.task_token == TASK_TOKEN


def test_a_run_that_lost_its_tenant_does_not_leave_its_token(world: WaitingTenant) -> None:
    take(world.table, a_run(2), instead_of=world.lock)
    with pytest.raises(LostOwnership):
        world.wait_for(Started(world.plant("CREATE_IN_PROGRESS")))
    assert world.lock.task_token is None


def test_an_event_resumes_no_run_that_has_started_nothing(world: WaitingTenant) -> None:
    stack_id = world.plant("CREATE_COMPLETE")
    world.ledger.remember_token(world.run, TASK_TOKEN)
    assert world.settle(stack_id) is None


def test_throttling_of_the_table_is_an_error_that_lambda_retries(world: WaitingTenant) -> None:
    class Busy(InMemoryTable):
        def lock(self, tenant: object) -> Lock | None:
            raise Throttled(f"GetItem: {tenant}")

    stack_id = world.plant()
    world.table = Busy()
    with pytest.raises(Throttled):
        world.settle(stack_id)
