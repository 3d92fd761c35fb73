"""New events in the records of the stream, as Lambda hands them over to the function that dispatches them.

Lambda gives up a batch that has failed too often, and says so in a message.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from orchestrator.adapters.dynamodb.delivery_rows import dispatched_from
from orchestrator.adapters.dynamodb.event_keys import EVENT_PREFIX
from orchestrator.adapters.dynamodb.event_stream import names_of_record
from orchestrator.adapters.dynamodb.event_unreadable import CANNOT_BE_READ
from orchestrator.events.delivery.records import DispatchedEvent


@dataclass(frozen=True, slots=True)
class NewEvents:
    events: Sequence[DispatchedEvent]
    """The events as they were accepted, without contents that are in S3."""
    unreadable: Sequence[Mapping[str, str]]
    """The names of records that no event can be read from."""


def read_new_events(event: object) -> NewEvents:
    events: list[DispatchedEvent] = []
    unreadable: list[Mapping[str, str]] = []
    records = event.get("Records", []) if isinstance(event, dict) else []
    for record in records:
        try:
            stream = record["dynamodb"]
            # The filter of the stream keeps all other records back.
            if record["eventName"] == "INSERT" and stream["Keys"]["pk"]["S"].startswith(EVENT_PREFIX):
                image = {name: _value(value) for name, value in stream["NewImage"].items()}
                events.append(dispatched_from(image | stream["Keys"]))
        except CANNOT_BE_READ:
            unreadable.append(names_of_record(record))
    return NewEvents(events, unreadable)


@dataclass(frozen=True, slots=True)
class GivenUp:
    """The time in which the events of a batch were accepted that Lambda has given up."""

    begin: datetime
    end: datetime


_MARGIN = timedelta(minutes=5)
"""An event is accepted some seconds before the stream has its record, and clocks differ."""


def read_given_up(body: str) -> GivenUp | None:
    """The batch in a message of Lambda, which has no records. ``None`` if the message says no times."""
    try:
        batch = json.loads(body)["DDBStreamBatchInfo"]
        first, last = (
            datetime.fromisoformat(batch[f"approximateArrivalOf{which}Record"]) for which in ("First", "Last")
        )
        return GivenUp(first.astimezone(UTC) - _MARGIN, last.astimezone(UTC) + _MARGIN)
    except CANNOT_BE_READ:
        return None


def _value(value: Mapping[str, Any]) -> dict[str, Any]:
    """Lambda hands bytes over as text, in base64. The SDK has them as bytes."""
    ((kind, content),) = value.items()
    match kind:
        case "B":
            return {kind: base64.b64decode(content, validate=True)}
        case "BS":
            return {kind: [base64.b64decode(each, validate=True) for each in content]}
        case "L":
            return {kind: [_value(each) for each in content]}
        case "M":
            return {kind: {name: _value(each) for name, each in content.items()}}
    return {kind: content}
