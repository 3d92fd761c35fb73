"""Replays: jobs that send the events of a time again, to one connection or to all connections of an origin.

A replay is a row. The sweep moves it on, page by page: :mod:`orchestrator.events.delivery.replaying`.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from orchestrator.common.errors import InvalidRequest, Unsettled
from orchestrator.common.times import Clock
from orchestrator.events.delivery import health
from orchestrator.events.delivery.ports import Connections, ConnectionsById
from orchestrator.events.delivery.records import API_ORIGIN, ConnectionStatus
from orchestrator.events.delivery.resending import unknown_connection
from orchestrator.events.event_ids import received_at
from orchestrator.events.records import EventSettings, TenantEpoch, UnreadableRow
from orchestrator.events.refusals import EventRefusal, Refused
from orchestrator.events.resource_ids import IdPrefix

KEPT_FOR = timedelta(days=90)
MAX_RUNNING = 5
"""The maximum number of a tenant's replays that run at a time."""
MAX_PER_DAY = 50
"""The maximum number of a tenant's replays that begin within 24 hours: each may send everything again, and the plan
counts none of that."""
_A_DAY = timedelta(days=1)
_ROUNDS = 8


class ReplayStatus(StrEnum):
    RUNNING = "running"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    FINISHED = "finished"

    @property
    def has_ended(self) -> bool:
        return self in (ReplayStatus.CANCELLED, ReplayStatus.FINISHED)


@dataclass(frozen=True, slots=True)
class Replay:
    life: TenantEpoch
    replay_id: str
    """Ids sort by time."""
    origin: str
    since: datetime
    until: datetime
    created_at: datetime
    created_by: str
    shards: int
    """The shards that the events of that time are in. Settings may have more by now."""
    connection_id: str | None = None
    """``None`` for all connections of the origin."""
    include_delivered: bool = False
    """True to send also what a connection has received before."""
    only_failed: bool = False
    """True to send nothing but what failed."""
    status: ReplayStatus = ReplayStatus.RUNNING
    reason: str = ""
    """Why Berth has paused or cancelled the replay. Empty if somebody else has."""
    ended_at: datetime | None = None
    shard: int = 0
    after: str | None = None
    """The last event of the shard that was looked at."""
    looked_at: int = 0
    """Events of the origin."""
    sent: int = 0
    """Deliveries that the replay has asked for."""
    skipped: int = 0
    revision: int = 0
    """Grows with every write. A write is conditional on the revision that was read."""

    @property
    def expires_at(self) -> datetime:
        return self.created_at + KEPT_FOR

    @property
    def percent(self) -> int:
        """How much of the time was looked through, over all shards."""
        if self.status is ReplayStatus.FINISHED:
            return 100
        length = self.until - self.since
        done = (received_at(self.after) - self.since) / length if self.after and length else 0.0
        return int(100 * (self.shard + min(max(done, 0.0), 1.0)) / self.shards)


class Replays(Protocol):
    """The rows of replays."""

    def replay(self, life: TenantEpoch, replay_id: str) -> Replay | None:
        """A consistent read."""
        ...

    def of_tenant(self, life: TenantEpoch, *, after: str | None, limit: int) -> tuple[Sequence[Replay], str | None]:
        """Newest first, and the cursor of the next page."""
        ...

    def running(self) -> Iterator[Replay | UnreadableRow]:
        """All tenants' replays that the sweep has to move on. The list may be behind, the replays in it are not."""
        ...

    def count_running(self, life: TenantEpoch) -> int:
        """The count may be behind."""
        ...

    def count_since(self, life: TenantEpoch, first_id: str) -> int:
        """How many have this id or a later one, by a consistent read."""
        ...

    def write(self, before: Replay | None, after: Replay) -> bool:
        """Write a replay, if it is still as it was read. ``False`` if it is not: read again, decide again."""
        ...


@dataclass(frozen=True, slots=True)
class NewReplay:
    since: datetime
    until: datetime | None = None
    connection_id: str | None = None
    origin: str | None = None
    """One of connection and origin is given."""
    include_delivered: bool = False
    only_failed: bool = False

    def check(self) -> None:
        if (self.connection_id is None) == (self.origin is None):
            raise InvalidRequest("Name either connection_id, or origin: api, or the id of a source or a form.")
        if self.include_delivered and self.only_failed:
            raise InvalidRequest("Use only one of include_delivered and only_failed.")
        if self.until is not None and self.since >= self.until:
            raise InvalidRequest("since is not before until, so there is no event to send.")


def new_replay_id(at: datetime) -> str:
    """An id with the form of all resource ids. These ids sort by time: 48 bits are the milliseconds, 48 are random."""
    return f"{_first_id_at(at)}{secrets.token_hex(6)}"


def _first_id_at(at: datetime) -> str:
    """The beginning of the ids of that millisecond."""
    return f"{IdPrefix.REPLAY}_{int(at.timestamp() * 1000):012x}"


class ManagingReplays:
    """Starts replays, shows them, and pauses, resumes and cancels them."""

    def __init__(
        self,
        *,
        replays: Replays,
        connections: ConnectionsById,
        origins: Connections,
        clock: Clock,
        make_id: Callable[[datetime], str] = new_replay_id,
    ) -> None:
        self._replays = replays
        self._connections = connections
        self._origins = origins
        self._clock = clock
        self._make_id = make_id

    def start(self, settings: EventSettings, new: NewReplay, by: str) -> Replay | Refused:
        new.check()
        life, now = settings.life, self._clock.now()
        origin = self._origin(life, new)
        if isinstance(origin, Refused):
            return origin
        # Events of the future are delivered when they come, and older ones are not shown any more.
        since, until = max(new.since, now - settings.limits.retention), min(new.until or now, now)
        if since >= until:
            raise InvalidRequest(
                f"since: there are no events of that time. Tenant {life.tenant} keeps them for "
                f"{settings.limits.retention // timedelta(hours=1)} hours."
            )
        if refused := self._limit_reached(life) or self._daily_limit_reached(life, now):
            return refused
        replay = Replay(
            life,
            self._make_id(now),
            origin,
            since,
            until,
            created_at=now,
            created_by=by,
            shards=settings.shards,
            connection_id=new.connection_id,
            include_delivered=new.include_delivered,
            only_failed=new.only_failed,
            revision=1,
        )
        if not self._replays.write(None, replay):
            raise _unsettled(life)
        return replay

    def _limit_reached(self, life: TenantEpoch) -> Refused | None:
        if self._replays.count_running(life) < MAX_RUNNING:
            return None
        return Refused(
            EventRefusal.LIMIT_REACHED,
            life.tenant,
            f"{MAX_RUNNING} replays of tenant {life.tenant} are running, which is the limit. Wait until one has "
            "ended, or cancel one.",
        )

    def _daily_limit_reached(self, life: TenantEpoch, now: datetime) -> Refused | None:
        if self._replays.count_since(life, _first_id_at(now - _A_DAY)) < MAX_PER_DAY:
            return None
        return Refused(
            EventRefusal.LIMIT_REACHED,
            life.tenant,
            f"{MAX_PER_DAY} replays of tenant {life.tenant} began within 24 hours, which is the limit. Try again "
            "later, or replay a source or the API instead of its connections one by one.",
        )

    def _origin(self, life: TenantEpoch, new: NewReplay) -> str | Refused:
        """The origin whose events are sent. Another tenant's origin has no connections here."""
        if new.connection_id is not None:
            connection = self._connections.connection(life, new.connection_id)
            if connection is None or connection.status is ConnectionStatus.DELETED:
                return unknown_connection(life, new.connection_id)
            return connection.origin
        origin = new.origin or API_ORIGIN
        there = self._origins.of_origin(life, origin)
        if any(isinstance(each, UnreadableRow) or not health.has_ended(each) for each in there):
            return origin
        return Refused(
            EventRefusal.NOTHING_TO_RESEND,
            life.tenant,
            f"Tenant {life.tenant} has no connection of {origin} that is active or paused, so nothing would be sent. "
            "Create or resume one first.",
        )

    def find(self, life: TenantEpoch, replay_id: str) -> Replay | Refused:
        replay = self._replays.replay(life, replay_id)
        if replay is None or replay.expires_at <= self._clock.now():
            return Refused(
                EventRefusal.NO_SUCH_REPLAY,
                life.tenant,
                f"Tenant {life.tenant} has no replay {replay_id}. List its replays to see their ids.",
            )
        return replay

    def list(self, life: TenantEpoch, *, cursor: str | None, limit: int) -> tuple[Sequence[Replay], str | None]:
        replays, cursor = self._replays.of_tenant(life, after=cursor, limit=limit)
        now = self._clock.now()
        return [each for each in replays if each.expires_at > now], cursor

    def pause(self, life: TenantEpoch, replay_id: str) -> Replay | Refused:
        return self._change(life, replay_id, ReplayStatus.PAUSED)

    def resume(self, life: TenantEpoch, replay_id: str) -> Replay | Refused:
        return self._change(life, replay_id, ReplayStatus.RUNNING)

    def cancel(self, life: TenantEpoch, replay_id: str) -> Replay | Refused:
        """Deliveries that the replay has already asked for are still made."""
        return self._change(life, replay_id, ReplayStatus.CANCELLED)

    def _change(self, life: TenantEpoch, replay_id: str, status: ReplayStatus) -> Replay | Refused:
        """The sweep may move the replay on at the same time."""
        for _ in range(_ROUNDS):
            replay = self.find(life, replay_id)
            if isinstance(replay, Refused) or replay.status is status:
                return replay
            if replay.status.has_ended:
                return Refused(
                    EventRefusal.REPLAY_ENDED,
                    life.tenant,
                    f"The replay {replay_id} of tenant {life.tenant} is {replay.status}. Start another one.",
                )
            if status is ReplayStatus.RUNNING and (refused := self._limit_reached(life)):
                return refused
            after = changed(replay, status, self._clock.now())
            if self._replays.write(replay, after):
                return after
        raise _unsettled(life)


def changed(replay: Replay, status: ReplayStatus, now: datetime, reason: str = "") -> Replay:
    ended_at = now if status.has_ended else None
    return replace(replay, status=status, reason=reason, ended_at=ended_at, revision=replay.revision + 1)


def _unsettled(life: TenantEpoch) -> Unsettled:
    return Unsettled(f"Tenant {life.tenant}: other changes of the replay came first. Try again.")
