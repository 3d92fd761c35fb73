"""Records of the stream of the table of events, as Lambda hands them over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.adapters.dynamodb import event_keys
from orchestrator.adapters.dynamodb.delivery_keys import DELIVERY_ROW_PREFIX
from orchestrator.adapters.dynamodb.event_unreadable import CANNOT_BE_READ
from orchestrator.adapters.dynamodb.values import text
from orchestrator.events.delivery.records import DeliveryState
from orchestrator.events.event_ids import received_at
from orchestrator.events.usage import StreamedEvent


@dataclass(frozen=True, slots=True)
class StreamRecords:
    events: Mapping[StreamedEvent, Mapping[str, str]]
    """New events, each with the names of its record."""
    unreadable: list[Mapping[str, str]]
    """The names of records that no event can be read from."""
    exhausted: list[Mapping[str, Any]]
    """The records of deliveries that failed for good, as they came."""


def read_stream(event: object) -> StreamRecords:
    events: dict[StreamedEvent, Mapping[str, str]] = {}
    unreadable: list[Mapping[str, str]] = []
    exhausted: list[Mapping[str, Any]] = []
    records = event.get("Records", []) if isinstance(event, dict) else []
    for record in records:
        try:
            new = _event_in(record)
            is_exhausted = _is_exhausted(record)
        except CANNOT_BE_READ:
            unreadable.append(names_of_record(record))
        else:
            if new is not None:
                events[new] = names_of_record(record)
            if is_exhausted:
                exhausted.append(record)
    return StreamRecords(events, unreadable, exhausted)


def _event_in(record: Mapping[str, Any]) -> StreamedEvent | None:
    """``None`` for a record that is not about a new event. The stream's filter keeps most of them back."""
    keys = record["dynamodb"]["Keys"]
    pk, sk = keys["pk"]["S"], keys["sk"]["S"]
    if record["eventName"] != "INSERT" or not pk.startswith(event_keys.EVENT_PREFIX):
        return None
    new = StreamedEvent(event_keys.life_of(pk), event_keys.event_id_of(sk))
    received_at(new.event_id)
    return new


def _is_exhausted(record: Mapping[str, Any]) -> bool:
    stream = record["dynamodb"]
    if not stream["Keys"]["sk"]["S"].startswith(DELIVERY_ROW_PREFIX):
        return False
    return bool(text(stream.get("NewImage", {}), "state") == DeliveryState.FAILED)


def names_of_record(record: object) -> Mapping[str, str]:
    """The keys of the row, and the record's place in the stream. Keys hold no content of an event."""
    inner = record.get("dynamodb", {}) if isinstance(record, dict) else {}
    keys = inner.get("Keys", {}) if isinstance(inner, dict) else {}
    names = {
        "pk": keys.get("pk") if isinstance(keys, dict) else None,
        "sk": keys.get("sk") if isinstance(keys, dict) else None,
        "sequence_number": inner.get("SequenceNumber") if isinstance(inner, dict) else None,
    }
    return {name: str(value.get("S") if isinstance(value, dict) else value) for name, value in names.items()}
