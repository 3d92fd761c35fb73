"""Counts the requests and the capacity units per delivered event, beyond those that accepting it costs.

The events are dispatched and delivered by the product's own code, on the tables of the emulator. Receivers are played.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import boto3

from bench.event_capacity import accepting_of, counted
from bench.event_plane import EventPlane, event_plane
from bench.event_settings import EVENTS_TABLE, TABLE
from bench.measure import Result
from orchestrator.adapters.aws import SystemClock
from orchestrator.adapters.dynamodb.connection_rows import connection_row, key_of
from orchestrator.adapters.dynamodb.connections import DynamoConnectionChanges, DynamoConnections
from orchestrator.adapters.dynamodb.deliveries import DynamoDeliveries
from orchestrator.events.changes import Recorder
from orchestrator.events.delivery.delivering import Delivering, Outcome
from orchestrator.events.delivery.dispatching import Dispatching
from orchestrator.events.delivery.messages import DeliveryMessage
from orchestrator.events.delivery.records import (
    API_ORIGIN,
    Connection,
    ConnectionStatus,
    Destination,
    DestinationKind,
    Outgoing,
    TryResult,
    Verdict,
)
from orchestrator.events.records import EventSettings, TenantEpoch, UnreadableRow

DELIVERIES = 100
"""The number of events of each path."""
_TAKEN = TryResult(Verdict.DELIVERED, 12, 200, "thanks")
_BROKEN = TryResult(Verdict.RETRY, 34, 500, "out of order")
_BETWEEN_TRIES = timedelta(seconds=30)
"""Shorter than the time after which the breaker of a connection opens: then nothing is tried."""


@dataclass(frozen=True)
class DeliveryPath:
    """One way of an event after it was accepted, and what it costs beyond that."""

    name: str
    requests: int
    write_units: int
    read_units: int
    answers: Sequence[TryResult] = (_TAKEN,)
    """One for each try."""
    counts_from: int = 0
    """The tries before this one are made, and not counted. 0: everything is counted, from the dispatch on."""
    connections: int = 1
    inbox: bool = False
    wants: Mapping[str, Any] | None = None
    paused: bool = False
    is_floor: bool = True
    """True if the design says what the path costs. The others are counted, and written down."""


PATHS: Sequence[DeliveryPath] = (
    DeliveryPath("one connection, first try", 2, 1, 1),
    DeliveryPath("two connections, first try", 5, 3, 2, connections=2),
    DeliveryPath("three connections, first try", 7, 4, 3, connections=3),
    DeliveryPath("one connection, first try, inbox", 3, 2, 1, inbox=True),
    DeliveryPath("filtered", 1, 1, 0, wants={"event_type": "never.sent"}),
    DeliveryPath("first try that fails", 2, 8, 1, (_BROKEN,), is_floor=False),
    DeliveryPath("second try that fails", 4, 9, 2, (_BROKEN, _BROKEN), counts_from=1, is_floor=False),
    DeliveryPath("second try that succeeds", 4, 9, 2, (_BROKEN, _TAKEN), counts_from=1, is_floor=False),
    DeliveryPath("parked, because the connection is paused", 1, 5, 0, paused=True, is_floor=False),
)


def events_delivery_capacity(deliveries: int = DELIVERIES) -> list[Result]:
    with event_plane() as plane:
        return delivery_capacity_results(plane, deliveries)


def delivery_capacity_results(plane: EventPlane, deliveries: int) -> list[Result]:
    results: list[Result] = []
    wrong: list[str] = []
    for path in PATHS:
        units = Deliveries(plane, path).count(deliveries)
        for what, unit, expected in (
            ("requests", "", path.requests),
            ("write units", "WCU", path.write_units),
            ("read units", "RCU", path.read_units),
        ):
            name, value = f"events: {path.name}: {what} per event", units[what] / deliveries
            results.append(Result(name, value, unit, str(expected) if path.is_floor else ""))
            wrong += [name] if value != expected else []
    results.append(Result("events: figures of deliveries that differ", len(wrong), "", "0", tuple(wrong)))
    return results


@dataclass
class _Messages:
    """Implements ``MessageQueue``: messages wait until they are taken."""

    waiting: list[DeliveryMessage] = field(default_factory=list)

    def send(self, messages: Sequence[DeliveryMessage]) -> Sequence[DeliveryMessage]:
        self.waiting += messages
        return []

    def take(self) -> list[DeliveryMessage]:
        taken, self.waiting = self.waiting, []
        return taken


@dataclass
class _Receiver:
    """Implements ``Sender``."""

    answer: TryResult = _TAKEN

    def send(self, _outgoing: Outgoing) -> TryResult:
        return self.answer


@dataclass
class _Clock:
    """Moves on from one try to the next."""

    ahead: timedelta = timedelta()

    def now(self) -> datetime:
        return SystemClock().now() + self.ahead


class Deliveries:
    """The deliveries of one path, with a client of their own, whose requests can be counted."""

    def __init__(self, plane: EventPlane, path: DeliveryPath) -> None:
        self._plane = plane
        self._path = path
        self._client: Any = boto3.session.Session().client("dynamodb")
        self._settings: EventSettings = replace(plane.settings, inbox=path.inbox, type_index=False)
        self._messages, self._receiver, self._clock = _Messages(), _Receiver(), _Clock()
        self._table = DynamoDeliveries(self._client, EVENTS_TABLE)
        connections = DynamoConnections(self._client, TABLE, report=_refuse)
        self._dispatching = Dispatching(
            table=self._table,
            connections=connections,
            queue=self._messages,
            content_of=lambda event: event.content,
            clock=self._clock,
        )
        self._delivering = Delivering(
            table=self._table,
            connections=connections,
            changes=DynamoConnectionChanges(
                self._client, TABLE, events_table=EVENTS_TABLE, recorder=Recorder("bench", self._clock)
            ),
            sender=self._receiver,
            queue=self._messages,
            clock=self._clock,
            monotonic=time.monotonic,
            draw=lambda: 0.5,
            pause=time.sleep,
        )

    def count(self, number: int) -> Counter[str]:
        with self._connected():
            accept = accepting_of(self._plane.client, self._settings)
            ids = [accept(None) for _ in range(number)]
            units: Counter[str] = Counter()
            for event_id in ids:
                units += self._delivered(event_id)
            return units

    def _delivered(self, event_id: str) -> Counter[str]:
        path, life = self._path, self._settings.life
        event = self._table.event(life, event_id)
        assert event is not None
        self._clock.ahead = timedelta()
        self._messages.take()
        units: Counter[str] = Counter()
        with counted(self._client) as found:
            self._dispatching.dispatch([event])
        units += Counter() if path.counts_from else found
        for number, answer in enumerate(path.answers):
            self._receiver.answer = answer
            with counted(self._client) as found:
                outcomes = [self._delivering.deliver(message) for message in self._messages.take()]
            self._check(outcomes, answer)
            units += Counter() if number < path.counts_from else found
            self._clock.ahead += _BETWEEN_TRIES
        return units

    def _check(self, outcomes: Sequence[Outcome], answer: TryResult) -> None:
        path = self._path
        outcome = Outcome.DELIVERED if answer.verdict is Verdict.DELIVERED else Outcome.RETRYING
        expected = [] if path.wants or path.paused else [outcome] * path.connections
        if outcomes != expected:
            raise RuntimeError(f"{path.name}: the tries ended {outcomes}, and not {expected}.")

    @contextmanager
    def _connected(self) -> Iterator[None]:
        """Let the tenant have the connections of the path, and none of another path."""
        status = ConnectionStatus.PAUSED if self._path.paused else ConnectionStatus.ACTIVE
        life: TenantEpoch = self._settings.life
        connections = [
            Connection(
                life,
                f"conn_{number:024}",
                API_ORIGIN,
                "bench",
                Destination(DestinationKind.WEBHOOK, "https://example.com/hook"),
                status,
                self._settings.created_at,
                filter=self._path.wants,
            )
            for number in range(self._path.connections)
        ]
        for each in connections:
            self._plane.client.put_item(TableName=TABLE, Item={**key_of(each), **connection_row(each)})
        try:
            yield
        finally:
            for each in connections:
                self._plane.client.delete_item(TableName=TABLE, Key=key_of(each))


def _refuse(row: UnreadableRow) -> None:
    raise AssertionError(f"A row cannot be read: {row}")
