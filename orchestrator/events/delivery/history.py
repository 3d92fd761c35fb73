"""Shows what became of events: the attempts of one, and the deliveries of a connection that somebody has to act on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from orchestrator.common.errors import InvalidRequest
from orchestrator.common.times import Clock
from orchestrator.events.delivery.ports import Connections, ConnectionsById, DeliveryTable
from orchestrator.events.delivery.records import (
    DISPATCH,
    INBOX,
    Attempt,
    ConnectionStatus,
    Delivery,
    DeliveryEntry,
    DeliveryRef,
    DeliveryState,
    DispatchedEvent,
    origin_of,
)
from orchestrator.events.delivery.resending import unknown_connection, unknown_event
from orchestrator.events.listing import is_shown
from orchestrator.events.records import Event, EventSettings, TenantEpoch, UnreadableRow
from orchestrator.events.refusals import Refused

MAX_PAGE_SIZE = 100
MAX_ATTEMPTS = 500
"""The maximum number of attempts that are shown of one event: the newest ones."""
_MAX_TEXT_BYTES = 300_000
"""The size of all answers of receivers together that are shown of one event. Lambda answers with 6 MB at most, and a
character of such a text may become 14 bytes there."""
_MAX_ROUNDS = 5


class ShownState(StrEnum):
    """The states of deliveries, with one for those that nobody has written down yet."""

    WAITING = "waiting"
    """Its first try is on its way."""
    RETRYING = DeliveryState.RETRYING
    PARKED = DeliveryState.PARKED
    DELIVERED = DeliveryState.DELIVERED
    FAILED = DeliveryState.FAILED


@dataclass(frozen=True, slots=True)
class ShownDelivery:
    ref: DeliveryRef
    state: ShownState
    tries: int = 0
    at: datetime | None = None
    """When it ended, or was last tried."""
    due: datetime | None = None
    code: int | None = None
    reason: str = ""
    resend: bool = False


@dataclass(frozen=True, slots=True)
class EventDeliveries:
    event: Event
    deliveries: Sequence[ShownDelivery]
    """The deliveries, ordered by connection."""
    attempts: Sequence[Attempt]
    """The attempts to all connections, oldest first. If there are too many, the newest ones."""
    names: Mapping[str, str]
    """The names of connections, by id. Those that were deleted may be missing."""
    omitted: int = 0
    """The number of older attempts that are left out."""


@dataclass(frozen=True, slots=True)
class DeliveryPage:
    deliveries: Sequence[ShownDelivery]
    cursor: str | None
    connection_name: str
    """The name of the connection that all of these deliveries belong to."""


class DeliveryHistory:
    def __init__(
        self, *, table: DeliveryTable, connections: ConnectionsById, origins: Connections, clock: Clock
    ) -> None:
        self._table = table
        self._connections = connections
        self._origins = origins
        self._clock = clock

    def attempts(self, settings: EventSettings, event_id: str) -> EventDeliveries | Refused:
        life = settings.life
        event = self._table.event(life, event_id)
        if event is None or not is_shown(event.event, settings, self._clock.now()):
            return unknown_event(life, event_id)
        rows = {each.ref.connection_id: each for each in self._table.deliveries(life, event_id)}
        recorded = self._table.attempts(life, event_id)
        attempts = sorted([*recorded, *_first_successes(event, recorded)], key=lambda each: (each.at, each.number))
        deliveries, shown = _fitting(_deliveries(event, rows), attempts[-MAX_ATTEMPTS:])
        # An event goes to connections of its origin only, so one request finds all names.
        there = self._origins.of_origin(life, origin_of(event.event))
        names = {each.connection_id: each.name for each in there if not isinstance(each, UnreadableRow)}
        return EventDeliveries(event.event, deliveries, shown, names, omitted=len(attempts) - len(shown))

    def deliveries(
        self, settings: EventSettings, connection_id: str, state: DeliveryState, *, cursor: str | None, limit: int
    ) -> DeliveryPage | Refused:
        """Deliveries of a connection that failed, newest first, or that are parked, oldest event first."""
        life = settings.life
        connection = self._connections.connection(life, connection_id)
        if connection is None or connection.status is ConnectionStatus.DELETED:
            return unknown_connection(life, connection_id)
        found: list[ShownDelivery] = []
        for _ in range(_MAX_ROUNDS):
            refs, cursor = self._listed(connection_id, state, cursor, limit - len(found))
            found += self._those_in(state, life, refs)
            if cursor is None or len(found) == limit:
                break
        return DeliveryPage(found, cursor, connection.name)

    def _listed(
        self, connection_id: str, state: DeliveryState, after: str | None, limit: int
    ) -> tuple[Sequence[DeliveryRef], str | None]:
        match state:
            case DeliveryState.FAILED:
                return self._table.failed(connection_id, after=after, limit=limit)
            case DeliveryState.PARKED:
                refs = self._table.parked(connection_id, limit + 1, after=after)
                return refs[:limit], refs[limit - 1].event_id if len(refs) > limit else None
            case _:
                # No index lists these by connection, so such a list would read the deliveries of all connections.
                raise InvalidRequest(
                    f"status: {state} deliveries are not listed by connection, only failed and parked ones. List the "
                    f"events with the status {state} instead. That list leaves out events that wait in the inbox. They "
                    "are undelivered, whatever their deliveries do: look at the attempts of each."
                )

    def _those_in(self, state: DeliveryState, life: TenantEpoch, refs: Sequence[DeliveryRef]) -> list[ShownDelivery]:
        """The index may be behind: a delivery may have been resent since, or its event may have expired."""
        mine = [ref for ref in refs if ref.life == life]
        rows = self._table.deliveries_of(mine) if mine else {}
        now = self._clock.now()
        there = [rows[ref] for ref in mine if ref in rows]
        return [_shown(each) for each in there if each.state is state and each.expires_at > now]


def _fitting(
    deliveries: Sequence[ShownDelivery], attempts: Sequence[Attempt]
) -> tuple[Sequence[ShownDelivery], Sequence[Attempt]]:
    """Leave texts out that would make the answer too large: those of the oldest attempts first."""
    left = _MAX_TEXT_BYTES

    def fits(text: str) -> bool:
        nonlocal left
        left -= len(text.encode())
        return left >= 0

    shown = [each if fits(each.reason) else replace(each, reason="") for each in deliveries]
    newest_first = [each if fits(each.text) else replace(each, text="") for each in reversed(attempts)]
    return shown, newest_first[::-1]


def _first_successes(event: DispatchedEvent, recorded: Sequence[Attempt]) -> list[Attempt]:
    """A first try that succeeds has no attempt on record, only the entry of its event."""
    known = {(each.ref.connection_id, each.at) for each in recorded if each.delivered}
    return [
        Attempt(
            DeliveryRef(event.event.life, event.event.event_id, connection_id),
            entry.tries,
            entry.at,
            delivered=True,
            code=entry.code,
            milliseconds=entry.milliseconds,
            text="",
            expires_at=event.event.expires_at,
        )
        for connection_id, entry in (event.entries or {}).items()
        if entry.state is DeliveryState.DELIVERED and (connection_id, entry.at) not in known
    ]


def _deliveries(event: DispatchedEvent, rows: Mapping[str, Delivery]) -> list[ShownDelivery]:
    entries, waiting = event.entries or {}, event.pending or frozenset()
    found = []
    for name in sorted({*entries, *waiting, *rows} - {INBOX, DISPATCH}):
        ref = DeliveryRef(event.event.life, event.event.event_id, name)
        if name in rows:
            found.append(_shown(rows[name], entries.get(name)))
        elif name in entries:
            entry = entries[name]
            state = ShownState(entry.state)
            found.append(ShownDelivery(ref, state, entry.tries, entry.at, code=entry.code, reason=entry.reason))
        else:
            found.append(ShownDelivery(ref, ShownState.WAITING))
    return found


def _shown(delivery: Delivery, entry: DeliveryEntry | None = None) -> ShownDelivery:
    return ShownDelivery(
        delivery.ref,
        ShownState(delivery.state),
        delivery.tries,
        delivery.ended_at or (entry.at if entry else None),
        delivery.due,
        delivery.code,
        delivery.reason,
        delivery.resend,
    )
