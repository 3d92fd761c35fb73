"""The routes of producers and consumers: whatever comes with a key is answered, never with a 5xx.

What is refused leaves no trace, and what is accepted is one write per event.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator, Mapping
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.adapters.dynamodb.event_reads import DynamoEventReads
from orchestrator.adapters.dynamodb.event_rows import event_row
from orchestrator.api.event_read_routes import TENANT_ROUTES
from orchestrator.common.callers import digest_of
from orchestrator.event_composition import EventUseCases
from orchestrator.events.api_keys import digest_of as digest_of_key
from orchestrator.events.content import pack
from orchestrator.events.event_ids import event_timestamp, new_event_id
from orchestrator.events.plans import time_to_live
from orchestrator.events.records import Content, Event, Scope
from orchestrator.events.statuses import EventStatus
from tests.adapters.bad_input.event_writes import NotedContents, NotedWrites
from tests.adapters.bad_input.inputs import JsonText, an_input, over_http
from tests.adapters.bad_input.storm import INPUTS, storm
from tests.adapters.bad_input.world import PROOF, LogSink, _log_into
from tests.fakes import ACME, NOON, FakeClock
from tests.fakes.events import (
    ACME_LIFE,
    FakeConfiguration,
    FakeKeyUse,
    FakeTenants,
    FakeUsage,
    Watch,
    api_key,
    event_settings,
)
from tests.functions import forget_functions

KEY = f"bk_test_{'A' * 43}"
EVENT_ID = new_event_id(NOON, 0, random_bits=lambda _bits: 1)
SINGLE, BATCH = "POST /events", "POST /events/batch"
READS = [route.key for route in TENANT_ROUTES]


class NotedTable:
    """The calls of a DynamoDB client that read and acknowledge events: one event is there. Notes every change."""

    def __init__(self, effects: list[str]) -> None:
        self._effects = effects
        content, settings = Content(b'{"order": 42}'), event_settings()
        event = Event(
            ACME_LIFE,
            EVENT_ID,
            EventStatus.RECEIVED,
            "order.created",
            content,
            NOON + time_to_live(settings.plan),
            in_inbox=True,
        )
        self._row = event_row(event, pack(content), type_index=True)

    def get_item(self, **request: Any) -> dict[str, Any]:
        check_is_sendable(request)
        return {"Item": self._row} if self._is_there(request["Key"]) else {}

    def batch_get_item(self, *, RequestItems: Mapping[str, Any]) -> dict[str, Any]:  # noqa: N803 - boto3's name
        check_is_sendable(RequestItems)
        ((table, asked),) = RequestItems.items()
        assert 0 < len(asked["Keys"]) <= 100
        return {"Responses": {table: [self._row for key in asked["Keys"] if self._is_there(key)]}}

    def query(self, **request: Any) -> dict[str, Any]:
        check_is_sendable(request)
        values = request["ExpressionAttributeValues"]
        assert values[":first"]["S"] <= values[":last"]["S"], "DynamoDB refuses such a range"
        assert 1 <= request["Limit"] <= 101
        names = request["ExpressionAttributeNames"]
        is_in = values[":pk"] == self._row[names["#pk"]]
        between = values[":first"]["S"] <= self._row[names["#sk"]]["S"] <= values[":last"]["S"]
        return {"Items": [self._row] if is_in and between else []}

    def update_item(self, **request: Any) -> dict[str, Any]:
        check_is_sendable(request)
        assert "ConditionExpression" in request, "the event may not exist"
        self._effects.append("acknowledged")
        return {}

    def _is_there(self, key: Mapping[str, Any]) -> bool:
        return all(self._row[name] == value for name, value in key.items())


def check_is_sendable(request: object) -> None:
    json.dumps(request, ensure_ascii=False).encode()


class Plane:
    """The functions as Lambda calls them. The tenant has a key with all scopes."""

    def __init__(self) -> None:
        self.effects: list[str] = []
        self.logs = LogSink()
        watch = Watch()
        # Every input comes ten minutes after the one before, so that none is refused because of those before it.
        self.advance = lambda: setattr(watch, "seconds", watch.seconds + 600)
        configuration = FakeConfiguration({ACME: event_settings()})
        configuration.api_keys[digest_of_key(KEY)] = api_key(KEY, scopes=frozenset({Scope.ADMIN}))
        table: Any = NotedTable(self.effects)
        self.writes = NotedWrites(self.effects)
        events = DynamoEventReads(table, "events")
        ports: Any = SimpleNamespace(
            settings=SimpleNamespace(api_proof_digest=digest_of(PROOF), events_environment="test"),
            clock=FakeClock(),
            monotonic=watch,
            tenants=FakeTenants(),
            configuration=configuration,
            key_use=FakeKeyUse(),
            usage=FakeUsage(),
            event_writes=self.writes,
            event_reads=events,
            acknowledgements=events,
            contents=NotedContents(self.effects),
        )
        self.use_cases = EventUseCases(ports)

    def as_before(self) -> None:
        self.writes.marks.clear()
        self.forget()

    def forget(self) -> None:
        self.effects.clear()
        self.advance()

    def call(self, function: str, event: object) -> Any:
        return importlib.import_module(f"lambdas.events.{function}").handler(event, None)


@pytest.fixture(scope="module")
def keyed() -> Iterator[Plane]:
    plane = Plane()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_LAMBDA_LOG_LEVEL", "FATAL")
        patch.setenv("BERTH_TABLE", "berth")
        forget_functions()
        patch.setattr(importlib.import_module("lambdas.event_runtime"), "use_cases", plane.use_cases)
        patch.setattr(importlib.import_module("lambdas.observing"), "count", lambda *_: None)
        _log_into(plane.logs, patch)
        yield plane
    forget_functions()


# Requests


def a_request(route: str, **more: Any) -> dict[str, Any]:
    return {
        "version": "2.0",
        "routeKey": route,
        "headers": {
            "authorization": f"Bearer {KEY}",
            "content-type": "application/json",
            "idempotency-key": "order-42",
            "x-correlation-id": "c-1",
        },
        "requestContext": {"http": {"method": route.partition(" ")[0], "sourceIp": "192.0.2.1"}},
        "isBase64Encoded": False,
        "stageVariables": {"proof": PROOF},
        **more,
    }


def wrong_in(rng: Random, whole: dict[str, Any], parts: Mapping[str, Any]) -> Any:
    """The request with something wrong: mostly in these parts, which come after the check of the key."""
    event = over_http(rng, an_input(rng, whole if rng.random() < 0.2 else dict(parts)))
    return {**whole, **event} if isinstance(event, dict) else {**whole, "body": event}


def an_event(rng: Random) -> JsonText:
    return JsonText(
        event_type=rng.choice(("order.created", "a", "x/y:z-1")),
        payload=rng.choice(({"order": 42}, {}, {"name": "\u00e9", "prices": [1.5, None, True]}, {"x": "y" * 6000})),
    )


def a_single(rng: Random) -> Any:
    body = an_event(rng)
    return wrong_in(rng, a_request(SINGLE, body=body), {"body": body})


def a_batch(rng: Random) -> Any:
    body = JsonText(events=[dict(an_event(rng)) for _ in range(rng.choice((0, 1, 2, 25, 26)))])
    return wrong_in(rng, a_request(BATCH, body=body), {"body": body})


def a_read_of(route: str) -> Callable[[Random], Any]:
    def make(rng: Random) -> Any:
        moment = event_timestamp(NOON)
        event_id = rng.choice((EVENT_ID, f"{moment}#{EVENT_ID}", new_event_id(NOON, 15)))
        query = {
            "limit": rng.choice(("1", "100")),
            **rng.choice(
                (
                    {"event_type": "order.created"},
                    {"source_id": f"src_{'0' * 24}"},
                    {"form_id": f"form_{'0' * 24}", "status": "failed"},
                    {"since": moment, "until": "2026-12-01", "status": "pending"},
                    {"cursor": EVENT_ID},
                    {},
                )
            ),
        }
        parts: dict[str, Any] = {}
        if "{eventId}" in route:
            parts["pathParameters"] = {"eventId": event_id}
        elif route.startswith("GET"):
            parts["queryStringParameters"] = query
        else:
            parts["body"] = JsonText(event_ids=[EVENT_ID])
        return wrong_in(rng, a_request(route, **parts), parts)

    return make


# Answers


def met(keyed: Plane, function: str, event: object, effects_of: Callable[[int, dict[str, Any]], int]) -> str:
    """How a request was answered. ``effects_of`` says how many events a successful answer reports as written."""
    result = keyed.call(function, event)
    status, body = result["statusCode"], json.loads(result["body"])
    assert 200 <= status < 500, f"answered {status}"
    for name, value in result["headers"].items():
        assert f"{name}: {value}".isascii()
        assert f"{name}: {value}".isprintable()
    assert KEY not in result["body"]
    written = sum(effect in ("event", "acknowledged") for effect in keyed.effects)
    if status < 400:
        assert written == effects_of(status, body)
        return str(status)
    assert (body["status"], result["headers"]["Content-Type"]) == (status, "application/problem+json")
    assert body["detail"]
    assert not keyed.effects, f"refused, but for {keyed.effects}"
    return str(status)


def accepted(_status: int, body: dict[str, Any]) -> int:
    return int(body.get("accepted", 1))


def acknowledged(_status: int, body: dict[str, Any]) -> int:
    return len({each["event_id"] for each in body.get("results", ())})


@pytest.mark.parametrize(("route", "make"), [(SINGLE, a_single), (BATCH, a_batch)], ids=["single", "batch"])
def test_every_request_of_a_producer_is_accepted_or_refused(keyed: Plane, route: str, make: Any) -> None:
    plane: Any = keyed
    answered = storm(f"ingest {route}", plane, make, lambda event: met(keyed, "ingest", event, accepted))
    # Some inputs are refused, and some are accepted.
    assert INPUTS < 100 or {"202", "400", "401"} <= set(answered), answered


@pytest.mark.parametrize("route", READS)
def test_every_request_of_a_consumer_is_answered_or_refused(keyed: Plane, route: str) -> None:
    plane: Any = keyed
    answered = storm(
        f"reading {route}", plane, a_read_of(route), lambda event: met(keyed, "tenant_events", event, acknowledged)
    )
    assert INPUTS < 100 or {"200", "400"} <= set(answered), answered
