"""Resends one event, to one connection or to all that failed: somebody has mended a receiver, or has lost what came."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from orchestrator.common.errors import Unsettled
from orchestrator.common.times import Clock
from orchestrator.events.delivery import health, transitions
from orchestrator.events.delivery.delivering import GRACE, expires_soon
from orchestrator.events.delivery.messages import DeliveryMessage
from orchestrator.events.delivery.ports import ConnectionsById, DeliveryTable, MessageQueue
from orchestrator.events.delivery.records import (
    DISPATCH,
    Connection,
    ConnectionStatus,
    Delivery,
    DeliveryRef,
    DeliveryState,
    DispatchedEvent,
    origin_of,
)
from orchestrator.events.delivery.rounds import ResendResult, next_round
from orchestrator.events.listing import is_shown
from orchestrator.events.records import EventSettings, TenantEpoch
from orchestrator.events.refusals import EventRefusal, Refused

WOKEN_AT_ONCE = 50
"""The parked deliveries that go out while a connection is being resumed. The sweep sends the others."""
_ROUNDS = 5


class Resending:
    def __init__(
        self, *, table: DeliveryTable, connections: ConnectionsById, queue: MessageQueue, clock: Clock
    ) -> None:
        self._table = table
        self._connections = connections
        self._queue = queue
        self._clock = clock

    def resend(
        self, settings: EventSettings, event_id: str, connection_id: str | None = None
    ) -> Mapping[str, ResendResult] | Refused:
        """Send the event again to the connection, by default to all to which it failed. Returns the result for each."""
        life = settings.life
        event = self._table.event(life, event_id)
        if event is None or not is_shown(event.event, settings, self._clock.now()):
            return unknown_event(life, event_id)
        if expires_soon(event.event.expires_at, self._clock.now()):
            return Refused(
                EventRefusal.EXPIRES_SOON,
                life.tenant,
                f"Event {event_id} of tenant {life.tenant} expires within the hour, so it is not sent again. "
                "Send its payload as a new event.",
            )
        connections = self._named(event, connection_id) if connection_id else self._those_that_failed(event)
        if isinstance(connections, Refused):
            return connections
        return {each.connection_id: self._begin(event, each) for each in connections}

    def wake(self, connection: Connection) -> None:
        """Send what is parked for a connection that was resumed, the oldest events first."""
        refs = self._table.parked(connection.connection_id, WOKEN_AT_ONCE)
        found = self._table.deliveries_of(refs) if refs else {}
        parked = [found[ref] for ref in refs if ref in found and found[ref].state is DeliveryState.PARKED]
        unpark(parked, self._table, self._queue, self._clock.now())

    def _named(self, event: DispatchedEvent, connection_id: str) -> Sequence[Connection] | Refused:
        life, origin = event.event.life, origin_of(event.event)
        connection = self._connections.connection(life, connection_id)
        if connection is None or connection.status is ConnectionStatus.DELETED:
            return unknown_connection(life, connection_id)
        if connection.origin != origin:
            return Refused(
                EventRefusal.NOTHING_TO_RESEND,
                life.tenant,
                f"Event {event.event.event_id} of tenant {life.tenant} came in by {origin}, and the connection "
                f"{connection_id} has the events of {connection.origin}. Name a connection of {origin}.",
            )
        if health.has_ended(connection):
            return Refused(
                EventRefusal.CONNECTION_DISABLED,
                life.tenant,
                f"The connection {connection_id} of tenant {life.tenant} is disabled, so nothing is sent to it. Resume "
                "it, and then resend the event.",
            )
        return [connection]

    def _those_that_failed(self, event: DispatchedEvent) -> Sequence[Connection] | Refused:
        life, event_id = event.event.life, event.event.event_id
        by_entry = {name for name, each in (event.entries or {}).items() if each.state is DeliveryState.FAILED}
        # A resend that failed has a row, and left the entry of the event as it was.
        rows = {each.ref.connection_id: each.state for each in self._table.deliveries(life, event_id)}
        names = (by_entry | set(rows)) - {DISPATCH}
        failed = sorted(name for name in names if rows.get(name, DeliveryState.FAILED) is DeliveryState.FAILED)
        found = [self._connections.connection(life, name) for name in failed]
        usable = [each for each in found if each is not None and not health.has_ended(each)]
        if usable:
            return usable
        why = (
            "The connections to which it failed are disabled or deleted: resume one, and resend the event."
            if failed
            else "No delivery of it has failed for good. Name a connection to try one now that waits for a retry, or "
            "to send the event once more to one that has it."
        )
        return Refused(EventRefusal.NOTHING_TO_RESEND, life.tenant, f"Event {event_id} of tenant {life.tenant}: {why}")

    def _begin(self, event: DispatchedEvent, connection: Connection) -> ResendResult:
        ref = DeliveryRef(event.event.life, event.event.event_id, connection.connection_id)
        for _ in range(_ROUNDS):
            begun = next_round(event, self._table.delivery(ref), connection, self._clock.now())
            if not begun.transition:
                return begun.result
            if self._table.apply(begun.transition):
                if begun.message is not None:
                    # If the message cannot be sent, the sweep sends another one, because the row is due.
                    self._queue.send([begun.message])
                return begun.result
            event = self._table.event(ref.life, ref.event_id) or event
        raise Unsettled(
            f"Tenant {ref.life.tenant}: event {ref.event_id} is being delivered to {ref.connection_id}. Try again."
        )


def unpark(parked: Sequence[Delivery], table: DeliveryTable, queue: MessageQueue, now: datetime) -> tuple[int, int]:
    """Make parked deliveries due, but for those about to expire. Returns how many are, and how many messages failed."""
    moved: list[DeliveryMessage] = []
    for delivery in parked:
        if expires_soon(delivery.expires_at, now):
            continue
        # The row is due first, and the message sent then: a message that is lost is found by the row.
        due = replace(delivery, state=DeliveryState.RETRYING, due=now + GRACE, sent=1)
        if table.apply(transitions.changed(delivery, due)):
            moved.append(DeliveryMessage(delivery.ref, delivery.tries, claims=True, quick=False))
    return len(moved), len(queue.send(moved)) if moved else 0


def unknown_event(life: TenantEpoch, event_id: str) -> Refused:
    return Refused(
        EventRefusal.UNKNOWN_EVENT, life.tenant, f"Tenant {life.tenant} has no event {event_id}, or it has expired."
    )


def unknown_connection(life: TenantEpoch, connection_id: str) -> Refused:
    return Refused(
        EventRefusal.NO_SUCH_CONNECTION,
        life.tenant,
        f"Tenant {life.tenant} has no connection {connection_id}. List its connections to see their ids.",
    )
