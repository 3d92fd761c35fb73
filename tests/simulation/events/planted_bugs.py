"""Planted bugs in the event plane. The checks have to find each of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from orchestrator.common.errors import Throttled
from orchestrator.common.writes import RowExists, Update
from orchestrator.events import purging
from orchestrator.events.configuring_connections import ConfiguringConnections
from orchestrator.events.delivery import (
    acknowledging,
    dispatching,
    health,
    redispatching,
    rounds,
    transitions,
)
from orchestrator.events.delivery.delivering import Delivering
from orchestrator.events.delivery.dispatching import Dispatched, Dispatching
from orchestrator.events.delivery.records import Delivery
from orchestrator.events.delivery.replaying import Replaying
from orchestrator.events.delivery.replays import Replay
from orchestrator.events.delivery.sweeping import Sweeping
from orchestrator.events.delivery.writes import DeliveryWrite, EventKey
from orchestrator.events.ports import Remains
from orchestrator.events.records import TenantEpoch
from orchestrator.events.statuses import EventStatus
from tests.simulation.events import ends
from tests.simulation.events.faults import Faults
from tests.simulation.planting import Bug, all_of, always, replacing, wrapping

BUSY_PARTITIONS = Faults(partition_writes=1, partition_reads=2)
BUSY_TABLE = Faults(throttle=0.3)
LOST_BATCHES = Faults(lost_batch=0.6, failing=0.5)
INTERLEAVED_FUNCTIONS = Faults(interleave=0.5, failing=0.5)
UNSENT_MESSAGES = Faults(unsent=0.2, late=0.3, twice=0.4, repeated_batch=0.4, crash=0.06)
DYING_FUNCTIONS = Faults(crash=0.06, failing=0.8)
SEEDS = range(500)
"""The seeds in which a bug has to be found."""


@dataclass(frozen=True)
class PlantedBug:
    bug: Bug
    found: str
    """A regular expression for the message of the check that finds the bug."""
    faults: Faults | None = None
    """The only faults with which the bug has to be found. ``None`` for those that each seed draws."""


@wrapping("_settled", transitions)
def _nobody_sets_the_status(settled: Any, *args: Any) -> DeliveryWrite:
    write: Update[Any] = settled(*args)
    sets = {name: value for name, value in write.sets.items() if value is not EventStatus.DELIVERED}
    return replace(write, sets=sets)


@wrapping("_settled", transitions)
def _the_status_is_set_by_whoever_is_done_first(settled: Any, event: Any, *args: Any) -> DeliveryWrite:
    write: Update[Any] = settled(replace(event, pending=None), *args)
    return replace(write, condition=RowExists())


@wrapping("acknowledged", transitions)
def _an_acknowledged_event_is_delivered_to_all(acknowledged: Any, event: Any, at: Any) -> Any:
    sets = {"status": EventStatus.DELIVERED, "delivered_at": at}
    key = EventKey(event.event.life, event.event.event_id)
    return [Update(key, sets=sets, clears=["indexed_as", "pending"])] if event.pending else acknowledged(event, at)


@wrapping("_failed", Delivering)
def _a_failed_delivery_has_no_due_time(failed: Any, *args: Any) -> Delivery:
    delivery: Delivery = failed(*args)
    return replace(delivery, due=None, sent=0)


@wrapping("tried", transitions)
def _the_event_does_not_hear_of_retries(tried: Any, *args: Any) -> Any:
    return tried(*args)[:2]


@wrapping("_claimed", Delivering)
def _a_finished_delivery_is_tried_again(claimed: Any, self: Delivering, event: Any, delivery: Any, message: Any) -> Any:
    return claimed(self, replace(event, entries=None), delivery, message)


@wrapping("dispatch", Dispatching)
def _a_batch_that_meets_a_busy_partition_is_forgotten(dispatch: Any, *args: Any, **named: Any) -> Dispatched:
    try:
        done: Dispatched = dispatch(*args, **named)
    except Throttled:
        return Dispatched()
    return done


@wrapping("_decide", Replaying)
def _a_replay_sends_what_was_delivered(decide: Any, self: Replaying, replay: Replay, *args: Any) -> Any:
    return decide(self, replace(replay, include_delivered=True), *args)


@wrapping("_decide", Replaying)
def _a_replay_forgets_what_it_has_asked_for(
    decide: Any, self: Replaying, replay: Replay, event: Any, *args: Any
) -> Any:
    row, connection = args
    return decide(self, replay, event, replace(row, replay_id="") if row else None, connection)


@wrapping("_replay", Replaying)
def _a_replay_leaves_out_what_meets_a_busy_table(asked: Any, *args: Any) -> tuple[int, int]:
    try:
        numbers: tuple[int, int] = asked(*args)
    except Throttled:
        return 0, 0
    return numbers


@wrapping("_change", ConfiguringConnections)
def _a_change_lets_what_is_parked_wait(change: Any, self: Any, life: Any, connection_id: Any, make: Any) -> Any:
    return change(self, life, connection_id, lambda there: replace(make(there), draining=False))


def _forget_an_acknowledgement_that_meets_another_write(
    rows: acknowledging.InboxRows, life: TenantEpoch, event_id: str, at: datetime
) -> bool:
    found = rows.acknowledge_at_once(life, event_id, at)
    if isinstance(found, bool):
        return found
    if found.event.in_inbox:
        rows.apply(transitions.acknowledged(found, at))
    return True


def _delete_events_before_their_deliveries(remains: Remains, life: TenantEpoch, shard: int, _note: object) -> int:
    events = remains.events(life, shard)
    deleted = remains.delete_events(life, shard, events)
    for each in events:
        remains.delete_deliveries(life, each)
    return deleted


def _forget_what_is_parked(self: Sweeping, connection: Any, _swept: Any) -> Iterator[None]:
    self._changes.set_drained(connection, found_empty_at=None, draining=False)
    yield from ()


BUGS: dict[str, PlantedBug] = {
    "nobody sets the status": PlantedBug(_nobody_sets_the_status, "is (received|retrying) with"),
    "the status is set by whoever is done first": PlantedBug(
        _the_status_is_set_by_whoever_is_done_first, "is not done|never reached|still to go to|is .* with"
    ),
    "an acknowledged event is delivered to all": PlantedBug(
        _an_acknowledged_event_is_delivered_to_all, "is not done|is .* with|for ever"
    ),
    "dispatch does not note who is to have an event": PlantedBug(
        replacing("note_recipients", always([]), transitions), "is (received|not done)|is .* with"
    ),
    "a failed delivery has no due time": PlantedBug(
        _a_failed_delivery_has_no_due_time, "is not done|for ever|still to go to"
    ),
    "the event does not hear of retries": PlantedBug(_the_event_does_not_hear_of_retries, "is not done|for ever"),
    "a delivered event is sent again": PlantedBug(
        replacing("entry_of", always(None), transitions), "sent again after a success|is .* with|is not done"
    ),
    "what is parked is forgotten": PlantedBug(
        replacing("_drain", _forget_what_is_parked, Sweeping), "is not done|for ever|still to go to"
    ),
    "what is parked for ever never fails": PlantedBug(
        # "Still to go to" is the same for an event that came seconds before its connection was created: clocks differ,
        # so it is delivered, too, though no check demands it.
        replacing("_fail_expiring", lambda *_: iter(()), Sweeping),
        "is not done|still to go to",
    ),
    "a breaker that has opened stays open": PlantedBug(
        all_of(
            replacing("FIRST_OPEN", timedelta(days=40), health),
            replacing("LONGEST_OPEN", timedelta(days=40), health),
        ),
        "was not tried for days",
    ),
    "the sweep sends nothing": PlantedBug(replacing("_send", lambda *_: None, Sweeping), "was not tried for days"),
    "a batch that the stream has lost is never found": PlantedBug(
        replacing("NIGHTLY", timedelta(hours=1), redispatching), "is not done|nobody wanted it"
    ),
    "what could not be sent is forgotten": PlantedBug(
        all_of(
            replacing("_again", lambda *_: None, Dispatching), replacing("NIGHTLY", timedelta(hours=1), redispatching)
        ),
        "is not done|nobody wanted it",
    ),
    "a connection gets what came before it was created": PlantedBug(
        replacing("was_there", always(True), dispatching), "came before its connection"
    ),
    "a new connection misses what waits for an older one": PlantedBug(
        replacing("was_there", always(True), rounds), "has finished without"
    ),
    "a resend that is over keeps an event from its first failure": PlantedBug(
        replacing("first_round_after", lambda resend: resend, transitions), "is not done|still to go to", LOST_BATCHES
    ),
    "a finished delivery is tried again": PlantedBug(
        _a_finished_delivery_is_tried_again, "sent again after a success", UNSENT_MESSAGES
    ),
    "a batch that meets a busy partition is forgotten": PlantedBug(
        all_of(
            _a_batch_that_meets_a_busy_partition_is_forgotten,
            replacing("NIGHTLY", timedelta(hours=1), redispatching),
        ),
        "is not done|nobody wanted it|still to go to",
        faults=BUSY_PARTITIONS,
    ),
    "a replay sends what was delivered": PlantedBug(_a_replay_sends_what_was_delivered, "which was delivered"),
    "a replay forgets what it has asked for": PlantedBug(
        _a_replay_forgets_what_it_has_asked_for, "has asked twice", BUSY_TABLE
    ),
    "a replay leaves out what meets a busy table": PlantedBug(
        _a_replay_leaves_out_what_meets_a_busy_table, "has finished without", BUSY_TABLE
    ),
    "an acknowledgement that meets another write is forgotten": PlantedBug(
        replacing("acknowledge", _forget_an_acknowledgement_that_meets_another_write, acknowledging),
        "was acknowledged, and waits in the inbox",
        INTERLEAVED_FUNCTIONS,
    ),
    "a purge deletes events before their deliveries": PlantedBug(
        replacing("delete_events", _delete_events_before_their_deliveries, purging),
        "of a life that was purged are left",
        DYING_FUNCTIONS,
    ),
    "a purge does not wait for late writes": PlantedBug(
        replacing("SETTLE", timedelta(), ends), "of a life that was purged are left"
    ),
    "a change of a connection lets what is parked wait": PlantedBug(
        _a_change_lets_what_is_parked_wait, "is not done|for ever"
    ),
}
