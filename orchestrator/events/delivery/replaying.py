"""Moves replays on: looks at the events of a page, asks for deliveries of those that are to go out, moves the cursor.

Every write is conditional. A page that is looked at twice, by two sweeps or after a crash, sends nothing twice: the
row of a delivery names the replay that has asked for it.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from orchestrator.common.errors import Throttled
from orchestrator.common.times import Clock
from orchestrator.events.delivery import health, transitions
from orchestrator.events.delivery.delivering import expires_soon
from orchestrator.events.delivery.dispatching import Dispatching
from orchestrator.events.delivery.messages import DeliveryMessage
from orchestrator.events.delivery.ports import Connections, DeliveryTable, MessageQueue
from orchestrator.events.delivery.records import (
    Connection,
    ConnectionStatus,
    Delivery,
    DeliveryRef,
    DeliveryState,
    DispatchedEvent,
    origin_of,
)
from orchestrator.events.delivery.replays import Replay, Replays, ReplayStatus, changed
from orchestrator.events.delivery.rounds import next_round
from orchestrator.events.delivery.turns import rounds_of
from orchestrator.events.event_ids import IdRange, first_id_at
from orchestrator.events.records import TenantEpoch, UnreadableRow
from orchestrator.events.resource_ids import IdPrefix, is_resource_id

PAGE = 100
"""Deliveries: the number of events, times the number of connections."""
PAGES = 50
"""The pages of one tenant's replays per sweep. These are 5,000 deliveries per minute, and leave room for new events."""


@dataclass
class Replayed:
    """The work of one sweep on all replays."""

    looked_at: int = 0
    sent: int = 0
    unsent: int = 0
    """Messages that could not be sent. The deliveries are due all the same."""
    ended: int = 0
    """Replays."""
    unreadable: int = 0
    left: bool = False
    """True if the time was up, or the table busy, before everything was done. The next sweep goes on."""
    errors: list[Exception] = field(default_factory=list)
    """The errors of single replays. All others were moved on."""


class _Decision(StrEnum):
    SEND = "send"
    SKIP = "skip"
    DONE = "done"
    """This replay has asked for it before."""


@dataclass(frozen=True, slots=True)
class _Stop:
    """Why a replay cannot go on."""

    status: ReplayStatus
    reason: str


_UNREADABLE = _Stop(
    ReplayStatus.PAUSED, "The record of a connection is damaged. Once an operator has mended it, resume the replay."
)


class Replaying:
    """Tenants take turns, page by page, and so do their replays. A sweep begins with any of them: a long replay, or one
    with which something is wrong, holds up no other."""

    def __init__(
        self,
        *,
        replays: Replays,
        table: DeliveryTable,
        connections: Connections,
        dispatching: Dispatching,
        queue: MessageQueue,
        clock: Clock,
        random_below: Callable[[int], int] = secrets.randbelow,
    ) -> None:
        self._replays = replays
        self._table = table
        self._connections = connections
        self._dispatching = dispatching
        self._queue = queue
        self._clock = clock
        self._random_below = random_below

    def move_on(self, has_time: Callable[[], bool]) -> Replayed:
        done = Replayed()
        listed = list(self._replays.running())
        waiting = [each for each in listed if not isinstance(each, UnreadableRow)]
        done.unreadable = len(listed) - len(waiting)
        by_tenant: dict[TenantEpoch, deque[Replay]] = {}
        for replay in rounds_of(waiting, self._random_below):
            by_tenant.setdefault(replay.life, deque()).append(replay)
        for _ in range(PAGES):
            for mine in [each for each in by_tenant.values() if each]:
                if not has_time():
                    done.left = True
                    return done
                if (moved := self._turn(mine.popleft(), done)) is not None:
                    mine.append(moved)
        done.left = done.left or any(by_tenant.values())
        return done

    def _turn(self, replay: Replay, done: Replayed) -> Replay | None:
        """The replay after one page. ``None`` if it has to wait for the next sweep, or is over."""
        try:
            return self._page(replay, done)
        except Throttled:
            done.left = True
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one replay holds up no other
            done.errors.append(error)
        return None

    def _page(self, replay: Replay, done: Replayed) -> Replay | None:
        """The replay after one page. ``None`` if it has ended, or somebody else has changed it."""
        now = self._clock.now()
        connections = self._targets(replay)
        if isinstance(connections, _Stop):
            self._replays.write(replay, changed(replay, connections.status, now, connections.reason))
            done.ended += connections.status.has_ended
            return None
        begin = IdRange(after=replay.after) if replay.after else IdRange(first=first_id_at(replay.since))
        within = replace(begin, before=first_id_at(replay.until))
        submissions = is_resource_id(IdPrefix.FORM, replay.origin)
        limit = max(PAGE // len(connections), 1)
        events, cursor = self._table.accepted(replay.life, replay.shard, within, limit, submissions=submissions)
        mine = [each for each in events if origin_of(each.event) == replay.origin]
        sent, skipped = self._replay(replay, mine, connections, done)
        after = replace(
            replay,
            looked_at=replay.looked_at + len(mine),
            sent=replay.sent + sent,
            skipped=replay.skipped + skipped,
            after=cursor,
            shard=replay.shard + 1 if cursor is None else replay.shard,
            revision=replay.revision + 1,
        )
        if after.shard >= replay.shards:
            after = replace(after, status=ReplayStatus.FINISHED, ended_at=now)
        if not self._replays.write(replay, after):
            return None
        done.looked_at += len(mine)
        done.ended += after.status.has_ended
        return None if after.status.has_ended else after

    def _targets(self, replay: Replay) -> Sequence[Connection] | _Stop:
        if replay.connection_id is None:
            connections = self._connections.of_origin(replay.life, replay.origin)
            readable = [each for each in connections if not isinstance(each, UnreadableRow)]
            if len(readable) < len(connections):
                return _UNREADABLE
            living = [each for each in readable if not health.has_ended(each)]
            return living or _Stop(
                ReplayStatus.CANCELLED, f"No connection of {replay.origin} is active or paused, so nothing is sent."
            )
        connection = self._connections.connection(replay.life, replay.origin, replay.connection_id)
        if isinstance(connection, UnreadableRow):
            return _UNREADABLE
        if connection is None or connection.status is ConnectionStatus.DELETED:
            return _Stop(ReplayStatus.CANCELLED, "The connection was deleted.")
        if health.has_ended(connection):
            return _Stop(ReplayStatus.PAUSED, "The connection is disabled. Resume the connection, and then the replay.")
        return [connection]

    def _replay(
        self, replay: Replay, events: Sequence[DispatchedEvent], connections: Sequence[Connection], done: Replayed
    ) -> tuple[int, int]:
        """How many deliveries the replay has asked for, and how many it has skipped."""
        pairs = [(event, connection) for event in events for connection in connections]
        rows = self._table.deliveries_of([_ref(*pair) for pair in pairs]) if pairs else {}
        messages: list[DeliveryMessage] = []
        sent = 0
        for event, connection in pairs:
            row = rows.get(_ref(event, connection))
            match self._decide(replay, event, row, connection):
                case _Decision.DONE:
                    sent += 1
                case _Decision.SEND:
                    begun = next_round(event, row, connection, self._clock.now(), replay_id=replay.replay_id)
                    # If the row has changed, somebody else has resent or tried the delivery just now.
                    if begun.transition and self._table.apply(begun.transition):
                        sent += 1
                        messages += [begun.message] if begun.message else []
        done.unsent += len(self._queue.send(messages)) if messages else 0
        done.sent += len(messages)
        return sent, len(pairs) - sent

    def _decide(
        self, replay: Replay, event: DispatchedEvent, row: Delivery | None, connection: Connection
    ) -> _Decision:
        if row is not None and row.replay_id == replay.replay_id:
            return _Decision.DONE
        if expires_soon(event.event.expires_at, self._clock.now()):
            return _Decision.SKIP
        entry = transitions.entry_of(event, connection.connection_id)
        states = {row.state if row else None, entry.state if entry else None}
        has_it = DeliveryState.DELIVERED in states
        has_failed = not has_it and DeliveryState.FAILED in states
        if replay.only_failed:
            wanted = has_failed
        elif has_it:
            wanted = replay.include_delivered
        else:
            # An event that the connection never had may be one that it does not want.
            was_wanted = row is not None or entry is not None
            wanted = was_wanted or self._is_wanted(event, connection)
        return _Decision.SEND if wanted else _Decision.SKIP

    def _is_wanted(self, event: DispatchedEvent, connection: Connection) -> bool:
        try:
            return self._dispatching.wants(event.event, connection)
        except Throttled:
            raise
        except Exception:  # noqa: BLE001 - an event that cannot be read holds up no other
            return False


def _ref(event: DispatchedEvent, connection: Connection) -> DeliveryRef:
    return DeliveryRef(event.event.life, event.event.event_id, connection.connection_id)
