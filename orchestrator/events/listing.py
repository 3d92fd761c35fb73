"""Reads events: one by its id, and lists of them, newest first.

An id sorts by time, so the id of the last event of a page is the cursor for the next one, in every list and shard.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from heapq import merge

from orchestrator.common.errors import InvalidRequest
from orchestrator.common.times import Clock
from orchestrator.events.content import MAX_PAGE_BYTES, Packed, size_of, unpack
from orchestrator.events.event_ids import IdRange, first_id_at
from orchestrator.events.ports import Contents, EventReads
from orchestrator.events.records import Content, Event, EventSettings
from orchestrator.events.statuses import EventStatus, is_finished

MAX_PAGE_SIZE = 100
_MAX_ROUNDS = 10
"""How often a shard is read for one page. A filter that matches little ends the page early, with a cursor."""


class Kind(StrEnum):
    """Which events a list by time holds. They have ranges of their own in every shard."""

    EVENTS = "events"
    SUBMISSIONS = "submissions"


@dataclass(frozen=True, slots=True)
class Filter:
    """The filters of a list. At most one of type, source and form is given: each is an index of its own."""

    kind: Kind = Kind.EVENTS
    since: datetime | None = None
    until: datetime | None = None
    event_type: str | None = None
    status: EventStatus | None = None
    source_id: str | None = None
    form_id: str | None = None

    def check(self, settings: EventSettings) -> None:
        by = [name for name in ("event_type", "source_id", "form_id") if getattr(self, name) is not None]
        if len(by) > 1:
            raise InvalidRequest(f"Use only one of {' and '.join(by)}.")
        if self.event_type is not None and not settings.type_index:
            raise InvalidRequest(
                f"Tenant {settings.life.tenant} has no index by event type. Switch it on: events that come in from "
                f"then on can be listed by type. berth events settings {settings.life.tenant} --type-index"
            )

    @property
    def is_by_status_index(self) -> bool:
        """Only events that somebody must act on are in the index by status."""
        return self.status in (EventStatus.RETRYING, EventStatus.FAILED) and not (
            self.event_type or self.source_id or self.form_id
        )

    @property
    def is_by_time(self) -> bool:
        return not (self.event_type or self.source_id or self.form_id or self.is_by_status_index)

    def matches(self, event: Event) -> bool:
        """True if the event has the status that is shown: while it waits in the inbox, that is undelivered."""
        shown = EventStatus.RECEIVED if event.in_inbox else event.status
        return self.status is None or shown is self.status


@dataclass(frozen=True, slots=True)
class EventPage:
    events: Sequence[Event]
    cursor: str | None
    """The id after which the next page begins. ``None`` if this page is the last one."""


class Listing:
    def __init__(self, *, events: EventReads, contents: Contents, clock: Clock) -> None:
        self._events = events
        self._contents = contents
        self._clock = clock

    def find(self, settings: EventSettings, event_id: str) -> Event | None:
        """The event with its content, read consistently."""
        found = self._events.read(settings.life, [event_id]).get(event_id)
        return self.with_content(found) if found and self._is_shown(found, settings) else None

    def with_content(self, event: Event) -> Event:
        if event.content is not None or event.content_key is None:
            return event
        data = self._contents.get(event.content_key)
        content = unpack(Packed(data, event.packing)) if data is not None else Content(b"")
        return replace(event, content=content)

    def page(self, settings: EventSettings, wanted: Filter, *, cursor: str | None, limit: int) -> EventPage:
        """Events, newest first. Contents that are in S3, or for which an answer has no room, are left out."""
        wanted.check(settings)
        since = first_id_at(wanted.since) if wanted.since else None
        until = first_id_at(wanted.until) if wanted.until else None
        before = min((each for each in (cursor, until) if each is not None), default=None)
        within = IdRange(first=since, before=before)
        if wanted.is_by_time:
            return self._by_time(settings, wanted, within, limit)
        return self._by_index(settings, wanted, within, limit)

    def _by_index(self, settings: EventSettings, wanted: Filter, within: IdRange, limit: int) -> EventPage:
        """An index only names events. With the ids of all shards merged, no row is read that the page has no place for:
        a row costs as much as thirty names."""
        found: list[Event] = []
        for _ in range(_MAX_ROUNDS):
            # One more than the limit says whether there is another page.
            parts = [self._ids(settings, wanted, shard, within, limit + 1) for shard in range(settings.shards)]
            newest_first = list(merge(*parts, reverse=True))
            ids, more = newest_first[:limit], len(newest_first) > limit
            rows = self._events.read(settings.life, ids)
            listed = [rows[each] for each in ids if each in rows]
            shown = [event for event in listed if wanted.matches(event) and self._is_shown(event, settings)]
            found = _fitting([*found, *shown])
            if len(found) > limit:
                return EventPage(found[:limit], found[limit - 1].event_id)
            if not more:
                return EventPage(found, None)
            within = replace(within, before=ids[-1])
            if len(found) == limit:
                break
        return EventPage(found, within.before)

    def _ids(self, settings: EventSettings, wanted: Filter, shard: int, within: IdRange, size: int) -> Sequence[str]:
        life, events = settings.life, self._events
        if wanted.source_id is not None:
            ids, _ = events.by_source(life, wanted.source_id, shard, within, size)
        elif wanted.form_id is not None:
            ids, _ = events.by_form(life, wanted.form_id, shard, within, size)
        elif wanted.event_type is not None:
            ids, _ = events.by_type(life, wanted.event_type, shard, within, size)
        else:
            ids, _ = events.by_status(life, str(wanted.status), shard, within, size, newest_first=True)
        return ids

    def _by_time(self, settings: EventSettings, wanted: Filter, within: IdRange, limit: int) -> EventPage:
        """The newest matching events of all shards.

        Each shard is read up to the limit, so the newest of them all are among those. A shard that stopped early,
        because its filter matched little, hides what is older than where it stopped.
        """
        parts = [self._of_shard(settings, wanted, shard, within, limit) for shard in range(settings.shards)]
        hidden_below = max((part.stopped_at for part in parts if part.stopped_at), default=None)
        newest_first: Iterable[Event] = merge(
            *(part.events for part in parts), key=lambda event: event.event_id, reverse=True
        )
        found: list[Event] = []
        for event in newest_first:
            if hidden_below is not None and event.event_id < hidden_below:
                break
            if len(found) == limit:
                return EventPage(_fitting(found), found[-1].event_id)
            found.append(event)
        return EventPage(_fitting(found), hidden_below)

    def _of_shard(self, settings: EventSettings, wanted: Filter, shard: int, within: IdRange, limit: int) -> _Part:
        shown: list[Event] = []
        # One more than the limit says whether there is another page.
        size = limit + 1
        for _ in range(_MAX_ROUNDS):
            events, more = self._events.by_time(
                settings.life, shard, within, size, submissions=wanted.kind is Kind.SUBMISSIONS
            )
            shown += [event for event in events if wanted.matches(event) and self._is_shown(event, settings)]
            if not events or not more or len(shown) >= size:
                return _Part(_fitting(shown[:size]), None)
            # Contents that compress well are much larger here than in the table.
            shown = _fitting(shown)
            within = replace(within, before=events[-1].event_id)
        return _Part(shown, within.before)

    def _is_shown(self, event: Event, settings: EventSettings) -> bool:
        return is_shown(event, settings, self._clock.now())


def is_shown(event: Event, settings: EventSettings, now: datetime) -> bool:
    """Finished events are shown for the plan's retention. DynamoDB deletes expired rows days later."""
    if event.expires_at <= now:
        return False
    return not is_finished(event.status) or event.received_at > now - settings.limits.retention


def _fitting(events: Sequence[Event]) -> list[Event]:
    """The events, without the contents for which an answer has no room. The first ones keep theirs."""
    size, fitting = 0, []
    for event in events:
        size += size_of(event.content)
        fitting.append(event if size <= MAX_PAGE_BYTES else replace(event, content=None))
    return fitting


@dataclass(frozen=True, slots=True)
class _Part:
    """Events of one shard, newest first."""

    events: Sequence[Event]
    stopped_at: str | None
    """The id at which reading stopped, although there may be more. ``None`` at the end of the shard."""
