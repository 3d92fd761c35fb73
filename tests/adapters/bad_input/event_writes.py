"""Notes what the functions that take events write."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import datetime

from orchestrator.adapters.dynamodb.event_keys import idempotency_key
from orchestrator.adapters.dynamodb.event_rows import event_from, event_row
from orchestrator.events.content import Packed
from orchestrator.events.records import Event, Repetition
from tests.fakes import NOON
from tests.fakes.events import ACME_LIFE


@dataclass
class NotedWrites:
    """Implements ``EventWrites`` and ``Contents``: notes every write, and checks that DynamoDB would take it."""

    effects: list[str]
    marks: dict[str, Repetition] = field(default_factory=dict)

    def put(self, event: Event, packed: Packed, *, type_index: bool) -> None:
        row = event_row(event, packed, type_index=type_index)
        read = event_from(row)
        assert read == replace(
            event, content=read.content, packing=packed.packing, source_ip=event.source_ip or None
        ), "the row does not hold the event"
        json.dumps(row, default=lambda data: data.decode("latin-1"), ensure_ascii=False).encode()
        self.effects.append("event")

    def mark(self, repetition: Repetition, at: datetime) -> Repetition:
        assert at == NOON
        pk = idempotency_key(repetition.life, repetition.source, repetition.key)["pk"]["S"]
        self.effects.append("mark")
        return self.marks.setdefault(pk, repetition)

    def get(self, _key: str) -> None:
        raise AssertionError("nothing is read")


class NotedContents:
    def __init__(self, effects: list[str]) -> None:
        self._effects = effects

    def put_once(self, key: str, data: bytes) -> None:
        assert key.startswith(f"{ACME_LIFE.tenant}/{ACME_LIFE.epoch}/")
        assert isinstance(data, bytes)
        self._effects.append("content")
