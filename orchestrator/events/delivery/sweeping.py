"""The sweep: every minute, it finds work that no message and no function is about to do.

1. Deliveries that are due: a message is sent for each. It may be lost, so the delivery is due again a while later.
2. Events that could not be dispatched: they are dispatched again.
3. Connections that need care: what is parked goes out when a connection is resumed, fails when it is disabled or
   deleted, and fails when it is about to expire. While deliveries only wait, a connection is looked at now and then.

All of these take turns, page by page, and so do tenants: what one of them has left to do, or what goes wrong with it,
holds up nobody else's. Two sweeps at the same time do no harm: every write is conditional on what was read.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import cycle

from orchestrator.common.errors import Throttled
from orchestrator.common.times import Clock
from orchestrator.events.delivery import health, transitions
from orchestrator.events.delivery.delivering import (
    EXPIRED,
    EXPIRED_UNREADABLE,
    GRACE,
    LAST_TRY_BEFORE_EXPIRY,
    expires_soon,
    failed_untried,
)
from orchestrator.events.delivery.dispatching import Dispatching
from orchestrator.events.delivery.messages import DeliveryMessage
from orchestrator.events.delivery.ports import ConnectionChanges, Connections, DeliveryTable, MessageQueue
from orchestrator.events.delivery.records import (
    DISPATCH,
    Connection,
    ConnectionStatus,
    Delivery,
    DeliveryRef,
    DeliveryState,
    UnreadableConnection,
)
from orchestrator.events.delivery.resending import unpark
from orchestrator.events.delivery.turns import rounds_of
from orchestrator.events.event_ids import first_id_at, received_at
from orchestrator.events.plans import LIFETIMES_DAYS, LONGEST_DELIVERY
from orchestrator.events.records import TenantEpoch, UnreadableRow

AHEAD = timedelta(seconds=60)
"""The sweep runs once per minute, so it sends what is due before the next one, with a delay."""
SHARDS = 16
PAGE = 100
PAGES = 20
"""The pages of parked deliveries of one connection that a sweep handles."""
EMPTY_FOR = timedelta(minutes=2)
"""A park has to be found empty twice, so much apart: a delivery that was under way may have been parked in between."""
LATEST_SWEEP = timedelta(hours=3)
"""For so long, parked deliveries of a shorter lifetime than those before them are looked for."""
LOOKED_AT_EVERY = timedelta(minutes=15)
"""How often a connection is looked at whose deliveries only wait. What expires is failed an hour before it does."""
LONGEST_GRACE = timedelta(hours=1)
_ROUNDS = 5


@dataclass
class Swept:
    """The work of one sweep."""

    sent: int = 0
    unsent: int = 0
    dispatched: int = 0
    unparked: int = 0
    failed: int = 0
    removed: int = 0
    """Deliveries whose event is gone."""
    unreadable: int = 0
    left: bool = False
    """True if the time was up, or the table busy, before everything was done. The next sweep goes on."""
    errors: list[Exception] = field(default_factory=list)
    """The errors of single deliveries and connections. All others had their turns."""

    def note(self, error: Exception) -> None:
        if isinstance(error, Throttled):
            self.left = True
        else:
            self.errors.append(error)


class Looks:
    """When connections whose deliveries only wait were last looked at, as long as a process remembers it.

    Each look costs several reads. To forget one costs nothing else, so it is not written down.
    """

    def __init__(self) -> None:
        self._latest: dict[str, datetime] = {}

    def is_due(self, connection: Connection, at: datetime) -> bool:
        return connection.connection_id not in self._latest or not health.only_waits(connection, at)

    def note(self, connection_id: str, at: datetime) -> None:
        self._latest[connection_id] = at

    def forget_those_before(self, at: datetime) -> None:
        self._latest = {name: looked_at for name, looked_at in self._latest.items() if looked_at > at}


class Sweeping:
    def __init__(
        self,
        *,
        table: DeliveryTable,
        connections: Connections,
        changes: ConnectionChanges,
        dispatching: Dispatching,
        queue: MessageQueue,
        clock: Clock,
        looks: Looks | None = None,
        random_below: Callable[[int], int] = secrets.randbelow,
    ) -> None:
        self._table = table
        self._connections = connections
        self._changes = changes
        self._dispatching = dispatching
        self._queue = queue
        self._clock = clock
        self._looks = looks or Looks()
        self._random_below = random_below

    def sweep(self, has_time: Callable[[], bool]) -> Swept:
        swept = Swept()
        turns: deque[Iterator[None]] = deque(self._sweep_shard(shard, swept) for shard in range(SHARDS))
        turns.append(self._find_care(turns, swept))
        while turns:
            if not has_time():
                swept.left = True
                break
            turn = turns.popleft()
            try:
                next(turn)
            except StopIteration:
                continue
            except Exception as error:  # noqa: BLE001 - whatever is wrong with this turn holds up no other
                swept.note(error)
            else:
                turns.append(turn)
        return swept

    # Turns: each handles a page, and has another turn if there may be more.

    def _find_care(self, turns: deque[Iterator[None]], swept: Swept) -> Iterator[None]:
        now = self._clock.now()
        self._looks.forget_those_before(now - LOOKED_AT_EVERY)
        listed = list(self._connections.needing_care(lambda each: self._looks.is_due(each, now)))
        connections = [each for each in listed if not isinstance(each, UnreadableRow)]
        swept.unreadable += len(listed) - len(connections)
        turns.extend(self._care_for(each, swept) for each in rounds_of(connections, self._random_below))
        # Deliveries to a damaged connection wait until somebody has mended it, and not longer than their event is kept.
        damaged = [each for each in listed if isinstance(each, UnreadableConnection)]
        turns.extend(
            self._look_at_parked(each.connection_id, EXPIRED_UNREADABLE, swept)
            for each in rounds_of(damaged, self._random_below)
        )
        yield from ()

    def _sweep_shard(self, shard: int, swept: Swept) -> Iterator[None]:
        """A page of what was due first, then a page of what was due last, and so on, until both have met.

        One tenant may have very many deliveries that are due at once. What becomes due after them goes out beside them.
        """
        until = self._clock.now() + AHEAD
        seen: set[DeliveryRef] = set()
        cursors: dict[bool, str | None] = {}
        for latest_first in cycle((False, True)):
            refs, cursor = self._table.due(
                shard, until, PAGE, latest_first=latest_first, cursor=cursors.get(latest_first)
            )
            new = [ref for ref in refs if ref not in seen]
            seen.update(new)
            if new:
                self._handle_due(list(self._table.deliveries_of(new).values()), swept)
            if cursor is None or (refs and not new):
                return
            cursors[latest_first] = cursor
            yield

    # Deliveries that are due

    def _handle_due(self, deliveries: Sequence[Delivery], swept: Swept) -> None:
        now = self._clock.now()
        to_send: list[Delivery] = []
        busy: set[TenantEpoch] = set()
        for delivery in deliveries:
            if delivery.state is not DeliveryState.RETRYING or delivery.due is None or delivery.due > now + AHEAD:
                continue
            if delivery.leased_until is not None and now < delivery.leased_until:
                continue
            is_event, expires = delivery.ref.connection_id == DISPATCH, expires_soon(delivery.expires_at, now)
            if not is_event and not expires:
                to_send.append(delivery)
            elif delivery.ref.life not in busy:
                try:
                    if is_event:
                        self._dispatch_again(delivery, swept)
                    else:
                        swept.failed += self.fail(delivery, EXPIRED)
                except Exception as error:  # noqa: BLE001 - whatever is wrong with one event holds up no other
                    swept.note(error)
                    # Its other events would have to wait for the table as long.
                    busy |= {delivery.ref.life} if isinstance(error, Throttled) else set()
        self._send(to_send, swept)

    def _send(self, deliveries: Sequence[Delivery], swept: Swept) -> None:
        now = self._clock.now()
        messages = {
            delivery.ref: DeliveryMessage(
                delivery.ref,
                delivery.tries,
                claims=True,
                quick=False,
                delay=max((delivery.due or now) - now, timedelta()),
            )
            for delivery in deliveries
        }
        unsent = {message.ref for message in self._queue.send(list(messages.values()))} if messages else set()
        swept.sent += len(messages) - len(unsent)
        swept.unsent += len(unsent)
        for delivery in deliveries:
            if delivery.ref not in unsent:
                # If the row has changed, the message has arrived already, or another sweep has sent one, too.
                later = max(delivery.due or now, now) + grace_after(delivery.sent)
                self._table.apply(transitions.changed(delivery, replace(delivery, due=later, sent=delivery.sent + 1)))

    def _dispatch_again(self, delivery: Delivery, swept: Swept) -> None:
        event = self._table.event(delivery.ref.life, delivery.ref.event_id)
        if event is None:
            swept.removed += self._table.apply(transitions.removed(delivery))
            return
        now = self._clock.now()
        done = self._dispatching.dispatch([event])
        if not done.later:
            self._table.apply(transitions.removed(delivery))
            swept.dispatched += 1
        elif expires_soon(delivery.expires_at, now):
            failed = failed_untried(delivery, done.later[0], now)
            swept.failed += self._table.apply(transitions.undispatchable(event, delivery, failed))
        else:
            later = now + grace_after(delivery.sent)
            self._table.apply(transitions.changed(delivery, replace(delivery, due=later, sent=delivery.sent + 1)))

    # Connections

    def _care_for(self, connection: Connection, swept: Swept) -> Iterator[None]:
        now = self._clock.now()
        if health.has_ended(connection):
            yield from self._drain(connection, swept)
        elif connection.status is ConnectionStatus.PAUSED or connection.health.open_until is not None:
            oldest = yield from self._look_at_parked(connection.connection_id, EXPIRED, swept)
            if oldest and not health.parks(connection, now):
                # The breaker has been open for long enough: one delivery shows whether the receiver works again.
                self._unpark(self._those_parked(oldest) or self._first_parked(connection.connection_id), swept)
        elif connection.draining:
            yield from self._drain(connection, swept)

    def _drain(self, connection: Connection, swept: Swept) -> Iterator[None]:
        """Handle parked deliveries, oldest first. A connection has none left once none was found twice."""
        now = self._clock.now()
        seen: set[DeliveryRef] = set()
        for _ in range(PAGES):
            # The index may still show deliveries that are no longer parked.
            refs = [ref for ref in self._table.parked(connection.connection_id, PAGE) if ref not in seen]
            if not refs:
                break
            if not seen and connection.found_empty_at is not None:
                # This comes first, because there may be no time for another turn.
                self._changes.set_drained(connection, found_empty_at=None, draining=True)
            seen.update(refs)
            self._handle_parked(connection, self._those_parked(refs), swept)
            yield
        if seen:
            return
        if connection.found_empty_at is None:
            self._changes.set_drained(connection, found_empty_at=now, draining=True)
        elif now - connection.found_empty_at >= EMPTY_FOR:
            if connection.status is ConnectionStatus.DELETED:
                self._changes.remove(connection)
            else:
                self._changes.set_drained(connection, found_empty_at=None, draining=False)

    def _handle_parked(self, connection: Connection, deliveries: Sequence[Delivery], swept: Swept) -> None:
        if not health.has_ended(connection):
            self._unpark(deliveries, swept)
            return
        self._fail_each(deliveries, health.why_ended(connection), swept)

    def _look_at_parked(
        self, connection_id: str, reason: str, swept: Swept
    ) -> Generator[None, None, Sequence[DeliveryRef]]:
        """Fail what is about to expire, and return the oldest delivery that is parked then, if there is one."""
        now = self._clock.now()
        oldest = self._table.parked(connection_id, 1)
        if not any(expires_soon(received_at(ref.event_id) + LONGEST_DELIVERY, now) for ref in oldest):
            # Nothing is about to expire in nearly all sweeps, which then read no row.
            self._looks.note(connection_id, now)
            return oldest
        if (yield from self._fail_expiring(connection_id, reason, swept)):
            self._looks.note(connection_id, now)
        return self._table.parked(connection_id, 1)

    def _fail_expiring(self, connection_id: str, reason: str, swept: Swept) -> Generator[None, None, bool]:
        """Fail deliveries that are about to expire. The list begins with them: it is in the order of the events.

        ``False`` if there may be more.
        """
        now, after = self._clock.now(), None
        kept: Sequence[Delivery] = ()
        for _ in range(PAGES):
            refs = self._table.parked(connection_id, PAGE, after=after)
            kept = self._fail_those_expiring(refs, reason, swept)
            if kept or len(refs) < PAGE:
                break
            after = refs[-1].event_id
            yield
        else:
            return False
        done = True
        # The tenant may have had a plan with a longer lifetime before. Then events that expire now are further down.
        for days in LIFETIMES_DAYS[:-1]:
            last = now + LAST_TRY_BEFORE_EXPIRY - timedelta(days=days)
            if kept and received_at(kept[0].ref.event_id) <= last:
                done &= yield from self._fail_those_received(connection_id, last - LATEST_SWEEP, last, reason, swept)
        return done

    def _fail_those_received(
        self, connection_id: str, begin: datetime, end: datetime, reason: str, swept: Swept
    ) -> Generator[None, None, bool]:
        after = first_id_at(begin)
        for _ in range(PAGES):
            refs = self._table.parked(connection_id, PAGE, after=after)
            within = [ref for ref in refs if received_at(ref.event_id) <= end]
            self._fail_those_expiring(within, reason, swept)
            if len(within) < PAGE:
                return True
            after = within[-1].event_id
            yield
        return False

    def _fail_those_expiring(self, refs: Sequence[DeliveryRef], reason: str, swept: Swept) -> Sequence[Delivery]:
        """Fail those of the deliveries that are about to expire, and return the others."""
        parked, now = self._those_parked(refs), self._clock.now()
        self._fail_each([each for each in parked if expires_soon(each.expires_at, now)], reason, swept)
        return [each for each in parked if not expires_soon(each.expires_at, now)]

    def _unpark(self, parked: Sequence[Delivery], swept: Swept) -> None:
        now = self._clock.now()
        self._fail_each([each for each in parked if expires_soon(each.expires_at, now)], EXPIRED, swept)
        moved, unsent = unpark(parked, self._table, self._queue, now)
        swept.unparked += moved
        swept.unsent += unsent

    def _those_parked(self, refs: Sequence[DeliveryRef]) -> Sequence[Delivery]:
        """The deliveries that are parked, in the order of the references."""
        found = self._table.deliveries_of(refs) if refs else {}
        parked = [found[ref] for ref in refs if ref in found]
        return [each for each in parked if each.state is DeliveryState.PARKED]

    def _first_parked(self, connection_id: str) -> Sequence[Delivery]:
        """The oldest delivery that can be read: the rows of older ones may be damaged."""
        return self._those_parked(self._table.parked(connection_id, PAGE))[:1]

    def _fail_each(self, deliveries: Sequence[Delivery], reason: str, swept: Swept) -> None:
        """End deliveries without another try. Whatever is wrong with the event of one holds up no other."""
        for delivery in deliveries:
            try:
                swept.failed += self.fail(delivery, reason)
            except Throttled:
                raise
            except Exception as error:  # noqa: BLE001 - an operator has to mend the row of this event
                swept.note(error)

    def fail(self, delivery: Delivery, reason: str) -> bool:
        """End a delivery without another try."""
        now = self._clock.now()
        for _ in range(_ROUNDS):
            event = self._table.event(delivery.ref.life, delivery.ref.event_id)
            if event is None:
                self._table.apply(transitions.removed(delivery))
                return False
            if not delivery.resend and transitions.is_finished(event, delivery.ref.connection_id):
                self._table.apply(transitions.close_stale_row(event, delivery))
                return False
            if self._table.apply(
                transitions.ended_untried(event, delivery, failed_untried(delivery, reason, now), now)
            ):
                return True
            there = self._table.delivery(delivery.ref)
            if there is None or there.revision != delivery.revision:
                return False
        return False


def grace_after(sent: int) -> timedelta:
    """How long to wait for a message to arrive. The longer it takes, the more messages are waiting before it."""
    return min(GRACE * (1 << min(sent, 10)), LONGEST_GRACE)
