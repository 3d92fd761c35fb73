"""The inbox: events that a tenant pulls, oldest first, and acknowledges.

Reading changes nothing. Only an acknowledgement takes an event out of the inbox: a cursor alone could skip an event
that got its id before the last one that was read, and became visible after it. One consumer reads an inbox at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from heapq import merge

from orchestrator.common.times import Clock
from orchestrator.events.content import MAX_PAGE_BYTES, size_of
from orchestrator.events.event_ids import IdRange
from orchestrator.events.listing import EventPage, Listing
from orchestrator.events.ports import Acknowledgements, EventReads
from orchestrator.events.records import Event, EventSettings
from orchestrator.events.statuses import UNDELIVERED

MAX_PAGE_SIZE = 100
MAX_ACKNOWLEDGED = 100
_MAX_ROUNDS = 10


class Acknowledged(StrEnum):
    DONE = "acknowledged"
    UNKNOWN = "unknown"
    """There is no such event, or it has expired."""


@dataclass(frozen=True, slots=True)
class _Ids:
    ids: Sequence[str]
    more: bool


class Inbox:
    def __init__(
        self, *, events: EventReads, acknowledgements: Acknowledgements, listing: Listing, clock: Clock
    ) -> None:
        self._events = events
        self._acknowledgements = acknowledgements
        self._listing = listing
        self._clock = clock

    def page(
        self, settings: EventSettings, *, event_type: str | None = None, cursor: str | None = None, limit: int
    ) -> EventPage:
        """Undelivered events with their contents, oldest first."""
        found: list[Event] = []
        size, after = 0, cursor
        for _ in range(_MAX_ROUNDS):
            batch = self._oldest(settings, after, limit)
            rows = self._events.read(settings.life, batch.ids)
            for event_id in batch.ids:
                event = rows.get(event_id)
                # The index is behind the rows: an event may have been acknowledged, or have expired, since.
                is_waiting = event is not None and event.in_inbox and event.expires_at > self._clock.now()
                if event is not None and is_waiting and event_type in (None, event.event_type):
                    event = self._listing.with_content(event)
                    size += size_of(event.content)
                    if found and size > MAX_PAGE_BYTES:
                        return EventPage(found, after)
                    found.append(event)
                after = event_id
                if len(found) == limit:
                    return EventPage(found, after)
            if not batch.more:
                return EventPage(found, None)
        return EventPage(found, after)

    def acknowledge(self, settings: EventSettings, event_ids: Sequence[str]) -> Mapping[str, Acknowledged]:
        """Each event counts as delivered from then on. To acknowledge an event again changes nothing."""
        now = self._clock.now()
        return {
            event_id: (
                Acknowledged.DONE
                if self._acknowledgements.acknowledge(settings.life, event_id, now)
                else Acknowledged.UNKNOWN
            )
            # Once per event, because each acknowledgement is a write.
            for event_id in dict.fromkeys(event_ids)
        }

    def _oldest(self, settings: EventSettings, after: str | None, limit: int) -> _Ids:
        """The oldest ids of all shards. Each shard is read up to the limit, so the oldest of all are among those."""
        within = IdRange(after=after)
        parts = [
            self._events.by_status(settings.life, UNDELIVERED, shard, within, limit, newest_first=False)
            for shard in range(settings.shards)
        ]
        ids = list(merge(*(ids for ids, _ in parts)))
        return _Ids(ids[:limit], len(ids) > limit or any(more for _, more in parts))
