"""How many events a tenant has had accepted: a quick count for limits, and an exact one for bills.

- The count for limits follows the stream of new events. It adds once per tenant and batch. The counter remembers the
  last batches, so a batch that comes again, because a function or DynamoDB failed, is not added again.
- The count for bills is made from the events themselves, hour by hour, once the hour is over. To count an hour again
  gives the same figure.

Both are written only while the tenant's settings name the epoch, which is read immediately before. So no count is
written for an epoch whose purge has had its last look: see :mod:`orchestrator.events.purging`.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from orchestrator.common.times import Clock
from orchestrator.events.event_ids import IdRange, first_id_at, is_submission, received_at
from orchestrator.events.ports import BilledUsage, EventCounts, ListedSettings, Usage, UsageCounts
from orchestrator.events.quotas import month_of
from orchestrator.events.records import Added, EventSettings, TenantEpoch, UnreadableRow, Used

HOUR_IS_COMPLETE_AFTER = timedelta(minutes=5)
"""An event is written at most some seconds after the time in its id: the timeout of a function."""

DIGEST_BYTES = 9
"""Two batches of the same tenant have the same digest less often than hardware fails."""

_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class StreamedEvent:
    """An event that the stream reports."""

    life: TenantEpoch
    event_id: str


@dataclass(frozen=True, slots=True)
class Counted:
    events: int
    ended: int
    """Events of epochs that are over. Nobody needs their count."""
    damaged: Sequence[StreamedEvent]
    """Events that can never be counted, because the row of their counter is damaged."""
    repeated: int = 0
    """Events that were counted before: the batch came again."""


class Counting:
    def __init__(self, *, settings: ListedSettings, counts: UsageCounts, clock: Clock) -> None:
        self._settings = settings
        self._counts = counts
        self._clock = clock

    def count(self, events: Sequence[StreamedEvent]) -> Counted:
        current = self._settings.current_epochs({event.life for event in events})
        counters: dict[tuple[TenantEpoch, str], list[StreamedEvent]] = {}
        for event in events:
            if event.life in current:
                counters.setdefault((event.life, month_of(received_at(event.event_id))), []).append(event)
        added: dict[Added, list[StreamedEvent]] = {result: [] for result in Added}
        for (life, month), counted in counters.items():
            used = Used(len(counted), sum(is_submission(event.event_id) for event in counted))
            added[self._counts.add(life, month, used, _digest(counted), self._clock.now())] += counted
        return Counted(
            events=len(added[Added.DONE]),
            ended=sum(event.life not in current for event in events),
            damaged=added[Added.DAMAGED],
            repeated=len(added[Added.REPEATED]),
        )


def _digest(events: Sequence[StreamedEvent]) -> bytes:
    """The same for the same events of one counter, in whatever order."""
    ids = sorted(event.event_id for event in events)
    return hashlib.sha256("".join(ids).encode()).digest()[:DIGEST_BYTES]


@dataclass(frozen=True, slots=True)
class Billed:
    hours: int
    """Hours that had events."""
    events: int
    complete: bool
    """False if the time was over first. The next run goes on from there."""
    unreadable: Sequence[UnreadableRow] = ()
    """Rows that cannot be read. Their tenants were not counted."""


class Billing:
    """Counts the events of every hour that is over, for every tenant, from where the last run ended.

    A run begins with any tenant. If runs had too little time for all tenants, and began with the same one every time,
    the last tenants would never be counted.
    """

    def __init__(
        self,
        *,
        settings: ListedSettings,
        events: EventCounts,
        usage: BilledUsage,
        clock: Clock,
        has_time: Callable[[], bool],
        random_below: Callable[[int], int] = secrets.randbelow,
    ) -> None:
        self._settings = settings
        self._events = events
        self._usage = usage
        self._clock = clock
        self._has_time = has_time
        self._random_below = random_below

    def run(self) -> Billed:
        end = hour_of(self._clock.now() - HOUR_IS_COMPLETE_AFTER)
        hours = events = 0
        listed = list(self._settings.listed_settings())
        unreadable = [each for each in listed if isinstance(each, UnreadableRow)]
        tenants = [each for each in listed if not isinstance(each, UnreadableRow)]
        first = self._random_below(len(tenants)) if tenants else 0
        billed_until = self._usage.all_billed_until([settings.life for settings in tenants])
        for settings in tenants[first:] + tenants[:first]:
            if not self._has_time():
                return Billed(hours, events, complete=False, unreadable=unreadable)
            until = billed_until.get(settings.life)
            if isinstance(until, UnreadableRow):
                unreadable.append(until)
                continue
            begin = until or hour_of(settings.created_at)
            if begin >= end:
                continue
            has_events = self._has_events(settings, begin, end)
            if not has_events and begin.date() == end.date():
                # Most tenants are idle in most hours, and a write costs as much as five reads. So hours without events
                # are recorded once the day (UTC) is over, or together with the next events.
                continue
            if not self._settings.current_epochs([settings.life]):
                continue
            hour = begin if has_events else end
            while hour < end and (hour == begin or self._has_time()):
                number = self._count(settings, hour)
                if number:
                    self._usage.set_hour(settings.life, hour, number, self._clock.now())
                    hours, events = hours + 1, events + number
                hour += _HOUR
            self._usage.set_billed_until(settings.life, hour)
            if hour < end:
                return Billed(hours, events, complete=False, unreadable=unreadable)
        return Billed(hours, events, complete=True, unreadable=unreadable)

    def _has_events(self, settings: EventSettings, begin: datetime, end: datetime) -> bool:
        within = IdRange(first=first_id_at(begin), before=first_id_at(end))
        return any(self._events.has_any(settings.life, shard, within) for shard in range(settings.shards))

    def _count(self, settings: EventSettings, hour: datetime) -> int:
        within = IdRange(first=first_id_at(hour), before=first_id_at(hour + _HOUR))
        return sum(self._events.count(settings.life, shard, within) for shard in range(settings.shards))


@dataclass(frozen=True, slots=True)
class MonthlyUsage:
    month: str
    counted: int
    """The count that limits are checked against."""
    limit: int
    billed: int
    billed_until: datetime | None


class ReportingUsage:
    def __init__(self, *, usage: Usage, billed: BilledUsage, clock: Clock) -> None:
        self._usage = usage
        self._billed = billed
        self._clock = clock

    def of_month(self, settings: EventSettings, month: str | None = None) -> MonthlyUsage:
        """The usage in a month such as ``2026-11``; without one, in the current month."""
        at = datetime.strptime(month, "%Y-%m").replace(tzinfo=UTC) if month else self._clock.now()
        billed_until = self._billed.billed_until(settings.life)
        return MonthlyUsage(
            month=month_of(at),
            counted=self._usage.used(settings.life, at).events,
            limit=settings.limits.events_per_month,
            billed=self._billed.billed(settings.life, month_of(at)),
            billed_until=None if isinstance(billed_until, UnreadableRow) else billed_until,
        )


def hour_of(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
