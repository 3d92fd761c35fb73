"""The queue that a tenant's stack reports."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from orchestrator.common.errors import QueueOwnedElsewhere, StackHasGone, StackNotOurs, Throttled
from orchestrator.tenants.history import ChangeKind, HistoryEntry, RecordedChange
from orchestrator.tenants.ready import ready
from orchestrator.tenants.records import UNKNOWN_CREATOR, Metadata, Operation, Queue, Request, TenantState
from orchestrator.tenants.stack_ports import Stack
from orchestrator.tenants.state import state_of
from tests.fakes import (
    ACME,
    NOON,
    OTHER_QUEUE,
    QUEUE,
    VERSION,
    FakeStacks,
    World,
    a_run,
    some_metadata,
    stack_arn,
    take,
)
from tests.unit.test_stack_status import SORTED

STACK = stack_arn()
ANOTHER_STACK = stack_arn(number=2)
EVERY_STATUS = sorted(set().union(*SORTED.values()))
THE_WHOLE_STACK_GOES = [status for status in EVERY_STATUS if status.startswith(("DELETE_", "ROLLBACK_"))]
THE_STACK_STAYS = sorted(set(EVERY_STATUS) - set(THE_WHOLE_STACK_GOES))


class Telling(World):
    """A tenant's stack, which says what queue it has."""

    def __init__(self) -> None:
        super().__init__(published=())

    def publish(self, **more: Any) -> Metadata:
        metadata = some_metadata(**more)
        self.table.plant_metadata(metadata)
        return metadata

    def plant(self, status: str) -> None:
        self.stacks.plant(Stack(STACK, status, "", "acme", QUEUE, VERSION, ours=True))

    def record(self, stack_id: str = STACK) -> None:
        """A stack of Berth's has a queue, says so, and is not looked at any more."""
        self.stacks.plant(Stack(stack_id, "UPDATE_IN_PROGRESS", "", "acme", OTHER_QUEUE, None, ours=True))
        self.say(stack_id, OTHER_QUEUE)
        del self.stacks.all[stack_id]

    def say(self, stack_id: str, queue: Queue) -> None:
        """An event says that the stack has this queue. Anybody may have sent it."""
        self.record_queue(ACME, stack_id=stack_id, reported=queue)

    def forget(self, stack_id: str = STACK) -> bool:
        return self.forget_queue(ACME, stack_id=stack_id)


@pytest.fixture
def world() -> Telling:
    return Telling()


# The stack has a queue


def test_a_queue_is_recorded_at_once_but_not_served_before_a_version_is_published(world: Telling) -> None:
    world.record()
    assert world.table.metadata(ACME) == Metadata(ACME, OTHER_QUEUE, STACK, None, NOON, NOON)
    assert ready(world.table.metadata(ACME)) is None


def test_a_published_queue_that_its_own_stack_replaces_is_served_from_then_on(world: Telling) -> None:
    published = world.publish(labels={"tier": "gold"}, pinned_version=VERSION)
    world.clock.advance(timedelta(hours=1))
    world.record()
    assert world.table.metadata(ACME) == replace(published, queue=OTHER_QUEUE, updated_at=world.clock.now())
    assert ready(world.table.metadata(ACME)) is not None


def test_the_fingerprint_of_a_stack_whose_queue_changes_is_removed(world: Telling) -> None:
    """Its own update says so before it has ended, and one that Berth did not make says nothing else."""
    world.publish(deployed="something")
    world.record()
    recorded = world.table.metadata(ACME)
    assert recorded is not None
    assert recorded.deployed is None


def test_another_stack_cannot_take_a_published_queues_place(world: Telling) -> None:
    published = world.publish()
    with pytest.raises(QueueOwnedElsewhere):
        world.record(ANOTHER_STACK)
    assert world.table.metadata(ACME) == published


def test_a_queue_that_changes_without_an_operation_is_recorded_in_the_history(world: Telling) -> None:
    world.publish()
    world.plant("UPDATE_IN_PROGRESS")
    world.stacks.resources[STACK] = OTHER_QUEUE
    world.say(STACK, OTHER_QUEUE)
    (change,) = world.table.history(ACME)
    assert isinstance(change, RecordedChange)
    assert (change.kind, change.request) == (ChangeKind.REPLACE, Request(by=STACK))
    assert (change.before["queueUrl"], change.after["queueUrl"]) == (QUEUE.url, OTHER_QUEUE.url)


def test_a_queue_that_stays_or_that_an_operation_changes_needs_no_entry_of_its_own(world: Telling) -> None:
    world.publish()
    world.plant("UPDATE_IN_PROGRESS")
    world.say(STACK, QUEUE)
    assert world.table.history(ACME) == []
    take(world.table, a_run(operation=Operation.UPDATE))
    world.stacks.resources[STACK] = OTHER_QUEUE
    world.say(STACK, OTHER_QUEUE)
    (started,) = world.table.history(ACME)
    assert isinstance(started, HistoryEntry)


# Somebody says so who is not the stack


EVIL_QUEUE = Queue("arn:aws:sqs:eu-west-1:111111111111:evil", "https://sqs.eu-west-1.amazonaws.com/111111111111/evil")


def test_a_forged_queue_is_not_recorded(world: Telling) -> None:
    published = world.publish()
    world.plant("UPDATE_COMPLETE")
    world.say(STACK, EVIL_QUEUE)
    assert world.table.metadata(ACME) == published


def test_a_stack_without_a_queue_provides_none_whatever_the_event_has(world: Telling) -> None:
    published = world.publish()
    world.plant("UPDATE_IN_PROGRESS")
    world.stacks.resources[STACK] = None
    with pytest.raises(StackNotOurs, match="lists no queue"):
        world.say(STACK, EVIL_QUEUE)
    assert world.table.metadata(ACME) == published


def test_a_stack_that_there_is_not_provides_no_queue(world: Telling) -> None:
    world.say(STACK, EVIL_QUEUE)
    assert world.table.metadata(ACME) is None


def test_a_stack_that_does_not_exist_does_not_change_the_queue_in_service(world: Telling) -> None:
    published = world.publish()
    world.say(ANOTHER_STACK, EVIL_QUEUE)
    assert world.table.metadata(ACME) == published


STALE = {
    "of a tenant from before stack ids": Metadata(ACME, QUEUE, None, "0.1.12", NOON, NOON),
    "whose delete died": Metadata(ACME, QUEUE, None, "0.1.12", NOON, NOON, withdrawn_by="a delete"),
    "of another stack": some_metadata(),
}


@pytest.mark.parametrize("row", STALE.values(), ids=STALE)
@pytest.mark.parametrize("is_shown", [False, True], ids=["not shown yet", "without its queue yet"])
def test_a_new_stack_is_accepted_while_the_row_still_has_a_deleted_one(
    world: Telling, row: Metadata, is_shown: bool
) -> None:
    """Nobody hears of it if a stack goes that is older than its custom resource. A new one may be shown late."""
    world.table.plant_metadata(row)
    if is_shown:
        world.stacks.plant(Stack(ANOTHER_STACK, "CREATE_IN_PROGRESS", "", "acme", None, None, ours=True))
    world.say(ANOTHER_STACK, OTHER_QUEUE)
    assert world.table.metadata(ACME) == row


@pytest.mark.parametrize(
    "row",
    [None, Metadata(ACME, QUEUE, None, "0.1.12", NOON, NOON), Metadata(ACME, QUEUE, STACK, None, NOON, NOON)],
    ids=["no row", "a row that names no stack", "a row that was never published"],
)
def test_a_stack_that_somebody_made_under_the_tenants_name_provides_no_queue(
    world: Telling, row: Metadata | None
) -> None:
    if row:
        world.table.plant_metadata(row)
    world.stacks.plant(Stack(STACK, "CREATE_IN_PROGRESS", "", "acme", EVIL_QUEUE, None, ours=False))
    with pytest.raises(StackNotOurs, match="was not made by Berth"):
        world.say(STACK, EVIL_QUEUE)
    assert world.table.metadata(ACME) == row


def test_a_stack_with_the_role_of_an_earlier_deployment_still_provides_its_queue(world: Telling) -> None:
    world.publish()
    world.stacks.plant(Stack(STACK, "UPDATE_IN_PROGRESS", "", "acme", OTHER_QUEUE, None, ours=False))
    world.say(STACK, OTHER_QUEUE)
    metadata = world.table.metadata(ACME)
    assert metadata is not None
    assert metadata.queue == OTHER_QUEUE


def test_a_tenant_from_before_stack_ids_is_known_by_the_queue_in_its_stack(world: Telling) -> None:
    world.table.plant_metadata(Metadata(ACME, QUEUE, None, "0.1.12", NOON, NOON))
    world.stacks.plant(Stack(STACK, "UPDATE_IN_PROGRESS", "", "acme", QUEUE, None, ours=False))
    world.say(STACK, QUEUE)
    metadata = world.table.metadata(ACME)
    assert metadata is not None
    assert metadata.stack_id == STACK


def test_the_rollback_of_a_replaced_queue_records_the_former_queue(world: Telling) -> None:
    world.publish()
    world.plant("UPDATE_IN_PROGRESS")
    world.stacks.resources[STACK] = OTHER_QUEUE
    world.say(STACK, OTHER_QUEUE)
    world.stacks.change(STACK, "UPDATE_ROLLBACK_IN_PROGRESS")
    world.stacks.resources[STACK] = QUEUE
    world.say(STACK, QUEUE)
    metadata = world.table.metadata(ACME)
    assert metadata is not None
    assert metadata.queue == QUEUE


def test_an_older_event_of_cloudformation_does_not_replace_a_newer_one(world: Telling) -> None:
    world.publish()
    world.plant("UPDATE_IN_PROGRESS")

    class SlowStacks(FakeStacks):
        def queue(self, stack_id: str) -> Queue | None:
            listed = world.stacks.queue(stack_id)
            if len(world.stacks.calls) == 1:  # The update goes on while the answer is on its way.
                world.stacks.resources[stack_id] = OTHER_QUEUE
                world.say(stack_id, OTHER_QUEUE)
            return listed

    world.with_other(stacks=SlowStacks()).record_queue(ACME, stack_id=STACK, reported=EVIL_QUEUE)
    metadata = world.table.metadata(ACME)
    assert metadata is not None
    assert metadata.queue == OTHER_QUEUE


# CloudFormation lags


def test_a_create_continues_if_cloudformation_does_not_show_its_stack_yet(world: Telling) -> None:
    """The operation publishes the queue when it ends; until then nobody is served."""
    world.say(STACK, QUEUE)
    assert world.table.metadata(ACME) is None


def test_a_create_continues_if_cloudformation_does_not_list_its_queue_yet(world: Telling) -> None:
    world.stacks.plant(Stack(STACK, "CREATE_IN_PROGRESS", "", "acme", None, None, ours=True))
    world.say(STACK, QUEUE)
    assert world.table.metadata(ACME) is None


# CloudFormation has no time


def test_a_create_continues_if_cloudformation_throttles(world: Telling) -> None:
    """The operation publishes the queue when it ends; until then nobody is served."""
    world.stacks.throttled_calls = 1
    world.say(STACK, QUEUE)
    assert world.table.metadata(ACME) is None


def test_an_update_that_keeps_the_queue_needs_no_call_to_cloudformation(world: Telling) -> None:
    world.publish(deployed="something")
    world.stacks.throttled_calls = 1
    world.say(STACK, QUEUE)
    assert world.stacks.calls == []
    metadata = world.table.metadata(ACME)
    assert metadata is not None
    assert (metadata.queue, metadata.deployed) == (QUEUE, None)


@pytest.mark.parametrize(("stack_id", "queue"), [(STACK, EVIL_QUEUE), (ANOTHER_STACK, QUEUE)])
def test_nothing_new_is_believed_while_cloudformation_has_no_time(world: Telling, stack_id: str, queue: Queue) -> None:
    published = world.publish()
    world.stacks.throttled_calls = 1
    with pytest.raises(Throttled):
        world.say(stack_id, queue)
    assert world.table.metadata(ACME) == published


# The stack lets go of it


@pytest.mark.parametrize("throttled_calls", [0, 1])
def test_a_queue_that_was_never_served_is_forgotten_even_if_the_stack_cannot_be_read(
    world: Telling, throttled_calls: int
) -> None:
    world.record()
    world.stacks.throttled_calls = throttled_calls
    assert world.forget()
    assert world.table.metadata(ACME) == Metadata(ACME, None, None, None, NOON, NOON, gone_stack_id=STACK)


@pytest.mark.parametrize("throttled_calls", [0, 1])
def test_a_queue_that_a_delete_has_withdrawn_is_forgotten_even_if_the_stack_cannot_be_read(
    world: Telling, throttled_calls: int
) -> None:
    world.publish()
    take(world.table, a_run(operation=Operation.DELETE))
    world.stacks.throttled_calls = throttled_calls
    assert world.forget()
    assert state_of(world.table.metadata(ACME), world.table.audits(ACME)) is TenantState.DELETING


@pytest.mark.parametrize("status", THE_STACK_STAYS)
def test_a_withdrawn_queue_whose_stack_stays_is_not_forgotten(world: Telling, status: str) -> None:
    """A delete has taken over from a dead update that had brought the custom resource, and is being undone."""
    world.publish()
    take(world.table, a_run(operation=Operation.DELETE))
    world.plant(status)
    assert not world.forget()


def test_a_stack_that_has_withdrawn_its_queue_does_not_record_it_again(world: Telling) -> None:
    """Lambda may call a function twice for one event, the second time much later."""
    world.record()
    world.forget()
    with pytest.raises(StackHasGone):
        world.record()
    metadata = world.table.metadata(ACME)
    assert metadata is not None
    assert metadata.queue is None


@pytest.mark.parametrize("status", THE_WHOLE_STACK_GOES)
def test_a_queue_whose_stack_someone_takes_down_is_no_longer_served(world: Telling, status: str) -> None:
    world.publish()
    world.plant(status)
    assert world.forget()
    assert ready(world.table.metadata(ACME)) is None


def test_a_queue_whose_stack_is_not_to_be_found_is_no_longer_served(world: Telling) -> None:
    world.publish()
    assert world.forget()
    assert ready(world.table.metadata(ACME)) is None


@pytest.mark.parametrize("status", THE_STACK_STAYS)
def test_the_rollback_of_the_update_that_added_the_custom_resource_keeps_the_queue_in_service(
    world: Telling, status: str
) -> None:
    published = world.publish()
    world.plant(status)
    assert not world.forget()
    assert world.table.metadata(ACME) == published


def test_labels_and_pins_outlive_the_queue(world: Telling) -> None:
    published = world.publish(labels={"tier": "gold"}, pinned_version=VERSION)
    world.forget()
    assert world.table.metadata(ACME) == replace(
        published,
        queue=None,
        stack_id=None,
        version=None,
        gone_stack_id=published.stack_id,
        created_by=UNKNOWN_CREATOR,
        last_version=VERSION,
    )


def test_the_fingerprint_of_a_stack_that_withdraws_its_queue_is_removed(world: Telling) -> None:
    world.publish(deployed="something")
    world.forget()
    metadata = world.table.metadata(ACME)
    assert metadata is not None
    assert metadata.deployed is None


def test_a_stack_cannot_make_another_stacks_queue_be_forgotten(world: Telling) -> None:
    published = world.publish(deployed="something")
    assert not world.forget(ANOTHER_STACK)
    assert world.table.metadata(ACME) == published
    assert not world.stacks.calls


def test_a_recorded_queue_without_a_stack_is_not_forgotten(world: Telling) -> None:
    legacy = Metadata(ACME, QUEUE, None, "0.1.12", NOON, NOON)
    world.table.plant_metadata(legacy)
    assert not world.forget()
    assert world.table.metadata(ACME) == legacy


def test_a_stack_that_no_row_names_is_marked_while_it_goes(world: Telling) -> None:
    found = Metadata(ACME, None, None, None, None, NOON)
    world.table.plant_metadata(found)
    world.plant("DELETE_IN_PROGRESS")
    assert not world.forget()
    assert world.table.metadata(ACME) == replace(found, gone_stack_id=STACK)


def test_a_queue_that_is_published_after_its_stacks_event_has_read_the_row_is_forgotten(world: Telling) -> None:
    world.table.plant_metadata(Metadata(ACME, None, None, None, None, NOON))

    class SlowStacks(FakeStacks):
        def find(self, stack: str) -> Stack | None:
            world.publish()
            return super().find(stack)

    slow = SlowStacks()
    slow.plant(Stack(STACK, "DELETE_IN_PROGRESS", "", "acme", QUEUE, VERSION, ours=True))
    assert world.with_other(stacks=slow).forget_queue(ACME, stack_id=STACK)
    forgotten = world.table.metadata(ACME)
    assert forgotten is not None
    assert (forgotten.queue, forgotten.gone_stack_id, forgotten.last_version) == (None, STACK, VERSION)


def test_a_queue_is_forgotten_though_a_delete_begins_after_its_stacks_event_has_read_the_row(world: Telling) -> None:
    world.publish()
    delete = a_run(operation=Operation.DELETE)

    class SlowStacks(FakeStacks):
        def find(self, stack: str) -> Stack | None:
            take(world.table, delete)
            return super().find(stack)

    slow = SlowStacks()
    slow.plant(Stack(STACK, "DELETE_IN_PROGRESS", "", "acme", QUEUE, VERSION, ours=True))
    assert world.with_other(stacks=slow).forget_queue(ACME, stack_id=STACK)
    forgotten = world.table.metadata(ACME)
    assert forgotten is not None
    assert (forgotten.queue, forgotten.withdrawn_by) == (None, delete.execution)


def test_a_stack_is_marked_while_it_goes_though_an_event_of_an_earlier_one_was_recorded_late(world: Telling) -> None:
    late = Metadata(ACME, QUEUE, ANOTHER_STACK, None, None, NOON)
    world.table.plant_metadata(late)
    world.plant("DELETE_IN_PROGRESS")
    assert not world.forget()
    assert world.table.metadata(ACME) == replace(late, gone_stack_id=STACK)


def test_late_events_of_an_earlier_stack_do_not_overwrite_that_a_later_one_was_deleted(world: Telling) -> None:
    late = Metadata(ACME, QUEUE, STACK, None, None, NOON, gone_stack_id=ANOTHER_STACK)
    world.table.plant_metadata(late)
    world.plant("DELETE_COMPLETE")
    assert not world.forget()
    assert world.table.metadata(ACME) == late


def test_a_repeated_event_does_not_overwrite_that_a_later_stack_was_deleted(world: Telling) -> None:
    found = Metadata(ACME, None, None, None, None, NOON, gone_stack_id=ANOTHER_STACK)
    world.table.plant_metadata(found)
    world.plant("DELETE_COMPLETE")
    assert not world.forget()
    assert world.table.metadata(ACME) == found


def test_forgetting_an_absent_queue_changes_nothing(world: Telling) -> None:
    assert not world.forget()


def test_forgetting_twice_is_forgetting_once(world: Telling) -> None:
    world.publish()
    assert [world.forget() for _ in range(2)] == [True, False]


def test_nothing_is_forgotten_while_the_stack_cannot_be_read(world: Telling) -> None:
    published = world.publish()
    world.stacks.throttled_calls = 1
    with pytest.raises(Throttled):
        world.forget()
    assert world.table.metadata(ACME) == published


# Stacks that an earlier system made, under names that Berth does not derive

OLD = "arn:aws:cloudformation:eu-west-1:000000000000:stack/old-tenant-acme/1"


def test_a_recorded_stack_updates_its_queue_whatever_its_name(world: Telling) -> None:
    world.publish(labels={"tier": "gold"})
    metadata = world.table.metadata(ACME)
    assert metadata is not None
    world.table.plant_metadata(replace(metadata, stack_id=OLD))
    world.stacks.plant(Stack(OLD, "UPDATE_IN_PROGRESS", "", "acme", OTHER_QUEUE, None, ours=True))
    world.say(OLD, OTHER_QUEUE)
    recorded = world.table.metadata(ACME)
    assert recorded is not None
    assert (recorded.queue, recorded.stack_id) == (OTHER_QUEUE, OLD)
    world.stacks.change(OLD, "DELETE_IN_PROGRESS")
    assert world.forget(OLD)
    assert world.forget(OLD) is False, "the event may come again"
    forgotten = world.table.metadata(ACME)
    assert forgotten is not None
    assert (forgotten.queue, forgotten.gone_stack_id) == (None, OLD)


@pytest.mark.parametrize("ours", [True, False], ids=["of our role", "of another role"])
@pytest.mark.parametrize("published", [True, False], ids=["served", "not served"])
def test_a_stack_with_another_name_that_is_not_recorded_changes_nothing(
    world: Telling, ours: bool, published: bool
) -> None:
    before = world.publish(version=VERSION if published else None)
    world.stacks.plant(Stack(OLD, "DELETE_IN_PROGRESS", "", "acme", OTHER_QUEUE, None, ours=ours))
    with pytest.raises(StackNotOurs, match="is not recorded as the tenant's"):
        world.say(OLD, OTHER_QUEUE)
    assert not world.forget(OLD)
    assert world.table.metadata(ACME) == before
