"""Bringing the tenant's stack about: start, await, inspect."""

from __future__ import annotations

from datetime import timedelta

import pytest

from orchestrator.errors import LostOwnership, StackNotOurs, Throttled, UnknownRelease
from orchestrator.operations import DEADLINE, GaveUp
from orchestrator.ports import Stack
from orchestrator.records import Lock, Queue
from orchestrator.stack_status import StackCondition, condition
from orchestrator.tenant_stack import (
    Again,
    Clearing,
    Done,
    Started,
    Working,
    await_stack,
    inspect_stack,
    stack_settled,
    start_stack,
)
from tests.fakes import (
    ACME,
    QUEUE,
    VERSION,
    FakeClock,
    FakeExecutions,
    FakeStacks,
    InMemoryTable,
    a_release,
    a_run,
    take,
)
from tests.unit.test_stack_status import SORTED

RUN = a_run()
TOKEN = "a task token"


class World:
    def __init__(self) -> None:
        self.table, self.stacks, self.executions, self.clock = (
            InMemoryTable(),
            FakeStacks(),
            FakeExecutions(),
            FakeClock(),
        )
        self.table.record_release(a_release())
        take(self.table, RUN)
        self.executions.waiting.add(TOKEN)

    def plant(
        self,
        status: str,
        *,
        reason: str = "",
        tenant_id: str | None = "acme",
        queue: Queue | None = QUEUE,
        version: str | None = VERSION,
    ) -> str:
        stack = Stack(self.stacks.stack_id(ACME), status, reason, tenant_id, queue, version)
        return self.stacks.plant(stack).stack_id

    def start(self) -> Started | Clearing | Again:
        return start_stack(RUN, reader=self.table, releases=self.table, stacks=self.stacks)

    def wait_for(self, stack_id: str | None) -> Working:
        return await_stack(
            RUN,
            stack_id=stack_id,
            task_token=TOKEN,
            ledger=self.table,
            stacks=self.stacks,
            executions=self.executions,
        )

    def inspect(
        self, stack_id: str | None, *, clearing: bool = False, why_not: str = ""
    ) -> Done | Working | Again | GaveUp:
        return inspect_stack(
            RUN, stack_id=stack_id, clearing=clearing, why_not=why_not, stacks=self.stacks, clock=self.clock
        )

    def remembered_token(self) -> str | None:
        lock = self.table.lock(ACME)
        return lock.task_token if lock else None


@pytest.fixture
def world() -> World:
    return World()


def told_why(outcome: object) -> str:
    assert isinstance(outcome, Again)
    return outcome.reason


def statuses(*meant: StackCondition) -> list[str]:
    return sorted(status for each in meant for status in SORTED[each])


# Start


def test_a_tenant_without_a_stack_gets_one_from_the_attempts_release(world: World) -> None:
    outcome = world.start()
    assert isinstance(outcome, Started)
    stack = world.stacks.all[outcome.stack_id]
    assert stack.template_url == a_release().template_url
    assert stack.client_token == f"{RUN.attempt.client_token}-create"
    assert stack.stack.tenant_id == "acme"


def test_starting_twice_makes_one_stack(world: World) -> None:
    assert world.start() == world.start()
    assert world.stacks.calls.count("create") == 1
    assert len(world.stacks.all) == 1


def test_a_deleted_stack_that_is_still_described_does_not_count(world: World) -> None:
    old = world.plant("DELETE_COMPLETE")

    class StillDescribed(FakeStacks):
        def find(self, name_or_id: str) -> Stack | None:
            return super().find(name_or_id) or super().find(old)

    stacks = StillDescribed()
    stacks.all = world.stacks.all
    outcome = start_stack(RUN, reader=world.table, releases=world.table, stacks=stacks)
    assert isinstance(outcome, Started)
    assert outcome.stack_id != old


@pytest.mark.parametrize(
    "status",
    sorted(
        set(statuses(*SORTED)) - set(statuses(StackCondition.NEVER_LIVED, StackCondition.GONE)) - {"DELETE_IN_PROGRESS"}
    ),
)
def test_a_stack_that_lives_is_adopted_untouched(world: World, status: str) -> None:
    stack_id = world.plant(status)
    assert world.start() == Started(stack_id)
    assert world.stacks.calls == ["find"]


@pytest.mark.parametrize("status", statuses(StackCondition.NEVER_LIVED))
def test_a_stack_that_never_lived_is_cleared_away(world: World, status: str) -> None:
    stack_id = world.plant(status)
    assert world.start() == Clearing(stack_id)
    assert world.stacks.all[stack_id].stack.status == "DELETE_IN_PROGRESS"


def test_a_stack_that_is_being_deleted_is_waited_for_and_not_deleted_again(world: World) -> None:
    stack_id = world.plant("DELETE_IN_PROGRESS")
    assert world.start() == Clearing(stack_id)
    assert world.stacks.calls == ["find"]


def test_after_the_remains_are_gone_a_new_stack_is_made(world: World) -> None:
    remains = world.plant("ROLLBACK_COMPLETE")
    world.start()
    world.stacks.settle()
    outcome = world.start()
    assert isinstance(outcome, Started)
    assert outcome.stack_id != remains


@pytest.mark.parametrize("status", ["CREATE_COMPLETE", "ROLLBACK_COMPLETE", "DELETE_IN_PROGRESS"])
@pytest.mark.parametrize("made_for", ["Acme", None])
def test_a_stack_that_was_made_for_someone_else_is_neither_adopted_nor_deleted(
    world: World, status: str, made_for: str | None
) -> None:
    world.plant(status, tenant_id=made_for)
    with pytest.raises(StackNotOurs, match=made_for or "something else"):
        world.start()
    assert world.stacks.calls == ["find"]


def test_an_unpublished_version_is_an_error_before_anything_is_asked_of_cloudformation(world: World) -> None:
    run = a_run(version="9.9.9")
    take(world.table, run, instead_of=Lock(RUN, None))
    with pytest.raises(UnknownRelease, match=r"9\.9\.9"):
        start_stack(run, reader=world.table, releases=world.table, stacks=world.stacks)
    assert not world.stacks.calls


def test_a_run_that_no_longer_owns_the_tenant_starts_no_stack(world: World) -> None:
    take(world.table, a_run(2), instead_of=Lock(RUN, None))
    with pytest.raises(LostOwnership, match="no longer owns"):
        world.start()
    assert not world.stacks.calls


def test_a_stack_that_appeared_just_now_is_looked_at_again(world: World) -> None:
    class AppearsJustNow(FakeStacks):
        def find(self, name_or_id: str) -> Stack | None:
            found = super().find(name_or_id)
            if found is None:
                self.plant(Stack(self.stack_id(ACME), "CREATE_IN_PROGRESS", "", "acme", None, None), "another request")
            return found

    world.stacks = AppearsJustNow()
    assert told_why(world.start()) == "a stack of that name has just appeared"
    assert isinstance(world.start(), Started)
    assert len(world.stacks.all) == 1


def test_being_throttled_while_looking_is_no_failure(world: World) -> None:
    world.stacks.throttled_calls = 1
    assert told_why(world.start()) == "find: Rate exceeded"
    assert isinstance(world.start(), Started)


class ThrottlesWrites(FakeStacks):
    def create(self, *_args: object, **_named: object) -> str | None:
        raise Throttled("CreateStack: Rate exceeded")

    def delete(self, *_args: object, **_named: object) -> None:
        raise Throttled("DeleteStack: Rate exceeded")


def test_being_throttled_while_creating_is_no_failure(world: World) -> None:
    world.stacks = ThrottlesWrites()
    assert told_why(world.start()) == "CreateStack: Rate exceeded"


def test_being_throttled_while_clearing_is_no_failure(world: World) -> None:
    world.stacks = ThrottlesWrites()
    world.plant("ROLLBACK_COMPLETE")
    assert told_why(world.start()) == "DeleteStack: Rate exceeded"


# Await


def test_while_the_stack_is_at_it_the_token_is_left_and_nobody_woken(world: World) -> None:
    assert world.wait_for(world.plant("CREATE_IN_PROGRESS")) == Working()
    assert world.remembered_token() == TOKEN
    assert not world.executions.woken


@pytest.mark.parametrize("status", statuses(*set(SORTED) - {StackCondition.WORKING}))
def test_a_stack_that_settled_before_the_token_was_there_wakes_the_run_at_once(world: World, status: str) -> None:
    world.wait_for(world.plant(status))
    assert world.executions.woken == [TOKEN]


def test_the_token_is_left_before_the_stack_is_looked_at_so_that_no_event_falls_in_between(world: World) -> None:
    stack_id = world.plant("CREATE_IN_PROGRESS")
    tokens: list[str | None] = []

    class Watched(FakeStacks):
        def find(self, name_or_id: str) -> Stack | None:
            tokens.append(world.remembered_token())
            return super().find(name_or_id)

    watched = Watched()
    watched.all = world.stacks.all
    world.stacks = watched
    world.wait_for(stack_id)
    assert tokens == [TOKEN]


@pytest.mark.parametrize("stack_id", [None, "arn:aws:cloudformation:eu-west-1:0:stack/gone/1"])
def test_without_a_stack_there_is_nothing_to_wait_for(world: World, stack_id: str | None) -> None:
    world.wait_for(stack_id)
    assert world.executions.woken == [TOKEN]


def test_being_throttled_while_awaiting_leaves_it_to_the_event_or_the_timeout(world: World) -> None:
    stack_id = world.plant("CREATE_COMPLETE")
    world.stacks.throttled_calls = 1
    assert world.wait_for(stack_id) == Working()
    assert world.remembered_token() == TOKEN
    assert not world.executions.woken


def test_a_run_that_lost_its_tenant_does_not_leave_its_token(world: World) -> None:
    lock = world.table.lock(ACME)
    take(world.table, a_run(2), instead_of=lock)
    with pytest.raises(LostOwnership):
        world.wait_for(world.plant("CREATE_IN_PROGRESS"))
    assert world.remembered_token() is None


def test_the_event_of_a_settled_stack_wakes_the_run_that_waits_for_it(world: World) -> None:
    stack_id = world.plant("CREATE_IN_PROGRESS")
    world.wait_for(stack_id)
    assert stack_settled(stack_id, reader=world.table, executions=world.executions)
    assert world.executions.woken == [TOKEN]


def test_an_event_that_comes_twice_wakes_once(world: World) -> None:
    stack_id = world.plant("CREATE_IN_PROGRESS")
    world.wait_for(stack_id)
    assert stack_settled(stack_id, reader=world.table, executions=world.executions)
    assert not stack_settled(stack_id, reader=world.table, executions=world.executions)


def test_an_event_that_nobody_waits_for_wakes_nobody(world: World) -> None:
    stack_id = world.plant("CREATE_COMPLETE")
    assert not stack_settled(stack_id, reader=world.table, executions=world.executions)
    assert not stack_settled(stack_id, reader=InMemoryTable(), executions=world.executions)
    assert not world.executions.woken


def test_the_event_of_a_stack_that_is_no_tenants_is_an_error(world: World) -> None:
    with pytest.raises(StackNotOurs):
        stack_settled("arn:aws:cloudformation:eu-west-1:0:stack/x/1", reader=world.table, executions=world.executions)


# Inspect


@pytest.mark.parametrize("clearing", [False, True])
@pytest.mark.parametrize("status", statuses(StackCondition.WORKING))
def test_a_stack_that_is_at_it_is_working(world: World, status: str, clearing: bool) -> None:
    assert world.inspect(world.plant(status), clearing=clearing) == Working()


@pytest.mark.parametrize("status", statuses(StackCondition.DONE, StackCondition.DONE_AT_OLD_VERSION))
def test_a_stack_that_stands_is_done_at_the_version_that_it_says_itself(world: World, status: str) -> None:
    stack_id = world.plant(status, version="0.0.7")
    assert world.inspect(stack_id) == Done(stack_id, QUEUE, "0.0.7")


@pytest.mark.parametrize(("queue", "version"), [(None, VERSION), (QUEUE, None), (None, None)])
def test_a_stack_that_stands_without_a_queue_is_given_up(
    world: World, queue: Queue | None, version: str | None
) -> None:
    outcome = world.inspect(world.plant("CREATE_COMPLETE", queue=queue, version=version))
    assert isinstance(outcome, GaveUp)
    assert "no queue" in outcome.reason
    assert outcome.failed_stack is None


@pytest.mark.parametrize("clearing", [False, True])
@pytest.mark.parametrize("status", statuses(StackCondition.GONE))
def test_a_stack_that_is_gone_is_started_again(world: World, status: str, clearing: bool) -> None:
    assert told_why(world.inspect(world.plant(status), clearing=clearing)) == "the stack is gone"


@pytest.mark.parametrize("stack_id", [None, "arn:aws:cloudformation:eu-west-1:0:stack/gone/1"])
def test_a_stack_that_is_not_there_is_started_again(world: World, stack_id: str | None) -> None:
    assert told_why(world.inspect(stack_id)) == "the stack is not there"


def test_why_there_was_no_stack_to_look_at_is_passed_on(world: World) -> None:
    assert told_why(world.inspect(None, why_not="CreateStack: Rate exceeded")) == "CreateStack: Rate exceeded"


@pytest.mark.parametrize("status", statuses(StackCondition.NEVER_LIVED))
def test_remains_whose_deletion_is_not_yet_visible_are_cleared_again(world: World, status: str) -> None:
    assert "still there" in told_why(world.inspect(world.plant(status), clearing=True))


@pytest.mark.parametrize(
    "status",
    statuses(
        StackCondition.NEVER_LIVED,
        StackCondition.NEEDS_ROLLBACK,
        StackCondition.NEEDS_ROLLBACK_CONTINUED,
        StackCondition.BROKEN,
    ),
)
def test_a_stack_that_failed_is_given_up_with_its_reason_and_named_for_the_root_cause(
    world: World, status: str
) -> None:
    stack_id = world.plant(status, reason="because of this")
    outcome = world.inspect(stack_id)
    assert isinstance(outcome, GaveUp)
    assert status in outcome.reason
    assert "because of this" in outcome.reason
    assert outcome.failed_stack == stack_id


def test_remains_that_cannot_be_deleted_are_given_up(world: World) -> None:
    stack_id = world.plant("DELETE_FAILED")
    outcome = world.inspect(stack_id, clearing=True)
    assert isinstance(outcome, GaveUp)
    assert outcome.failed_stack == stack_id
    assert "no reason was given" in outcome.reason


def test_being_throttled_while_inspecting_is_no_failure(world: World) -> None:
    stack_id = world.plant("CREATE_COMPLETE")
    world.stacks.throttled_calls = 1
    assert world.inspect(stack_id) == Working()


@pytest.mark.parametrize(
    ("status", "clearing"),
    [
        ("CREATE_IN_PROGRESS", False),
        ("DELETE_IN_PROGRESS", True),
        ("DELETE_COMPLETE", False),
        ("ROLLBACK_COMPLETE", True),
    ],
)
def test_what_is_unsettled_at_the_deadline_is_given_up(world: World, status: str, clearing: bool) -> None:
    stack_id = world.plant(status)
    world.clock.advance(DEADLINE)
    assert isinstance(world.inspect(stack_id, clearing=clearing), Working | Again)
    world.clock.advance(timedelta(milliseconds=1))
    outcome = world.inspect(stack_id, clearing=clearing)
    assert isinstance(outcome, GaveUp)
    assert status in outcome.reason
    assert "30 minutes" in outcome.reason


def test_a_stack_that_could_not_be_started_by_the_deadline_is_given_up_and_told_why(world: World) -> None:
    world.clock.advance(DEADLINE * 2)
    outcome = world.inspect(None, why_not="CreateStack: Rate exceeded")
    assert isinstance(outcome, GaveUp)
    assert "CreateStack: Rate exceeded" in outcome.reason


def test_a_stack_that_stands_after_the_deadline_is_still_done(world: World) -> None:
    world.clock.advance(DEADLINE * 2)
    assert isinstance(world.inspect(world.plant("CREATE_COMPLETE")), Done)


@pytest.mark.parametrize("clearing", [False, True])
@pytest.mark.parametrize("status", [*statuses(*SORTED), "NEVER_HEARD_OF"])
def test_every_status_has_an_outcome_and_only_a_standing_stack_is_done(
    world: World, status: str, clearing: bool
) -> None:
    outcome = world.inspect(world.plant(status), clearing=clearing)
    stands = condition(status) in (StackCondition.DONE, StackCondition.DONE_AT_OLD_VERSION)
    assert isinstance(outcome, Done) == stands


def test_throttling_does_not_outlast_the_deadline(world: World) -> None:
    stack_id = world.plant("CREATE_IN_PROGRESS")
    world.clock.advance(DEADLINE * 2)
    world.stacks.throttled_calls = 1
    assert isinstance(world.inspect(stack_id), GaveUp)
