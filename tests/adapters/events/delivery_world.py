"""Deliveries on DynamoDB by moto, with receivers that a test scripts: dispatched, tried and swept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from orchestrator.adapters.dynamodb import event_keys
from orchestrator.adapters.dynamodb.connection_rows import connection_row, key_of, pointer_row
from orchestrator.adapters.dynamodb.connections import DynamoConnectionChanges, DynamoConnections
from orchestrator.adapters.dynamodb.deliveries import DynamoDeliveries
from orchestrator.adapters.dynamodb.event_configuration_writes import DynamoConfigurationTable
from orchestrator.adapters.dynamodb.event_reads import DynamoEventReads
from orchestrator.adapters.dynamodb.events import DynamoEventWrites
from orchestrator.adapters.dynamodb.replays import DynamoReplays
from orchestrator.adapters.event_contents import S3Contents
from orchestrator.events.accepting import Accepted, Accepting, NewEvent
from orchestrator.events.changes import Recorder
from orchestrator.events.delivery.delivering import Delivering, Outcome
from orchestrator.events.delivery.dispatching import Dispatching
from orchestrator.events.delivery.history import DeliveryHistory
from orchestrator.events.delivery.messages import DeliveryMessage
from orchestrator.events.delivery.records import Connection, Delivery, DeliveryRef, Outgoing, TryResult, Verdict
from orchestrator.events.delivery.redispatching import Redispatched, Redispatching
from orchestrator.events.delivery.replaying import Replaying
from orchestrator.events.delivery.replays import ManagingReplays
from orchestrator.events.delivery.resending import Resending
from orchestrator.events.delivery.sweeping import Sweeping, Swept
from orchestrator.events.inbox import Inbox
from orchestrator.events.listing import Listing
from orchestrator.events.plans import Plan
from orchestrator.events.quotas import Quotas
from orchestrator.events.records import Content, Event, EventSettings, UnreadableRow
from orchestrator.events.statuses import EventStatus
from tests.adapters.conftest import TABLE
from tests.adapters.events.lives import BUCKET, EVENTS_TABLE
from tests.fakes import FakeClock
from tests.fakes.events import ACME_LIFE, OPERATOR, Watch, connection, event_settings, standing
from tests.present import present

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client

TAKEN = TryResult(Verdict.DELIVERED, 12, 200, "thanks")
BROKEN = TryResult(Verdict.RETRY, 34, 500, "out of order")
UNWANTED = TryResult(Verdict.GIVE_UP, 5, 400, "never send this again")
FIRST, SECOND = (f"conn_{digit * 24}" for digit in "12")


@dataclass
class FakeMessages:
    """Implements :class:`orchestrator.events.delivery.ports.MessageQueue`. Messages wait until a test takes them."""

    waiting: list[DeliveryMessage] = field(default_factory=list)
    loses: bool = False

    def send(self, messages: Sequence[DeliveryMessage]) -> Sequence[DeliveryMessage]:
        if self.loses:
            return messages
        self.waiting += messages
        return []

    def take(self) -> list[DeliveryMessage]:
        taken, self.waiting = self.waiting, []
        return taken


@dataclass
class ScriptedReceivers:
    """Implements :class:`orchestrator.events.delivery.ports.Sender`: each connection answers as a test says."""

    answers: dict[str, TryResult] = field(default_factory=dict)
    tried: list[tuple[str, str]] = field(default_factory=list)
    """The event and the connection of each try."""

    def send(self, outgoing: Outgoing) -> TryResult:
        connection_id = outgoing.connection.connection_id
        self.tried.append((outgoing.event.event_id, connection_id))
        return self.answers.get(connection_id, TAKEN)

    def count(self, event_id: str, connection_id: str = FIRST) -> int:
        return self.tried.count((event_id, connection_id))


class DeliveryWorld:
    """The tenant acme, with events and deliveries. Events do not wait in an inbox unless a test says so."""

    def __init__(self, dynamodb: DynamoDBClient, s3: S3Client) -> None:
        self.dynamodb = dynamodb
        self.clock = FakeClock()
        self.watch = Watch()
        self.messages = FakeMessages()
        self.receivers = ScriptedReceivers()
        self.table = DynamoDeliveries(dynamodb, EVENTS_TABLE)
        self.damaged: list[str] = []
        """The rows of connections that a test has damaged. No other row may be reported as unreadable."""
        self.reported: list[str] = []
        self.connections = DynamoConnections(dynamodb, TABLE, report=self._report)
        self.changes = DynamoConnectionChanges(
            dynamodb, TABLE, events_table=EVENTS_TABLE, recorder=Recorder("berth", self.clock)
        )
        contents, reads = S3Contents(lambda: s3, BUCKET), DynamoEventReads(dynamodb, EVENTS_TABLE)
        self.listing = Listing(events=reads, contents=contents, clock=self.clock)
        self.inbox = Inbox(events=reads, acknowledgements=reads, listing=self.listing, clock=self.clock)
        self.accepting = Accepting(
            events=DynamoEventWrites(dynamodb, EVENTS_TABLE),
            contents=contents,
            quotas=Quotas(monotonic=self.watch),
            clock=self.clock,
        )
        self.dispatching = Dispatching(
            table=self.table,
            connections=self.connections,
            queue=self.messages,
            content_of=lambda event: self.listing.with_content(event).content,
            clock=self.clock,
        )
        self.delivering = Delivering(
            table=self.table,
            connections=self.connections,
            changes=self.changes,
            sender=self.receivers,
            queue=self.messages,
            clock=self.clock,
            monotonic=self.watch,
            draw=lambda: 0.5,
            pause=lambda _seconds: None,
        )
        self.sweeping = Sweeping(
            table=self.table,
            connections=self.connections,
            changes=self.changes,
            dispatching=self.dispatching,
            queue=self.messages,
            clock=self.clock,
        )
        by_id = DynamoConfigurationTable(
            dynamodb, TABLE, events_table=EVENTS_TABLE, recorder=Recorder(OPERATOR, self.clock)
        )
        self.redispatching = Redispatching(
            settings=self, table=self.table, dispatching=self.dispatching, clock=self.clock
        )
        self.resending = Resending(table=self.table, connections=by_id, queue=self.messages, clock=self.clock)
        self.replays = DynamoReplays(dynamodb, EVENTS_TABLE)
        self.managing = ManagingReplays(
            replays=self.replays, connections=by_id, origins=self.connections, clock=self.clock
        )
        self.history = DeliveryHistory(table=self.table, connections=by_id, origins=self.connections, clock=self.clock)

    def replaying(self) -> Replaying:
        return Replaying(
            replays=self.replays,
            table=self.table,
            connections=self.connections,
            dispatching=self.dispatching,
            queue=self.messages,
            clock=self.clock,
            random_below=lambda _number: 0,
        )

    def connect(self, connection_id: str = FIRST, **changes: Any) -> Connection:
        record = connection(connection_id=connection_id, **changes)
        self.dynamodb.put_item(TableName=TABLE, Item={**key_of(record), **connection_row(record)})
        pointer = event_keys.pointer_key(record.life, record.connection_id)
        self.dynamodb.put_item(TableName=TABLE, Item={**pointer, **pointer_row(record)})
        return record

    def damage(self, record: Connection) -> None:
        key = key_of(record)
        self.damaged.append(f"{key['pk']['S']} / {key['sk']['S']}")
        self.dynamodb.update_item(
            TableName=TABLE,
            Key=key,
            UpdateExpression="SET destination = :nonsense",
            ExpressionAttributeValues={":nonsense": {"S": "pigeon"}},
        )

    def _report(self, row: UnreadableRow) -> None:
        assert row.row in self.damaged
        self.reported.append(row.row)

    def wait(self, duration: timedelta) -> None:
        self.clock.advance(duration)
        self.watch.seconds += duration.total_seconds()

    # From an event to its end

    def accept(
        self,
        *,
        inbox: bool = False,
        shards: int = 1,
        plan: Plan = Plan.PRO,
        event_type: str = "order.created",
        body: bytes = b"{}",
        **new: Any,
    ) -> str:
        self.wait(timedelta(milliseconds=1))
        accepted = self.accepting.accept(
            standing(inbox=inbox, shards=shards, plan=plan), NewEvent(event_type, Content(body), **new)
        )
        assert isinstance(accepted, Accepted)
        return accepted.event_id

    def dispatch(self, event_id: str) -> None:
        self.dispatching.dispatch([present(self.table.event(ACME_LIFE, event_id))])

    def deliver(self) -> list[Outcome]:
        """Handle the messages that wait. Messages of the next tries wait until their time has come."""
        return [self.delivering.deliver(message) for message in self.messages.take()]

    def send(self, *, inbox: bool = False, **new: Any) -> str:
        """An event that was dispatched, and whose first tries are over."""
        event_id = self.accept(inbox=inbox, **new)
        self.dispatch(event_id)
        self.deliver()
        return event_id

    def sweep(self) -> Swept:
        return self.sweeping.sweep(lambda: True)

    def redispatch(self) -> Redispatched:
        """The run of every night."""
        return self.redispatching.nightly(lambda: True)

    def listed_settings(self) -> Sequence[EventSettings]:
        return [event_settings()]

    # Looking

    def status(self, event_id: str) -> EventStatus:
        return self.event(event_id).status

    def event(self, event_id: str) -> Event:
        return present(self.table.event(ACME_LIFE, event_id)).event

    def delivery(self, event_id: str, connection_id: str = FIRST) -> Delivery:
        return present(self.table.delivery(DeliveryRef(ACME_LIFE, event_id, connection_id)))

    def waits_in_inbox(self) -> list[str]:
        return [event.event_id for event in self.inbox.page(event_settings(), limit=100).events]
