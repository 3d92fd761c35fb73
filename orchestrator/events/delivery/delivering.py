"""One try of a delivery: read the rows, send, record how it ended.

A message is a hint, and may come twice, late, or never. The rows decide whether there is something to send.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from orchestrator.common.errors import Throttled, Unsettled
from orchestrator.common.times import Clock
from orchestrator.events.delivery import health, transitions
from orchestrator.events.delivery.messages import MAX_DELAY, DeliveryMessage
from orchestrator.events.delivery.ports import (
    ConnectionChanges,
    Connections,
    DeliveryTable,
    MessageQueue,
    Sender,
)
from orchestrator.events.delivery.records import (
    Attempt,
    Connection,
    Delivery,
    DeliveryEntry,
    DeliveryRef,
    DeliveryState,
    DispatchedEvent,
    Outgoing,
    TryResult,
    Verdict,
    origin_of,
)
from orchestrator.events.delivery.retries import LONGEST_RETRY_AFTER
from orchestrator.events.delivery.writes import DeliveryWrite
from orchestrator.events.records import UnreadableRow
from orchestrator.events.remembering import Remembered

LEASE = timedelta(seconds=90)
"""How long a try owns its delivery: longer than a function may run, so that two never try it at the same time."""
GRACE = timedelta(minutes=2)
"""A delivery for which a message is on its way is looked at again so long after the message should have come."""
LAST_TRY_BEFORE_EXPIRY = timedelta(hours=1)
"""Deliveries end so long before the row of their event expires."""
UNREADABLE_AGAIN_AFTER = timedelta(minutes=15)
"""A delivery whose connection cannot be read is looked at again so much later."""
REMEMBERED_SECONDS = 10.0
"""For how long a function remembers a connection. A pause takes effect so much later."""
_ROUNDS = 8
_PATIENCE = 5
_PAUSE_SECONDS = 0.05


class Outcome(StrEnum):
    """The result of handling a message."""

    DELIVERED = "delivered"
    RETRYING = "retrying"
    FAILED = "failed"
    PARKED = "parked"
    POSTPONED = "postponed"
    """The row of its connection cannot be read. The delivery is tried again later."""
    MOVED = "moved"
    """It came by the queue for quick connections, and its connection is none any more. It goes on by the other one."""
    FINISHED = "finished"
    """The delivery had ended before."""
    STALE = "stale"
    """Somebody else tries the delivery, or has tried it since the message was sent."""
    MISSING = "missing"
    """There is no such event any more."""


def expires_soon(expires_at: datetime, at: datetime) -> bool:
    return at >= expires_at - LAST_TRY_BEFORE_EXPIRY


EXPIRED = "The event expires before it could be delivered."
EXPIRED_UNREADABLE = "The record of the connection is damaged, and the event expires before anybody has mended it."
UNREADABLE = "The record of the connection is damaged. An operator has to mend it; until then its deliveries wait."


class Delivering:
    def __init__(
        self,
        *,
        table: DeliveryTable,
        connections: Connections,
        changes: ConnectionChanges,
        sender: Sender,
        queue: MessageQueue,
        clock: Clock,
        monotonic: Callable[[], float],
        draw: Callable[[], float],
        pause: Callable[[float], None],
    ) -> None:
        """``draw`` returns a number from 0 to 1, and ``pause`` waits for some seconds."""
        self._table = table
        self._connections = connections
        self._remembered: Remembered[Connection | UnreadableRow] = Remembered(
            monotonic, clock, seconds=REMEMBERED_SECONDS
        )
        self._changes = changes
        self._sender = sender
        self._queue = queue
        self._clock = clock
        self._draw = draw
        self._pause = pause
        self._under_way: set[_UnderWay] = set()

    def deliver(self, message: DeliveryMessage) -> Outcome:
        """Try once, if there is something to try. A failure of our own is raised, and the message comes again."""
        ref = message.ref
        event = self._table.event(ref.life, ref.event_id)
        delivery = self._table.delivery(ref) if message.claims else None
        if event is None:
            return self._missing(delivery)
        if message.claims:
            claimed = self._claimed(event, delivery, message)
            if isinstance(claimed, Outcome):
                return claimed
            delivery = claimed
        elif transitions.is_over(event, ref.connection_id):
            return Outcome.FINISHED
        connection = self._connection(ref, origin_of(event.event), fresh=message.claims)
        if isinstance(connection, UnreadableRow):
            return self._postpone(event, delivery, ref)
        if connection is None or health.has_ended(connection):
            return self._end(event, delivery, ref, health.why_ended(connection))
        now = self._clock.now()
        if expires_soon(event.event.expires_at, now):
            return self._end(event, delivery, ref, EXPIRED)
        if health.parks(connection, now, asked=delivery is not None and delivery.asked):
            return self._park(event, delivery, ref)
        if message.quick and not connection.health.is_good and self._moved(message):
            return Outcome.MOVED
        answer, connection = self._send(Outgoing(connection, event.event, now))
        outcome = self._record(_Try(ref, connection, now, answer), event, delivery)
        self._note_health(connection, answer)
        return outcome

    def note_slow(self) -> None:
        """Note that the tries that are under way take long, whatever becomes of them.

        From now on, messages for their connections leave the quick queue. A try may take 15 seconds, and until its end
        dozens of other messages for a receiver that hangs would hold up those for all others.
        """
        now = self._clock.now()
        for each in list(self._under_way):
            connection = each.connection
            slow = replace(connection, health=health.while_slow(connection.health, now))
            if self._changes.set_health(connection, slow.health, draining=connection.draining):
                each.connection = slow
            self._remembered.forget((connection.life, connection.connection_id))

    def _send(self, outgoing: Outgoing) -> tuple[TryResult, Connection]:
        """Send, and return the connection with the health that was noted meanwhile."""
        trying = _UnderWay(outgoing.connection)
        self._under_way.add(trying)
        try:
            return self._sender.send(outgoing), trying.connection
        finally:
            self._under_way.discard(trying)

    def _connection(self, ref: DeliveryRef, origin: str, *, fresh: bool) -> Connection | UnreadableRow | None:
        """A connection that has failed may have changed since, and is tried seldom, so it is read anew."""
        name = ref.life, ref.connection_id
        if fresh:
            self._remembered.forget(name)
        found = self._remembered.get(name, lambda: self._connections.connection(ref.life, origin, ref.connection_id))
        if isinstance(found, UnreadableRow):
            # Somebody may mend it at any time.
            self._remembered.forget(name)
        return found

    def _claimed(
        self, event: DispatchedEvent, delivery: Delivery | None, message: DeliveryMessage
    ) -> Delivery | Outcome:
        """The delivery, leased; or why there is nothing to try."""
        if delivery is None or delivery.state is not DeliveryState.RETRYING or delivery.tries != message.tries:
            return Outcome.STALE
        if transitions.is_stale_row(event, delivery):
            self._table.apply(transitions.close_stale_row(event, delivery))
            return Outcome.FINISHED
        now = self._clock.now()
        if delivery.leased_until is not None and now < delivery.leased_until:
            return Outcome.STALE
        leased = replace(delivery, leased_until=now + LEASE)
        if not self._table.apply(transitions.changed(delivery, leased)):
            return Outcome.STALE
        return replace(leased, revision=delivery.revision + 1)

    # Without a try

    def _missing(self, delivery: Delivery | None) -> Outcome:
        if delivery is not None:
            self._table.apply(transitions.removed(delivery))
        return Outcome.MISSING

    def _moved(self, message: DeliveryMessage) -> bool:
        """Many messages may have been sent before a connection became slow. They must not hold up the quick ones."""
        return not self._queue.send([replace(message, quick=False)])

    def _end(self, event: DispatchedEvent, delivery: Delivery | None, ref: DeliveryRef, reason: str) -> Outcome:
        for _ in range(_ROUNDS):
            ended = failed_untried(self._round(event, delivery, ref), reason, self._clock.now())
            if self._apply(transitions.ended_untried(event, delivery, ended, self._clock.now())):
                return Outcome.FAILED
            found = self._read_again(ref)
            if isinstance(found, Outcome):
                return found
            event, delivery = found
            if _has_ended(delivery) and not _was_resent_before(event, delivery):
                return Outcome.FINISHED
        raise _unsettled(ref)

    def _park(self, event: DispatchedEvent, delivery: Delivery | None, ref: DeliveryRef) -> Outcome:
        return self._set_aside(event, delivery, ref, lambda now: replace(now, state=DeliveryState.PARKED, due=None))

    def _postpone(self, event: DispatchedEvent, delivery: Delivery | None, ref: DeliveryRef) -> Outcome:
        """Have the sweep send another message later. The connection may want the event, so it must not fail.

        Only what is about to expire fails.
        """
        now = self._clock.now()
        if expires_soon(event.event.expires_at, now):
            return self._end(event, delivery, ref, EXPIRED_UNREADABLE)
        due = now + UNREADABLE_AGAIN_AFTER
        return self._set_aside(
            event,
            delivery,
            ref,
            lambda round_: replace(round_, state=DeliveryState.RETRYING, due=due, reason=UNREADABLE),
        )

    def _set_aside(
        self,
        event: DispatchedEvent,
        delivery: Delivery | None,
        ref: DeliveryRef,
        change: Callable[[Delivery], Delivery],
    ) -> Outcome:
        """Write the row of a delivery that is not tried now."""
        for _ in range(_ROUNDS):
            waiting = replace(change(self._round(event, delivery, ref)), sent=0, leased_until=None)
            if self._apply(transitions.changed(delivery, waiting)):
                return Outcome.PARKED if waiting.state is DeliveryState.PARKED else Outcome.POSTPONED
            found = self._read_again(ref)
            if isinstance(found, Outcome):
                return found
            event, there = found
            if not _was_resent_before(event, there):
                # Somebody else has set it aside or tried it.
                return Outcome.STALE
            delivery = there
        raise _unsettled(ref)

    # After a try

    def _record(self, tried: _Try, event: DispatchedEvent, delivery: Delivery | None) -> Outcome:
        """Record the try, whatever the rows say by now: the same message may have come twice."""
        for _ in range(_ROUNDS):
            if tried.answer.verdict is Verdict.DELIVERED:
                outcome, transition = Outcome.DELIVERED, self._delivered(tried, event, delivery)
                scheduled = None
            else:
                scheduled = self._failed(tried, event, delivery)
                outcome = Outcome.RETRYING if scheduled.state is DeliveryState.RETRYING else Outcome.FAILED
                transition = transitions.tried(event, delivery, scheduled, tried.attempt(scheduled, event))
            if self._apply(transition):
                if scheduled is not None:
                    self._schedule(scheduled)
                return outcome
            found = self._read_again(tried.ref)
            if isinstance(found, Outcome):
                return found
            event, there = found
            is_changed = _revision(there) != _revision(delivery) and not _was_resent_before(event, there)
            if scheduled is not None and is_changed:
                # Another try of this delivery was recorded meanwhile, and decides when there is a next one.
                return Outcome.STALE
            delivery = there
        raise _unsettled(tried.ref)

    def _round(self, event: DispatchedEvent, delivery: Delivery | None, ref: DeliveryRef) -> Delivery:
        """The round of tries that a try belongs to, or that ends or is parked without one."""
        if delivery is None:
            return Delivery(
                ref, DeliveryState.RETRYING, 0, self._clock.now(), event.event.expires_at, origin_of(event.event)
            )
        if not _was_resent_before(event, delivery):
            return delivery
        return transitions.first_round_after(delivery)

    def _read_again(self, ref: DeliveryRef) -> tuple[DispatchedEvent, Delivery | None] | Outcome:
        event = self._table.event(ref.life, ref.event_id)
        if event is None:
            return Outcome.MISSING
        delivery = self._table.delivery(ref)
        is_resend = delivery is not None and delivery.resend
        if transitions.is_finished(event, ref.connection_id) and not is_resend:
            return Outcome.FINISHED
        return event, delivery

    def _delivered(self, tried: _Try, event: DispatchedEvent, delivery: Delivery | None) -> Sequence[DeliveryWrite]:
        if delivery is None:
            return transitions.delivered_at_first(event, tried.ref.connection_id, tried.entry())
        done = replace(
            delivery,
            state=DeliveryState.DELIVERED,
            tries=delivery.tries + 1,
            due=None,
            leased_until=None,
            planned=None,
            asked=False,
            code=tried.answer.code,
            reason="",
            ended_at=tried.at,
        )
        return transitions.tried(event, delivery, done, tried.attempt(done, event))

    def _failed(self, tried: _Try, event: DispatchedEvent, delivery: Delivery | None) -> Delivery:
        """The delivery after a failed try: due again, or failed for good."""
        before = self._round(event, delivery, tried.ref)
        if before.tries == before.tries_before:
            # It may have been parked for days, which are no tries.
            before = replace(before, first_try=tried.at)
        after = replace(
            before, tries=before.tries + 1, leased_until=None, sent=0, planned=None, asked=False, code=tried.answer.code
        )
        if before.planned is not None:
            # An extra try takes none of the schedule.
            after = replace(after, tries_before=before.tries_before + 1)
        due = self._next_try(tried, after, before.planned)
        if due is None:
            return replace(
                after, state=DeliveryState.FAILED, due=None, reason=tried.answer.text, ended_at=self._clock.now()
            )
        # If a message can be delayed for so long, it is sent now. The row is due only if the message does not arrive.
        soon = due - self._clock.now() <= MAX_DELAY
        return replace(
            after,
            state=DeliveryState.RETRYING,
            due=due + GRACE if soon else due,
            sent=1 if soon else 0,
            reason=tried.answer.text,
        )

    def _next_try(self, tried: _Try, after: Delivery, planned: datetime | None) -> datetime | None:
        if tried.answer.verdict is not Verdict.RETRY:
            return None
        now = self._clock.now()
        if planned is not None:
            later = max(planned, now + min(tried.answer.retry_after or timedelta(), LONGEST_RETRY_AFTER))
            return max(planned, now) if expires_soon(after.expires_at, later) else later
        due = tried.connection.retry.next_try(
            after.tries - after.tries_before,
            first_try=after.first_try,
            now=now,
            draw=self._draw,
            retry_after=tried.answer.retry_after,
        )
        return None if due is None or expires_soon(after.expires_at, due) else due

    def _schedule(self, delivery: Delivery) -> None:
        """Send a message for the next try, if it is soon. Whatever happens to the message, the row has a due time."""
        if delivery.due is not None and delivery.sent:
            wait = max(delivery.due - GRACE - self._clock.now(), timedelta())
            self._queue.send([DeliveryMessage(delivery.ref, delivery.tries, claims=True, quick=False, delay=wait)])

    def _apply(self, transition: Sequence[DeliveryWrite]) -> bool:
        """Apply a transition. What was sent must be recorded, so a table that is busy is asked again."""
        for round_ in range(_PATIENCE):
            try:
                return self._table.apply(transition)
            except Throttled:
                self._pause(_PAUSE_SECONDS * 2**round_)
        return self._table.apply(transition)

    # The connection

    def _note_health(self, connection: Connection, answer: TryResult) -> None:
        now = self._clock.now()
        match answer.verdict:
            case Verdict.GIVE_UP if answer.code is None:
                # The event could not be sent, which says nothing about the receiver.
                return
            case Verdict.DELIVERED | Verdict.GIVE_UP:
                # A receiver that does not want this event works.
                then = health.after_success(connection.health, answer, now)
                draining = connection.draining or connection.health.opened > 0
            case Verdict.GONE:
                self._disable(connection, "The receiver answered 410: it is gone.", now)
                return
            case Verdict.RETRY:
                then, draining = health.after_failure(connection.health, answer, now), connection.draining
                if reason := health.why_to_disable(then, answer, now):
                    self._disable(connection, reason, now)
                    return
        if then != connection.health or draining != connection.draining:
            self._remembered.forget((connection.life, connection.connection_id))
            self._changes.set_health(connection, then, draining=draining)

    def _disable(self, connection: Connection, reason: str, at: datetime) -> None:
        self._remembered.forget((connection.life, connection.connection_id))
        self._changes.disable(connection, reason, at)


@dataclass(eq=False)
class _UnderWay:
    """A try that has not ended."""

    connection: Connection


@dataclass(frozen=True, slots=True)
class _Try:
    ref: DeliveryRef
    connection: Connection
    at: datetime
    answer: TryResult

    def entry(self) -> DeliveryEntry:
        return DeliveryEntry(DeliveryState.DELIVERED, 1, self.at, self.answer.code, self.answer.milliseconds)

    def attempt(self, after: Delivery, event: DispatchedEvent) -> Attempt:
        return Attempt(
            ref=self.ref,
            number=after.tries,
            at=self.at,
            delivered=after.state is DeliveryState.DELIVERED,
            code=self.answer.code,
            milliseconds=self.answer.milliseconds,
            text=self.answer.text,
            expires_at=event.event.expires_at,
            resend=after.resend,
        )


def _has_ended(delivery: Delivery | None) -> bool:
    return delivery is not None and delivery.state in transitions.FINISHED


def _was_resent_before(event: DispatchedEvent, delivery: Delivery | None) -> bool:
    """True if the event waits for its first try, and was resent before: the row is of that round, which is over."""
    if delivery is None or not _has_ended(delivery):
        return False
    connection_id = delivery.ref.connection_id
    return connection_id in (event.pending or ()) and transitions.entry_of(event, connection_id) is None


def _revision(delivery: Delivery | None) -> int | None:
    return delivery.revision if delivery else None


def failed_untried(delivery: Delivery, reason: str, at: datetime) -> Delivery:
    return replace(delivery, state=DeliveryState.FAILED, due=None, leased_until=None, reason=reason, ended_at=at)


def _unsettled(ref: DeliveryRef) -> Unsettled:
    return Unsettled(
        f"Tenant {ref.life.tenant}: the delivery of event {ref.event_id} to {ref.connection_id} could not be recorded, "
        "because other writes came first. Its message comes again."
    )
