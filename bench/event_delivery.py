"""Events of many tenants to many receivers, some of them dead or slow, from the request to the receiver.

The functions that accept, dispatch and deliver run in this process, with tables and queues on an emulator; a small loop
plays the stream and the queues of Lambda (:mod:`bench.played_lambda`). The emulator's own way from a stream to a
function is not used: it would measure the emulator. Events are published at a fixed rate, and then the receivers are
asked for each of them.

The floor is the same without Berth: a message per event with its body, and a function that posts it.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from itertools import count
from typing import Any

import boto3
from botocore.config import Config

from bench.delivery_checks import Checked, Published, check, event_type_of, kinds_of, tenant_of
from bench.delivery_receivers import ID_HEADER, LOOPBACK, Kind, Receivers, receivers
from bench.event_plane import EventPlane, body_of, emulated_tables, made
from bench.event_settings import EVENTS_TABLE
from bench.measure import Result
from bench.played_lambda import QUEUE_BATCH, VISIBILITY_SECONDS, Queue, Stream, running
from orchestrator.adapters import aws
from orchestrator.adapters.dynamodb.delivery_keys import DELIVERY_ROW_PREFIX
from orchestrator.adapters.dynamodb.delivery_rows import delivery_from
from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.configuring import SettingsChange
from orchestrator.events.configuring_connections import IssuedSecret, NewConnection
from orchestrator.events.delivery.records import DeliveryState, Destination, DestinationKind
from orchestrator.events.plans import Plan

RECEIVERS = 100
EVENTS = 3_000
ALL_EVENTS = 20_000
PER_SECOND = 20
"""The rate at which events are published on a machine that is fast enough for it."""
REQUESTS_PER_EVENT = 12
"""The requests to the emulator that an event takes, with those that look for messages."""
BUSY = 0.3
"""The part of its time for which the emulator, which is one process, answers requests. Above it, times are those of a
backlog and not of the way."""
_CALIBRATING = 200
FLOOR_EVENTS = 500
"""The floor is measured with this many events at most before, and with as many after."""
AT_ONCE = 25
"""Calls of the function at once, for each of both queues, as deployed by default. Each tries ten deliveries at once."""
DRAIN_SECONDS = 180
"""The time within which everything has to arrive after the last event was published."""
STREAM_SECONDS = 0.25
"""Lambda looks at a stream four times per second."""
_GO_ON = frozenset({DeliveryState.RETRYING, DeliveryState.PARKED})
SETTLE_SECONDS = 30
"""All dead receivers are found out by then. A receiver that hangs takes 15 seconds until its first try has failed."""
_PRODUCERS = 6
_LOOK_SECONDS = 2.0
_PAYLOAD = {"order": 42, "customer": "ada@example.com", "total": "19.90", "currency": "EUR"}

Send = Callable[[int], str]
"""Hands in an event for a receiver, and returns its id."""


def events_delivery_full() -> list[Result]:
    """The same with all events, at the full rate. It takes a quarter of an hour."""
    return events_delivery(ALL_EVENTS, per_second=PER_SECOND)


def events_delivery(
    events: int = EVENTS,
    *,
    receiving: int = RECEIVERS,
    per_second: float | None = None,
    drain: float = DRAIN_SECONDS,
) -> list[Result]:
    """Without a rate, events are published as fast as this machine carries them without a backlog."""
    kinds = kinds_of(receiving)
    load = [os.getloadavg()[0]]
    with receivers(kinds) as there, delivery_functions() as (client, session):
        per_second = per_second or _rate(client)
        bench = DeliveryBench(client, session, there, kinds, per_second)
        part = min(events, FLOOR_EVENTS)
        floor = bench.floor(part)
        ours, unrecorded = bench.berth(events, drain)
        polled, _ = bench.berth(part, drain, stream_seconds=STREAM_SECONDS)
        floor = [*floor, *bench.floor(part)]
        arrivals = there.arrivals()
    dead, slow = sum(kind.is_dead for kind in kinds), sum(kind is Kind.SLOW for kind in kinds)
    name = (
        f"events delivery: {events:,} events of {tenant_of(receiving - 1) + 1} tenants at {per_second:g} per second to "
        f"{receiving} receivers, {dead} dead and {slow} slow"
    )
    everything = check([*ours, *polled, *floor], arrivals, kinds)
    load.append(os.getloadavg()[0])
    settled = min(each.at for each in ours) + SETTLE_SECONDS
    return [
        Result(f"{name}: lost", len(everything.lost), "", "0", tuple(everything.lost)),
        Result(f"{name}: at a wrong receiver", len(everything.misdirected), "", "0", tuple(everything.misdirected)),
        Result(
            f"{name}: of dead receivers, without a row for the next try", len(unrecorded), "", "0", tuple(unrecorded)
        ),
        Result(f"{name}: duplicates", everything.repeated, "", ""),
        # With more work than processors, times are those of the machine.
        *(
            Result(f"events delivery: load average of the machine, {when}", round(each, 1), "", "")
            for when, each in zip(("before", "after"), load, strict=True)
        ),
        *_times(
            {
                "accept to received": check(ours, arrivals, kinds),
                f"accept to received, without the first {SETTLE_SECONDS:g} s": check(
                    [each for each in ours if each.at >= settled], arrivals, kinds
                ),
                "accept to received, stream read 4 times per second": check(polled, arrivals, kinds),
            },
            check(floor, arrivals, kinds),
        ),
    ]


def _times(ours: Mapping[str, Checked], floor: Checked) -> Iterator[Result]:
    """The times of quick receivers, each with its ratio to the floor."""
    start = "events delivery: quick receivers:"
    bare = {part: floor.percentile(Kind.QUICK, part) for part in (50, 95)}
    for part, time_ in bare.items():
        yield Result(f"{start} the bare floor, SQS to function to HTTP, p{part}", round(time_, 1), "ms", "")
    for number, (name, checked) in enumerate(ours.items()):
        for part, time_ in bare.items():
            found = checked.percentile(Kind.QUICK, part)
            aim = "<= 2" if number == 0 and part == 50 else ""
            yield Result(f"{start} {name}, p{part}", round(found, 1), "ms", "")
            yield Result(
                f"{start} {name} / the bare floor, p{part}", round(found / time_, 2) if time_ else 0.0, "x", aim
            )


def _rate(client: Any) -> float:
    began = time.perf_counter()
    for _ in range(_CALIBRATING):
        client.get_item(TableName=EVENTS_TABLE, Key={"pk": {"S": "calibrating"}, "sk": {"S": "calibrating"}})
    request = (time.perf_counter() - began) / _CALIBRATING
    return min(float(PER_SECOND), round(BUSY / (REQUESTS_PER_EVENT * request), 1))


@contextlib.contextmanager
def delivery_functions() -> Iterator[tuple[Any, Any]]:
    """Tables and queues for the functions. Yields a client of DynamoDB, and the session that functions use."""
    config = aws.CLIENT_CONFIG
    with emulated_tables() as client:
        sqs, kms = boto3.session.Session().client("sqs"), boto3.session.Session().client("kms")
        os.environ.update(
            {
                "BERTH_FIRST_QUEUE": make_queue(sqs, "first"),
                "BERTH_LATER_QUEUE": make_queue(sqs, "later"),
                "BERTH_SECRETS_KEY": kms.create_key()["KeyMetadata"]["KeyId"],
                "BERTH_VERSION": "0.0.0",
                "BERTH_LOOPBACK_DESTINATIONS": "true",
            }
        )
        # On AWS every instance of a function has clients of its own. Here all share them, and need connections for all.
        threads = 2 * AT_ONCE * QUEUE_BATCH
        aws.CLIENT_CONFIG = config.merge(Config(max_pool_connections=threads))
        try:
            yield client, aws._session()
        finally:
            aws.CLIENT_CONFIG = config


def make_queue(sqs: Any, name: str) -> str:
    created = sqs.create_queue(QueueName=name, Attributes={"VisibilityTimeout": str(VISIBILITY_SECONDS)})
    return str(created["QueueUrl"])


class DeliveryBench:
    """One connection per receiver, two per tenant."""

    def __init__(
        self, client: Any, session: Any, receivers: Receivers, kinds: Sequence[Kind], per_second: float
    ) -> None:
        self._client = client
        self.receivers = receivers
        self._kinds = kinds
        self._per_second = per_second
        config = Config(max_pool_connections=2 * AT_ONCE + _PRODUCERS)
        self._sqs = boto3.session.Session().client("sqs", config=config)
        self._stream = Stream(lambda event, context: _handler("dispatch_events")(event, context))
        self._stream.watch(session, EVENTS_TABLE)
        self._queues = [
            Queue(
                self._sqs, os.environ[name], lambda event, context: _handler("deliver_events")(event, context), AT_ONCE
            )
            for name in ("BERTH_FIRST_QUEUE", "BERTH_LATER_QUEUE")
        ]
        for queue in self._queues:
            queue.watch(session)
        self._tenants = [self._tenant(number) for number in range(tenant_of(len(kinds) - 1) + 1)]
        _handler("deliver_events")

    def _tenant(self, number: int) -> EventPlane:
        """With neither inbox nor index by type: what costs the table least."""
        off = SettingsChange(plan=Plan.PRO, inbox=False, type_index=False)
        plane = made(self._client, TenantId.parse(f"delivery-{number}"), off)
        use_cases = importlib.import_module("lambdas.event_runtime").use_cases
        for receiver in range(len(self._kinds)):
            if tenant_of(receiver) == number:
                destination = Destination(DestinationKind.WEBHOOK, self.receivers.url(receiver))
                wanted = {"event_type": event_type_of(receiver)}
                new = NewConnection(f"receiver {receiver}", destination, filter=wanted)
                created = use_cases.configuring_connections("bench").create(plane.settings, new)
                assert isinstance(created, IssuedSecret), created
        return plane

    # Berth

    def berth(
        self, events: int, drain: float, *, stream_seconds: float = 0.0
    ) -> tuple[Sequence[Published], Sequence[str]]:
        """Publish, and wait until everything has arrived or is on record as failing. Returns what is not on record."""
        self._stream.every_seconds = stream_seconds
        ingest = _handler("ingest")

        def send(receiver: int) -> str:
            body = json.dumps({"event_type": event_type_of(receiver), "payload": _PAYLOAD})
            request = self._tenants[tenant_of(receiver)].request("POST /events", body=body)
            return str(body_of(ingest(request, None), 202)["event_id"])

        with running(self._stream, *self._queues):
            published = self._publish(events, send)
            unrecorded = self._settle(published, drain)
        return published, unrecorded

    def _settle(self, published: Sequence[Published], drain: float) -> Sequence[str]:
        deadline = time.monotonic() + drain
        while True:
            left = check(published, self.receivers.arrivals(), self._kinds).lost
            unrecorded = [] if left else self._unrecorded(published)
            if time.monotonic() > deadline or not (left or unrecorded):
                return unrecorded or self._unrecorded(published)
            time.sleep(_LOOK_SECONDS)

    def _unrecorded(self, published: Sequence[Published]) -> Sequence[str]:
        """The events of dead receivers without a row by which they are tried again."""
        dead = {each.event_id for each in published if self._kinds[each.receiver].is_dead}
        pages = self._client.get_paginator("scan").paginate(TableName=EVENTS_TABLE)
        deliveries = (
            delivery_from(row)
            for page in pages
            for row in page["Items"]
            if row["sk"]["S"].startswith(DELIVERY_ROW_PREFIX)
        )
        kept = {each.ref.event_id for each in deliveries if each.state in _GO_ON}
        return sorted(dead - kept)

    # The floor

    def floor(self, events: int) -> Sequence[Published]:
        """A message per event, with its body, and a function that posts it. Only to receivers that answer at once."""
        url = make_queue(self._sqs, "floor")
        queue = Queue(self._sqs, url, _post_all, AT_ONCE)
        quick = [number for number, kind in enumerate(self._kinds) if kind is Kind.QUICK]
        session = boto3.session.Session()._session
        queue.watch(session)
        sender: Any = boto3.session.Session(botocore_session=session).client("sqs")
        numbers = count()

        def send(receiver: int) -> str:
            event_id = f"floor-{time.monotonic_ns()}-{next(numbers)}"
            message = {"id": event_id, "port": self.receivers.ports[receiver], "payload": _PAYLOAD}
            sender.send_message(QueueUrl=url, MessageBody=json.dumps(message))
            return event_id

        with running(queue):
            published = self._publish(events, send, quick)
            deadline = time.monotonic() + DRAIN_SECONDS
            while check(published, self.receivers.arrivals(), self._kinds).lost and time.monotonic() < deadline:
                time.sleep(_LOOK_SECONDS)
        return published

    def _publish(self, events: int, send: Send, to: Sequence[int] | None = None) -> Sequence[Published]:
        """Hand events in at a fixed rate, to one receiver after the other."""
        chosen = to or range(len(self._kinds))
        numbers, taking = iter(range(events)), threading.Lock()
        began = time.monotonic() + 0.1
        published: list[Published] = []

        def produce() -> None:
            while True:
                with taking:
                    number = next(numbers, None)
                if number is None:
                    return
                due = began + number / self._per_second
                time.sleep(max(0.0, due - time.monotonic()))
                receiver = chosen[number % len(chosen)]
                published.append(Published(send(receiver), receiver, due))

        with ThreadPoolExecutor(_PRODUCERS) as pool:
            for done in [pool.submit(produce) for _ in range(_PRODUCERS)]:
                done.result()
        return published


def _handler(function: str) -> Callable[[object, object], Any]:
    handler: Callable[[object, object], Any] = importlib.import_module(f"lambdas.events.{function}").handler
    return handler


def _post_all(event: Any, _context: object) -> None:
    with ThreadPoolExecutor(QUEUE_BATCH) as pool:
        list(pool.map(_post, [json.loads(record["body"]) for record in event["Records"]]))


def _post(message: dict[str, Any]) -> None:
    connection = HTTPConnection(LOOPBACK, message["port"], timeout=15)
    headers = {ID_HEADER: message["id"], "content-type": "application/json", "connection": "close"}
    connection.request("POST", "/hook", json.dumps(message["payload"]), headers)
    connection.getresponse().read()
    connection.close()
