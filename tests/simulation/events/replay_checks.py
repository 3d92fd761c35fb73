"""The promises of replays: what they send, what they leave out, and that they cover all of their time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from orchestrator.events.delivery import health, transitions
from orchestrator.events.delivery.delivering import LAST_TRY_BEFORE_EXPIRY
from orchestrator.events.delivery.dispatching import CLOCKS_DIFFER_BY
from orchestrator.events.delivery.records import (
    Connection,
    Delivery,
    DeliveryRef,
    DeliveryState,
    DispatchedEvent,
    origin_of,
)
from orchestrator.events.delivery.replays import Replay, ReplayStatus
from orchestrator.events.event_ids import first_id_at
from orchestrator.events.records import Event
from orchestrator.events.statuses import EventStatus
from tests.fakes import FakeClock
from tests.fakes.connections import InMemoryConnections
from tests.fakes.deliveries import InMemoryDeliveries
from tests.fakes.replays import InMemoryReplays
from tests.simulation.events.faults import A_FUNCTION_LIVES


@dataclass
class _Owed:
    """A delivery that a replay has to ask for, and its row as it was when the replay began."""

    ref: DeliveryRef
    row: Delivery | None


@dataclass
class ReplayChecks:
    table: InMemoryDeliveries
    connections: InMemoryConnections
    replays: InMemoryReplays
    clock: FakeClock
    seen: Counter[str]
    matches: Callable[[Connection, Event], bool]
    asked: dict[str, set[DeliveryRef]] = field(default_factory=dict)
    """The deliveries that each replay has asked for."""
    again: set[DeliveryRef] = field(default_factory=set)
    """Deliveries that somebody has asked for although they were delivered before."""
    ended: set[str] = field(default_factory=set)
    """Connections that were deleted or disabled at some time: replays may leave them out."""
    _owed: dict[str, list[_Owed]] = field(default_factory=dict)
    _stopped: dict[str, datetime] = field(default_factory=dict)
    """When somebody has paused or cancelled a replay, or it has finished."""

    def was_asked_for(self, ref: DeliveryRef) -> bool:
        return any(ref in asked for asked in self.asked.values())

    # While replays are moved on

    def wrote(self, before: Delivery | None, after: Delivery) -> None:
        """The row of a delivery was written. It may be a round that a replay has asked for just now."""
        replay = self.replays.all.get(after.replay_id)
        if replay is None or not _begins_round(before, after):
            return
        ref, name = after.ref, replay.replay_id
        assert before is None or before.replay_id != name, f"{name} has asked twice for {ref}"
        assert ref.life == replay.life, f"{name} has asked for {ref}, which is another tenant's"
        states = self._states(ref, before)
        has_it = DeliveryState.DELIVERED in states
        assert not has_it or replay.include_delivered, f"{name} has asked for {ref}, which was delivered"
        has_failed = not has_it and DeliveryState.FAILED in states
        assert has_failed or not replay.only_failed, f"{name} has asked for {ref}, which has not failed"
        stopped = self._stopped.get(name, self.clock.now())
        assert self.clock.now() - stopped <= A_FUNCTION_LIVES, (
            f"{name} has asked for {ref} after it was {replay.status}"
        )
        self.asked.setdefault(name, set()).add(ref)
        self.seen[f"replay asked for what is {' and '.join(sorted(states)) or 'new'}"] += 1
        if replay.include_delivered:
            self.again.add(ref)

    def moved(self, before: Replay | None, after: Replay) -> None:
        """The row of a replay was written."""
        if before is None or before.status is not after.status:
            self.seen[f"replay is {after.status}"] += 1
        if before is None:
            self._owed[after.replay_id] = list(self._owed_by(after))
        if after.status is ReplayStatus.RUNNING:
            self._stopped.pop(after.replay_id, None)
        else:
            self._stopped[after.replay_id] = self.clock.now()
        if after.status is ReplayStatus.FINISHED:
            for owed in self._owed[after.replay_id]:
                assert self._is_settled(after, owed), f"{after.replay_id} has finished without {owed.ref}"

    # At the end

    def all_have_ended(self) -> bool:
        return all(each.status is not ReplayStatus.RUNNING for each in self.replays.all.values())

    def check_end(self) -> None:
        for replay in self.replays.all.values():
            assert replay.status is not ReplayStatus.RUNNING, f"{replay.replay_id} is running for ever: {replay}"

    # Deliveries that a replay has to ask for

    def _owed_by(self, replay: Replay) -> Iterator[_Owed]:
        first, before = first_id_at(replay.since), first_id_at(replay.until)
        for key in self.table.events:
            event = self.table.event(key.life, key.event_id)
            if event is None or key.life != replay.life or not first <= key.event_id < before:
                continue
            if origin_of(event.event) != replay.origin:
                continue
            for connection in self.connections.of_origin(replay.life, replay.origin):
                if replay.connection_id in (None, connection.connection_id) and not health.has_ended(connection):
                    ref = DeliveryRef(key.life, key.event_id, connection.connection_id)
                    row = self.table.delivery(ref)
                    if self._is_owed(replay, event, connection, self._states(ref, row)):
                        yield _Owed(ref, row)

    def _is_owed(
        self, replay: Replay, event: DispatchedEvent, connection: Connection, states: set[DeliveryState]
    ) -> bool:
        if states - transitions.FINISHED:
            # The delivery goes out anyway.
            return False
        if DeliveryState.DELIVERED in states:
            return replay.include_delivered
        if states:
            return True
        # Nothing was ever sent. The event is not on its way if everybody who was to have it is noted, or if it came
        # before its connection, and then dispatch never sends it there.
        is_younger = connection.created_at > event.event.received_at + CLOCKS_DIFFER_BY
        is_noted = event.entries is not None or event.event.status is EventStatus.FILTERED or is_younger
        is_pending = connection.connection_id in (event.pending or ())
        return is_noted and not is_pending and not replay.only_failed and self.matches(connection, event.event)

    def _is_settled(self, replay: Replay, owed: _Owed) -> bool:
        ref = owed.ref
        event, row = self.table.event(ref.life, ref.event_id), self.table.delivery(ref)
        if event is None or ref.connection_id in self.ended:
            return True
        latest = event.event.expires_at - LAST_TRY_BEFORE_EXPIRY - CLOCKS_DIFFER_BY
        is_changed = (row.revision if row else 0) != (owed.row.revision if owed.row else 0)
        has_it = DeliveryState.DELIVERED in self._states(ref, row) and not replay.include_delivered
        # If the row has changed, the replay has asked for the delivery, or somebody else has done so. An event that was
        # resent before it was dispatched may have been delivered by its first try since.
        return has_it or ref in self.asked.get(replay.replay_id, ()) or is_changed or self.clock.now() >= latest

    def _states(self, ref: DeliveryRef, row: Delivery | None) -> set[DeliveryState]:
        event = self.table.event(ref.life, ref.event_id)
        entry = transitions.entry_of(event, ref.connection_id) if event else None
        return {each.state for each in (row, entry) if each is not None}


def _begins_round(before: Delivery | None, after: Delivery) -> bool:
    """A first try that was under way may be recorded with a round that is over, and begins none."""
    was_over = before is None or before.replay_id != after.replay_id or before.state in transitions.FINISHED
    return was_over and after.state not in transitions.FINISHED
