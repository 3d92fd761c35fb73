"""Updating a tenant's stack: reviewed before it is touched, healed rather than deleted, never falsely green."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from orchestrator.common.errors import LostOwnership, StackNotOurs, Throttled
from orchestrator.tenants import updating
from orchestrator.tenants.deadlines import DEADLINE
from orchestrator.tenants.messages import Messages
from orchestrator.tenants.outcomes import (
    Again,
    Clearing,
    Done,
    Draining,
    GaveUp,
    NotReady,
    Reviewing,
    Start,
    Started,
    Unchanged,
    Working,
)
from orchestrator.tenants.records import Operation, Request, RootCause
from orchestrator.tenants.stack_ports import Change, Effect, ResourceEvent, Stack
from orchestrator.tenants.stack_status import StackCondition
from tests.fakes import (
    ACME,
    NAMES,
    NEXT_VERSION,
    NOON,
    OTHER_QUEUE,
    QUEUE,
    VERSION,
    FakeQueues,
    FakeSettings,
    FakeStacks,
    a_release,
    a_run,
    some_metadata,
    take,
)
from tests.unit.test_stack_status import SORTED
from tests.unit.updates import RUN, Updating, failure, why

TOKEN = f"{RUN.attempt.client_token}-update"
QUEUE_TYPE = updating.QUEUE_TYPE
TABOO = "Access to the resource is denied."

EMPTY_FOR = FakeSettings().empty_for
A_SECOND = timedelta(seconds=1)


@pytest.fixture
def world() -> Updating:
    return Updating()


def statuses(*meant: StackCondition) -> list[str]:
    return sorted(status for each in meant for status in SORTED[each])


HEALTHY = statuses(StackCondition.DONE, StackCondition.DONE_AT_OLD_VERSION)


# The story as it should go


@pytest.mark.parametrize("status", HEALTHY)
def test_a_stack_that_stands_is_moved_to_the_release(world: Updating, status: str) -> None:
    stack_id = world.plant(status)
    assert world.drive() == Done(stack_id, QUEUE, NEXT_VERSION)
    assert world.stacks.calls.count("execute_change_set") == 1
    assert world.stacks.all[stack_id].template_url == a_release(NEXT_VERSION).template_url
    assert world.stacks.all[stack_id].client_token == TOKEN


def test_a_stack_from_before_versions_is_moved_to_the_release(world: Updating) -> None:
    stack_id = world.plant(version=None)
    assert world.drive() == Done(stack_id, QUEUE, NEXT_VERSION)


def test_a_review_changes_nothing(world: Updating) -> None:
    stack_id = world.plant()
    before = world.stacks.find(stack_id)
    world.review()
    assert world.change_sets == ["berth-name-1"]
    assert world.stacks.find(stack_id) == before
    assert not world.touched


def test_the_changes_of_another_attempt_are_not_taken_for_this_ones(world: Updating) -> None:
    world.plant()
    world.review()
    world.run = a_run(2, operation=Operation.UPDATE, version=NEXT_VERSION)
    take(world.table, world.run, instead_of=world.table.lock(ACME))
    assert world.start() == Reviewing()
    assert not world.touched


@pytest.mark.parametrize("status", sorted(set(statuses(*SORTED)) - set(HEALTHY)))
def test_no_change_set_is_created_for_a_stack_that_cannot_be_updated(world: Updating, status: str) -> None:
    world.plant(status)
    world.start()
    assert "create_change_set" not in world.stacks.calls


def test_a_queue_that_does_not_answer_yet_is_waited_for(world: Updating) -> None:
    stack_id = world.plant()
    world.queues.silent_for = 1
    assert world.drive() == NotReady()
    assert world.inspect(Started(stack_id)) == Done(stack_id, QUEUE, NEXT_VERSION)


# Nothing to change


@pytest.mark.parametrize("status", HEALTHY)
def test_no_updates_to_be_performed_is_success_at_the_target_version(world: Updating, status: str) -> None:
    stack_id = world.plant(status, version=NEXT_VERSION)
    world.review()
    assert world.start() == Unchanged(stack_id)
    assert world.inspect(Unchanged(stack_id)) == Done(stack_id, QUEUE, NEXT_VERSION)
    assert not world.touched
    assert not world.change_sets


def test_starting_again_after_the_response_unchanged_was_lost_has_the_same_outcome(world: Updating) -> None:
    stack_id = world.plant(version=NEXT_VERSION)
    world.review()
    world.start()
    assert world.start() == Reviewing()
    assert world.drive() == Done(stack_id, QUEUE, NEXT_VERSION)
    assert not world.touched


def test_a_stack_at_the_target_version_that_differs_all_the_same_is_changed(world: Updating) -> None:
    stack_id = world.plant(version=NEXT_VERSION)
    world.stacks.would_change = (Change("Metadata", "AWS::CloudFormation::CustomResource", "acme", Effect.CHANGE),)
    world.review()
    assert world.start() == Started(stack_id)
    assert world.touched


# To the version where the tenant is: an operator brings another key


@pytest.fixture
def there() -> Updating:
    """A tenant that is where it is to be updated to, and whose stack would be made otherwise now."""
    world = Updating()
    world.table.plant_metadata(some_metadata(version=NEXT_VERSION))
    world.stacks.would_change = (Change("InboundQueue", QUEUE_TYPE, QUEUE.url, Effect.CHANGE),)
    take(world.table, world.run)
    return world


def test_an_update_to_where_the_tenant_is_is_made(there: Updating) -> None:
    stack_id = there.plant(version=NEXT_VERSION)
    assert there.drive() == Done(stack_id, QUEUE, NEXT_VERSION)
    assert there.stacks.calls.count("execute_change_set") == 1


def test_an_update_to_where_the_tenant_is_that_has_nothing_to_change_is_done(there: Updating) -> None:
    there.stacks.would_change = ()
    stack_id = there.plant(version=NEXT_VERSION)
    assert there.drive() == Done(stack_id, QUEUE, NEXT_VERSION)
    assert not there.touched


def test_an_update_to_where_the_tenant_is_that_cloudformation_shows_late_is_not_done(there: Updating) -> None:
    stack_id = there.plant(version=NEXT_VERSION)
    there.review()
    started = there.start()
    fake = there.stacks.all[stack_id]
    under_way = fake.stack
    fake.stack = replace(under_way, status="CREATE_COMPLETE")
    assert there.inspect(started) == NotReady("CloudFormation does not show the end of the update yet")
    fake.stack = under_way
    there.stacks.settle()
    assert there.inspect(started) == Done(stack_id, QUEUE, NEXT_VERSION)


def test_a_foreign_change_of_the_stack_is_not_taken_for_an_update_to_the_present_release(there: Updating) -> None:
    stack_id = there.plant("UPDATE_IN_PROGRESS", version=NEXT_VERSION)
    started = there.start()
    assert there.inspect(started) == Working()
    there.stacks.change(stack_id, "UPDATE_COMPLETE")
    assert "has not begun" in why(there.inspect(started))
    assert there.drive() == Done(stack_id, QUEUE, NEXT_VERSION)
    assert there.stacks.calls.count("execute_change_set") == 1


# Losses

INBOUND_BY_PHYSICAL_ID = Change("InboundQueue1A2B3C", QUEUE_TYPE, QUEUE.url, Effect.REPLACE)
INBOUND_BY_LOGICAL_ID = Change("InboundQueue", QUEUE_TYPE, "", Effect.REPLACE)
OUTBOUND = Change("OutboundQueue", QUEUE_TYPE, OTHER_QUEUE.url, Effect.REPLACE)
DEAD_LETTERS = Change("DeadLetterQueue", QUEUE_TYPE, OTHER_QUEUE.url, Effect.REPLACE)
HARMLESS = Change("InboundQueuePolicy", "AWS::SQS::QueueInlinePolicy", QUEUE.url, Effect.REPLACE)
"""Not a queue, although it bears a queue's id."""
MODIFIED = Change("InboundQueue", QUEUE_TYPE, QUEUE.url, Effect.CHANGE)


@pytest.mark.parametrize("before_it", [(), (HARMLESS, MODIFIED, OUTBOUND)])
@pytest.mark.parametrize("change", [INBOUND_BY_PHYSICAL_ID, INBOUND_BY_LOGICAL_ID])
def test_an_update_that_would_remove_the_inbound_queue_is_refused_before_anything_is_changed(
    world: Updating, change: Change, before_it: tuple[Change, ...]
) -> None:
    stack_id = world.plant()
    world.stacks.would_change = (*before_it, change)
    refused = failure(world.drive())
    assert "inbound queue" in refused.reason
    assert change.resource in refused.reason
    assert "Nothing was changed" in refused.reason
    assert refused.failed_stack is None
    assert not world.touched
    assert not world.change_sets
    assert world.stacks.find(stack_id) == Stack(stack_id, "CREATE_COMPLETE", "", "acme", QUEUE, VERSION, ours=True)


def test_an_empty_inbound_queue_is_not_taken_away_either(world: Updating) -> None:
    world.plant()
    world.stacks.would_change = (INBOUND_BY_PHYSICAL_ID,)
    world.queues.gone.add(QUEUE.url)
    assert "inbound queue" in failure(world.drive()).reason


@pytest.mark.parametrize("change", [INBOUND_BY_PHYSICAL_ID, INBOUND_BY_LOGICAL_ID, OUTBOUND, DEAD_LETTERS])
def test_a_replacement_that_the_request_allows_is_made(change: Change) -> None:
    world = Updating(request=Request(allow_replacement=True))
    stack_id = world.plant()
    world.stacks.would_change = (change,)
    world.queues.held = {QUEUE.url: Messages(1, 0, 0), OTHER_QUEUE.url: Messages(1, 0, 0)}
    assert world.drive() == Done(stack_id, QUEUE, NEXT_VERSION)


@pytest.mark.parametrize(
    "request_",
    [Request(allow_downgrade=True), Request(force=True), Request(explicit=True), Request(drain_seconds=60)],
)
def test_no_other_option_allows_a_replacement(request_: Request) -> None:
    world = Updating(request=request_)
    world.plant()
    world.stacks.would_change = (INBOUND_BY_PHYSICAL_ID,)
    failure(world.drive())
    assert not world.touched


@pytest.mark.parametrize("held", [Messages(1, 0, 0), Messages(0, 2, 0), Messages(0, 0, 3)])
@pytest.mark.parametrize("change", [OUTBOUND, DEAD_LETTERS])
def test_another_queue_is_not_taken_away_with_messages_in_it(world: Updating, change: Change, held: Messages) -> None:
    world.plant()
    world.stacks.would_change = (HARMLESS, change)
    world.queues.held[OTHER_QUEUE.url] = held
    refused = failure(world.drive())
    assert change.resource in refused.reason
    assert str(held) in refused.reason
    assert refused.failed_stack is None
    assert not world.touched
    assert not world.change_sets


@pytest.mark.parametrize("resource_type", ["AWS::DynamoDB::Table", "AWS::S3::Bucket"])
@pytest.mark.parametrize("effect", [Effect.REPLACE, Effect.MAY_REPLACE, Effect.REMOVE])
def test_a_table_or_a_bucket_is_not_taken_away_unless_the_request_allows_it(
    world: Updating, resource_type: str, effect: Effect
) -> None:
    change = Change("Orders", resource_type, "orders-1", effect)
    world.plant()
    world.stacks.would_change = (change,)
    refused = failure(world.drive())
    assert f"Orders ({resource_type}) with its data" in refused.reason
    assert not world.touched
    allowing = Updating(request=Request(allow_replacement=True))
    stack_id = allowing.plant()
    allowing.stacks.would_change = (change,)
    assert allowing.drive() == Done(stack_id, QUEUE, NEXT_VERSION)


@pytest.mark.parametrize("gone", [False, True])
@pytest.mark.parametrize("change", [OUTBOUND, DEAD_LETTERS, HARMLESS, MODIFIED])
def test_changes_that_lose_no_messages_are_made(world: Updating, change: Change, gone: bool) -> None:
    stack_id = world.plant()
    world.stacks.would_change = (change,)
    world.queues.held[QUEUE.url] = Messages(1, 1, 1)
    if gone:
        world.queues.gone.add(OTHER_QUEUE.url)
    assert world.drive() == Done(stack_id, QUEUE, NEXT_VERSION)


@pytest.mark.parametrize("change", [OUTBOUND, DEAD_LETTERS])
def test_a_queue_is_removed_only_after_it_was_empty_for_a_minute(world: Updating, change: Change) -> None:
    """SQS counts a minute late: what was sent last is not in its first count."""
    stack_id = world.plant()
    world.stacks.would_change = (change,)
    world.review()
    assert world.start() == Draining("none were counted", NOON, 60)
    world.empty_since = NOON
    world.clock.advance(EMPTY_FOR - A_SECOND)
    assert world.start() == Draining("none were counted", NOON, 1)
    assert not world.touched
    world.clock.advance(A_SECOND)
    assert world.start() == Started(stack_id)


def test_a_message_that_is_counted_late_keeps_its_queue(world: Updating) -> None:
    world.plant()
    world.stacks.would_change = (OUTBOUND,)
    world.review()
    world.start()
    world.empty_since = NOON
    world.clock.advance(EMPTY_FOR)
    world.queues.held[OTHER_QUEUE.url] = Messages(1, 0, 0)
    assert "OutboundQueue" in failure(world.inspect(world.start())).reason
    assert not world.touched


def test_an_update_that_may_replace_queues_waits_for_no_count() -> None:
    world = Updating(request=Request(allow_replacement=True))
    stack_id = world.plant()
    world.stacks.would_change = (OUTBOUND,)
    world.review()
    assert world.start() == Started(stack_id)


def test_while_a_queue_is_checked_the_update_starts_again_until_its_deadline(world: Updating) -> None:
    world.plant()
    looking = Draining("none were counted", NOON, 60)
    assert "none were counted" in why(world.inspect(looking))
    world.clock.advance(DEADLINE * 2)
    assert "none were counted" in failure(world.inspect(looking)).reason


def test_the_inbound_queue_is_known_by_its_logical_id_where_the_stack_does_not_name_it(world: Updating) -> None:
    world.plant(queue=None, version=None)
    world.stacks.would_change = (replace(INBOUND_BY_LOGICAL_ID, physical_id=QUEUE.url),)
    assert "inbound queue" in failure(world.drive()).reason
    assert not world.touched


# Failed updates


def test_an_update_that_is_rolled_back_is_a_failure_with_the_first_resource_that_failed(world: Updating) -> None:
    stack_id = world.plant()
    world.stacks.failures.append(TABOO)
    refused = failure(world.drive())
    assert "UPDATE_ROLLBACK_COMPLETE" in refused.reason
    assert refused.failed_stack == stack_id
    assert world.stacks.calls.count("execute_change_set") == 1
    cause = world.fail("a stack", refused.reason, refused.failed_stack)
    assert cause == RootCause("InboundQueue", QUEUE_TYPE, TABOO)
    metadata = world.table.metadata(ACME)
    assert metadata is not None
    assert metadata.published
    assert metadata.version == VERSION


def test_a_failed_update_stays_failed_however_often_it_is_inspected(world: Updating) -> None:
    world.plant()
    world.stacks.failures.append(TABOO)
    assert failure(world.drive()) == failure(world.drive())
    assert world.stacks.calls.count("execute_change_set") == 1


def test_remains_of_an_earlier_failed_update_do_not_fail_this_one(world: Updating) -> None:
    stack_id = world.plant("UPDATE_ROLLBACK_COMPLETE")
    assert "has not begun" in why(world.inspect(Started(stack_id)))
    assert world.drive() == Done(stack_id, QUEUE, NEXT_VERSION)


def test_an_earlier_attempt_at_the_same_version_that_failed_just_now_is_no_failure_of_this_one(world: Updating) -> None:
    stack_id = world.plant()
    world.stacks.failures.append(TABOO)
    failure(world.drive())
    world.run = a_run(2, operation=Operation.UPDATE, version=NEXT_VERSION)
    take(world.table, world.run, instead_of=world.table.lock(ACME))
    assert world.drive() == Done(stack_id, QUEUE, NEXT_VERSION)


def test_an_update_that_someone_else_makes_is_waited_for_and_then_this_one_made(world: Updating) -> None:
    stack_id = world.plant()
    world.stacks.change(stack_id, "UPDATE_IN_PROGRESS")
    assert world.start() == Started(stack_id)
    assert world.inspect(Started(stack_id)) == Working()
    world.stacks.change(stack_id, "UPDATE_COMPLETE")
    assert "has not begun" in why(world.inspect(Started(stack_id)))
    assert world.drive() == Done(stack_id, QUEUE, NEXT_VERSION)


def test_the_old_version_is_never_taken_for_the_new_one(world: Updating) -> None:
    stack_id = world.plant("UPDATE_COMPLETE")
    assert not isinstance(world.inspect(Started(stack_id)), Done)


def test_a_rolled_back_stack_is_not_at_the_target_version_whatever_its_outputs(world: Updating) -> None:
    stack_id = world.plant("UPDATE_ROLLBACK_COMPLETE", version=NEXT_VERSION)
    assert isinstance(world.inspect(Started(stack_id)), Again)


# Healing


@pytest.mark.parametrize(
    ("status", "healed_by"), [("UPDATE_FAILED", "roll_back"), ("UPDATE_ROLLBACK_FAILED", "continue_rollback")]
)
def test_a_half_finished_earlier_update_is_rolled_back_before_this_one(
    world: Updating, status: str, healed_by: str
) -> None:
    stack_id = world.plant(status)
    assert world.start() == Clearing(stack_id)
    assert world.stacks.calls[-1] == healed_by
    assert world.inspect(Clearing(stack_id)) == Working()
    assert world.drive() == Done(stack_id, QUEUE, NEXT_VERSION)
    assert world.stacks.calls.count(healed_by) == 1
    assert "delete" not in world.stacks.calls


@pytest.mark.parametrize("status", ["UPDATE_FAILED", "UPDATE_ROLLBACK_FAILED"])
def test_a_stack_that_is_half_way_is_never_done_even_at_the_target_version(world: Updating, status: str) -> None:
    stack_id = world.plant(status, version=NEXT_VERSION)
    assert status in why(world.inspect(Started(stack_id)))
    assert status in why(world.inspect(Unchanged(stack_id)))


def test_an_own_update_whose_undoing_fails_is_undone_and_is_a_failure_then(world: Updating) -> None:
    stack_id = world.plant()
    world.stacks.failures.append(TABOO)
    world.stacks.rollback_failures.extend(["cannot undo", "still cannot undo"])
    refused = failure(world.drive())
    assert "UPDATE_ROLLBACK_COMPLETE" in refused.reason
    assert refused.failed_stack == stack_id
    assert world.stacks.calls.count("continue_rollback") == 2
    assert world.stacks.calls.count("execute_change_set") == 1


@pytest.mark.parametrize(
    ("status", "healed_by"), [("UPDATE_FAILED", "roll_back"), ("UPDATE_ROLLBACK_FAILED", "continue_rollback")]
)
def test_undoing_is_tried_three_times_and_then_left_to_a_person(world: Updating, status: str, healed_by: str) -> None:
    stack_id = world.plant(status)
    world.stacks.rollback_failures.extend(["cannot undo"] * 10)
    refused = failure(world.drive())
    assert "UPDATE_ROLLBACK_FAILED" in refused.reason
    assert refused.failed_stack == stack_id
    tries = [call for call in world.stacks.calls if call in ("roll_back", "continue_rollback")]
    assert len(tries) == updating.MAX_ROLLBACKS == 3
    assert tries[0] == healed_by
    assert not {"delete", "execute_change_set"} & set(world.stacks.calls)
    assert len(world.stacks.living) == 1


def test_only_the_stack_itself_counts_as_a_try_that_failed(world: Updating) -> None:
    stack_id = world.plant("UPDATE_ROLLBACK_FAILED")
    nested = ResourceEvent(
        NOON, "Nested", "AWS::CloudFormation::Stack", "UPDATE_ROLLBACK_FAILED", "", False, False, f"{TOKEN}-undo-1"
    )
    world.stacks.all[stack_id].events[:0] = [nested] * updating.MAX_ROLLBACKS
    assert world.start() == Clearing(stack_id)


def test_every_try_to_undo_is_a_new_request(world: Updating) -> None:
    stack_id = world.plant("UPDATE_FAILED")
    world.stacks.rollback_failures.extend(["cannot undo"] * 10)
    world.drive()
    undoing = {
        event.client_token
        for event in world.stacks.all[stack_id].events
        if event.is_stack and event.status == "UPDATE_ROLLBACK_IN_PROGRESS"
    }
    assert undoing == {f"{TOKEN}-undo-{number}" for number in (1, 2, 3)}


def test_a_later_attempt_may_try_to_undo_three_times_again(world: Updating) -> None:
    stack_id = world.plant("UPDATE_FAILED")
    world.stacks.rollback_failures.extend(["cannot undo"] * 5)
    failure(world.drive())
    world.run = a_run(2, operation=Operation.UPDATE, version=NEXT_VERSION)
    take(world.table, world.run, instead_of=world.table.lock(ACME))
    assert world.drive() == Done(stack_id, QUEUE, NEXT_VERSION)


def test_starting_again_while_an_update_is_being_undone_waits_for_it(world: Updating) -> None:
    stack_id = world.plant("UPDATE_FAILED")
    world.start()
    assert world.start() == Started(stack_id)
    assert world.stacks.calls.count("roll_back") == 1


# Stacks that cannot be updated


def test_a_tenant_without_a_stack_is_not_given_one_by_an_update(world: Updating) -> None:
    refused = failure(world.drive())
    assert NAMES.stack_of(ACME) in refused.reason
    assert refused.failed_stack is None
    assert not world.stacks.all


def test_a_stack_that_goes_during_the_update_is_a_failure(world: Updating) -> None:
    stack_id = world.plant()
    world.review()
    started = world.start()
    del world.stacks.all[stack_id]
    assert "was deleted during the update" in failure(world.inspect(started)).reason


@pytest.mark.parametrize(
    "status", [*statuses(StackCondition.CREATION_FAILED, StackCondition.BROKEN), "SOMETHING_NOBODY_KNOWS"]
)
def test_a_stack_in_any_other_state_is_given_up_and_not_deleted(world: Updating, status: str) -> None:
    stack_id = world.plant(status, reason="because of this")
    for outcome in (world.drive(), world.inspect(Started(stack_id)), world.inspect(Unchanged(stack_id))):
        refused = failure(outcome)
        assert status in refused.reason
        assert "because of this" in refused.reason
        assert refused.failed_stack == stack_id
    assert not world.touched


def test_a_stack_that_was_deleted_meanwhile_is_a_failure(world: Updating) -> None:
    assert failure(world.inspect(Started(world.plant("DELETE_COMPLETE"))))


@pytest.mark.parametrize("status", [*statuses(StackCondition.WORKING), "SOMETHING_NEW_IN_PROGRESS"])
def test_a_stack_that_is_being_changed_is_waited_for(world: Updating, status: str) -> None:
    stack_id = world.plant(status)
    assert world.start() == Started(stack_id)
    assert world.inspect(Started(stack_id)) == Working()
    assert not world.touched


@pytest.mark.parametrize("started", [Started, Unchanged])
def test_a_stack_without_a_queue_among_its_outputs_is_given_up(
    world: Updating, started: Callable[[str], Started | Unchanged]
) -> None:
    stack_id = world.plant(version=NEXT_VERSION, queue=None)
    assert "its outputs have no queue" in failure(world.inspect(started(stack_id))).reason


def test_a_stack_that_was_made_for_someone_else_is_not_even_reviewed(world: Updating) -> None:
    world.plant(tenant_id="Acme")
    with pytest.raises(StackNotOurs):
        world.start()
    assert set(world.stacks.calls) == {"find"}


def test_a_run_that_no_longer_owns_the_tenant_reviews_nothing_and_changes_nothing(world: Updating) -> None:
    world.plant()
    world.review()
    take(
        world.table,
        a_run(2, operation=Operation.UPDATE, version=NEXT_VERSION),
        instead_of=world.table.lock(ACME),
    )
    calls = list(world.stacks.calls)
    with pytest.raises(LostOwnership):
        world.start()
    assert world.stacks.calls == calls


def test_an_update_that_gave_up_at_the_start_is_not_inspected(world: Updating) -> None:
    world.plant(version=NEXT_VERSION)
    response = GaveUp("The update would replace the inbound queue.")
    assert world.inspect(response) == response
    assert not world.stacks.calls


# Throttling


class ThrottlesOnce(FakeStacks):
    """One call, the so-manieth, is refused."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def _called(self, method: str) -> None:
        super()._called(method)
        if len(self.calls) == self.number:
            raise Throttled(f"{method}: Rate exceeded")


STORIES: dict[str, Callable[[Updating], str]] = {
    "an update": lambda world: world.plant(),
    "nothing to change": lambda world: world.plant(version=NEXT_VERSION),
    "healing": lambda world: world.plant("UPDATE_ROLLBACK_FAILED"),
}


@pytest.mark.parametrize("story", STORIES)
def test_being_throttled_at_any_call_is_no_failure_and_changes_nothing_about_the_end(story: str) -> None:
    undisturbed = Updating()
    STORIES[story](undisturbed)
    expected = undisturbed.drive()
    assert isinstance(expected, Done)
    calls = len(undisturbed.stacks.calls)
    for number in range(1, calls + 1):
        world = Updating(stacks=ThrottlesOnce(number))
        STORIES[story](world)
        assert world.drive() == expected
        assert len(world.stacks.calls) >= calls


def test_being_throttled_while_a_loss_is_refused_still_refuses(world: Updating) -> None:
    world.plant()
    world.stacks.would_change = (INBOUND_BY_PHYSICAL_ID,)
    world.review()
    world.stacks.throttled_calls = 1
    assert isinstance(world.start(), Again)
    failure(world.drive())
    assert not world.touched


def test_being_throttled_by_the_queues_is_no_failure(world: Updating) -> None:
    class Busy(FakeQueues):
        def messages(self, url: str) -> Messages | None:
            raise Throttled(f"{url}: Rate exceeded")

    world.plant()
    world.queues = Busy()
    world.stacks.would_change = (OUTBOUND,)
    world.review()
    assert "Rate exceeded" in why(world.start())
    assert not world.touched


def test_a_throttled_inspection_is_neither_done_nor_failed(world: Updating) -> None:
    stack_id = world.plant(version=NEXT_VERSION)
    world.stacks.throttled_calls = 1
    assert world.inspect(Started(stack_id)) == Working()


@pytest.mark.parametrize("outcome", ["changes never drawn up", "never at the target"])
def test_an_operation_that_is_unsettled_at_its_deadline_is_given_up(world: Updating, outcome: str) -> None:
    stack_id = world.plant("UPDATE_ROLLBACK_COMPLETE")
    started: Start = Reviewing() if outcome == "changes never drawn up" else Started(stack_id)
    world.clock.advance(DEADLINE)
    assert isinstance(world.inspect(started), Again | Reviewing)
    world.clock.advance(timedelta(milliseconds=1))
    assert "30 minutes" in failure(world.inspect(started)).reason


# Events


def an_event(at: timedelta, token: str) -> ResourceEvent:
    return ResourceEvent(NOON + at, "acme", "AWS::CloudFormation::Stack", "UPDATE_IN_PROGRESS", "", True, False, token)


def test_events_before_the_run_are_neither_counted_nor_read_to_their_end() -> None:
    read: list[str] = []

    def newest_first() -> Iterator[ResourceEvent]:
        for event in (
            an_event(timedelta(seconds=30), "after"),
            an_event(timedelta(seconds=-30), "just before, by another clock"),
            an_event(timedelta(minutes=-5), "before"),
            an_event(timedelta(minutes=-6), "long before"),
        ):
            read.append(event.client_token)
            yield event

    counted = [event.client_token for event in updating.since(RUN, newest_first())]
    assert counted == ["after", "just before, by another clock"]
    assert "long before" not in read
