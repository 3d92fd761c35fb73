"""Events are listed newest first, over all shards, without a scan."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.adapters.dynamodb.event_keys import event_key
from orchestrator.adapters.dynamodb.event_reads import DynamoEventReads
from orchestrator.adapters.dynamodb.events import DynamoEventWrites
from orchestrator.adapters.event_contents import S3Contents
from orchestrator.common.errors import InvalidRequest
from orchestrator.events.accepting import Accepted, Accepting, NewEvent
from orchestrator.events.inbox import Acknowledged, Inbox
from orchestrator.events.listing import Filter, Kind, Listing
from orchestrator.events.plans import Plan
from orchestrator.events.quotas import Quotas
from orchestrator.events.records import Content, EventSettings, TenantEpoch
from orchestrator.events.statuses import EventStatus
from tests.adapters.events.conftest import BUCKET, EVENTS_TABLE
from tests.adapters.events.noting import noted_requests
from tests.fakes import ACME, NOON, FakeClock
from tests.fakes.events import ACME_LIFE, Watch, event_settings, standing

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client

EVERYTHING = Filter()
SUCCESSOR = TenantEpoch(ACME, "77aa0123")


@dataclass
class World:
    dynamodb: DynamoDBClient
    clock: FakeClock
    accepting: Accepting
    listing: Listing
    inbox: Inbox
    epochs: Iterator[int] = field(default_factory=count)

    def accept(self, new: NewEvent, **changes: Any) -> str:
        self.clock.advance(timedelta(milliseconds=1))
        outcome = self.accepting.accept(standing(**changes), new)
        assert isinstance(outcome, Accepted)
        return outcome.event_id

    def events(self, count: int, event_type: str = "a", **changes: Any) -> list[str]:
        """Accepted events, newest first."""
        return [self.accept(NewEvent(event_type, Content(b"{}")), **changes) for _ in range(count)][::-1]

    def ids(self, wanted: Filter = EVERYTHING, *, limit: int = 100, given: EventSettings | None = None) -> list[str]:
        """All pages of a list."""
        found: list[str] = []
        cursor: str | None = None
        while True:
            page = self.listing.page(given or event_settings(), wanted, cursor=cursor, limit=limit)
            found += [event.event_id for event in page.events]
            cursor = page.cursor
            if cursor is None:
                return found

    def set_status(self, event_id: str, status: EventStatus) -> None:
        self.dynamodb.update_item(
            TableName=EVENTS_TABLE,
            Key=event_key(ACME_LIFE, event_id),
            UpdateExpression="SET #status = :status, GSI1PK = :pk, GSI1SK = :sk",
            ExpressionAttributeNames={"#status": "status"},
            ExpressionAttributeValues={
                ":status": {"S": status},
                ":pk": {"S": f"{ACME_LIFE}#{event_id[-1]}"},
                ":sk": {"S": f"{status}#2026-11-17T00:00:00.000000Z#{event_id}"},
            },
        )

    @contextmanager
    def counting(self) -> Iterator[list[str]]:
        """The names of the requests to DynamoDB, once the block has ended."""
        calls: list[str] = []
        with noted_requests(self.dynamodb) as requests:
            yield calls
        calls += [name for name, _ in requests]


@pytest.fixture
def world(events_table: DynamoDBClient, bucket: S3Client) -> World:
    return event_world(events_table, bucket)


def event_world(events_table: DynamoDBClient, bucket: S3Client) -> World:
    clock = FakeClock()
    reads = DynamoEventReads(events_table, EVENTS_TABLE)
    contents = S3Contents(lambda: bucket, BUCKET)
    writes = DynamoEventWrites(events_table, EVENTS_TABLE)
    accepting = Accepting(events=writes, contents=contents, quotas=Quotas(monotonic=Watch()), clock=clock)
    listing = Listing(events=reads, contents=contents, clock=clock)
    return World(
        events_table,
        clock,
        accepting,
        listing,
        Inbox(events=reads, acknowledgements=reads, listing=listing, clock=clock),
    )


def test_a_list_is_newest_first(world: World) -> None:
    newest_first = world.events(5)
    assert world.ids() == newest_first


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
@pytest.mark.parametrize("shards", [1, 4])
def test_pages_hold_every_event_once_over_all_shards(world: World, limit: int, shards: int) -> None:
    newest_first = world.events(11, shards=shards)
    assert world.ids(limit=limit, given=event_settings(shards=shards)) == newest_first


def test_the_last_page_has_no_cursor(world: World) -> None:
    world.events(4)
    assert world.listing.page(event_settings(), Filter(), cursor=None, limit=4).cursor is None
    assert world.listing.page(event_settings(), Filter(), cursor=None, limit=3).cursor is not None


def test_a_range_of_time_begins_with_its_first_moment_and_ends_before_its_last(world: World) -> None:
    e4, e3, e2, _e1 = world.events(4)
    wanted = Filter(since=NOON + timedelta(milliseconds=2), until=NOON + timedelta(milliseconds=4))
    assert world.ids(wanted) == [e3, e2]
    assert world.ids(Filter(since=NOON + timedelta(milliseconds=4))) == [e4]
    assert world.ids(Filter(since=NOON + timedelta(seconds=4), until=NOON)) == []


def test_a_type_finds_that_type_only(world: World) -> None:
    world.events(1, "user.created.failed")
    created = world.events(2, "user.created")
    world.events(1, "user")
    assert world.ids(Filter(event_type="user.created")) == created
    assert world.ids(Filter(event_type="user.created"), limit=1) == created


def test_a_list_by_type_needs_the_index(world: World) -> None:
    with pytest.raises(InvalidRequest, match="--type-index"):
        world.ids(Filter(event_type="a"), given=event_settings(type_index=False))


def test_two_indexes_at_once_are_refused(world: World) -> None:
    with pytest.raises(InvalidRequest, match="only one of event_type and source_id"):
        world.ids(Filter(event_type="a", source_id="src_1"))


def test_sources_and_forms_have_lists_of_their_own(world: World) -> None:
    push = world.accept(NewEvent("push", Content(b"{}"), source_id="src_1"))
    contact = world.accept(NewEvent("form.submitted", Content(b"{}"), form_id="form_1"))
    plain = world.accept(NewEvent("a", Content(b"{}")))
    assert world.ids(Filter(source_id="src_1")) == [push]
    assert world.ids(Filter(form_id="form_1")) == [contact]
    assert world.ids(Filter(kind=Kind.SUBMISSIONS)) == [contact]
    assert world.ids() == [plain, push]
    assert world.ids(Filter(source_id="src_2")) == []


def test_another_tenants_source_shows_nothing_and_no_cursor(world: World) -> None:
    for _ in range(30):
        world.accept(NewEvent("push", Content(b"{}"), source_id="src_1"), life=SUCCESSOR)
    page = world.listing.page(event_settings(), Filter(source_id="src_1"), cursor=None, limit=1)
    assert (list(page.events), page.cursor) == ([], None)


def test_a_successor_sees_nothing_of_its_predecessor(world: World) -> None:
    (event_id,) = world.events(1)
    successor = event_settings(SUCCESSOR)
    assert world.ids(given=successor) == []
    assert world.listing.find(successor, event_id) is None
    assert list(world.inbox.page(successor, limit=10).events) == []
    assert world.inbox.acknowledge(successor, [event_id]) == {event_id: Acknowledged.UNKNOWN}


@pytest.mark.parametrize("status", [EventStatus.FAILED, EventStatus.RETRYING, EventStatus.DELIVERED])
def test_a_status_finds_the_events_that_have_it(world: World, status: EventStatus) -> None:
    first, second, _third = world.events(3, inbox=False)[::-1]
    world.set_status(first, status)
    world.set_status(second, status)
    assert world.ids(Filter(status=status)) == [second, first]


def test_a_rare_status_is_found_page_by_page(world: World) -> None:
    newest_first = world.events(40, inbox=False)
    world.set_status(newest_first[-1], EventStatus.DELIVERED)
    page = world.listing.page(event_settings(), Filter(status=EventStatus.DELIVERED), cursor=None, limit=1)
    assert list(page.events) == []
    assert page.cursor is not None
    assert world.ids(Filter(status=EventStatus.DELIVERED), limit=1) == [newest_first[-1]]


def test_finished_events_are_hidden_after_the_retention_of_the_plan(world: World) -> None:
    free = event_settings(plan=Plan.FREE)
    waiting, finished = world.events(2, inbox=False, plan=Plan.FREE)
    world.set_status(finished, EventStatus.DELIVERED)
    world.clock.advance(timedelta(hours=24))
    assert world.ids(given=free) == [waiting]
    assert world.listing.find(free, finished) is None


def test_an_expired_event_is_hidden_before_dynamodb_deletes_it(world: World) -> None:
    (event_id,) = world.events(1)
    world.clock.advance(timedelta(days=30, milliseconds=1))
    assert world.ids() == []
    assert world.listing.find(event_settings(), event_id) is None
    assert list(world.inbox.page(event_settings(), limit=10).events) == []


def test_an_event_is_found_with_its_content_wherever_that_is(world: World) -> None:
    for body in (b"{}", b"a" * 5_000, os.urandom(50_000)):
        event_id = world.accept(NewEvent("a", Content(body)))
        found = world.listing.find(event_settings(), event_id)
        assert found is not None
        assert found.content == Content(body)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_list_is_what_a_look_at_everything_would_find(world: World, data: st.DataObject) -> None:
    life = TenantEpoch(ACME, f"{next(world.epochs):08x}")
    shards = data.draw(st.sampled_from([1, 2, 4]))
    given_settings = event_settings(life, shards=shards)
    types = data.draw(st.lists(st.sampled_from(["a", "a.b", "b"]), max_size=25))
    accepted = [(world.accept(NewEvent(each, Content(b"{}")), life=life, shards=shards), each) for each in types]
    received = EventStatus.RECEIVED
    delivered = data.draw(st.sets(st.sampled_from([event_id for event_id, _ in accepted]))) if accepted else set()
    for event_id in delivered:
        world.inbox.acknowledge(given_settings, [event_id])
    wanted = data.draw(
        st.sampled_from(
            [Filter(), Filter(event_type="a"), Filter(event_type="b"), Filter(event_type="a", status=received)]
        )
    )
    expected = [
        event_id
        for event_id, each in accepted
        if wanted.event_type in (None, each) and not (wanted.status is received and event_id in delivered)
    ][::-1]
    assert world.ids(wanted, limit=data.draw(st.integers(1, 7)), given=given_settings) == expected


# The inbox


def test_the_inbox_is_oldest_first_with_contents_and_reading_changes_nothing(world: World) -> None:
    oldest_first = world.events(5, shards=4)[::-1]
    for _ in range(2):
        page = world.inbox.page(event_settings(shards=4), limit=10)
        assert [event.event_id for event in page.events] == oldest_first
        assert all(event.content == Content(b"{}") for event in page.events)
        assert page.cursor is None


def test_an_acknowledged_event_leaves_the_inbox_and_counts_as_delivered(world: World) -> None:
    second, first = world.events(2)
    assert world.inbox.acknowledge(event_settings(), [first]) == {first: Acknowledged.DONE}
    assert [event.event_id for event in world.inbox.page(event_settings(), limit=10).events] == [second]
    found = world.listing.find(event_settings(), first)
    assert found is not None
    assert (found.status, found.delivered_at) == (EventStatus.DELIVERED, world.clock.now())


def test_to_acknowledge_again_changes_nothing(world: World) -> None:
    (event_id,) = world.events(1)
    world.inbox.acknowledge(event_settings(), [event_id])
    before = world.listing.find(event_settings(), event_id)
    world.clock.advance(timedelta(seconds=1))
    assert world.inbox.acknowledge(event_settings(), [event_id]) == {event_id: Acknowledged.DONE}
    assert world.listing.find(event_settings(), event_id) == before


def test_the_inbox_goes_on_where_its_cursor_is(world: World) -> None:
    oldest_first = world.events(7, shards=2)[::-1]
    found, cursor = [], None
    while True:
        page = world.inbox.page(event_settings(shards=2), limit=3, cursor=cursor)
        found += [event.event_id for event in page.events]
        cursor = page.cursor
        if cursor is None:
            break
    assert found == oldest_first


def test_the_inbox_filters_by_type(world: World) -> None:
    world.events(5, "b")
    (wanted,) = world.events(1, "a")
    world.events(5, "b")
    page = world.inbox.page(event_settings(), event_type="a", limit=2)
    assert [event.event_id for event in page.events] == [wanted]


def test_large_contents_end_a_page_early(world: World) -> None:
    ids = [world.accept(NewEvent("big", Content(os.urandom(250_000)))) for _ in range(9)]
    first = world.inbox.page(event_settings(), limit=100)
    assert 1 < len(first.events) < 9
    second = world.inbox.page(event_settings(), limit=100, cursor=first.cursor)
    assert [event.event_id for event in (*first.events, *second.events)] == ids


# Requests


@pytest.mark.parametrize(
    ("pattern", "requests"),
    [
        (Filter(), ["Query"]),
        (Filter(since=NOON, until=NOON + timedelta(hours=1)), ["Query"]),
        (Filter(kind=Kind.SUBMISSIONS), ["Query"]),
        (Filter(status=EventStatus.DELIVERED), ["Query"]),
        (Filter(event_type="a"), ["Query", "BatchGetItem"]),
        (Filter(source_id="src_1"), ["Query", "BatchGetItem"]),
        (Filter(form_id="form_1"), ["Query", "BatchGetItem"]),
        (Filter(status=EventStatus.FAILED), ["Query", "BatchGetItem"]),
    ],
)
def test_a_list_is_one_query_and_reads_the_rows_that_an_index_names(
    world: World, pattern: Filter, requests: list[str]
) -> None:
    for event_id in world.events(3, inbox=False):
        world.set_status(event_id, pattern.status or EventStatus.RECEIVED)
    for _ in range(3):
        world.accept(NewEvent("push", Content(b"{}"), source_id="src_1"))
        world.accept(NewEvent("form.submitted", Content(b"{}"), form_id="form_1"))
    with noted_requests(world.dynamodb) as sent:
        page = world.listing.page(event_settings(), pattern, cursor=None, limit=50)
    assert len(page.events) >= 3
    assert [name for name, _ in sent] == requests
    # A consistent query costs twice as much.
    assert not any(parameters.get("ConsistentRead") for _, parameters in sent)


@pytest.mark.parametrize("shards", [1, 2, 4])
def test_a_page_by_an_index_reads_no_row_that_it_has_no_place_for(world: World, shards: int) -> None:
    newest_first = world.events(30, shards=shards)
    with noted_requests(world.dynamodb) as requests:
        page = world.listing.page(event_settings(shards=shards), Filter(event_type="a"), cursor=None, limit=5)
    assert [event.event_id for event in page.events] == newest_first[:5]
    assert page.cursor == newest_first[4]
    read = [request["RequestItems"][EVENTS_TABLE]["Keys"] for name, request in requests if name == "BatchGetItem"]
    assert [len(keys) for keys in read] == [5]


def test_an_event_by_its_id_is_one_get_item(world: World) -> None:
    (event_id,) = world.events(1)
    with world.counting() as calls:
        world.listing.find(event_settings(), event_id)
    assert calls == ["GetItem"]


def test_the_inbox_is_one_query_and_one_consistent_read(world: World) -> None:
    world.events(3)
    with world.counting() as calls:
        world.inbox.page(event_settings(), limit=100)
    assert calls == ["Query", "BatchGetItem"]


def test_an_acknowledgement_is_one_update(world: World) -> None:
    (event_id,) = world.events(1)
    with world.counting() as calls:
        world.inbox.acknowledge(event_settings(), [event_id])
    assert calls == ["UpdateItem"]
