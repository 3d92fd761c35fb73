"""Counts the requests and the capacity units per event, as the table itself reports them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from bench.event_designs import DESIGNS
from bench.event_plane import EventPlane, event_plane
from bench.event_settings import EVENTS_TABLE
from bench.measure import Result
from orchestrator.adapters.aws import SystemClock
from orchestrator.adapters.dynamodb.event_reads import DynamoEventReads
from orchestrator.adapters.dynamodb.events import DynamoEventWrites
from orchestrator.events.accepting import Accepted, Accepting, NewEvent
from orchestrator.events.authorising import Standing
from orchestrator.events.quotas import Quotas, month_of
from orchestrator.events.records import Content, EventSettings

EVENTS = 2_000
_PAYLOAD = b'{"order": 42, "customer": "ada@example.com", "total": "19.90", "currency": "EUR"}'


@dataclass(frozen=True)
class Path:
    """One way of an event, and what it costs at least."""

    name: str
    requests: int
    write_units: int
    inbox: bool = False
    type_index: bool = False
    idempotency_key: bool = False
    acknowledged: bool = False


FLOOR: Sequence[Path] = (
    Path("accept, no index", 1, 1),
    Path("accept, type index", 1, 2, type_index=True),
    Path("accept, inbox", 1, 2, inbox=True),
    Path("accept, type index and inbox", 1, 3, type_index=True, inbox=True),
    Path("accept, Idempotency-Key", 2, 2, idempotency_key=True),
    Path("accept, type index, inbox and Idempotency-Key", 2, 4, type_index=True, inbox=True, idempotency_key=True),
    Path("acknowledge", 1, 2, inbox=True, acknowledged=True),
)


def events_capacity(events: int = EVENTS) -> list[Result]:
    with event_plane() as plane:
        return capacity_results(plane, events)


def capacity_results(plane: EventPlane, events: int) -> list[Result]:
    """``events`` is the number of events of all paths together."""
    results: list[Result] = []
    for path in FLOOR:
        number = max(1, events // len(FLOOR))
        counted = _count(plane, path, number)
        what = f"events: {path.name}"
        results += [
            Result(f"{what}: requests per event", counted["requests"] / number, "", f"{path.requests}"),
            Result(f"{what}: write units per event", counted["write units"] / number, "WCU", f"{path.write_units}"),
            Result(f"{what}: read units per event", counted["read units"] / number, "RCU", "0"),
        ]
    wrong = [each.name for each in results if each.aim and each.value != float(each.aim)]
    results.append(Result("events: figures that differ from the floor", len(wrong), "", "0", tuple(wrong)))
    results += [
        Result(
            f"events: accepted and delivered as {design.document} has it: write units per event (computed)",
            design.units,
            "WCU",
            "",
            tuple(f"{write.what}: {sum(write.units.values())}" for write in design.writes),
        )
        for design in DESIGNS
    ]
    return results


def _count(plane: EventPlane, path: Path, number: int) -> Counter[str]:
    settings = replace(plane.settings, inbox=path.inbox, type_index=path.type_index)
    accept = accepting_of(plane.client, settings)
    if not path.acknowledged:
        with counted(plane.client) as units:
            for each in range(number):
                accept(f"{path.name} {each}" if path.idempotency_key else None)
        return units
    ids = [accept(None) for _ in range(number)]
    acknowledgements = DynamoEventReads(plane.client, EVENTS_TABLE)
    with counted(plane.client) as units:
        for event_id in ids:
            if not acknowledgements.acknowledge(settings.life, event_id, _now()):
                raise RuntimeError(f"Event {event_id} is not there.")
    return units


def accepting_of(client: Any, settings: EventSettings) -> Callable[[str | None], str]:
    accepting = Accepting(
        events=DynamoEventWrites(client, EVENTS_TABLE),
        contents=_NoContents(),
        quotas=Quotas(monotonic=_Steps()),
        clock=SystemClock(),
    )

    def accept(key: str | None) -> str:
        new = NewEvent("order.created", Content(_PAYLOAD), source_ip="192.0.2.1", repetition_key=key)
        outcome = accepting.accept(Standing(settings, used=0, month=month_of(settings.created_at)), new)
        if not isinstance(outcome, Accepted):
            raise TypeError(f"Not accepted: {outcome}")
        return outcome.event_id

    return accept


@contextmanager
def counted(client: Any, table: str = EVENTS_TABLE) -> Iterator[Counter[str]]:
    """Counts the requests of the client to the table, and the units that it reports for them, indexes included."""
    units: Counter[str] = Counter()

    def ask(params: dict[str, Any], **_: Any) -> None:
        params["ReturnConsumedCapacity"] = "INDEXES"

    def note(parsed: dict[str, Any], model: Any, **_: Any) -> None:
        consumed = parsed.get("ConsumedCapacity", {})
        is_read = model.name in ("GetItem", "BatchGetItem", "Query")
        of_table = [
            each for each in (consumed if isinstance(consumed, list) else [consumed]) if each.get("TableName") == table
        ]
        units["requests"] += bool(of_table)
        units["read units" if is_read else "write units"] += sum(each["CapacityUnits"] for each in of_table)

    events = client.meta.events
    events.register("provide-client-params.dynamodb", ask)
    events.register("after-call.dynamodb", note)
    try:
        yield units
    finally:
        events.unregister("provide-client-params.dynamodb", ask)
        events.unregister("after-call.dynamodb", note)


def _now() -> datetime:
    return SystemClock().now()


class _Steps:
    """A second passes between two events, so that no limit of a plan is reached."""

    def __init__(self) -> None:
        self._seconds = 0.0

    def __call__(self) -> float:
        self._seconds += 1
        return self._seconds


class _NoContents:
    """Implements ``Contents``: the events are small."""

    def put_once(self, key: str, data: bytes) -> None:
        raise AssertionError(f"{len(data)} bytes are too large for a row: {key}")

    def get(self, key: str) -> bytes | None:
        raise AssertionError(f"Nothing is read: {key}")
