"""The promises of the event plane, checked at every try and at the end of a run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from orchestrator.events.delivery import health, transitions
from orchestrator.events.delivery.delivering import EXPIRED, EXPIRED_UNREADABLE
from orchestrator.events.delivery.dispatching import CLOCKS_DIFFER_BY
from orchestrator.events.delivery.records import (
    INBOX,
    ONLY_CONNECTION,
    Connection,
    DeliveryRef,
    DeliveryState,
    DispatchedEvent,
    Outgoing,
    origin_of,
)
from orchestrator.events.delivery.writes import AttemptKey, DeliveryKey, EventKey, Key
from orchestrator.events.records import Event
from orchestrator.events.statuses import UNDELIVERED, EventStatus
from tests.fakes import FakeClock
from tests.fakes.connections import InMemoryConnections
from tests.fakes.deliveries import InMemoryDeliveries
from tests.fakes.replays import InMemoryReplays
from tests.simulation.events.receivers import Receivers
from tests.simulation.events.replay_checks import ReplayChecks


@dataclass
class Checks:
    table: InMemoryDeliveries
    connections: InMemoryConnections
    all_replays: InMemoryReplays
    receivers: Receivers
    clock: FakeClock
    seen: Counter[str]
    wanted: dict[tuple[object, str], set[str]] = field(default_factory=dict)
    """The connections that each event has to reach, by what was configured when it was accepted."""
    in_inbox: set[tuple[object, str]] = field(default_factory=set)
    resent: set[DeliveryRef] = field(default_factory=set)
    purged: set[object] = field(default_factory=set)
    acknowledged: set[tuple[object, str]] = field(default_factory=set)
    """The events of which a consumer was told that they are out of the inbox."""
    works: set[str] = field(default_factory=set)
    """The connections that take everything, once faults are over."""
    tries: Counter[DeliveryRef] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.replays = ReplayChecks(self.table, self.connections, self.all_replays, self.clock, self.seen, _wants)

    def accepted(self, event: Event) -> None:
        living = [
            each
            for each in self.connections.of_origin(event.life, origin_of(event))
            if not health.has_ended(each) and _wants(each, event)
        ]
        only = event.metadata.get(ONLY_CONNECTION)
        self.wanted[event.life, event.event_id] = {
            each.connection_id for each in living if only is None or each.connection_id == only
        }
        if event.in_inbox:
            self.in_inbox.add((event.life, event.event_id))

    def ended(self, connection_id: str) -> None:
        """The connection was deleted or disabled, or has another filter: it may miss events that came before."""
        for wanted in self.wanted.values():
            wanted.discard(connection_id)
        self.replays.ended.add(connection_id)

    def begin(self, ref: DeliveryRef) -> bool:
        """A message for the delivery has come. True if the delivery is on record as delivered."""
        event = self.table.event(ref.life, ref.event_id)
        entry = transitions.entry_of(event, ref.connection_id) if event else None
        return entry is not None and entry.state is DeliveryState.DELIVERED

    def sent(self, outgoing: Outgoing, may_not_send: DeliveryRef | None) -> None:
        ref = DeliveryRef(outgoing.event.life, outgoing.event.event_id, outgoing.connection.connection_id)
        self.tries[ref] += 1
        assert outgoing.connection.life == outgoing.event.life, f"{ref} was sent to another tenant's receiver"
        may_come_again = ref in self.resent or ref in self.replays.again
        assert ref != may_not_send or may_come_again, f"{ref} was sent again after a success on record"
        came, connected = outgoing.event.received_at, outgoing.connection.created_at
        is_asked_for = ref in self.resent or self.replays.was_asked_for(ref)
        assert connected <= came + CLOCKS_DIFFER_BY or is_asked_for, f"{ref} came before its connection"
        assert outgoing.delivery_id == f"{ref.event_id}-{ref.connection_id}"

    # At the end

    def everything_is_settled(self) -> bool:
        if not self.replays.all_have_ended():
            return False
        open_ = (DeliveryState.RETRYING, DeliveryState.PARKED)
        rows = self.table.rows.items()
        if any(isinstance(key, DeliveryKey) and row["delivery"].state in open_ for key, row in rows):
            return False
        return all(self._is_done(key.life, key.event_id) for key in self.table.events if key in self.table.rows)

    def _is_done(self, life: object, event_id: str) -> bool:
        event = self.table.event(life, event_id)  # type: ignore[arg-type]
        assert event is not None
        untried = (event.pending or frozenset()) - {INBOX}
        missing = {each for each in self.wanted[life, event_id] if not transitions.is_finished(event, each)}
        return not untried and not missing

    def check_end(self) -> None:
        self.replays.check_end()
        self._check_purged()
        for key in self.table.events:
            event = self.table.event(key.life, key.event_id)
            if event is not None:
                self._check_event(event)
        for row in self.table.rows:
            if isinstance(row, DeliveryKey):
                self._check_delivery(row)
            if isinstance(row, AttemptKey):
                assert DeliveryKey(row.ref) in self.table.rows, (
                    f"{row.ref} has attempts that the next try knows nothing of"
                )

    def _check_purged(self) -> None:
        """Nothing is left of a life that has ended."""
        rows = [key for key in self.table.rows if _life_of(key) in self.purged]
        assert not rows, f"{len(rows)} rows of a life that was purged are left, such as {rows[0]}"
        connections = [each.connection_id for each in self.connections.all.values() if each.life in self.purged]
        assert not connections, f"connections of a life that was purged are left: {connections}"
        replays = [each.replay_id for each in self.all_replays.all.values() if each.life in self.purged]
        assert not replays, f"replays of a life that was purged are left: {replays}"

    def _check_event(self, event: DispatchedEvent) -> None:
        name = event.event.life, event.event.event_id
        entries = event.entries or {}
        for connection_id in self.wanted[name]:
            assert transitions.is_finished(event, connection_id), f"{name} is not done for {connection_id}: {event}"
        for connection_id, entry in entries.items():
            assert entry.state in transitions.FINISHED, f"{name} is {entry.state} for {connection_id} for ever"
            if entry.state is DeliveryState.DELIVERED:
                assert self.receivers.received[name[1], connection_id], f"{name} never reached {connection_id}"
            else:
                assert entry.reason, f"{name} failed for {connection_id} without a reason"
                expired = entry.reason in (EXPIRED, EXPIRED_UNREADABLE)
                assert not expired or connection_id not in self.works, f"{name} was not tried for days: {connection_id}"
        waits = (event.pending or frozenset()) == {INBOX} or (event.pending is None and event.event.in_inbox)
        assert waits or event.pending is None, f"{name} is still to go to {event.pending}"
        row = self.table.rows[_key(event)]
        assert not waits or name not in self.acknowledged, f"{name} was acknowledged, and waits in the inbox"
        if waits:
            assert row["indexed_as"] == UNDELIVERED
            return
        status = event.event.status
        if entries:
            assert status is transitions.final_status(entries), f"{name} is {status} with {entries}"
        else:
            expected = EventStatus.DELIVERED if name in self.in_inbox else EventStatus.FILTERED
            assert status is expected, f"{name} is {status}, and nobody wanted it"
        assert row.get("indexed_as") == (status if status is EventStatus.FAILED else None), f"{name} is listed wrongly"

    def _check_delivery(self, key: DeliveryKey) -> None:
        delivery = self.table.rows[key]["delivery"]
        ref = delivery.ref
        event = self.table.event(ref.life, ref.event_id)
        assert event is not None, f"{ref} has outlived its event"
        numbers = {each.number for each in self.table.rows if isinstance(each, AttemptKey) and each.ref == ref}
        assert numbers <= set(range(1, delivery.tries + 1)), f"{ref} has attempts {numbers} of {delivery.tries}"
        assert len(numbers) <= self.tries[ref], f"{ref} has attempts on record that nobody made"


def _wants(connection: Connection, event: Event) -> bool:
    return connection.filter is None or connection.filter == {"event_type": event.event_type}


def _life_of(key: Key) -> object:
    return key.ref.life if isinstance(key, DeliveryKey | AttemptKey) else key.life


def _key(event: DispatchedEvent) -> EventKey:
    return EventKey(event.event.life, event.event.event_id)
