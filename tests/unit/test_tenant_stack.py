"""Bringing the tenant's stack about: review, start, inspect; and what that means for a create."""

from __future__ import annotations

from datetime import timedelta

import pytest

from orchestrator.common.errors import LostOwnership, StackNotOurs, Throttled, UnknownRelease
from orchestrator.tenants.deadlines import DEADLINE
from orchestrator.tenants.outcomes import (
    Again,
    Clearing,
    Done,
    GaveUp,
    Gone,
    NotReady,
    Started,
    Unchanged,
    Working,
)
from orchestrator.tenants.records import Lock, Operation, Queue, Run
from orchestrator.tenants.stack_ports import Stack
from orchestrator.tenants.stack_status import StackCondition, condition
from tests.fakes import (
    ACME,
    NEXT_VERSION,
    OTHER_QUEUE,
    QUEUE,
    VERSION,
    FakeQueues,
    FakeSettings,
    FakeStacks,
    OwnedTenant,
    a_release,
    a_run,
    stack_arn,
    take,
)
from tests.unit.test_stack_status import SORTED

RUN = a_run()
UPDATE = a_run(operation=Operation.UPDATE, version=NEXT_VERSION)
DELETE = a_run(operation=Operation.DELETE)
NOT_THERE = stack_arn(number=99)

for_each_operation = pytest.mark.parametrize("run", [RUN, UPDATE, DELETE], ids=["create", "update", "delete"])


class Stepping(OwnedTenant):
    """A run, and a control plane that believes at once that queues are empty."""

    def __init__(self, run: Run = RUN) -> None:
        super().__init__(run, settings=FakeSettings(empty_for=timedelta()))


@pytest.fixture
def world() -> Stepping:
    return Stepping()


def told_why(outcome: object, *, throttled: bool = False) -> str:
    assert isinstance(outcome, Again)
    assert outcome.throttled == throttled
    return outcome.reason


def statuses(*meant: StackCondition) -> list[str]:
    return sorted(status for each in meant for status in SORTED[each])


# Start, whatever the operation


@for_each_operation
def test_a_run_that_no_longer_owns_the_tenant_changes_no_stack(run: Run) -> None:
    world = Stepping(run)
    world.plant("CREATE_COMPLETE")
    take(world.table, a_run(2, operation=Operation.DELETE), instead_of=Lock(run, None))
    with pytest.raises(LostOwnership, match="no longer owns"):
        world.start()
    assert not world.stacks.calls


@for_each_operation
@pytest.mark.parametrize("status", ["CREATE_COMPLETE", "ROLLBACK_COMPLETE", "DELETE_IN_PROGRESS", "DELETE_FAILED"])
@pytest.mark.parametrize("made_for", ["Acme", None])
def test_a_stack_that_was_made_for_someone_else_is_neither_adopted_nor_changed_nor_deleted(
    run: Run, status: str, made_for: str | None
) -> None:
    world = Stepping(run)
    world.plant(status, tenant_id=made_for)
    with pytest.raises(StackNotOurs, match=made_for or "something else"):
        world.start()
    assert world.stacks.calls == ["find"]


@for_each_operation
def test_throttling_of_a_read_is_not_a_failure(run: Run) -> None:
    world = Stepping(run)
    world.stacks.throttled_calls = 1
    assert told_why(world.start(), throttled=True) == "find: Rate exceeded"
    assert not isinstance(world.start(), Again)


# Start a create


def test_a_tenant_without_a_stack_gets_one_from_the_attempts_release(world: Stepping) -> None:
    outcome = world.start()
    assert isinstance(outcome, Started)
    stack = world.stacks.all[outcome.stack_id]
    assert stack.template_url == a_release().template_url
    assert stack.client_token == f"{RUN.attempt.client_token}-create-20261116120000000000"
    assert stack.stack.tenant_id == "acme"


def test_starting_twice_makes_one_stack(world: Stepping) -> None:
    assert world.start() == world.start()
    assert world.stacks.calls.count("create") == 1
    assert len(world.stacks.all) == 1


def test_a_deleted_stack_that_is_still_described_does_not_count(world: Stepping) -> None:
    old = world.plant("DELETE_COMPLETE")

    class StillDescribed(FakeStacks):
        def find(self, name_or_id: str) -> Stack | None:
            return super().find(name_or_id) or super().find(old)

    stacks = StillDescribed()
    stacks.all = world.stacks.all
    world.stacks = stacks
    outcome = world.start()
    assert isinstance(outcome, Started)
    assert outcome.stack_id != old


@pytest.mark.parametrize(
    "status",
    sorted(
        set(statuses(*SORTED))
        - set(statuses(StackCondition.CREATION_FAILED, StackCondition.GONE))
        - {"DELETE_IN_PROGRESS"}
    ),
)
def test_an_existing_stack_is_used_unchanged(world: Stepping, status: str) -> None:
    stack_id = world.plant(status)
    assert world.start() == Started(stack_id)
    assert world.stacks.calls == ["find"]


@pytest.mark.parametrize("status", statuses(StackCondition.CREATION_FAILED))
def test_a_stack_that_never_lived_is_cleared_away(world: Stepping, status: str) -> None:
    stack_id = world.plant(status)
    assert world.start() == Clearing(stack_id)
    assert world.stacks.all[stack_id].stack.status == "DELETE_IN_PROGRESS"


def test_a_stack_that_is_being_deleted_is_waited_for_and_not_deleted_again(world: Stepping) -> None:
    stack_id = world.plant("DELETE_IN_PROGRESS")
    assert world.start() == Clearing(stack_id)
    assert world.stacks.calls == ["find"]


def test_after_the_failed_stack_was_deleted_a_new_one_is_created(world: Stepping) -> None:
    remains = world.plant("ROLLBACK_COMPLETE")
    world.start()
    world.stacks.settle()
    outcome = world.start()
    assert isinstance(outcome, Started)
    assert outcome.stack_id != remains


def test_an_unpublished_version_is_an_error_and_nothing_is_created() -> None:
    world = Stepping(a_run(version="9.9.9"))
    with pytest.raises(UnknownRelease, match=r"9\.9\.9"):
        world.start()
    assert world.stacks.calls == ["find"]


def test_an_update_to_an_unpublished_version_is_an_error_and_creates_no_change_set() -> None:
    world = Stepping(a_run(operation=Operation.UPDATE, version="9.9.9"))
    world.plant("CREATE_COMPLETE")
    with pytest.raises(UnknownRelease, match=r"9\.9\.9"):
        world.start()
    assert world.stacks.calls == ["find"]


def test_a_stack_that_another_request_has_just_created_is_started_again(world: Stepping) -> None:
    class AppearsJustNow(FakeStacks):
        def find(self, name_or_id: str) -> Stack | None:
            found = super().find(name_or_id)
            if found is None:
                self.plant(
                    Stack(self.stack_id(ACME), "CREATE_IN_PROGRESS", "", "acme", None, None, ours=True),
                    "another request",
                )
            return found

    world.stacks = AppearsJustNow()
    assert told_why(world.start()) == "another request has just created the stack"
    assert isinstance(world.start(), Started)
    assert len(world.stacks.all) == 1


class ThrottlesWrites(FakeStacks):
    def create(self, *_args: object, **_named: object) -> str | None:
        raise Throttled("CreateStack: Rate exceeded")

    def delete(self, *_args: object, **_named: object) -> None:
        raise Throttled("DeleteStack: Rate exceeded")


def test_being_throttled_while_creating_is_no_failure(world: Stepping) -> None:
    world.stacks = ThrottlesWrites()
    assert told_why(world.start(), throttled=True) == "CreateStack: Rate exceeded"


def test_being_throttled_while_clearing_is_no_failure(world: Stepping) -> None:
    world.stacks = ThrottlesWrites()
    world.plant("ROLLBACK_COMPLETE")
    assert told_why(world.start(), throttled=True) == "DeleteStack: Rate exceeded"


# Inspect, whatever the operation


@for_each_operation
@pytest.mark.parametrize("overdue", [False, True], ids=["in time", "overdue"])
@pytest.mark.parametrize(
    "settled",
    [Gone(), GaveUp("It would lose messages."), GaveUp("It broke.", "a stack")],
    ids=["gone", "gave up", "broken"],
)
def test_a_final_outcome_of_the_start_is_passed_on_without_an_inspection(
    run: Run, settled: Gone | GaveUp, overdue: bool
) -> None:
    world = Stepping(run)
    world.clock.advance(DEADLINE * 2 * overdue)
    assert world.inspect(settled) == settled
    assert not world.stacks.calls


@for_each_operation
def test_the_reason_why_there_is_no_stack_is_passed_on(run: Run) -> None:
    world = Stepping(run)
    assert world.inspect(Again("CreateStack: Rate exceeded")) == Again("CreateStack: Rate exceeded")
    assert not world.stacks.calls


@for_each_operation
def test_a_stack_that_could_not_be_started_by_the_deadline_fails_with_the_reason(run: Run) -> None:
    world = Stepping(run)
    world.clock.advance(DEADLINE)
    assert isinstance(world.inspect(Again("Rate exceeded")), Again)
    world.clock.advance(timedelta(milliseconds=1))
    outcome = world.inspect(Again("CreateStack: Rate exceeded"))
    assert isinstance(outcome, GaveUp)
    assert "could not be started after 30 minutes (CreateStack: Rate exceeded)" in outcome.reason
    assert not outcome.throttled


@for_each_operation
def test_a_failure_because_of_throttling_is_marked(run: Run) -> None:
    """Nothing is wrong with the tenant: whoever asked for it may ask again."""
    world = Stepping(run)
    world.clock.advance(DEADLINE * 2)
    world.stacks.throttled_calls = 1
    outcome = world.inspect(world.start())
    assert isinstance(outcome, GaveUp)
    assert outcome.throttled
    assert outcome.failed_stack is None


@for_each_operation
@pytest.mark.parametrize("status", statuses(StackCondition.WORKING))
def test_a_stack_that_is_being_changed_is_working(run: Run, status: str) -> None:
    world = Stepping(run)
    assert world.inspect(Started(world.plant(status))) == Working()


@for_each_operation
def test_a_stack_that_is_being_changed_after_the_deadline_fails(run: Run) -> None:
    world = Stepping(run)
    stack_id = world.plant("UPDATE_IN_PROGRESS")
    world.clock.advance(DEADLINE * 2)
    outcome = world.inspect(Started(stack_id))
    assert isinstance(outcome, GaveUp)
    assert "is UPDATE_IN_PROGRESS after 30 minutes (still working)" in outcome.reason
    assert not outcome.throttled


@for_each_operation
def test_being_throttled_while_inspecting_is_no_failure(run: Run) -> None:
    world = Stepping(run)
    stack_id = world.plant("CREATE_COMPLETE")
    world.stacks.throttled_calls = 1
    assert world.inspect(Started(stack_id)) == Working()


@for_each_operation
def test_throttling_does_not_outlast_the_deadline(run: Run) -> None:
    world = Stepping(run)
    stack_id = world.plant("CREATE_COMPLETE")
    world.clock.advance(DEADLINE * 2)
    world.stacks.throttled_calls = 1
    outcome = world.inspect(Started(stack_id))
    assert isinstance(outcome, GaveUp)
    assert "Rate exceeded" in outcome.reason
    assert outcome.throttled


def test_each_operation_inspects_the_stack_by_its_own_rules() -> None:
    def inspected(run: Run) -> object:
        world = Stepping(run)
        return world.inspect(Started(world.plant("UPDATE_COMPLETE", version=NEXT_VERSION)))

    done = Done(Stepping().stacks.stack_id(ACME), QUEUE, NEXT_VERSION)
    assert inspected(RUN) == inspected(UPDATE) == done
    assert isinstance(inspected(DELETE), Again)


# A queue is published only once it answers


@pytest.mark.parametrize("run", [RUN, a_run(operation=Operation.UPDATE)], ids=["create", "update"])
def test_a_stack_is_done_only_once_its_queue_answers(run: Run) -> None:
    world = Stepping(run)
    world.queues.silent_for = 2
    started = Started(world.plant("CREATE_COMPLETE"))
    assert [world.inspect(started) for _ in range(2)] == [NotReady(), NotReady()]
    assert isinstance(world.inspect(started), Done)
    assert world.queues.asked == [QUEUE] * 3


def test_an_update_without_changes_checks_the_queue_as_well() -> None:
    world = Stepping(UPDATE)
    world.queues.silent_for = 1
    unchanged = Unchanged(world.plant("CREATE_COMPLETE"))
    assert world.inspect(unchanged) == NotReady()
    assert isinstance(world.inspect(unchanged), Done)


def test_a_queue_that_never_answers_is_given_up_at_the_deadline(world: Stepping) -> None:
    world.queues.silent_for = 99
    started = Started(world.plant("CREATE_COMPLETE"))
    world.clock.advance(DEADLINE)
    assert world.inspect(started) == NotReady()
    world.clock.advance(timedelta(milliseconds=1))
    outcome = world.inspect(started)
    assert isinstance(outcome, GaveUp)
    assert "its queue cannot be used yet" in outcome.reason
    assert outcome.failed_stack is None
    assert not outcome.throttled


@pytest.mark.parametrize("run", [RUN, a_run(operation=Operation.UPDATE)], ids=["create", "update"])
@pytest.mark.parametrize("listed", [None, OTHER_QUEUE], ids=["no queue yet", "the queue before"])
def test_a_list_of_resources_that_lags_is_read_again(run: Run, listed: Queue | None) -> None:
    world = Stepping(run)
    stack_id = world.plant("CREATE_COMPLETE")
    world.stacks.resources[stack_id] = listed
    assert isinstance(world.inspect(Started(stack_id)), NotReady)
    del world.stacks.resources[stack_id]
    assert world.inspect(Started(stack_id)) == Done(stack_id, QUEUE, VERSION)


@pytest.mark.parametrize(
    ("listed", "response"), [(None, "missing"), (OTHER_QUEUE, OTHER_QUEUE.url)], ids=["none", "another"]
)
def test_a_queue_that_is_never_among_the_stacks_resources_is_given_up_at_the_deadline(
    world: Stepping, listed: Queue | None, response: str
) -> None:
    stack_id = world.plant("CREATE_COMPLETE")
    world.stacks.resources[stack_id] = listed
    world.clock.advance(DEADLINE * 2)
    outcome = world.inspect(Started(stack_id))
    assert isinstance(outcome, GaveUp)
    assert f"the queue among its resources is {response}" in outcome.reason
    assert stack_id in outcome.reason


def test_being_throttled_by_the_queue_is_no_failure(world: Stepping) -> None:
    class Throttling(FakeQueues):
        def answers(self, queue: Queue) -> bool:
            raise Throttled(f"GetQueueAttributes: {queue.arn}")

    world.queues = Throttling()
    assert world.inspect(Started(world.plant("CREATE_COMPLETE"))) == Working()


@pytest.mark.parametrize("status", ["CREATE_IN_PROGRESS", "ROLLBACK_COMPLETE", "DELETE_FAILED"])
def test_the_queue_of_a_stack_that_does_not_stand_is_not_asked(world: Stepping, status: str) -> None:
    world.inspect(Started(world.plant(status)))
    assert not world.queues.asked


# Inspect a create


@pytest.mark.parametrize("status", statuses(StackCondition.WORKING))
def test_remains_that_are_being_deleted_are_waited_for(world: Stepping, status: str) -> None:
    assert world.inspect(Clearing(world.plant(status))) == Working()


@pytest.mark.parametrize("status", statuses(StackCondition.DONE, StackCondition.DONE_AT_OLD_VERSION))
def test_a_complete_stack_is_done_at_the_version_in_its_outputs(world: Stepping, status: str) -> None:
    stack_id = world.plant(status, version="0.0.7")
    assert world.inspect(Started(stack_id)) == Done(stack_id, QUEUE, "0.0.7")


@pytest.mark.parametrize(("queue", "version"), [(None, VERSION), (QUEUE, None), (None, None)])
def test_a_stack_that_stands_without_a_queue_is_given_up(
    world: Stepping, queue: Queue | None, version: str | None
) -> None:
    outcome = world.inspect(Started(world.plant("CREATE_COMPLETE", queue=queue, version=version)))
    assert isinstance(outcome, GaveUp)
    assert "no queue" in outcome.reason
    assert outcome.failed_stack is None


@pytest.mark.parametrize("kind", [Started, Clearing])
def test_a_stack_that_was_deleted_is_started_again(world: Stepping, kind: type[Started | Clearing]) -> None:
    assert told_why(world.inspect(kind(world.plant("DELETE_COMPLETE")))) == "the stack was deleted"


def test_a_stack_that_is_not_there_is_started_again(world: Stepping) -> None:
    assert told_why(world.inspect(Started(NOT_THERE))) == "the stack does not exist"


@pytest.mark.parametrize("status", statuses(StackCondition.CREATION_FAILED))
def test_remains_whose_deletion_is_not_yet_visible_are_cleared_again(world: Stepping, status: str) -> None:
    assert "is not deleted yet" in told_why(world.inspect(Clearing(world.plant(status))))


@pytest.mark.parametrize(
    "status",
    statuses(
        StackCondition.CREATION_FAILED,
        StackCondition.NEEDS_ROLLBACK,
        StackCondition.NEEDS_ROLLBACK_CONTINUED,
        StackCondition.BROKEN,
    ),
)
def test_a_stack_that_failed_is_given_up_with_its_reason_and_named_for_the_root_cause(
    world: Stepping, status: str
) -> None:
    stack_id = world.plant(status, reason="because of this")
    outcome = world.inspect(Started(stack_id))
    assert isinstance(outcome, GaveUp)
    assert status in outcome.reason
    assert "because of this" in outcome.reason
    assert outcome.failed_stack == stack_id


def test_remains_that_cannot_be_deleted_are_given_up(world: Stepping) -> None:
    stack_id = world.plant("DELETE_FAILED")
    outcome = world.inspect(Clearing(stack_id))
    assert isinstance(outcome, GaveUp)
    assert outcome.failed_stack == stack_id
    assert "no reason was given" in outcome.reason


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("CREATE_IN_PROGRESS", Started),
        ("DELETE_IN_PROGRESS", Clearing),
        ("DELETE_COMPLETE", Started),
        ("ROLLBACK_COMPLETE", Clearing),
    ],
)
def test_an_operation_that_is_unsettled_at_its_deadline_is_given_up(
    world: Stepping, status: str, kind: type[Started | Clearing]
) -> None:
    stack_id = world.plant(status)
    world.clock.advance(DEADLINE)
    assert isinstance(world.inspect(kind(stack_id)), Working | Again)
    world.clock.advance(timedelta(milliseconds=1))
    outcome = world.inspect(kind(stack_id))
    assert isinstance(outcome, GaveUp)
    assert f"{status} after 30 minutes" in outcome.reason


def test_a_stack_that_stands_after_the_deadline_is_still_done(world: Stepping) -> None:
    world.clock.advance(DEADLINE * 2)
    assert isinstance(world.inspect(Started(world.plant("CREATE_COMPLETE"))), Done)


@pytest.mark.parametrize("kind", [Started, Clearing])
@pytest.mark.parametrize("status", [*statuses(*SORTED), "NEVER_HEARD_OF"])
def test_every_status_has_an_outcome_and_only_a_standing_stack_is_done(
    world: Stepping, status: str, kind: type[Started | Clearing]
) -> None:
    outcome = world.inspect(kind(world.plant(status)))
    stands = condition(status) in (StackCondition.DONE, StackCondition.DONE_AT_OLD_VERSION)
    assert isinstance(outcome, Done) == stands
