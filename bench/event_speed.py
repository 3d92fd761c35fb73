"""Compares the functions that take and read events with the bare requests that they make."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from bench.cold_starts import cold_import_of
from bench.event_designs import TARGETS_MS
from bench.event_plane import EventPlane, body_of, event_plane
from bench.event_settings import EVENTS_TABLE, FUNCTION_ENVIRONMENT
from bench.measure import Result, interleaved_times, percentile
from orchestrator.adapters.aws import SystemClock
from orchestrator.adapters.dynamodb.event_rows import event_row
from orchestrator.events.content import pack
from orchestrator.events.event_ids import new_event_id
from orchestrator.events.plans import time_to_live
from orchestrator.events.records import Content, Event
from orchestrator.events.statuses import EventStatus

PAGE = 100
_PAYLOAD = b'{"order": 42, "customer": "ada@example.com", "total": "19.90", "currency": "EUR"}'
_TYPE = "order.created"
_BODY = f'{{"event_type": "{_TYPE}", "payload": {_PAYLOAD.decode()}}}'


def events_cold_import(rounds: int = 15) -> list[Result]:
    return cold_import_of("ingest", "lambdas.events.ingest", FUNCTION_ENVIRONMENT, rounds)


def events_accept(rounds: int = 1_000) -> list[Result]:
    with event_plane() as plane:
        return accept_results(plane, rounds)


def accept_results(plane: EventPlane, rounds: int) -> list[Result]:
    """The whole handler with a remembered grant, compared with a bare PutItem of the same item."""
    handler, request = plane.handler("ingest"), plane.request("POST /events", body=_BODY)
    rows = iter([_row(plane, number) for number in range(rounds + rounds // 10)])

    def accept() -> None:
        body_of(handler(request, None), 202)

    def put() -> None:
        plane.client.put_item(TableName=EVENTS_TABLE, Item=next(rows))

    interleaved_times(accept, put, rounds // 10)
    ours, bare = interleaved_times(accept, put, rounds)
    return _compared("events: accepting", "a bare PutItem", ours, bare, "put", aim="<= 1.15")


def _row(plane: EventPlane, number: int) -> dict[str, Any]:
    settings, now = plane.settings, SystemClock().now()
    content = Content(_PAYLOAD)
    event = Event(
        settings.life,
        new_event_id(now, number % settings.shards),
        EventStatus.RECEIVED,
        _TYPE,
        content,
        now + time_to_live(settings.plan),
        source_ip="192.0.2.1",
        in_inbox=settings.inbox,
    )
    return event_row(event, pack(content), type_index=settings.type_index)


def events_reads(rounds: int = 300) -> list[Result]:
    with event_plane() as plane:
        return read_results(plane, rounds)


def read_results(plane: EventPlane, rounds: int) -> list[Result]:
    """Each handler compared with the requests to DynamoDB that it makes, without anything around them."""
    for number in range(2 * PAGE):
        plane.client.put_item(TableName=EVENTS_TABLE, Item=(row := _row(plane, number)))
    handler = plane.handler("tenant_events")
    event_id = row["sk"]["S"].removeprefix("EVT#")
    page = {"limit": str(PAGE)}
    reads = {
        "get by id": (plane.request("GET /events/{eventId}", pathParameters={"eventId": event_id}), "get"),
        f"inbox of {PAGE}": (plane.request("GET /inbox", queryStringParameters=page), "query"),
        f"list of {PAGE}": (plane.request("GET /events", queryStringParameters=page), "query"),
    }
    results: list[Result] = []
    for name, (request, target) in reads.items():

        def read(request: dict[str, Any] = request) -> None:
            body_of(handler(request, None), 200)

        _forget_requests()
        read()  # Warms up, and remembers the grant.
        with recorded() as requests:
            read()
        bare = _repeat(plane.client, requests)
        ours, others = interleaved_times(read, bare, rounds)
        what = "its bare request" if len(requests) == 1 else f"its {len(requests)} bare requests"
        results += _compared(f"events: {name}", what, ours, others, target)
    return results


def _forget_requests() -> None:
    """Let a comparison send as many requests as its plan allows at once, whatever the one before has sent."""
    from lambdas.event_runtime import use_cases

    vars(use_cases).pop("request_quotas", None)


@contextmanager
def recorded() -> Iterator[list[tuple[str, dict[str, Any]]]]:
    """The requests that the functions make to DynamoDB: the method of the client, and its arguments."""
    from lambdas.event_runtime import use_cases

    made: list[tuple[str, dict[str, Any]]] = []
    events: Any = use_cases.ports.event_reads._client.meta.events  # type: ignore[attr-defined]

    def note(params: dict[str, Any], model: Any, **_: Any) -> None:
        name = "".join(f"_{each.lower()}" if each.isupper() else each for each in model.name).removeprefix("_")
        made.append((name, dict(params)))

    events.register("provide-client-params.dynamodb", note)
    try:
        yield made
    finally:
        events.unregister("provide-client-params.dynamodb", note)


def _repeat(client: Any, requests: list[tuple[str, dict[str, Any]]]) -> Callable[[], None]:
    def repeat() -> None:
        for name, params in requests:
            getattr(client, name)(**params)

    return repeat


def _compared(
    name: str, bare_name: str, ours: list[float], bare: list[float], target: str, *, aim: str = ""
) -> list[Result]:
    ratios = {part: percentile(ours, part) / percentile(bare, part) for part in (50, 95)}
    return [
        Result(f"{name} / {bare_name}, p50", round(ratios[50], 3), "x", aim),
        Result(f"{name} / {bare_name}, p95", round(ratios[95], 3), "x", ""),
        Result(f"{name}, p50", round(statistics.median(ours), 2), "ms", ""),
        Result(
            f"{name}, p95", round(percentile(ours, 95), 2), "ms", f"the documents' target: {TARGETS_MS[target]} on AWS"
        ),
        Result(f"{name}: {bare_name}, p95", round(percentile(bare, 95), 2), "ms", ""),
    ]
