"""DynamoDB's table of deliveries and the one in memory keep the same rows: whatever is done, both say the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

import pytest

from orchestrator.adapters.dynamodb import delivery_keys
from orchestrator.adapters.dynamodb.deliveries import DynamoDeliveries
from orchestrator.adapters.dynamodb.events import DynamoEventWrites
from orchestrator.events.content import pack
from orchestrator.events.delivery import transitions
from orchestrator.events.delivery.delivering import EXPIRED, GRACE, Delivering, Outcome
from orchestrator.events.delivery.dispatching import Dispatched, Dispatching
from orchestrator.events.delivery.health import BREAKER_AFTER, DISABLED_AFTER, SLOW_FOR
from orchestrator.events.delivery.messages import MAX_DELAY, DeliveryMessage
from orchestrator.events.delivery.ports import DeliveryTable
from orchestrator.events.delivery.records import (
    DISPATCH,
    INBOX,
    ConnectionStatus,
    Delivery,
    DeliveryRef,
    DeliveryState,
    DispatchedEvent,
    Health,
    Outgoing,
    TryResult,
    Verdict,
)
from orchestrator.events.delivery.recovering import INTERNAL, Recovered, Recovering
from orchestrator.events.delivery.redispatching import Redispatching
from orchestrator.events.delivery.sweeping import SHARDS, Sweeping, Swept
from orchestrator.events.delivery.writes import DeliveryWrite
from orchestrator.events.event_ids import IdRange, new_event_id
from orchestrator.events.records import Content, Event, EventSettings, TenantEpoch
from orchestrator.events.statuses import EventStatus
from tests.adapters.events.lives import EVENTS_TABLE
from tests.fakes import FakeClock
from tests.fakes.connections import InMemoryConnections
from tests.fakes.deliveries import InMemoryDeliveries
from tests.fakes.events import ACME_LIFE, connection, event_settings
from tests.present import present

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

DELIVERED = TryResult(Verdict.DELIVERED, 20, 200)
REFUSED = TryResult(Verdict.RETRY, 20, 500, "no")
FIRST, SECOND = "conn_" + "1" * 24, "conn_" + "2" * 24
Result = TypeVar("Result")
A_MINUTE = timedelta(minutes=1)


@dataclass
class BothTables:
    """Every write goes to both tables, every read is answered by both, and they have to agree."""

    dynamodb: DynamoDeliveries
    memory: InMemoryDeliveries

    def apply(self, transition: Sequence[DeliveryWrite]) -> bool:
        return self._agreed(self.dynamodb.apply(transition), self.memory.apply(transition))

    def event(self, life: TenantEpoch, event_id: str) -> DispatchedEvent | None:
        return self._agreed(self.dynamodb.event(life, event_id), self.memory.event(life, event_id))

    def delivery(self, ref: DeliveryRef) -> Delivery | None:
        return self._agreed(self.dynamodb.delivery(ref), self.memory.delivery(ref))

    def __getattr__(self, name: str) -> object:
        return lambda *args, **named: self._agreed(
            getattr(self.dynamodb, name)(*args, **named), getattr(self.memory, name)(*args, **named)
        )

    def _agreed(self, stored: Result, remembered: Result) -> Result:
        assert stored == remembered
        return stored


@dataclass
class World:
    table: DeliveryTable
    events: DynamoEventWrites
    memory: InMemoryDeliveries
    clock: FakeClock = field(default_factory=FakeClock)
    connections: InMemoryConnections = field(default_factory=InMemoryConnections)
    sent: list[DeliveryMessage] = field(default_factory=list)
    """Messages that are on their way."""
    refuse_messages: bool = False
    answers: list[TryResult] = field(default_factory=list)
    """The answers of receivers, one after the other. After the last one, they take everything."""
    meanwhile: Callable[[], None] = lambda: None
    """Called during a try."""
    tried: list[Outgoing] = field(default_factory=list)

    def __post_init__(self) -> None:
        queue, clock = self, self.clock
        self.delivering = Delivering(
            table=self.table,
            connections=self.connections,
            changes=self.connections,
            sender=Receivers(self),
            queue=queue,
            clock=clock,
            monotonic=lambda: clock.now().timestamp(),
            draw=lambda: 0.5,
            pause=lambda _seconds: None,
        )
        self.dispatching = Dispatching(
            table=self.table,
            connections=self.connections,
            queue=queue,
            content_of=lambda event: event.content,
            clock=clock,
        )
        self.sweeping = Sweeping(
            table=self.table,
            connections=self.connections,
            changes=self.connections,
            dispatching=self.dispatching,
            queue=queue,
            clock=clock,
        )

    def send(self, messages: Sequence[DeliveryMessage]) -> Sequence[DeliveryMessage]:
        if self.refuse_messages:
            return messages
        self.sent += messages
        return []

    # Actions

    def connect(self, *ids: str, **changes: object) -> None:
        for each in ids:
            self.connections.put(connection(connection_id=each, **changes))

    def accept(
        self, *, in_inbox: bool = False, event_type: str = "order.created", body: bytes = b'{"order": 1}'
    ) -> Event:
        at = self.clock.now()
        event = Event(
            life=ACME_LIFE,
            event_id=new_event_id(at, 0),
            status=EventStatus.RECEIVED,
            event_type=event_type,
            content=Content(body),
            expires_at=(at + timedelta(days=8)).replace(microsecond=0),
            in_inbox=in_inbox,
        )
        self.events.put(event, pack(present(event.content)), type_index=False)
        self.memory.put_event(event)
        return event

    def dispatch(self, event: Event) -> Dispatched:
        return self.dispatching.dispatch([DispatchedEvent(event)])

    def accept_and_dispatch(self, **named: bool) -> Event:
        event = self.accept(**named)
        self.dispatch(event)
        return event

    def deliver_all(self) -> list[Outcome]:
        """Deliver the messages that are on their way, but not those that they cause."""
        messages, self.sent = self.sent, []
        return [self.delivering.deliver(message) for message in messages]

    def sweep(self) -> Swept:
        return self.sweeping.sweep(lambda: True)

    def pass_time(self, by: timedelta) -> None:
        self.clock.advance(by)

    # Rows

    def now(self, event: Event) -> DispatchedEvent:
        return present(self.table.event(event.life, event.event_id))

    def delivery(self, event: Event, connection_id: str = FIRST) -> Delivery:
        return present(self.table.delivery(DeliveryRef(event.life, event.event_id, connection_id)))

    def status(self, event: Event) -> EventStatus:
        return self.now(event).event.status

    def listed_as(self, event: Event) -> object:
        key = next(key for key in self.memory.events if key.event_id == event.event_id)
        return self.memory.rows[key].get("indexed_as")


@dataclass
class Receivers:
    world: World

    def send(self, outgoing: Outgoing) -> TryResult:
        self.world.tried.append(outgoing)
        self.world.meanwhile()
        return self.world.answers.pop(0) if self.world.answers else DELIVERED


@pytest.fixture
def world(events_table: DynamoDBClient) -> World:
    memory = InMemoryDeliveries()
    both = BothTables(DynamoDeliveries(events_table, EVENTS_TABLE), memory)
    return World(both, DynamoEventWrites(events_table, EVENTS_TABLE), memory)  # type: ignore[arg-type]


# Dispatching


def test_an_event_with_one_connection_is_sent_without_a_write(world: World) -> None:
    world.connect(FIRST)
    event = world.accept()
    before = dict(world.memory.rows)
    world.dispatch(event)
    assert [message.ref.connection_id for message in world.sent] == [FIRST]
    assert world.memory.rows == before


def test_an_event_that_no_connection_wants_is_filtered(world: World) -> None:
    world.connect(FIRST, filter={"event_type": "order.paid"})
    event = world.accept()
    assert world.dispatch(event).filtered == 1
    assert world.status(event) is EventStatus.FILTERED
    assert not world.sent


@pytest.mark.parametrize(
    ("body", "matches"),
    [
        (b'\xef\xbb\xbf{"order": 1}', True),
        ('{"order": 1}'.encode("utf-16"), True),
        (b'{"order": 2}', False),
        # A filter does not look into a payload that a transform does not take for JSON.
        (b'{"order": 1, "total": NaN}', False),
    ],
)
def test_a_filter_reads_a_payload_as_a_transform_does(world: World, body: bytes, matches: bool) -> None:
    world.connect(FIRST, filter={"payload": {"order": 1}})
    world.dispatch(world.accept(body=body))
    assert bool(world.sent) is matches


def test_an_event_in_the_inbox_that_no_connection_wants_stays_there(world: World) -> None:
    event = world.accept_and_dispatch(in_inbox=True)
    assert world.now(event).event.in_inbox
    assert world.status(event) is EventStatus.RECEIVED


def test_recipients_that_were_noted_first_stay_after_later_changes(world: World) -> None:
    world.connect(FIRST, SECOND)
    event = world.accept_and_dispatch()
    world.connect("conn_" + "3" * 24)
    world.connections.delete(SECOND)
    world.sent.clear()
    world.dispatch(event)
    assert sorted(message.ref.connection_id for message in world.sent) == [FIRST, SECOND]


def test_an_event_that_was_acknowledged_before_it_was_dispatched_still_reaches_its_connections(world: World) -> None:
    world.connect(FIRST)
    event = world.accept(in_inbox=True)
    world.table.apply(transitions.acknowledged(world.now(event), world.clock.now()))
    world.dispatch(event)
    assert world.status(event) is EventStatus.RECEIVED
    assert world.deliver_all() == [Outcome.DELIVERED]
    assert world.status(event) is EventStatus.DELIVERED


def test_a_message_that_could_not_be_sent_is_found_by_the_sweep(world: World) -> None:
    world.connect(FIRST)
    world.refuse_messages = True
    event = world.accept()
    assert world.dispatch(event).later
    assert world.delivery(event, DISPATCH).due is not None
    world.refuse_messages = False
    world.pass_time(A_MINUTE)
    assert world.sweep().dispatched == 1
    assert world.deliver_all() == [Outcome.DELIVERED]
    assert world.table.delivery(DeliveryRef(event.life, event.event_id, DISPATCH)) is None


def test_connections_that_are_failing_or_slow_do_not_share_the_quick_queue(world: World) -> None:
    world.connect(FIRST, SECOND)
    world.answers = [REFUSED]
    world.accept_and_dispatch()
    world.deliver_all()
    world.sent.clear()
    world.pass_time(timedelta(seconds=11))
    world.accept_and_dispatch()
    assert {message.ref.connection_id: message.quick for message in world.sent} == {FIRST: False, SECOND: True}


# Delivering


def test_first_tries_of_a_connection_that_has_become_slow_leave_the_quick_queue(world: World) -> None:
    """Or a receiver that hangs would take the quick queue with everything that was sent before anybody knew."""
    world.connect(FIRST)
    world.accept_and_dispatch()
    late = world.accept_and_dispatch()
    world.answers = [replace(DELIVERED, milliseconds=15_000)]
    assert world.deliver_all() == [Outcome.DELIVERED, Outcome.MOVED]
    assert [(each.quick, each.claims) for each in world.sent] == [(False, False)]
    assert len(world.tried) == 1
    assert world.deliver_all() == [Outcome.DELIVERED]
    assert world.status(late) is EventStatus.DELIVERED


def test_a_connection_leaves_the_quick_queue_while_its_receiver_hangs(world: World) -> None:
    world.connect(FIRST)
    world.accept_and_dispatch()
    world.meanwhile = world.delivering.note_slow
    world.answers = [replace(REFUSED, milliseconds=15_000)]
    (message,) = world.sent
    assert world.delivering.deliver(message) is Outcome.RETRYING
    world.sent.clear()
    world.accept_and_dispatch()
    assert [each.quick for each in world.sent] == [False]
    # Its failure is noted, too, at the end of the try.
    assert world.connections.all[FIRST].health.failing_since is not None


def test_a_try_that_took_long_and_ended_well_leaves_its_connection_among_the_slow(world: World) -> None:
    world.connect(FIRST)
    world.meanwhile = world.delivering.note_slow
    world.answers = [replace(DELIVERED, milliseconds=4_000)]
    world.accept_and_dispatch()
    assert world.deliver_all() == [Outcome.DELIVERED]
    world.accept_and_dispatch()
    assert [each.quick for each in world.sent] == [False]


def test_a_first_try_that_cannot_leave_the_quick_queue_is_made_there(world: World) -> None:
    world.connect(FIRST, health=Health(slow_since=world.clock.now()))
    event = world.accept()
    world.refuse_messages = True
    message = DeliveryMessage(DeliveryRef(ACME_LIFE, event.event_id, FIRST))
    assert world.delivering.deliver(message) is Outcome.DELIVERED


def test_a_receiver_that_is_slow_now_and_then_stays_among_the_slow(world: World) -> None:
    """However often it changes, it costs two writes in five minutes."""
    world.connect(FIRST)
    writes: list[Health] = []
    set_health = world.connections.set_health
    world.connections.set_health = lambda *args, **named: writes.append(args[1]) or set_health(*args, **named)  # type: ignore[method-assign,func-returns-value]
    slow = replace(DELIVERED, milliseconds=15_000)
    for answer in (slow, DELIVERED, slow, DELIVERED, slow, DELIVERED):
        world.answers = [answer]
        world.accept_and_dispatch()
        while world.sent:
            world.deliver_all()
        world.pass_time(timedelta(seconds=20))
    assert len(writes) == 1
    world.pass_time(SLOW_FOR)
    world.accept_and_dispatch()
    assert [each.quick for each in world.sent] == [False]
    world.deliver_all()
    world.accept_and_dispatch()
    assert [each.quick for each in world.sent] == [True]


def test_a_delivery_that_succeeds_at_the_first_try_is_one_write(world: World) -> None:
    world.connect(FIRST)
    event = world.accept_and_dispatch()
    assert world.deliver_all() == [Outcome.DELIVERED]
    now = world.now(event)
    assert (now.event.status, now.event.delivered_at) == (EventStatus.DELIVERED, world.clock.now())
    assert len(world.memory.rows) == 1
    assert present(now.entries)[FIRST].code == 200


def test_the_last_connection_that_is_done_sets_the_status(world: World) -> None:
    world.connect(FIRST, SECOND)
    event = world.accept_and_dispatch(in_inbox=True)
    assert world.now(event).pending == {FIRST, SECOND, INBOX}
    world.deliver_all()
    assert world.status(event) is EventStatus.RECEIVED
    assert world.listed_as(event) == "undelivered"
    world.table.apply(transitions.acknowledged(world.now(event), world.clock.now()))
    assert world.status(event) is EventStatus.DELIVERED
    assert world.listed_as(event) is None


def test_a_message_that_comes_twice_sends_once(world: World) -> None:
    world.connect(FIRST)
    world.accept_and_dispatch()
    world.sent *= 2
    assert world.deliver_all() == [Outcome.DELIVERED, Outcome.FINISHED]
    assert len(world.tried) == 1


def test_a_failure_is_on_record_with_its_attempt_and_a_time_for_the_next_try(world: World) -> None:
    world.connect(FIRST)
    event = world.accept_and_dispatch()
    world.answers = [REFUSED]
    assert world.deliver_all() == [Outcome.RETRYING]
    assert world.status(event) is EventStatus.RETRYING
    assert world.listed_as(event) == EventStatus.RETRYING
    (attempt,) = world.table.attempts(event.life, event.event_id)
    assert (attempt.number, attempt.delivered, attempt.code, attempt.text) == (1, False, 500, "no")
    delivery = world.delivery(event)
    assert (delivery.state, delivery.tries) == (DeliveryState.RETRYING, 1)
    (message,) = world.sent
    assert (message.claims, message.tries, message.quick) == (True, 1, False)
    assert message.delay == timedelta(seconds=5)
    assert delivery.due == world.clock.now() + message.delay + GRACE


def test_a_retry_that_succeeds_ends_the_delivery_with_the_same_id(world: World) -> None:
    world.connect(FIRST)
    event = world.accept_and_dispatch()
    world.answers = [REFUSED]
    world.deliver_all()
    assert world.deliver_all() == [Outcome.DELIVERED]
    assert world.status(event) is EventStatus.DELIVERED
    assert world.listed_as(event) is None
    assert world.now(event).event.retry_count == 1
    assert [attempt.delivered for attempt in world.table.attempts(event.life, event.event_id)] == [False, True]
    assert len({each.delivery_id for each in world.tried}) == 1


def test_a_delivery_fails_for_good_after_its_last_try(world: World) -> None:
    world.connect(FIRST)
    event = world.accept_and_dispatch()
    world.answers = [REFUSED] * 8
    outcomes = world.deliver_all()
    for _ in range(20):
        outcomes += world.deliver_all()
        world.connections.set_health(world.connections.all[FIRST], connection().health, draining=False)
        world.pass_time(timedelta(hours=3))
        world.sweep()
    assert outcomes.count(Outcome.RETRYING) == 7
    assert outcomes.count(Outcome.FAILED) == 1
    assert world.status(event) is EventStatus.FAILED
    assert world.listed_as(event) == EventStatus.FAILED
    assert present(world.now(event).entries)[FIRST].reason == "no"
    refs, cursor = world.table.failed(FIRST, after=None, limit=10)
    assert ([ref.event_id for ref in refs], cursor) == ([event.event_id], None)


def test_an_event_has_failed_if_one_of_its_connections_has(world: World) -> None:
    world.connect(FIRST, SECOND)
    event = world.accept_and_dispatch()
    world.answers = [TryResult(Verdict.GIVE_UP, 20, 400, "not this one")]
    assert sorted(world.deliver_all()) == [Outcome.DELIVERED, Outcome.FAILED]
    assert world.status(event) is EventStatus.FAILED
    assert world.connections.all[FIRST].status is ConnectionStatus.ACTIVE


def test_a_wait_that_no_message_can_have_is_found_by_the_sweep(world: World) -> None:
    world.connect(FIRST)
    event = world.accept_and_dispatch()
    later = replace(REFUSED, retry_after=MAX_DELAY + A_MINUTE)
    world.answers = [later]
    world.deliver_all()
    assert not world.sent
    assert world.delivery(event).due == world.clock.now() + MAX_DELAY + A_MINUTE
    world.sweep()
    assert not world.sent
    world.pass_time(MAX_DELAY)
    assert world.sweep().sent == 1
    assert [message.delay for message in world.sent] == [A_MINUTE]
    assert world.deliver_all() == [Outcome.DELIVERED]


def test_a_retry_whose_message_is_lost_is_sent_again_ever_more_seldom(world: World) -> None:
    world.connect(FIRST)
    event = world.accept_and_dispatch()
    world.answers = [REFUSED]
    world.deliver_all()
    sweeps = []
    for minute in range(20):
        world.sent.clear()
        world.pass_time(A_MINUTE)
        if world.sweep().sent:
            sweeps.append(minute)
    assert sweeps == sorted(sweeps)
    assert 2 <= len(sweeps) <= 4
    assert world.delivery(event).tries == 1


def test_a_message_of_an_earlier_try_starts_none(world: World) -> None:
    world.connect(FIRST)
    world.accept_and_dispatch()
    world.answers = [REFUSED, REFUSED]
    world.deliver_all()
    (late,) = world.sent
    world.deliver_all()
    assert world.delivering.deliver(late) is Outcome.STALE


def test_two_functions_never_try_the_same_retry_at_the_same_time(world: World) -> None:
    world.connect(FIRST)
    event = world.accept_and_dispatch()
    world.answers = [REFUSED]
    world.deliver_all()
    before = world.delivery(event)
    world.table.apply(transitions.changed(before, replace(before, leased_until=world.clock.now() + A_MINUTE)))
    assert world.deliver_all() == [Outcome.STALE]


def test_a_message_of_an_event_that_is_gone_ends(world: World) -> None:
    gone = DeliveryRef(ACME_LIFE, new_event_id(world.clock.now(), 0), FIRST)
    assert world.delivering.deliver(DeliveryMessage(gone)) is Outcome.MISSING


def test_a_delivery_is_never_parked_without_its_event(world: World) -> None:
    gone = DeliveryRef(ACME_LIFE, new_event_id(world.clock.now(), 0), FIRST)
    parked = Delivery(gone, DeliveryState.PARKED, 0, world.clock.now(), world.clock.now())
    assert not world.table.apply(transitions.changed(None, parked))
    assert not world.memory.rows


# Connections that are paused, broken, disabled, deleted


def test_a_paused_connection_parks_and_a_resumed_one_gets_everything_oldest_first(world: World) -> None:
    world.connect(FIRST, status=ConnectionStatus.PAUSED)
    events = []
    for _ in range(6):
        events.append(world.accept_and_dispatch())
        world.pass_time(timedelta(seconds=1))
    assert not world.sent
    assert [ref.event_id for ref in world.table.parked(FIRST, 10)] == [event.event_id for event in events]
    world.connections.resume(FIRST)
    world.sweep()
    assert [message.ref.event_id for message in world.sent] == [event.event_id for event in events]
    assert set(world.deliver_all()) == {Outcome.DELIVERED}


def test_the_deliveries_of_an_event_to_paused_connections_are_parked_by_one_write(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tenant with many paused connections must not hold up the stream, which has the events of others, too."""
    world.connect(FIRST, SECOND, status=ConnectionStatus.PAUSED)
    event, applied, apply = world.accept(), list[int](), world.table.apply

    def counted(transition: Sequence[DeliveryWrite]) -> bool:
        applied.append(len(transition))
        return apply(transition)

    monkeypatch.setattr(world.table, "apply", counted)
    assert world.dispatch(event).parked == 2
    # Which connections are to have the event, and then the event's row with both deliveries.
    assert applied == [1, 3]
    assert [world.delivery(event, each).state for each in (FIRST, SECOND)] == [DeliveryState.PARKED] * 2


def test_a_batch_that_comes_again_parks_what_was_not_parked_before(world: World) -> None:
    world.connect(FIRST, status=ConnectionStatus.PAUSED)
    world.connect(SECOND)
    event = world.accept()
    assert world.dispatch(event).parked == 1
    world.connect(SECOND, status=ConnectionStatus.PAUSED)
    assert world.dispatch(event).parked == 1
    assert world.dispatch(event).parked == 0
    assert [world.delivery(event, each).state for each in (FIRST, SECOND)] == [DeliveryState.PARKED] * 2


def test_a_connection_is_drained_once_its_park_was_found_empty_twice_two_minutes_apart(world: World) -> None:
    world.connect(FIRST, status=ConnectionStatus.PAUSED)
    world.connections.resume(FIRST)
    world.sweep()
    world.pass_time(A_MINUTE)
    world.sweep()
    assert world.connections.all[FIRST].draining
    world.pass_time(A_MINUTE)
    world.sweep()
    assert not world.connections.all[FIRST].draining


def test_a_delivery_that_arrives_at_a_paused_connection_is_parked(world: World) -> None:
    world.connect(FIRST)
    event = world.accept_and_dispatch()
    world.connections.pause(FIRST)
    assert world.deliver_all() == [Outcome.PARKED]
    assert world.delivery(event).state is DeliveryState.PARKED
    assert not world.tried


def test_deliveries_parked_for_a_deleted_connection_fail_and_its_row_goes(world: World) -> None:
    world.connect(FIRST, status=ConnectionStatus.PAUSED)
    event = world.accept_and_dispatch()
    world.connections.delete(FIRST)
    assert world.sweep().failed == 1
    assert present(world.now(event).entries)[FIRST].reason == "The connection was deleted."
    assert world.status(event) is EventStatus.FAILED
    for _ in range(4):
        world.pass_time(A_MINUTE)
        world.sweep()
    assert FIRST not in world.connections.all


def test_a_delivery_parked_for_too_long_fails_before_its_event_expires(world: World) -> None:
    world.connect(FIRST, status=ConnectionStatus.PAUSED)
    event = world.accept_and_dispatch()
    world.pass_time(timedelta(days=7, hours=22))
    assert world.sweep().failed == 0
    world.pass_time(timedelta(hours=1))
    assert world.sweep().failed == 1
    assert present(world.now(event).entries)[FIRST].reason == EXPIRED


def test_the_breaker_parks_tries_one_delivery_and_lets_all_go_when_that_succeeds(world: World) -> None:
    world.connect(FIRST)
    world.answers = [REFUSED] * 2
    first = world.accept_and_dispatch()
    world.deliver_all()
    world.sent.clear()
    world.pass_time(BREAKER_AFTER)
    world.sweep()
    assert world.deliver_all() == [Outcome.RETRYING]
    assert world.connections.all[FIRST].health.open_until is not None
    events = [world.accept_and_dispatch() for _ in range(3)]
    assert [world.delivery(event).state for event in events] == [DeliveryState.PARKED] * 3
    world.sent.clear()
    world.pass_time(A_MINUTE)
    assert world.sweep().unparked == 1
    assert Outcome.DELIVERED in world.deliver_all()
    assert world.connections.all[FIRST].draining
    assert world.sweep().unparked == 2
    world.deliver_all()
    assert [world.status(event) for event in events] == [EventStatus.DELIVERED] * 3
    assert world.status(first) is EventStatus.RETRYING


def test_a_receiver_that_does_not_want_an_event_works_and_gets_what_is_parked(world: World) -> None:
    """Otherwise the parked deliveries would be tried one by one, 15 minutes apart, until the last of them expire."""
    world.connect(FIRST)
    world.answers = [REFUSED] * 2
    world.accept_and_dispatch()
    world.deliver_all()
    world.sent.clear()
    world.pass_time(BREAKER_AFTER)
    world.sweep()
    world.deliver_all()
    events = [world.accept_and_dispatch() for _ in range(3)]
    world.sent.clear()
    world.pass_time(A_MINUTE)
    world.sweep()
    world.answers = [TryResult(Verdict.GIVE_UP, 20, 400, "not this one")] * 4
    world.deliver_all()
    assert world.connections.all[FIRST].health == Health()
    assert world.sweep().unparked == 2
    world.deliver_all()
    assert [world.status(event) for event in events] == [EventStatus.FAILED] * 3


def test_an_event_that_cannot_be_sent_says_nothing_about_the_receiver(world: World) -> None:
    failing = Health(failing_since=world.clock.now())
    world.connect(FIRST, health=failing)
    world.answers = [TryResult(Verdict.GIVE_UP, 0, text="The content of the event has expired.")]
    world.accept_and_dispatch()
    assert world.deliver_all() == [Outcome.FAILED]
    assert world.connections.all[FIRST].health == failing


def test_a_receiver_that_is_gone_disables_its_connection(world: World) -> None:
    world.connect(FIRST)
    event = world.accept_and_dispatch()
    world.answers = [TryResult(Verdict.GONE, 20, 410, "gone")]
    assert world.deliver_all() == [Outcome.FAILED]
    there = world.connections.all[FIRST]
    assert (there.status, there.reason) == (ConnectionStatus.DISABLED, "The receiver answered 410: it is gone.")
    assert world.status(event) is EventStatus.FAILED


def test_a_connection_is_disabled_after_five_days_of_nothing_but_failures(world: World) -> None:
    world.connect(FIRST)
    world.answers = [REFUSED] * 2
    world.accept_and_dispatch()
    world.deliver_all()
    world.sent.clear()
    world.pass_time(DISABLED_AFTER)
    world.accept_and_dispatch()
    world.deliver_all()
    there = world.connections.all[FIRST]
    assert there.status is ConnectionStatus.DISABLED
    assert "The last answer: 500 no" in present(there.reason)


# Dead letters, and what the stream has lost


def test_a_dead_letter_is_due_again_and_the_third_one_fails_as_internal(world: World) -> None:
    world.connect(FIRST)
    event = world.accept_and_dispatch()
    (message,) = world.sent
    recovering = Recovering(table=world.table, clock=world.clock)
    assert recovering.recover(message) is Recovered.DUE
    assert world.delivery(event).due is not None
    again = DeliveryMessage(message.ref, claims=True)
    assert [recovering.recover(again), recovering.recover(again)] == [Recovered.DUE, Recovered.FAILED]
    assert present(world.now(event).entries)[FIRST].reason == INTERNAL


def test_a_dead_letter_of_a_delivery_that_has_ended_changes_nothing(world: World) -> None:
    world.connect(FIRST)
    world.accept_and_dispatch()
    (message,) = world.sent
    world.deliver_all()
    assert Recovering(table=world.table, clock=world.clock).recover(message) is Recovered.NOTHING_TO_DO


def test_the_nightly_run_finds_events_that_the_stream_lost(world: World) -> None:
    world.connect(FIRST)
    event = world.accept()
    world.pass_time(timedelta(hours=1))
    redispatching = at_night(world)
    assert redispatching.nightly(lambda: True).sent == 1
    assert world.deliver_all() == [Outcome.DELIVERED]
    assert redispatching.nightly(lambda: True).events == 0
    within = IdRange(before=new_event_id(world.clock.now(), 0))
    assert world.table.untried(event.life, 0, within, submissions=False, after=None) == ([], None)


def test_an_event_found_by_the_nightly_run_is_tried_even_if_its_message_is_lost_again(world: World) -> None:
    world.connect(FIRST)
    world.accept()
    world.pass_time(timedelta(hours=1))
    at_night(world).nightly(lambda: True)
    world.sent.clear()
    world.pass_time(GRACE)
    assert world.sweep().sent == 1
    assert world.deliver_all() == [Outcome.DELIVERED]


def test_a_connection_does_not_get_events_that_are_older_than_it(world: World) -> None:
    event = world.accept_and_dispatch(in_inbox=True)
    world.pass_time(timedelta(hours=1))
    world.connect(FIRST, created_at=world.clock.now())
    assert at_night(world).nightly(lambda: True).sent == 0
    assert world.now(event).pending is None


def at_night(world: World) -> Redispatching:
    return Redispatching(
        settings=Tenants([event_settings()]), table=world.table, dispatching=world.dispatching, clock=world.clock
    )


@dataclass
class Tenants:
    all: Sequence[EventSettings]

    def listed_settings(self) -> Sequence[EventSettings]:
        return self.all

    def current_epochs(self, lives: object) -> object:
        return lives


def test_the_lists_of_what_is_due_are_in_the_order_of_time(world: World) -> None:
    world.connect(FIRST, SECOND)
    world.answers = [replace(REFUSED, retry_after=timedelta(hours=hours)) for hours in (3, 1, 2, 4)]
    for _ in range(2):
        world.accept_and_dispatch()
    world.deliver_all()
    world.deliver_all()
    until = world.clock.now() + timedelta(hours=3, minutes=30)
    due = [ref for shard in range(SHARDS) for ref in world.table.due(shard, until, 100)[0]]
    assert len(due) == 3


@pytest.mark.parametrize("latest_first", [False, True])
def test_due_deliveries_are_listed_page_by_page_from_either_end(
    world: World, monkeypatch: pytest.MonkeyPatch, latest_first: bool
) -> None:
    monkeypatch.setattr(delivery_keys, "due_shard", lambda _ref: 0)
    world.connect(FIRST)
    world.answers = [replace(REFUSED, retry_after=timedelta(hours=hours)) for hours in (3, 1, 2, 4, 5)]
    for _ in range(5):
        world.accept_and_dispatch()
        world.deliver_all()
    until = world.clock.now() + timedelta(hours=4, minutes=30)
    found: list[DeliveryRef] = []
    cursor: str | None = None
    for _ in range(3):
        page, cursor = world.table.due(0, until, 2, latest_first=latest_first, cursor=cursor)
        found += page
    dues = [present(world.table.delivery(ref)).due for ref in found]
    assert dues == sorted(dues, key=present, reverse=latest_first)
    assert len(set(dues)) == 4
    assert cursor is None
