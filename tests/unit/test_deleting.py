"""Deleting a tenant: not with messages in its queues, not given up at the first thing that blocks."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from orchestrator.common.errors import LostOwnership, StackNotOurs, Throttled
from orchestrator.tenants import deleting
from orchestrator.tenants.deadlines import DEADLINE
from orchestrator.tenants.deleting import messages_of
from orchestrator.tenants.messages import Messages
from orchestrator.tenants.names import Names
from orchestrator.tenants.outcomes import Again, Draining, GaveUp, Gone, Start, Started, Working
from orchestrator.tenants.records import Metadata, Operation, Queue, Request, RootCause
from orchestrator.tenants.stack_ports import Stack
from orchestrator.tenants.stack_status import StackCondition
from tests.fakes import (
    ACME,
    NAMES,
    NOON,
    OTHER_QUEUE,
    QUEUE,
    FakeQueues,
    FakeSettings,
    FakeStacks,
    OwnedTenant,
    a_run,
    some_metadata,
    take,
)
from tests.unit.test_stack_status import SORTED

RUN = a_run(operation=Operation.DELETE)
TOKEN = f"{RUN.attempt.client_token}-delete"
DEAD_LETTERS = "https://sqs.eu-west-1.amazonaws.com/0/acme-dead-letters"
DRAIN = timedelta(minutes=10)
EMPTY_FOR = FakeSettings().empty_for
A_MOMENT = timedelta(milliseconds=1)
SOME_TIME = timedelta(minutes=10)
NONE_HELD = Messages(0, 0, 0)


class Deleting(OwnedTenant):
    """One tenant, owned by a run that is to delete it."""

    def __init__(self, *, request: Request = RUN.request, **fakes: Any) -> None:
        super().__init__(replace(RUN, request=request), metadata=some_metadata(outbound_queue=OTHER_QUEUE), **fakes)
        self.queues.dead_letter_queues[QUEUE.url] = DEAD_LETTERS

    def check(self, **specs: Any) -> Draining | GaveUp | None:
        """The next look, as the machine takes it: it keeps since when the queues have looked empty."""
        outcome = deleting.check_messages(
            replace(self.run, request=Request(**specs)),
            empty_since=self.empty_since,
            empty_for=EMPTY_FOR,
            reader=self.tenants,
            stacks=self.stacks,
            queues=self.queues,
            unfinished=self.unfinished_work,
            clock=self.clock,
        )
        if isinstance(outcome, Draining):
            self.empty_since = outcome.empty_since
        return outcome

    def start(self) -> Start:
        """The queues have been empty for long enough, unless an earlier look has found messages."""
        self.empty_since = self.empty_since or self.clock.now() - EMPTY_FOR
        return super().start()

    def looks_empty(self, **specs: object) -> bool:
        """Whether the delete believes that the queues are empty once it has seen so for long enough."""
        assert isinstance(self.check(**specs), Draining)
        self.clock.advance(EMPTY_FOR)
        return self.check(**specs) is None


@pytest.fixture
def world() -> Deleting:
    return Deleting()


def failure(outcome: object) -> GaveUp:
    assert isinstance(outcome, GaveUp)
    return outcome


def statuses(*meant: StackCondition) -> list[str]:
    return sorted(status for each in meant for status in SORTED[each])


# Unfinished work outside the queues


@pytest.mark.parametrize("specs", [{}, {"drain_seconds": 600}])
def test_a_tenant_with_unfinished_work_is_not_deleted_and_not_kept_withdrawn_for_it(
    world: Deleting, specs: dict[str, int]
) -> None:
    world.unfinished_work.held[ACME] = {"inbox of events": 3}
    refused = failure(world.check(**specs))
    assert refused.reason == (
        "Tenant acme still has unfinished work: inbox of events: 3 visible, 0 in flight, 0 delayed. Nothing was "
        "deleted. Finish it, or force the deletion."
    )


def test_work_that_comes_in_after_the_first_look_is_found(world: Deleting) -> None:
    assert isinstance(world.check(), Draining)
    world.clock.advance(EMPTY_FOR)
    world.unfinished_work.held[ACME] = {"inbox of events": 1}
    assert "unfinished work" in failure(world.check()).reason


def test_unfinished_work_counts_also_for_a_tenant_without_a_queue(world: Deleting) -> None:
    world.table.plant_metadata(some_metadata(queue=None, outbound_queue=None))
    world.unfinished_work.held[ACME] = {"inbox of events": 1}
    failure(world.check())


def test_a_forced_delete_does_not_ask_for_unfinished_work(world: Deleting) -> None:
    world.unfinished_work.held[ACME] = {"inbox of events": 3}
    assert world.check(force=True) is None
    assert world.unfinished_work.asked == 0


# Messages

HELD = [
    pytest.param(QUEUE.url, "inbound queue", Messages(1, 0, 0), id="visible"),
    pytest.param(QUEUE.url, "inbound queue", Messages(0, 2, 0), id="in flight"),
    pytest.param(QUEUE.url, "inbound queue", Messages(0, 0, 3), id="delayed"),
    pytest.param(DEAD_LETTERS, "dead-letter queue", Messages(4, 0, 0), id="in the dead-letter queue"),
    pytest.param(OTHER_QUEUE.url, "outbound queue", Messages(0, 5, 0), id="in the outbound queue of an old tenant"),
]


@pytest.mark.parametrize(("url", "name", "held"), HELD)
def test_a_tenant_with_messages_is_not_deleted_and_the_counts_are_reported(
    world: Deleting, url: str, name: str, held: Messages
) -> None:
    world.queues.held[url] = held
    refused = failure(world.check())
    assert f"{name}: {held}" in refused.reason
    assert "Nothing was deleted" in refused.reason
    assert refused.failed_stack is None


def test_after_a_failed_delete_the_queue_is_read_from_the_stack(world: Deleting) -> None:
    world.plant("DELETE_FAILED")
    world.table.plant_metadata(some_metadata(queue=None, withdrawn_by="an earlier delete"))
    world.queues.held[QUEUE.url] = Messages(1, 0, 0)
    assert "inbound queue: 1 visible" in failure(world.check()).reason
    world.queues.held[QUEUE.url] = NONE_HELD
    assert world.looks_empty()


def test_only_queues_with_messages_are_reported(world: Deleting) -> None:
    world.queues.held = {QUEUE.url: Messages(1, 2, 3), DEAD_LETTERS: NONE_HELD, OTHER_QUEUE.url: Messages(0, 0, 7)}
    reason = failure(world.check()).reason
    assert "inbound queue: 1 visible, 2 in flight, 3 delayed" in reason
    assert "outbound queue: 0 visible, 0 in flight, 7 delayed" in reason
    assert "dead-letter" not in reason


@pytest.mark.parametrize("drain_seconds", [0, 60, 1200])
def test_a_tenant_may_be_deleted_once_no_messages_were_counted_for_a_minute(
    world: Deleting, drain_seconds: int
) -> None:
    """SQS may take a minute to count what was sent last, so that one zero proves nothing."""
    assert world.check(drain_seconds=drain_seconds) == Draining("none were counted", NOON, 60)
    world.clock.advance(EMPTY_FOR - A_MOMENT)
    assert world.check(drain_seconds=drain_seconds) == Draining("none were counted", NOON, 1)
    world.clock.advance(A_MOMENT)
    assert world.check(drain_seconds=drain_seconds) is None


def test_messages_that_are_counted_late_restart_the_minute(world: Deleting) -> None:
    world.check(drain_seconds=600)
    world.clock.advance(EMPTY_FOR / 2)
    world.queues.held[QUEUE.url] = Messages(1, 0, 0)
    assert world.check(drain_seconds=600) == Draining("inbound queue: 1 visible, 0 in flight, 0 delayed", None, 15)
    world.queues.held[QUEUE.url] = NONE_HELD
    world.clock.advance(EMPTY_FOR / 2)
    assert world.check(drain_seconds=600) == Draining("none were counted", world.clock.now(), 60)


def test_messages_that_are_counted_late_refuse_the_delete_without_draining(world: Deleting) -> None:
    world.check()
    world.clock.advance(EMPTY_FOR)
    world.queues.held[QUEUE.url] = Messages(1, 0, 0)
    failure(world.check())


def test_after_a_queue_was_empty_for_long_enough_one_more_count_is_enough_for_the_next_try(world: Deleting) -> None:
    assert world.looks_empty()
    world.clock.advance(SOME_TIME)
    assert world.check() is None
    world.queues.held[QUEUE.url] = Messages(1, 0, 0)
    failure(world.check())


def test_the_queue_is_counted_although_the_delete_has_withdrawn_it(world: Deleting) -> None:
    metadata = world.table.metadata(ACME)
    assert metadata is not None
    assert not metadata.published
    world.queues.held[QUEUE.url] = Messages(1, 0, 0)
    failure(world.check())


def test_a_queue_that_was_never_published_is_counted_too(world: Deleting) -> None:
    world.table.plant_metadata(some_metadata(version=None))
    world.queues.held[QUEUE.url] = Messages(1, 0, 0)
    failure(world.check())


@pytest.mark.parametrize("url", [QUEUE.url, DEAD_LETTERS, OTHER_QUEUE.url])
def test_a_queue_that_no_longer_exists_is_empty(world: Deleting, url: str) -> None:
    world.queues.held[url] = Messages(1, 1, 1)
    world.queues.gone.add(url)
    assert world.looks_empty()


# Tenants from before Berth, whose stack has another name and is on record


@pytest.mark.parametrize("logical_id", ["OutboundQueue", "DeadLettersOfOutbound"])
def test_all_queues_of_an_adopted_stack_are_counted_whatever_its_row_names(world: Deleting, logical_id: str) -> None:
    world.settings.names = world.stacks.names = Names("Berth", ("old-",))
    stack_id = "arn:aws:cloudformation:eu-west-1:0:stack/old-acme/1"
    world.stacks.plant(Stack(stack_id, "CREATE_COMPLETE", "", None, None, None, ours=False))
    world.stacks.resources[stack_id] = OLD_QUEUE
    world.stacks.other_queues[stack_id] = {logical_id: SOME_QUEUE}
    world.table.plant_metadata(replace(UNADOPTED, stack_id=stack_id))
    world.queues.held[SOME_QUEUE.url] = Messages(41, 0, 0)
    assert "41 visible" in failure(world.check()).reason
    world.queues.held[SOME_QUEUE.url] = NONE_HELD
    assert world.looks_empty()


# Tenants from before Berth, whose stack has another name and is not on record

OLD_QUEUE = Queue("arn:aws:sqs:eu-west-1:0:old-acme-Queue-1", "https://sqs.eu-west-1.amazonaws.com/0/old-acme-Queue-1")
UNADOPTED = replace(some_metadata(queue=OLD_QUEUE, version="0.0.9"), stack_id=None)


@pytest.mark.parametrize("specs", [{}, {"force": True}, {"drain_seconds": 600}], ids=str)
def test_a_tenant_with_an_unknown_stack_is_not_deleted(world: Deleting, specs: dict[str, Any]) -> None:
    """The stack would be left behind, and nobody would know of it any more."""
    world.table.plant_metadata(UNADOPTED)
    assert "berth adopt" in failure(world.check(**specs)).reason


def test_a_delete_that_is_refused_because_of_an_unknown_stack_leaves_the_tenant_in_service(world: Deleting) -> None:
    world.table.plant_metadata(replace(UNADOPTED, withdrawn_by=world.run.execution))
    reason = failure(world.check()).reason
    world.fail("delete", reason)
    metadata = world.table.metadata(ACME)
    assert metadata is not None
    assert metadata.published


def test_once_its_queue_was_deleted_by_hand_it_can_be_deleted(world: Deleting) -> None:
    world.settings.names = world.stacks.names = Names("Berth", ("old-",))
    world.table.plant_metadata(UNADOPTED)
    assert isinstance(world.check(), GaveUp)
    world.queues.gone.add(OLD_QUEUE.url)
    assert world.check() is None


def test_a_queue_out_of_reach_is_not_asked_for(world: Deleting) -> None:
    world.table.plant_metadata(UNADOPTED)
    world.queues.gone.add(OLD_QUEUE.url)
    reason = failure(world.check()).reason
    assert "berth adopt" in reason
    assert "berth:legacyStackPrefixes" in reason, "without a prefix, nobody can see that the queue was deleted"


@pytest.mark.parametrize(
    "row",
    [
        replace(UNADOPTED, stack_id="arn:aws:cloudformation:eu-west-1:0:stack/old-acme/1"),
        replace(UNADOPTED, queue=Queue("arn", f"https://sqs/0/{NAMES.stack_of(ACME)}-InboundQueue-1")),
    ],
    ids=["its stack is on record", "its stack has the tenant's name"],
)
def test_other_tenants_are_deleted_as_usual(world: Deleting, row: Metadata) -> None:
    world.settings.names = world.stacks.names = Names("Berth", ("old-",))
    world.table.plant_metadata(row)
    assert world.looks_empty()


DEAD_LETTER_QUEUE = Queue("arn:aws:sqs:eu-west-1:0:acme-dead-letters", DEAD_LETTERS)
SOME_QUEUE = Queue("arn:aws:sqs:eu-west-1:0:some", "https://sqs.eu-west-1.amazonaws.com/0/some")


def test_the_dead_letter_queue_is_counted_also_if_somebody_deleted_the_inbound_queue_by_hand(world: Deleting) -> None:
    world.stacks.other_queues[world.plant()] = {"DeadLetterQueue": DEAD_LETTER_QUEUE}
    world.queues.gone.add(QUEUE.url)
    world.queues.held[DEAD_LETTERS] = Messages(4, 0, 0)
    assert "dead-letter queue: 4 visible" in failure(world.check()).reason
    world.queues.held[DEAD_LETTERS] = NONE_HELD
    assert world.looks_empty()


def test_the_dead_letter_queue_is_counted_also_if_a_delete_that_failed_has_taken_the_inbound_queue(
    world: Deleting,
) -> None:
    world.stacks.other_queues[world.plant("DELETE_FAILED")] = {"DeadLetterQueue": DEAD_LETTER_QUEUE}
    world.table.plant_metadata(some_metadata(queue=None, withdrawn_by="an earlier delete"))
    world.queues.gone.add(QUEUE.url)
    world.queues.held[DEAD_LETTERS] = Messages(4, 0, 0)
    assert "dead-letter queue: 4 visible" in failure(world.check()).reason


def test_a_queue_that_no_release_has_is_reported_with_its_logical_id(world: Deleting) -> None:
    world.stacks.other_queues[world.plant()] = {"Rejected": SOME_QUEUE}
    world.queues.gone |= {QUEUE.url, OTHER_QUEUE.url}
    world.queues.held[SOME_QUEUE.url] = Messages(0, 1, 0)
    assert "Rejected: 0 visible, 1 in flight" in failure(world.check()).reason


def test_every_queue_of_an_operators_template_is_counted(world: Deleting) -> None:
    stack_id = world.plant()
    world.table.plant_metadata(some_metadata(version="2.1.0"))
    world.stacks.other_queues[stack_id] = {"Priority": SOME_QUEUE}
    world.queues.held[SOME_QUEUE.url] = Messages(3, 0, 0)
    assert "Priority: 3 visible" in failure(world.check()).reason
    world.queues.held[SOME_QUEUE.url] = NONE_HELD
    assert world.looks_empty()


def test_cloudformation_is_not_asked_for_queues_while_the_inbound_queue_is_there(world: Deleting) -> None:
    world.plant()
    world.check()
    assert world.stacks.calls == []


def test_a_tenant_without_existing_queues_is_deleted_at_once(world: Deleting) -> None:
    world.queues.gone |= {QUEUE.url, DEAD_LETTERS, OTHER_QUEUE.url}
    assert world.check() is None


def test_a_missing_queue_does_not_hide_messages_in_another_queue(world: Deleting) -> None:
    world.queues.gone.add(QUEUE.url)
    world.queues.held[OTHER_QUEUE.url] = Messages(1, 0, 0)
    assert "outbound queue" in failure(world.check()).reason


@pytest.mark.parametrize(
    "metadata",
    [None, Metadata(ACME, None, None, None, None, None), some_metadata(queue=None)],
)
def test_a_tenant_without_a_queue_has_no_messages(metadata: Metadata | None) -> None:
    assert messages_of(metadata, FakeQueues()) == {}


def test_an_outbound_queue_counts_where_there_is_no_inbound_queue() -> None:
    queues = FakeQueues()
    queues.held[OTHER_QUEUE.url] = Messages(1, 0, 0)
    held = messages_of(some_metadata(queue=None, outbound_queue=OTHER_QUEUE), queues)
    assert held == {"outbound queue": Messages(1, 0, 0)}


@pytest.mark.parametrize(("url", "name", "held"), HELD)
def test_a_drain_waits_until_its_time_is_over_and_then_refuses_the_delete(
    world: Deleting, url: str, name: str, held: Messages
) -> None:
    world.queues.held[url] = held
    seconds = int(DRAIN.total_seconds())
    assert world.check(drain_seconds=seconds) == Draining(f"{name}: {held}", None, 15)
    world.clock.advance(DRAIN - A_MOMENT)
    assert world.check(drain_seconds=seconds) == Draining(f"{name}: {held}", None, 15)
    world.clock.advance(A_MOMENT)
    assert f"{name}: {held}" in failure(world.check(drain_seconds=seconds)).reason


def test_a_drain_ends_a_minute_after_the_queue_has_become_empty(world: Deleting) -> None:
    world.queues.held[QUEUE.url] = Messages(1, 0, 0)
    assert isinstance(world.check(drain_seconds=60), Draining)
    world.queues.held[QUEUE.url] = Messages(0, 1, 0)
    assert isinstance(world.check(drain_seconds=60), Draining)
    world.queues.held[QUEUE.url] = NONE_HELD
    assert isinstance(world.check(drain_seconds=60), Draining)
    world.clock.advance(EMPTY_FOR)
    assert world.check(drain_seconds=60) is None


def test_a_queue_that_is_empty_when_the_time_is_over_is_deleted(world: Deleting) -> None:
    world.clock.advance(DRAIN * 2)
    assert world.looks_empty(drain_seconds=60)


def test_a_stack_is_not_deleted_before_its_queues_were_empty_for_long_enough(world: Deleting) -> None:
    world.plant()
    world.empty_since = world.clock.now()
    assert isinstance(world.start(), Draining)
    assert [stack.status for stack in world.stacks.living] == ["CREATE_COMPLETE"]
    world.clock.advance(EMPTY_FOR)
    assert isinstance(world.start(), Started)


def test_messages_are_counted_again_whenever_the_deletion_is_tried(world: Deleting) -> None:
    world.plant()
    world.queues.held[QUEUE.url] = Messages(1, 0, 0)
    assert "1 visible" in failure(world.start()).reason
    assert [stack.status for stack in world.stacks.living] == ["CREATE_COMPLETE"]


def test_a_forced_delete_needs_no_empty_queues() -> None:
    world = Deleting(request=Request(force=True))
    world.plant()
    world.queues.held[QUEUE.url] = Messages(1, 0, 0)
    assert isinstance(world.start(), Started)


@pytest.mark.parametrize("drain_seconds", [0, 60])
def test_a_forced_delete_counts_no_messages(world: Deleting, drain_seconds: int) -> None:
    class Unasked(FakeQueues):
        def messages(self, url: str) -> Messages | None:
            raise AssertionError(url)

    world.queues = Unasked()
    assert world.check(force=True, drain_seconds=drain_seconds) is None


@pytest.mark.parametrize("spec", ["allow_replacement", "allow_downgrade", "explicit"])
def test_no_other_option_allows_the_loss_of_messages(world: Deleting, spec: str) -> None:
    world.queues.held[QUEUE.url] = Messages(1, 0, 0)
    failure(world.check(**{spec: True}))


def test_a_throttled_count_is_never_taken_for_empty() -> None:
    class Busy(FakeQueues):
        def messages(self, url: str) -> Messages | None:
            raise Throttled(f"{url}: Rate exceeded")

    with pytest.raises(Throttled):
        Deleting(queues=Busy()).check()


# The stack


@pytest.mark.parametrize("status", sorted({*statuses(*SORTED), "SOMETHING_NOBODY_KNOWS"}))
def test_a_stack_is_deleted_whatever_its_status(world: Deleting, status: str) -> None:
    stack_id = world.plant(status)
    if status in statuses(StackCondition.WORKING) and status != "DELETE_IN_PROGRESS":
        started = world.start()
        assert started == Again(f"the stack is still {status}")
        assert world.inspect(started) == started
        assert "delete" not in world.stacks.calls
        world.stacks.change(stack_id, "UPDATE_COMPLETE")
    assert world.drive() == Gone()
    assert not world.stacks.living


def test_an_operation_that_did_not_exist_yet_is_waited_for_too(world: Deleting) -> None:
    world.plant("SOMETHING_NEW_IN_PROGRESS")
    assert isinstance(world.start(), Again)
    assert "delete" not in world.stacks.calls


def test_a_tenant_without_a_stack_is_done_at_once(world: Deleting) -> None:
    assert world.start() == Gone()
    assert world.inspect(Gone()) == Gone()
    assert world.stacks.calls == ["find"]


def test_starting_twice_deletes_once(world: Deleting) -> None:
    stack_id = world.plant()
    assert world.start() == world.start() == Started(stack_id)
    assert world.stacks.calls.count("delete") == 1
    assert world.stacks.all[stack_id].client_token == f"{TOKEN}-1"


def test_starting_again_when_it_is_over_finds_it_gone(world: Deleting) -> None:
    world.plant()
    world.start()
    world.stacks.settle()
    assert world.start() == Gone()
    assert world.stacks.calls.count("delete") == 1


@pytest.mark.parametrize("failures", [1, 2])
def test_a_deletion_that_is_blocked_is_tried_again_as_a_new_request(world: Deleting, failures: int) -> None:
    stack_id = world.plant()
    world.stacks.delete_failures.extend(["in use"] * failures)
    assert world.drive() == Gone()
    assert deletions(world, stack_id) == [f"{TOKEN}-{number + 1}" for number in range(failures + 1)]


def test_a_deletion_that_is_blocked_three_times_is_reported_with_what_blocks_it(world: Deleting) -> None:
    stack_id = world.plant()
    world.stacks.delete_failures.extend(["in use"] * 10)
    refused = failure(world.drive())
    assert "DELETE_FAILED" in refused.reason
    assert refused.failed_stack == stack_id
    assert world.stacks.calls.count("delete") == deleting.MAX_DELETES == 3
    assert len(set(deletions(world, stack_id))) == 3
    cause = world.fail("a stack", refused.reason, refused.failed_stack)
    assert cause == RootCause("InboundQueue", "AWS::SQS::Queue", "in use")
    metadata = world.table.metadata(ACME)
    assert metadata is not None
    assert not metadata.published, "What is half deleted is not served again"


def test_failures_of_an_earlier_deletion_do_not_count_for_this_one(world: Deleting) -> None:
    stack_id = world.plant()
    world.stacks.delete_failures.extend(["in use"] * 5)
    failure(world.drive())
    world.run = a_run(2, operation=Operation.DELETE)
    take(world.table, world.run, instead_of=world.table.lock(ACME))
    assert world.drive() == Gone()
    second = f"{world.run.attempt.client_token}-delete"
    assert deletions(world, stack_id)[3:] == [f"{second}-1", f"{second}-2", f"{second}-3"]


def test_a_blocked_deletion_whose_event_is_not_visible_yet_is_not_counted_and_not_forgotten(world: Deleting) -> None:
    stack_id = world.plant()
    world.start()
    events = world.stacks.all[stack_id].events
    world.stacks.delete_failures.append("in use")
    world.stacks.settle()
    seen_later, events[:] = list(events), []
    assert world.start() == Started(stack_id)
    assert world.stacks.all[stack_id].client_token == f"{TOKEN}-1", "the same request again: CloudFormation ignores it"
    world.stacks.change(stack_id, "DELETE_FAILED")
    events[:] = seen_later
    assert world.start() == Started(stack_id)
    assert world.stacks.all[stack_id].client_token == f"{TOKEN}-2"


@pytest.mark.parametrize("status", ["DELETE_FAILED", "CREATE_COMPLETE"])
def test_a_deletion_that_is_not_visible_yet_is_inspected_again(world: Deleting, status: str) -> None:
    stack_id = world.plant(status)
    outcome = world.inspect(Started(stack_id))
    assert outcome == Again(f"the stack is {status}")


@pytest.mark.parametrize("status", statuses(StackCondition.WORKING))
def test_a_stack_that_is_being_changed_is_waited_for(world: Deleting, status: str) -> None:
    assert world.inspect(Started(world.plant(status))) == Working()


def test_a_stack_that_is_no_longer_described_is_gone(world: Deleting) -> None:
    stack_id = world.plant()
    world.start()
    del world.stacks.all[stack_id]
    assert world.inspect(Started(stack_id)) == Gone()


@pytest.mark.parametrize("call", [1, 2])
def test_a_throttled_start_never_counts_as_deleted(world: Deleting, call: int) -> None:
    class ThrottlesOnce(FakeStacks):
        def _called(self, method: str) -> None:
            super()._called(method)
            if len(self.calls) == call:
                raise Throttled(f"{method}: Rate exceeded")

    world = Deleting(stacks=ThrottlesOnce())
    world.plant()
    started = world.start()
    assert isinstance(started, Again)
    assert "Rate exceeded" in started.reason
    assert world.inspect(started) == started
    assert world.drive() == Gone()


def test_a_throttled_inspection_never_counts_as_deleted(world: Deleting) -> None:
    stack_id = world.plant()
    started = world.start()
    world.stacks.throttled_calls = 1
    assert world.inspect(started) == Working()
    assert started == Started(stack_id)


def test_throttled_events_do_not_count_as_no_failures(world: Deleting) -> None:
    class HidesEvents(FakeStacks):
        def _called(self, method: str) -> None:
            super()._called(method)
            if method == "events":
                raise Throttled("events: Rate exceeded")

    world = Deleting(stacks=HidesEvents())
    world.plant("DELETE_FAILED")
    assert isinstance(world.start(), Again)
    assert "delete" not in world.stacks.calls


def test_a_stack_that_cannot_be_deleted_fails_the_operation_at_the_deadline(world: Deleting) -> None:
    stack_id = world.plant("DELETE_IN_PROGRESS")
    world.clock.advance(DEADLINE)
    assert world.inspect(Started(stack_id)) == Working()
    world.clock.advance(A_MOMENT)
    assert "DELETE_IN_PROGRESS after 30 minutes" in failure(world.inspect(Started(stack_id))).reason
    world.stacks.throttled_calls = 1
    assert "could not be inspected" in failure(world.inspect(Started(stack_id))).reason


def test_a_stack_that_is_gone_at_the_deadline_is_gone(world: Deleting) -> None:
    world.clock.advance(DEADLINE * 2)
    assert world.inspect(Started(world.plant("DELETE_COMPLETE"))) == Gone()


@pytest.mark.parametrize("tenant_id", ["Acme", ""])
def test_a_stack_that_was_made_for_someone_else_is_not_deleted(world: Deleting, tenant_id: str) -> None:
    world.plant(tenant_id=tenant_id)
    with pytest.raises(StackNotOurs):
        world.start()
    assert world.stacks.calls == ["find"]


def test_a_run_that_no_longer_owns_the_tenant_deletes_nothing(world: Deleting) -> None:
    world.plant()
    take(world.table, a_run(2, operation=Operation.DELETE), instead_of=world.table.lock(ACME))
    with pytest.raises(LostOwnership):
        world.start()
    assert not world.stacks.calls


def test_other_tenants_queues_are_not_asked_about(world: Deleting) -> None:
    asked: list[str] = []

    class Noted(FakeQueues):
        def messages(self, url: str) -> Messages | None:
            asked.append(url)
            return super().messages(url)

    world.queues = Noted()
    world.queues.dead_letter_queues = {QUEUE.url: DEAD_LETTERS, "another queue": "another queue's dead letters"}
    world.table.plant_metadata(some_metadata(queue=Queue(QUEUE.arn, QUEUE.url), outbound_queue=OTHER_QUEUE))
    world.check()
    assert sorted(asked) == sorted([QUEUE.url, DEAD_LETTERS, OTHER_QUEUE.url])


def deletions(world: Deleting, stack_id: str) -> list[str]:
    """The tokens of the requests to delete the stack, oldest first."""
    return [
        event.client_token
        for event in reversed(world.stacks.all[stack_id].events)
        if event.is_stack and event.status == "DELETE_IN_PROGRESS"
    ]
