"""The events of the load test, and the checks after it: every accepted event is there once, and no refused one."""

from __future__ import annotations

import base64
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

BATCH = 25
_LARGE_BYTES = 6 * 1024
"""The size of a payload of random characters, which cannot be compressed, so that it is kept in S3."""
_BAD_EVERY = 20
_SINGLE_EVERY = 10
_TWICE_EVERY = 5


@dataclass(frozen=True, slots=True)
class SentEvent:
    name: str
    """Is part of the payload, by which the event is recognised in its row."""
    document: Mapping[str, Any]
    is_good: bool


@dataclass(frozen=True, slots=True)
class Sending:
    """A request of a tenant's producer."""

    tenant: int
    idempotency_key: str
    events: Sequence[SentEvent]

    @property
    def is_batch(self) -> bool:
        return len(self.events) > 1

    @property
    def path(self) -> str:
        return "/events/batch" if self.is_batch else "/events"

    @property
    def body(self) -> bytes:
        documents = [event.document for event in self.events]
        return json.dumps({"events": documents} if self.is_batch else documents[0]).encode()


def sendings(tenants: int, events: int, seed: int = 1) -> Iterator[Sending]:
    """Requests with that many events in all, half of them large, some of them bad. Some requests are made twice."""
    random = Random(seed)
    made, number = 0, 0
    while made < events:
        size = 1 if number % _SINGLE_EVERY == 0 else min(BATCH, events - made)
        sending = Sending(
            number % tenants,
            f"request-{number}",
            tuple(_event(f"{number}-{each}", made + each, random) for each in range(size)),
        )
        yield from [sending] * (2 if number % _TWICE_EVERY == 0 else 1)
        made, number = made + size, number + 1


def _event(name: str, position: int, random: Random) -> SentEvent:
    payload: dict[str, object] = {"name": name}
    if position % 2:
        payload["filling"] = base64.b64encode(random.randbytes(_LARGE_BYTES)).decode()
    if position % _BAD_EVERY:
        return SentEvent(name, {"event_type": "load.sent", "payload": payload}, is_good=True)
    bad: Sequence[Mapping[str, Any]] = (
        {"event_type": "load#sent", "payload": payload},
        {"event_type": "load.sent", "payload": [payload]},
        {"event_type": "load.sent", "payload": payload, "more": 1},
        {"event_type": 7, "payload": payload},
    )
    return SentEvent(name, random.choice(bad), is_good=False)


@dataclass(frozen=True, slots=True)
class Stored:
    """An event as it was found in the table."""

    tenant: int
    event_id: str
    name: str
    """Empty if its content is missing."""


@dataclass
class Answers:
    """The answers that producers got about each event."""

    accepted: defaultdict[tuple[int, str], set[str]] = field(default_factory=lambda: defaultdict(set))
    """The ids by tenant and name."""
    refused: set[tuple[int, str]] = field(default_factory=set)
    statuses: Counter[int] = field(default_factory=Counter)

    def note(self, sending: Sending, status: int, body: Mapping[str, Any]) -> None:
        self.statuses[status] += 1
        results: Iterable[Mapping[str, Any]] = body.get("results", [{"status_code": status, "event": body}])
        for event, result in zip(sending.events, results, strict=False):
            if result["status_code"] == 202:
                self.accepted[sending.tenant, event.name].add(result["event"]["event_id"])
            else:
                self.refused.add((sending.tenant, event.name))


def wrong_answers(sent: Iterable[Sending], answers: Answers) -> list[str]:
    """Good events that were not accepted, bad ones that were, and repetitions that got another id."""
    problems: list[str] = []
    for sending in {each.idempotency_key: each for each in sent}.values():
        for event in sending.events:
            ids = answers.accepted.get((sending.tenant, event.name), set())
            if len(ids) != event.is_good:
                problems.append(f"{event.name}: {'good' if event.is_good else 'bad'}, but accepted {len(ids)} times")
    return problems


def wrong_rows(rows: Iterable[Stored], answers: Answers) -> list[str]:
    """Accepted events that are not there exactly once, and events that are there but were not accepted."""
    found = Counter((row.tenant, row.name, row.event_id) for row in rows)
    expected = Counter((*event, event_id) for event, ids in answers.accepted.items() for event_id in ids)
    return [
        *(f"{_named(*event)}: accepted, but not there" for event in expected - found),
        *(f"{_named(*event)}: there, but not accepted" for event in found - expected),
        *(f"{_named(*event)}: refused, but there" for event in found if event[:2] in answers.refused),
    ]


def _named(tenant: int, name: str, event_id: str) -> str:
    return f"tenant {tenant}, event {name} ({event_id})"
