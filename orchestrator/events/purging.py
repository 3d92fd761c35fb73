"""The end of a tenant: everything that an epoch has left behind is deleted, in bounded time and on record.

An epoch ends with one write, which deletes or replaces its settings and requests its purge. From then on nobody begins
to write rows of that epoch. Functions that have read the settings before may still do so, until their timeout at the
latest. So a purge is finished once a look finds nothing, and the looks have found nothing for some time: that time is
longer than any function runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import ClassVar

from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import Clock
from orchestrator.events.event_ids import MAX_SHARDS
from orchestrator.events.ports import Configuration, ListedSettings, PurgeExecutions, Purges, Remains, Tenants
from orchestrator.events.records import Deleted, EventSettings, Purge, RemainingEvent, TenantEpoch, UnreadableRow

HEARTBEAT_IS_LOST_AFTER = timedelta(minutes=30)
"""A purge without a heartbeat for this long has lost its machine. A wait between two looks and a step take less."""
STUCK_AFTER = timedelta(hours=6)

_MAX_RECENT = 20


class PurgeStatus(StrEnum):
    WAITING = "waiting"
    """Requested. The machine starts within the hour."""
    RUNNING = "running"
    FAILED = "failed"
    """The last execution failed. Another one starts within the hour."""
    DONE = "done"


def status_of(purge: Purge, now: datetime) -> PurgeStatus:
    if purge.finished_at:
        return PurgeStatus.DONE
    if purge.failed_at:
        return PurgeStatus.FAILED
    return PurgeStatus.RUNNING if _beats(purge, now) else PurgeStatus.WAITING


def is_stuck(purge: Purge, now: datetime) -> bool:
    """True for a purge that should have been finished long ago."""
    return not purge.finished_at and now - purge.requested_at >= STUCK_AFTER


def _beats(purge: Purge, now: datetime) -> bool:
    return purge.heartbeat_at is not None and now - purge.heartbeat_at < HEARTBEAT_IS_LOST_AFTER


# Finding


@dataclass(frozen=True, slots=True)
class Found:
    ended: Sequence[TenantEpoch]
    """The epochs whose purge was requested by this search."""
    started: Sequence[TenantEpoch]
    stuck: int
    unreadable: Sequence[UnreadableRow] = ()
    """Settings and purges that cannot be read. The search went on without them."""


class FindingPurges:
    """Finds tenants that have ended, and starts the machine for every purge that nobody works on."""

    def __init__(
        self,
        *,
        tenants: Tenants,
        configuration: Configuration,
        settings: ListedSettings,
        purges: Purges,
        executions: PurgeExecutions,
        clock: Clock,
    ) -> None:
        self._tenants = tenants
        self._configuration = configuration
        self._settings = settings
        self._purges = purges
        self._executions = executions
        self._clock = clock

    def find(self, only: TenantId | None = None) -> Found:
        """``only`` is the tenant that was just deleted. Without it, all tenants are looked at."""
        unreadable: list[UnreadableRow] = []
        ended: list[TenantEpoch] = []
        for settings in self._looked_at(only):
            if isinstance(settings, UnreadableRow):
                unreadable.append(settings)
            elif self._end(settings):
                ended.append(settings.life)
        now = self._clock.now()
        open_purges: dict[TenantEpoch, Purge] = {}
        for purge in self._purges.open_purges():
            if isinstance(purge, UnreadableRow):
                unreadable.append(purge)
            else:
                open_purges[purge.life] = purge
        # The index does not list them at once.
        open_purges |= {life: Purge(life, now) for life in ended}
        idle = [purge.life for purge in open_purges.values() if status_of(purge, now) is not PurgeStatus.RUNNING]
        started = [life for life in idle if self._executions.start(life, now)]
        stuck = sum(is_stuck(purge, now) for purge in open_purges.values())
        return Found(ended, started, stuck, unreadable)

    def _looked_at(self, only: TenantId | None) -> Iterable[EventSettings | UnreadableRow]:
        if only is None:
            return self._settings.listed_settings()
        settings = self._configuration.settings(only)
        return [settings] if settings else []

    def _end(self, settings: EventSettings) -> bool:
        # A creation of a tenant that has ended never comes back, so this cannot become false before the write.
        if not self._tenants.has_ended(settings.life.tenant, settings.incarnation):
            return False
        return self._purges.end(settings.life, self._clock.now())


# Purging


@dataclass(frozen=True, slots=True)
class MoreToPurge:
    """The time was over before everything was deleted."""

    deleted_events: int
    outcome: ClassVar[str] = "more"


@dataclass(frozen=True, slots=True)
class LookAgain:
    """Nothing is left, but somebody may still be writing."""

    seconds: int
    outcome: ClassVar[str] = "lookAgain"


@dataclass(frozen=True, slots=True)
class Purged:
    outcome: ClassVar[str] = "purged"


@dataclass(frozen=True, slots=True)
class NotToPurge:
    reason: str
    outcome: ClassVar[str] = "refused"


Outcome = MoreToPurge | LookAgain | Purged | NotToPurge


class Purging:
    """``settle`` is how long nothing must have been found. ``has_time`` is false when a step should end."""

    def __init__(
        self,
        *,
        configuration: Configuration,
        purges: Purges,
        remains: Remains,
        clock: Clock,
        settle: timedelta,
        has_time: Callable[[], bool],
    ) -> None:
        self._configuration = configuration
        self._purges = purges
        self._remains = remains
        self._clock = clock
        self._settle = settle
        self._has_time = has_time

    def step(self, life: TenantEpoch) -> Outcome:
        purge, settings = self._purges.purge(life), self._configuration.settings(life.tenant)
        if purge is None or (settings is not None and settings.life == life):
            return NotToPurge(f"Tenant {life.tenant}: nobody has ended its epoch {life.epoch}, so nothing was deleted.")
        if purge.finished_at:
            return Purged()
        self._purges.begin_step(life, self._clock.now())
        for row in purge.last_events:
            self._remains.delete_deliveries(life, RemainingEvent(row, may_have_deliveries=True))
        deleted, is_empty = self._delete(life)
        now = self._clock.now()
        if not is_empty:
            self._purges.record_step(life, deleted, None, now)
            return MoreToPurge(deleted.events)
        if deleted or purge.clean_since is None:
            self._purges.record_step(life, deleted, now, now)
            return LookAgain(_seconds(self._settle))
        remaining = purge.clean_since + self._settle - now
        if remaining > timedelta(0):
            return LookAgain(_seconds(remaining))
        return Purged() if self._purges.finish(purge, now) else LookAgain(_seconds(self._settle))

    def record_failure(self, life: TenantEpoch, reason: str) -> None:
        self._purges.fail(life, reason, self._clock.now())

    def _delete(self, life: TenantEpoch) -> tuple[Deleted, bool]:
        """The numbers of what was deleted, and ``True`` if everything was looked at and nothing is left."""
        # Keys, sources and forms come first: their holders see sooner that they are gone.
        rows, is_empty = self._exhaust(partial(self._remains.delete_configuration, life))
        for delete in (self._remains.delete_changes, self._remains.delete_replays):
            if is_empty:
                number, is_empty = self._exhaust(partial(delete, life))
                rows += number
        events = objects = 0
        for shard in range(MAX_SHARDS):
            if is_empty:
                note = partial(self._purges.note_events, life)
                number, is_empty = self._exhaust(partial(delete_events, self._remains, life, shard, note))
                events += number
        if is_empty:
            objects, is_empty = self._exhaust(partial(self._remains.delete_contents, life))
        return Deleted(events, objects, rows), is_empty

    def _exhaust(self, delete: Callable[[], int]) -> tuple[int, bool]:
        total = 0
        while number := delete():
            total += number
            if not self._has_time():
                return total, False
        return total, True


def delete_events(remains: Remains, life: TenantEpoch, shard: int, note: Callable[[Sequence[str]], None]) -> int:
    """Delete some events of a shard, and everything that only they lead to. ``note`` keeps the events of a step that
    dies."""
    events = remains.events(life, shard)
    if not events:
        return 0
    with_deliveries = [each for each in events if each.may_have_deliveries]
    # The deliveries go first, since only their event leads to them; and again after it, because a delivery that was
    # under way may have written a row in between. Without its event it cannot.
    for each in with_deliveries:
        remains.delete_deliveries(life, each)
    if with_deliveries:
        note([each.row for each in with_deliveries])
    deleted = remains.delete_events(life, shard, events)
    for each in with_deliveries:
        remains.delete_deliveries(life, each)
    return deleted


def _seconds(duration: timedelta) -> int:
    """Rounded up, so that the time is over after the wait."""
    return -(-duration // timedelta(seconds=1))


# Showing


class ListingPurges:
    def __init__(self, *, purges: Purges) -> None:
        self._purges = purges

    def purges(self) -> Sequence[Purge]:
        """All open purges, oldest first; then the last ones that are finished, newest first.

        A row that cannot be read is left out: the alarm UnreadableRows reports it.
        """
        readable = [each for each in self._purges.open_purges() if isinstance(each, Purge)]
        return [*readable, *self._purges.finished_purges(_MAX_RECENT)]
