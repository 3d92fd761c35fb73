"""Every change of an event's deliveries, as data.

Each is computed from rows as they were read, and is made only if what it depends on is still so.

- An event with one connection and no inbox is not written by dispatch. All others have the set ``pending``: the
  connections, and the inbox, that are not done with the event.
- ``deliveries`` has an entry for every connection that has tried. A delivery is finished once its entry says that it
  was delivered or has failed.
- The write that finishes the last delivery also sets the status of the event.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from orchestrator.common.writes import (
    Condition,
    Contains,
    Delete,
    Differs,
    Equals,
    Missing,
    Put,
    RowAbsent,
    RowExists,
    Update,
    all_of,
    still,
)
from orchestrator.events.delivery.records import (
    INBOX,
    Attempt,
    Delivery,
    DeliveryEntry,
    DeliveryState,
    DispatchedEvent,
)
from orchestrator.events.delivery.writes import AttemptKey, DeliveryKey, DeliveryWrite, EventKey, Key
from orchestrator.events.statuses import UNDELIVERED, EventStatus
from orchestrator.events.statuses import is_finished as is_final

Transition = Sequence[DeliveryWrite]
FINISHED = frozenset({DeliveryState.DELIVERED, DeliveryState.FAILED})
_MARK = {"delivery_rows": 1}
"""Tells the purge that an event has more rows to delete."""


def entry_of(event: DispatchedEvent, connection_id: str) -> DeliveryEntry | None:
    return (event.entries or {}).get(connection_id)


def is_finished(event: DispatchedEvent, connection_id: str) -> bool:
    entry = entry_of(event, connection_id)
    return entry is not None and entry.state in FINISHED


def is_stale_row(event: DispatchedEvent, delivery: Delivery) -> bool:
    """True if there is nothing to try, because the delivery has come to its end without this row.

    A round that somebody has asked for goes on. But if a replay began it before the event was dispatched, and the first
    try has delivered the event since, then the connection has what the replay was to send.
    """
    entry = entry_of(event, delivery.ref.connection_id)
    if entry is None or entry.state not in FINISHED:
        return False
    if not delivery.resend:
        return True
    is_untried = delivery.tries == delivery.tries_before
    is_delivered_since = entry.state is DeliveryState.DELIVERED and entry.at > delivery.first_try
    return bool(delivery.replay_id) and is_untried and is_delivered_since


def is_over(event: DispatchedEvent, connection_id: str) -> bool:
    """True if the connection is not to have a first try: it had one, or the event has ended without it.

    The stream may repeat an event when it is configured anew who is to have such events.
    """
    if entry_of(event, connection_id) is not None:
        return True
    is_noted = connection_id in (event.pending or ())
    return event.entries is not None and not is_noted and is_final(event.event.status)


def final_status(entries: Mapping[str, DeliveryEntry]) -> EventStatus:
    """The status of an event that every connection is done with."""
    failed = any(entry.state is DeliveryState.FAILED for entry in entries.values())
    return EventStatus.FAILED if failed else EventStatus.DELIVERED


# Dispatching


def note_recipients(event: DispatchedEvent, connections: Sequence[str], *, in_inbox: bool) -> Transition:
    """Note which connections are to have the event. Empty if there is nothing to note.

    ``in_inbox`` says whether the event was put into the inbox; it may have been acknowledged since.
    """
    row = event.event
    undispatched: list[Condition] = [RowExists(), Missing("pending"), Missing("deliveries")]
    if not connections:
        if in_inbox:
            return []
        return [_update(event, {"status": EventStatus.FILTERED}, all_of(*undispatched, _is(EventStatus.RECEIVED)))]
    if len(connections) == 1 and not in_inbox:
        return []
    if in_inbox and not row.in_inbox:
        # It was acknowledged before this, which made it delivered. It is delivered again when all connections are done.
        sets = {"pending": frozenset(connections), "deliveries": {}, "status": EventStatus.RECEIVED}
        return [_update(event, sets, all_of(*undispatched, _is(EventStatus.DELIVERED)), clears=["delivered_at"])]
    members = frozenset([*connections, INBOX] if in_inbox else connections)
    waits: list[Condition] = [_listed(UNDELIVERED)] if in_inbox else []
    sets = {"pending": members, "deliveries": {}}
    return [_update(event, sets, all_of(*undispatched, *waits, _is(EventStatus.RECEIVED)))]


# The inbox


def acknowledged(event: DispatchedEvent, at: datetime) -> Transition:
    """Take the event out of the inbox. Its connections may not be done with it."""
    others = (event.pending or frozenset()) - {INBOX}
    entries = event.entries or {}
    if others:
        kept = event.event.status
        condition = all_of(RowExists(), Contains("pending", INBOX), Differs("pending", frozenset({INBOX})), _is(kept))
        index: dict[str, object] = {"indexed_as": kept} if kept is EventStatus.RETRYING else {}
        clears = [] if index else ["indexed_as"]
        return [_update(event, index, condition, clears=clears, takes={"pending": INBOX})]
    conditions: list[Condition] = [_listed(UNDELIVERED), still("pending", event.pending)]
    conditions.append(still("deliveries", event.entries))
    sets, clears = _ended(final_status(entries), at)
    takes = {"pending": INBOX} if event.pending else {}
    return [_update(event, sets, all_of(*conditions), clears=clears, takes=takes)]


# Outcomes of tries


def delivered_at_first(event: DispatchedEvent, connection_id: str, entry: DeliveryEntry) -> Transition:
    """A delivery that succeeded at its first try: one write."""
    return [_settled(event, connection_id, entry)]


def tried(event: DispatchedEvent, before: Delivery | None, after: Delivery, attempt: Attempt) -> Transition:
    """A try ended, and is on record: the attempt, the delivery and the event in one transaction."""
    connection_id = after.ref.connection_id
    entry = DeliveryEntry(after.state, after.tries, attempt.at, attempt.code, attempt.milliseconds, after.reason)
    recorded: list[DeliveryWrite] = [
        Put(AttemptKey(attempt.ref, attempt.number), {"attempt": attempt}, RowAbsent()),
        _put(before, after),
    ]
    if not _changes_event(event, after):
        return recorded
    return [*recorded, _settled(event, connection_id, entry)]


def _changes_event(event: DispatchedEvent, after: Delivery) -> bool:
    """False for most rounds that somebody has asked for: they change the event only if they bring the first success.

    If the event was dispatched while such a round was going on, the round is the one that the event waits for. An event
    that may be dispatched yet is not changed: dispatch would take the entry for a sign that it has happened.
    """
    connection_id = after.ref.connection_id
    if not after.resend or connection_id in (event.pending or ()):
        return True
    if after.state is not DeliveryState.DELIVERED:
        return False
    entry = entry_of(event, connection_id)
    if entry is not None and entry.state is DeliveryState.DELIVERED:
        return False
    return event.entries is not None or event.event.status in (EventStatus.FAILED, EventStatus.FILTERED)


def ended_untried(event: DispatchedEvent, before: Delivery | None, after: Delivery, at: datetime) -> Transition:
    """A delivery ends as failed without another try, because nobody waits for it or it has expired."""
    if not _changes_event(event, after):
        return [_put(before, after)]
    entry = DeliveryEntry(DeliveryState.FAILED, after.tries, at, after.code, reason=after.reason)
    settled = _settled(event, after.ref.connection_id, entry)
    if before is None:
        # Without a try, nothing else on the event would tell the purge of this row once a resend has succeeded.
        settled = replace(settled, sets={**settled.sets, **_MARK})
    return [_put(before, after), settled]


def undispatchable(event: DispatchedEvent, before: Delivery, after: Delivery) -> Transition:
    """An event that could never be dispatched fails as a whole."""
    sets = {"status": EventStatus.FAILED} if event.event.in_inbox else _ended(EventStatus.FAILED, after.first_try)[0]
    listed = _listed(UNDELIVERED) if event.event.in_inbox else Differs("indexed_as", UNDELIVERED)
    conditions = [RowExists(), _is(event.event.status), Missing("pending"), Missing("deliveries"), listed]
    return [_put(before, after), _update(event, sets, all_of(*conditions))]


# The row of a delivery alone


def first_round_after(resend: Delivery) -> Delivery:
    """The round that an event waits for, in the row of a resend that was over before the event was dispatched."""
    return replace(
        resend,
        state=DeliveryState.RETRYING,
        tries_before=resend.tries,
        lost=0,
        planned=None,
        asked=False,
        resend=False,
        replay_id="",
        ended_at=None,
    )


def changed(before: Delivery | None, after: Delivery) -> Transition:
    """Write the row of a delivery, if it is still as it was read.

    A new row is written only beside its event: nobody would find it after the purge of a deleted tenant.
    """
    return added([after]) if before is None else [_put(before, after)]


def added(deliveries: Sequence[Delivery]) -> Transition:
    """Write new rows of deliveries of one event. It is one transaction, however many they are."""
    ref = deliveries[0].ref
    # The mark costs as much as the check that it stands for.
    mark = Update(EventKey(ref.life, ref.event_id), sets=_MARK, condition=RowExists())
    return [mark, *(_put(None, each) for each in deliveries)]


def removed(delivery: Delivery) -> Transition:
    return [Delete(DeliveryKey(delivery.ref), Equals("revision", delivery.revision))]


def close_stale_row(event: DispatchedEvent, delivery: Delivery) -> Transition:
    """End a row that is left over. If it was tried, it stays: without it, the next try would have a number again that
    an attempt on record has."""
    entry = entry_of(event, delivery.ref.connection_id)
    if entry is None or delivery.tries == 0:
        return removed(delivery)
    ended = replace(
        delivery,
        state=entry.state,
        due=None,
        leased_until=None,
        code=entry.code,
        reason=entry.reason,
        ended_at=entry.at,
    )
    return [_put(delivery, ended)]


def _put(before: Delivery | None, after: Delivery) -> DeliveryWrite:
    key = DeliveryKey(after.ref)
    if before is None:
        return Put(key, {"delivery": replace(after, revision=1)}, RowAbsent())
    return Put(key, {"delivery": replace(after, revision=before.revision + 1)}, Equals("revision", before.revision))


# The row of an event


def _settled(event: DispatchedEvent, connection_id: str, entry: DeliveryEntry) -> Update[Key]:
    """Write an entry; if it finishes the last open delivery, the status too."""
    entries = {**(event.entries or {}), connection_id: entry}
    retrying = {name for name, each in entries.items() if each.state is DeliveryState.RETRYING}
    members = event.pending or frozenset()
    finishes = entry.state in FINISHED
    sets: dict[str, object] = (
        {"deliveries": entries} if event.entries is None else {f"deliveries.{connection_id}": entry}
    )
    clears: list[str] = []
    takes = {"pending": connection_id} if finishes and connection_id in members else {}
    conditions: list[Condition] = [RowExists()]
    if (most := max(each.tries for each in entries.values()) - 1) > event.event.retry_count:
        sets["retry_count"] = most
    is_last = finishes and not (members | retrying) - {connection_id}
    waits_in_inbox = event.event.in_inbox
    if is_last and not waits_in_inbox:
        conditions += [still("pending", event.pending), still("deliveries", event.entries)]
        ended, clears = _ended(final_status(entries), entry.at)
        sets |= ended
        return _update(event, sets, all_of(*conditions), clears=clears, takes=takes)
    conditions += _unfinished(event, connection_id, takes)
    if finishes and not takes and event.pending is not None:
        # A resend. The write that finishes the event sets the status by the entries, so this entry comes first.
        conditions.append(still("pending", event.pending))
    if not finishes:
        sets["status"] = EventStatus.RETRYING
        if waits_in_inbox:
            conditions.append(_listed(UNDELIVERED))
        else:
            sets["indexed_as"] = EventStatus.RETRYING
            conditions.append(Differs("indexed_as", UNDELIVERED))
    return _update(event, sets, all_of(*conditions), takes=takes)


def _unfinished(event: DispatchedEvent, connection_id: str, takes: Mapping[str, str]) -> list[Condition]:
    """The delivery is as it was read, and if it ends, it is not the last one."""
    conditions: list[Condition] = []
    if event.entries is None:
        conditions.append(Missing("deliveries"))
    else:
        conditions.append(still(f"deliveries.{connection_id}", event.entries.get(connection_id)))
    if event.pending is None:
        conditions.append(Missing("pending"))
    elif takes:
        conditions += [Contains("pending", connection_id), Differs("pending", frozenset({connection_id}))]
    return conditions


def _ended(status: EventStatus, at: datetime) -> tuple[dict[str, object], list[str]]:
    if status is EventStatus.DELIVERED:
        return {"status": status, "delivered_at": at}, ["indexed_as"]
    return {"status": status, "indexed_as": status}, []


def _is(status: EventStatus) -> Condition:
    return Equals("status", status)


def _listed(status: str) -> Condition:
    return Equals("indexed_as", status)


def _update(
    event: DispatchedEvent,
    sets: Mapping[str, object],
    condition: Condition,
    *,
    clears: Sequence[str] = (),
    takes: Mapping[str, str] | None = None,
) -> Update[Key]:
    key = EventKey(event.event.life, event.event.event_id)
    return Update(key, sets=sets, clears=clears, takes=takes or {}, condition=condition)
