"""Another round of tries, because somebody asks for it: for one event, or by a replay for many.

A delivery that waits for a try is made due now, instead of a second round beside the first one. The rules are here, and
change nothing: the caller applies the transition, and then sends the message.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from orchestrator.events.delivery import health, transitions
from orchestrator.events.delivery.delivering import GRACE
from orchestrator.events.delivery.dispatching import was_there
from orchestrator.events.delivery.messages import DeliveryMessage
from orchestrator.events.delivery.records import (
    Connection,
    Delivery,
    DeliveryRef,
    DeliveryState,
    DispatchedEvent,
    origin_of,
)
from orchestrator.events.delivery.redispatching import SETTLES_IN
from orchestrator.events.delivery.transitions import Transition
from orchestrator.events.statuses import EventStatus

MAX_TRIES = 100
"""The maximum number of tries of one delivery, in all rounds. A round that has begun goes on to its end."""
MAX_CONNECTIONS = 100
"""The maximum number of connections that one event is sent to, with those that were made later. The event's row has an
entry for each."""


class ResendResult(StrEnum):
    """The result of asking for a delivery."""

    SENT = "sent"
    """A new round has begun."""
    DUE = "due"
    """The delivery waited for its next try. It is tried now as well, and the try that it waited for stays planned."""
    TRYING = "trying"
    """The delivery is being tried, or its first try is on its way. Nothing was changed."""
    PARKED = "parked"
    """The connection is paused. The delivery goes out when the connection is resumed. What a replay asks for waits for
    an open breaker, too."""
    EXHAUSTED = "exhausted"
    """The event was sent to this connection, or to others, too often. Nothing was changed."""


@dataclass(frozen=True, slots=True)
class NextRound:
    result: ResendResult
    transition: Transition = ()
    """Empty if there is nothing to change."""
    message: DeliveryMessage | None = None
    """The message to send once the transition is made. If it is lost, the row is due two minutes later."""


def next_round(
    event: DispatchedEvent, delivery: Delivery | None, connection: Connection, now: datetime, *, replay_id: str = ""
) -> NextRound:
    """``delivery`` is the row of the delivery, if there is one."""
    asked = not replay_id
    parks = health.parks(connection, now, asked=asked)
    # An event that the stream has repeated may leave a row that waits, though the delivery is over. Its try would send
    # nothing.
    is_over = delivery is not None and transitions.is_stale_row(event, delivery)
    match delivery:
        case None if is_on_its_way(event, connection, now):
            return NextRound(ResendResult.TRYING)
        case Delivery(leased_until=datetime() as until) if now < until:
            return NextRound(ResendResult.TRYING)
        case Delivery(state=DeliveryState.PARKED) if parks and not is_over:
            return NextRound(ResendResult.PARKED)
        case Delivery(state=DeliveryState.RETRYING | DeliveryState.PARKED) if not is_over:
            planned = _planned(delivery, connection, now)
            if planned is not None and delivery.planned is None and delivery.tries >= MAX_TRIES:
                return NextRound(ResendResult.EXHAUSTED)
            extra = replace(delivery, planned=planned, asked=delivery.asked or asked)
            result, after = ResendResult.DUE, replace(extra, state=DeliveryState.RETRYING, due=now + GRACE, sent=1)
        case _:
            result, after = ResendResult.SENT, _new_round(event, delivery, connection, now, replay_id)
            if is_exhausted(event, after):
                return NextRound(ResendResult.EXHAUSTED)
    if parks:
        parked = replace(after, state=DeliveryState.PARKED, due=None, sent=0)
        return NextRound(ResendResult.PARKED, transitions.changed(delivery, parked))
    return _sent(delivery, after, result)


def _planned(delivery: Delivery, connection: Connection, now: datetime) -> datetime | None:
    """When the schedule's own try of a delivery that waits is due. ``None`` if it is the one that is made now."""
    if delivery.tries == delivery.tries_before:
        return None
    if delivery.planned is not None:
        return delivery.planned
    if delivery.due is None:
        # It is parked, and would be tried once the breaker is closed.
        return connection.health.open_until if health.is_open(connection.health, now) else None
    return delivery.due - GRACE if delivery.sent else delivery.due


def is_on_its_way(event: DispatchedEvent, connection: Connection, now: datetime) -> bool:
    """True if a delivery that has no row waits for its first try, or may do so."""
    if event.entries is not None:
        return connection.connection_id in (event.pending or ())
    if not was_there(connection, event.event):
        # Dispatch leaves out what is younger than the event, which may wait for an older connection that is paused.
        return False
    # Dispatch writes nothing for an event with one connection, nor for one that only the inbox has.
    is_young = now - event.event.received_at < SETTLES_IN
    return event.event.status is EventStatus.RECEIVED and (is_young or not event.event.in_inbox)


def is_exhausted(event: DispatchedEvent, after: Delivery) -> bool:
    """True if another round would make the rows of the event grow too much. Every try is one of them."""
    entries = event.entries or {}
    is_new = after.ref.connection_id not in entries
    return after.tries_before >= MAX_TRIES or (is_new and len(entries) >= MAX_CONNECTIONS)


def _new_round(
    event: DispatchedEvent, delivery: Delivery | None, connection: Connection, now: datetime, replay_id: str
) -> Delivery:
    connection_id = connection.connection_id
    entry = transitions.entry_of(event, connection_id)
    tries = max(delivery.tries if delivery else 0, entry.tries if entry else 0)
    return Delivery(
        DeliveryRef(event.event.life, event.event.event_id, connection_id),
        DeliveryState.RETRYING,
        tries,
        first_try=now,
        expires_at=event.event.expires_at,
        origin=origin_of(event.event),
        tries_before=tries,
        due=now + GRACE,
        sent=1,
        asked=not replay_id,
        resend=True,
        replay_id=replay_id,
    )


def _sent(before: Delivery | None, after: Delivery, result: ResendResult) -> NextRound:
    message = DeliveryMessage(after.ref, after.tries, claims=True, quick=False)
    return NextRound(result, transitions.changed(before, after), message)
