"""Samples for Zapier: payloads of events, so that people who make a Zap see the fields that it will get."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.events.documents import json_text, parse_json
from orchestrator.events.listing import Filter, Listing
from orchestrator.events.records import Event, EventSettings

MAX_SAMPLES = 3
_OF_ITS_TYPE = 10
_OF_ANY_TYPE = 50
"""How many of the last events are looked at, as far as they can be listed by type and otherwise."""

Sample = Mapping[str, Any]


class SamplingEvents:
    def __init__(self, *, listing: Listing) -> None:
        self._listing = listing

    def samples(self, settings: EventSettings, event_type: str | None) -> Sequence[Sample]:
        """The payloads of the last events that are JSON objects, or else a made-up one."""
        by_index = event_type is not None and settings.type_index
        wanted = Filter(event_type=event_type) if by_index else Filter()
        limit = _OF_ITS_TYPE if by_index else _OF_ANY_TYPE
        page = self._listing.page(settings, wanted, cursor=None, limit=limit)
        events = [event for event in page.events if event_type is None or event.event_type == event_type]
        payloads = [payload for event in events if (payload := _object_in(event)) is not None]
        return payloads[:MAX_SAMPLES] or [{"event_type": event_type or "order.created", "sample": True}]


def _object_in(event: Event) -> Sample | None:
    """``None`` also for a payload that is too large for a list."""
    text = json_text(event.content.body) if event.content else None
    payload = parse_json(text, parse_float=_number) if text else None
    return payload if isinstance(payload, dict) else None


def _number(text: str) -> float | None:
    """``None`` for a number that is too large: Python would write it as Infinity, which is not JSON."""
    number = float(text)
    return number if math.isfinite(number) else None
