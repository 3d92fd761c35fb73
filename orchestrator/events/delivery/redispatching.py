"""Events that were never dispatched are dispatched again: every night, and after a failure of the stream.

The stream keeps records for 24 hours only. Whatever it loses is still in the table, and nobody has noted who is to have
it. To dispatch an event again that is on its way does no harm: its rows decide.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from orchestrator.common.times import Clock
from orchestrator.events.delivery.dispatching import Dispatching
from orchestrator.events.delivery.ports import DeliveryTable
from orchestrator.events.delivery.records import DispatchedEvent
from orchestrator.events.event_ids import IdRange, first_id_at
from orchestrator.events.ports import ListedSettings
from orchestrator.events.records import EventSettings, UnreadableRow

SETTLES_IN = timedelta(minutes=15)
"""Younger events are probably being dispatched."""
AT_ONCE = 100
"""Connections are read anew for so many events. So nothing is parked for a connection that was resumed long ago."""
NIGHTLY = timedelta(hours=50)
"""How far the nightly run looks back: two nights, in case that one run fails."""


@dataclass
class Redispatched:
    events: int = 0
    sent: int = 0
    """Messages."""
    later: int = 0
    """Events that have to be dispatched again."""
    unreadable: int = 0
    complete: bool = True
    errors: list[Exception] = field(default_factory=list)
    """The errors of single tenants. All others had their turns."""


class Redispatching:
    """A run begins with any tenant, so that one that has too little time does not leave out the same tenants always."""

    def __init__(
        self,
        *,
        settings: ListedSettings,
        table: DeliveryTable,
        dispatching: Dispatching,
        clock: Clock,
        random_below: Callable[[int], int] = secrets.randbelow,
    ) -> None:
        self._settings = settings
        self._table = table
        self._dispatching = dispatching
        self._clock = clock
        self._random_below = random_below

    def nightly(self, has_time: Callable[[], bool]) -> Redispatched:
        now = self._clock.now()
        return self.redispatch(now - NIGHTLY, now - SETTLES_IN, has_time)

    def redispatch(self, begin: datetime, end: datetime, has_time: Callable[[], bool]) -> Redispatched:
        """Dispatch what was accepted between these times and was not dispatched."""
        done = Redispatched()
        listed = list(self._settings.listed_settings())
        tenants = [each for each in listed if not isinstance(each, UnreadableRow)]
        done.unreadable = len(listed) - len(tenants)
        first = self._random_below(len(tenants)) if tenants else 0
        within = IdRange(first=first_id_at(begin), before=first_id_at(end))
        for settings in tenants[first:] + tenants[:first]:
            try:
                self._dispatch_all(settings, within, has_time, done)
            except Exception as error:  # noqa: BLE001 - whatever is wrong with one tenant's events holds up no other
                done.errors.append(error)
            if not done.complete:
                break
        return done

    def _dispatch_all(
        self, settings: EventSettings, within: IdRange, has_time: Callable[[], bool], done: Redispatched
    ) -> None:
        for page in self._pages(settings, within):
            for start in range(0, max(len(page), 1), AT_ONCE):
                if not has_time():
                    done.complete = False
                    return
                self._dispatch(page[start : start + AT_ONCE], done)

    def _pages(self, settings: EventSettings, within: IdRange) -> Iterator[Sequence[DispatchedEvent]]:
        for shard in range(settings.shards):
            for submissions in (False, True):
                cursor: str | None = None
                while True:
                    events, cursor = self._table.untried(
                        settings.life, shard, within, submissions=submissions, after=cursor
                    )
                    yield events
                    if cursor is None:
                        break

    def _dispatch(self, events: Sequence[DispatchedEvent], done: Redispatched) -> None:
        if events:
            result = self._dispatching.dispatch(events, with_rows=True)
            done.events += len(events)
            done.sent += result.sent
            done.later += len(result.later)
