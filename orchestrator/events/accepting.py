"""Accepts an event: one write. The event is kept once this has returned :class:`Accepted`, whatever crashes then."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from orchestrator.common.times import Clock
from orchestrator.events.authorising import Standing
from orchestrator.events.content import MAX_BODY_BYTES, Packed, content_key, pack
from orchestrator.events.event_ids import new_event_id
from orchestrator.events.plans import time_to_live
from orchestrator.events.quotas import OverLimit, Quotas
from orchestrator.events.records import Content, Event, EventSettings, Repetition
from orchestrator.events.statuses import EventStatus

if TYPE_CHECKING:
    from orchestrator.events.ports import Contents, EventWrites

REPEATS_ARE_KNOWN_FOR = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event that was verified, and is about to be accepted."""

    event_type: str
    content: Content
    source_id: str | None = None
    form_id: str | None = None
    content_type: str = "application/json"
    method: str = "POST"
    source_ip: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    repetition_key: str | None = None
    """Events of one source with the same key are one event: an Idempotency-Key, or a provider's delivery id."""


@dataclass(frozen=True, slots=True)
class Accepted:
    event_id: str
    status: EventStatus
    repeated: bool = False
    """True if the event had been accepted before, by a request with the same repetition key."""


@dataclass(frozen=True, slots=True)
class DifferentContent:
    """Another content came before with the same repetition key, and may have been accepted. Nothing was written."""

    event_id: str


@dataclass(frozen=True, slots=True)
class TooLarge:
    size: int
    limit: int = MAX_BODY_BYTES


Outcome = Accepted | DifferentContent | TooLarge | OverLimit


class Accepting:
    def __init__(
        self,
        *,
        events: EventWrites,
        contents: Contents,
        quotas: Quotas,
        clock: Clock,
        random_below: Callable[[int], int] = secrets.randbelow,
    ) -> None:
        self._events = events
        self._contents = contents
        self._quotas = quotas
        self._clock = clock
        self._random_below = random_below

    def accept(self, standing: Standing, new: NewEvent) -> Outcome:
        settings, now = standing.settings, self._clock.now()
        size = len(new.content.body)
        if size > MAX_BODY_BYTES:
            return TooLarge(size)
        is_submission = new.form_id is not None
        over = self._quotas.take(standing, now, submission=is_submission)
        if over is not None and not self._is_repeated(settings, new, now):
            return over
        shard = self._random_below(settings.shards)
        event_id, repeated = new_event_id(now, shard, submission=is_submission), False
        if new.repetition_key is not None:
            first = self._events.mark(
                Repetition(
                    settings.life,
                    _source_of(new),
                    new.repetition_key,
                    event_id,
                    _digest(new),
                    expires_at=now + REPEATS_ARE_KNOWN_FOR,
                ),
                now,
            )
            if over is None and first.event_id != event_id:
                self._quotas.give_back(standing)
            if first.digest != _digest(new):
                return DifferentContent(first.event_id)
            # The first request may have ended before it wrote its event: the same event is written again.
            event_id, repeated = first.event_id, first.event_id != event_id
        self._keep(settings, _event(settings, new, event_id, now), pack(new.content))
        if not repeated:
            self._quotas.count(standing, submission=is_submission)
        return Accepted(event_id, EventStatus.RECEIVED, repeated)

    def _is_repeated(self, settings: EventSettings, new: NewEvent, now: datetime) -> bool:
        """True if the event came before within the limits. Only then its mark was left."""
        key = new.repetition_key
        return key is not None and self._events.is_marked(settings.life, _source_of(new), key, now)

    def _keep(self, settings: EventSettings, event: Event, packed: Packed) -> None:
        if not packed.is_inline:
            # The object is written before the row, so that a row never names an object that is not there.
            event = _stored_in_s3(settings, event, packed)
            self._contents.put_once(event.content_key or "", packed.data)
        self._events.put(event, packed, type_index=settings.type_index)


def _event(settings: EventSettings, new: NewEvent, event_id: str, now: datetime) -> Event:
    return Event(
        life=settings.life,
        event_id=event_id,
        status=EventStatus.RECEIVED,
        event_type=new.event_type,
        content=new.content,
        expires_at=now + time_to_live(settings.plan),
        source_id=new.source_id,
        form_id=new.form_id,
        content_type=new.content_type,
        method=new.method,
        source_ip=new.source_ip,
        metadata=new.metadata,
        in_inbox=settings.inbox,
    )


def _stored_in_s3(settings: EventSettings, event: Event, packed: Packed) -> Event:
    """The object is written once, because a repetition may have other bytes: the content of the first one stays.

    The key says how its object is packed. So the row fits the object, whichever request wrote either, and all
    repetitions together store no more than one object for each packing.
    """
    return replace(event, content_key=content_key(event.life, settings.plan, event.event_id, packed))


def _source_of(new: NewEvent) -> str:
    return new.source_id or new.form_id or "api"


def _digest(new: NewEvent) -> str:
    """The digest that a repetition must have, too. It is empty if the key alone names the event.

    Providers change bytes of an event that they send again: Stripe counts the deliveries in it.
    """
    if new.source_id is not None:
        return ""
    return hashlib.sha256(b"\0".join([new.event_type.encode(), new.content.body])).hexdigest()
