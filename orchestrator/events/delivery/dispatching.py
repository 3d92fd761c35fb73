"""Which connections have to have an event: found once, noted, and a message sent for each.

It may happen again for the same event, because the stream repeats a batch, or because a message could not be sent. What
was noted the first time stays, whatever has been configured meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from orchestrator.common.times import Clock
from orchestrator.events.delivery import health, transitions
from orchestrator.events.delivery.delivering import GRACE, UNREADABLE
from orchestrator.events.delivery.filters import Filterable, matches
from orchestrator.events.delivery.messages import DeliveryMessage
from orchestrator.events.delivery.ports import Connections, DeliveryTable, MessageQueue
from orchestrator.events.delivery.records import (
    DISPATCH,
    INBOX,
    Connection,
    Delivery,
    DeliveryRef,
    DeliveryState,
    DispatchedEvent,
    only_connection,
    origin_of,
)
from orchestrator.events.documents import parse_json
from orchestrator.events.records import Content, Event, TenantEpoch, UnreadableRow
from orchestrator.events.statuses import EventStatus

AGAIN_AFTER = timedelta(minutes=1)
CLOCKS_DIFFER_BY = timedelta(minutes=1)
_ROUNDS = 5


@dataclass
class Dispatched:
    """The result of dispatching a batch."""

    sent: int = 0
    """Messages."""
    filtered: int = 0
    """Events that no connection wants."""
    parked: int = 0
    """Deliveries."""
    later: list[str] = field(default_factory=list)
    """Why an event has to be dispatched again, for each such event."""


class Dispatching:
    def __init__(
        self,
        *,
        table: DeliveryTable,
        connections: Connections,
        queue: MessageQueue,
        content_of: Callable[[Event], Content | None],
        clock: Clock,
    ) -> None:
        self._table = table
        self._connections = connections
        self._queue = queue
        self._content_of = content_of
        self._clock = clock

    def dispatch(self, events: Sequence[DispatchedEvent], *, with_rows: bool = False) -> Dispatched:
        """Dispatch events, as they were when they were accepted, or as they are now.

        ``with_rows`` gives every delivery a row with a due time, so that it is tried even if its message is lost. An
        event that is new needs none: if its messages are lost, it is found at night.

        An event that cannot be dispatched is found again by the sweep, and holds up no other. Only a failure of the
        table is raised: then nothing may be forgotten.
        """
        # Connections are read once per batch: one that was created before an event of the batch is among them.
        known: dict[tuple[TenantEpoch, str], Sequence[Connection | UnreadableRow]] = {}
        done, messages, by_ref = Dispatched(), list[DeliveryMessage](), dict[DeliveryRef, Event]()
        for event in events:
            where = event.event.life, origin_of(event.event)
            if where not in known:
                known[where] = self._connections.of_origin(*where)
            for message in self._messages(event, known[where], done, with_rows=with_rows):
                messages.append(message)
                by_ref[message.ref] = event.event
        unsent = self._queue.send(messages) if messages else []
        done.sent = len(messages) - len(unsent)
        for event_ in {by_ref[message.ref].event_id: by_ref[message.ref] for message in unsent}.values():
            self._again(event_, "A message could not be sent.", done)
        return done

    def _messages(
        self,
        dispatched: DispatchedEvent,
        connections: Sequence[Connection | UnreadableRow],
        done: Dispatched,
        *,
        with_rows: bool,
    ) -> Sequence[DeliveryMessage]:
        event, now = dispatched.event, self._clock.now()
        by_id = {each.connection_id: each for each in connections if not isinstance(each, UnreadableRow)}
        messages: list[DeliveryMessage] = []
        to_park: list[Delivery] = []
        there: list[DeliveryRef] = []
        for connection_id in self._to_have(dispatched, connections, done):
            ref = DeliveryRef(event.life, event.event_id, connection_id)
            connection = by_id.get(connection_id)
            row = Delivery(ref, DeliveryState.RETRYING, 0, now, event.expires_at, origin_of(event))
            # Most rows are parked, and the nightly run finds them again. To write and be refused costs more.
            if with_rows and (known := self._table.delivery(ref)) is not None:
                if known.state in transitions.FINISHED:
                    due = replace(transitions.first_round_after(known), due=now + GRACE, sent=1)
                    if self._table.apply(transitions.changed(known, due)):
                        messages.append(DeliveryMessage(ref, known.tries, claims=True, quick=False))
            elif connection is not None and health.parks(connection, now):
                to_park.append(replace(row, state=DeliveryState.PARKED))
            elif not with_rows:
                # A connection that is gone or damaged meanwhile was noted before. Its delivery fails, and says why, or
                # is postponed.
                messages.append(DeliveryMessage(ref, quick=connection is not None and connection.health.is_good))
            elif self._table.apply(transitions.changed(None, replace(row, due=now + GRACE, sent=1))):
                messages.append(DeliveryMessage(ref, claims=True, quick=False))
            else:
                there.append(ref)
        there += self._park(to_park)
        done.parked += len([each for each in to_park if each.ref not in there])
        return [*messages, *(DeliveryMessage(ref, quick=False) for ref in there if self._has_ended(ref))]

    def _park(self, deliveries: Sequence[Delivery]) -> Sequence[DeliveryRef]:
        """Park the deliveries of one event: one write, so that many paused connections do not hold up the stream.

        Returns those that have a row already: the batch has come again, or somebody has resent the event before.
        """
        if not deliveries or self._table.apply(transitions.added(deliveries)):
            return []
        if len(deliveries) == 1:
            return [deliveries[0].ref]
        return [each.ref for each in deliveries if not self._table.apply(transitions.changed(None, each))]

    def _has_ended(self, ref: DeliveryRef) -> bool:
        """True if the row is of a resend that is over, so that the first try is still to come.

        Any other row has a due time, or is parked.
        """
        delivery = self._table.delivery(ref)
        return delivery is not None and delivery.state in transitions.FINISHED

    def _to_have(
        self, dispatched: DispatchedEvent, connections: Sequence[Connection | UnreadableRow], done: Dispatched
    ) -> Sequence[str]:
        """The connections that are to have the event, and have not tried."""
        if dispatched.pending is not None or dispatched.entries is not None:
            return _untried(dispatched)
        event = dispatched.event
        readable = [each for each in connections if not isinstance(each, UnreadableRow)]
        if len(readable) < len(connections):
            # Nobody knows whether that connection wants the event, and what is decided now is never decided again.
            self._again(event, UNREADABLE, done)
            return []
        try:
            older = [each for each in readable if was_there(each, event)]
            wanted = [each.connection_id for each in self._wanted_by(event, older)]
        except Exception as error:  # noqa: BLE001 - whatever is wrong with this event holds up no other
            self._again(event, f"{type(error).__name__}: {error}", done)
            return []
        # An event that is delivered, and that nobody was to have, was acknowledged in the inbox.
        in_inbox = event.in_inbox or event.status is EventStatus.DELIVERED
        for _ in range(_ROUNDS):
            transition = transitions.note_recipients(dispatched, wanted, in_inbox=in_inbox)
            if not transition:
                return wanted
            if self._table.apply(transition):
                done.filtered += not wanted
                return wanted
            found = self._table.event(event.life, event.event_id)
            if found is None or not wanted or found.event.status is EventStatus.FILTERED:
                return []
            if found.pending is not None or found.entries is not None:
                return _untried(found)
            dispatched = found
        self._again(event, "Other writes came first.", done)
        return []

    def wants(self, event: Event, connection: Connection) -> bool:
        """True if the connection wants such events. It may be younger than the event, if somebody replays that."""
        return bool(self._wanted_by(event, [connection]))

    def _wanted_by(self, event: Event, connections: Sequence[Connection]) -> Sequence[Connection]:
        only = only_connection(event)
        living = [each for each in connections if not health.has_ended(each)]
        if only is not None:
            return [each for each in living if each.connection_id == only]
        if all(each.filter is None for each in living):
            return living
        filterable = _filterable(event, self._content_of(event))
        return [each for each in living if each.filter is None or matches(each.filter, filterable)]

    def _again(self, event: Event, reason: str, done: Dispatched) -> None:
        """Have the sweep dispatch the event again."""
        now = self._clock.now()
        again = Delivery(
            DeliveryRef(event.life, event.event_id, DISPATCH),
            DeliveryState.RETRYING,
            0,
            now,
            event.expires_at,
            origin_of(event),
            due=now + AGAIN_AFTER,
            reason=reason,
        )
        # If there is such a row already, the sweep finds that one.
        self._table.apply(transitions.changed(None, again))
        done.later.append(reason)


def was_there(connection: Connection, event: Event) -> bool:
    """Connections are for the events that come after them. Clocks differ a little."""
    return connection.created_at <= event.received_at + CLOCKS_DIFFER_BY


def _untried(dispatched: DispatchedEvent) -> Sequence[str]:
    """The connections that have not tried. Those that have are found by their own rows."""
    return sorted((dispatched.pending or frozenset()) - {INBOX} - set(dispatched.entries or {}))


def _filterable(event: Event, content: Content | None) -> Filterable:
    headers = {name.lower(): value for name, value in content.headers.items()} if content else {}
    return Filterable(event.event_type, headers, _json(content))


def _json(content: Content | None) -> object:
    """The payload as JSON, by the rules of transforms, so that filters and transforms agree on what is JSON."""
    try:
        return parse_json(content.body) if content else None
    except (ValueError, RecursionError):
        return None
