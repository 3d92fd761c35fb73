"""The event plane in a run: functions that die and interleave, a stream and queues that repeat, lose and delay."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from orchestrator.common.errors import BerthError, Throttled
from orchestrator.events.delivery import health
from orchestrator.events.delivery.delivering import Delivering
from orchestrator.events.delivery.dispatching import Dispatching
from orchestrator.events.delivery.messages import DeliveryMessage
from orchestrator.events.delivery.records import (
    Connection,
    DeliveryRef,
    DispatchedEvent,
    Outgoing,
    TryResult,
    UnreadableConnection,
)
from orchestrator.events.delivery.recovering import Recovering
from orchestrator.events.delivery.redispatching import Redispatching
from orchestrator.events.delivery.replaying import Replaying
from orchestrator.events.delivery.sweeping import Looks, Sweeping
from orchestrator.events.records import EventSettings, TenantEpoch, UnreadableRow
from tests.fakes import FakeClock
from tests.fakes.connections import InMemoryConfiguration, InMemoryConnections
from tests.fakes.deliveries import InMemoryDeliveries
from tests.fakes.events import event_settings
from tests.fakes.replays import InMemoryReplays
from tests.simulation.events.checks import Checks
from tests.simulation.events.faults import A_FUNCTION_LIVES, Faults
from tests.simulation.events.partitions import Partitions
from tests.simulation.events.receivers import Receivers
from tests.simulation.events.table import Lagging, Requests, SimulatedReplays, SimulatedTable
from tests.simulation.suspendable import Abandoned, SuspendableCall
from tests.simulation.timeline import Kind, Timeline

VISIBILITY = timedelta(seconds=360)
MAX_RECEIVES = 5
THE_NIGHTLY_RUN_LIVES = timedelta(minutes=15)
TO_SPARE = timedelta(seconds=10)
"""The sweep begins nothing more when it has so little time left."""
SHARDS = 2
INSTANCES = 3
"""Warm instances of the function that delivers. Each remembers connections, and has its own clock."""
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
DYNAMODB = ("table", "replays", "connections", "changes", "configuration", "inbox", "purges", "remains")
"""The ports behind which DynamoDB is."""


class Crash(BaseException):
    """The function dies."""


class SkewedClock:
    def __init__(self, clock: FakeClock, skew: timedelta) -> None:
        self._clock = clock
        self._skew = skew

    def now(self) -> datetime:
        return self._clock.now() + self._skew


@dataclass
class Port:
    """A port whose calls may fail, and before which a function may be suspended."""

    name: str
    inner: Any
    around: Callable[[str, Callable[[], Any]], Any]

    def __getattr__(self, method: str) -> Callable[..., Any]:
        call = getattr(self.inner, method)
        return lambda *args, **named: self.around(f"{self.name}.{method}", lambda: call(*args, **named))


@dataclass(eq=False)
class Call:
    suspendable: SuspendableCall
    over: Callable[[BaseException | None], None]
    dies_at: datetime
    may_not_send: DeliveryRef | None
    """A delivery that was on record as delivered before the call began."""
    rest: timedelta | None = None
    """For how long the function itself wants to wait."""


@dataclass
class WatchedConnections(InMemoryConnections):
    ended: Callable[[str], None] = field(default=lambda _connection_id: None, compare=False)
    """Called with each connection that is deleted or disabled, or has another filter from now on."""

    def put(self, connection: Connection) -> Connection:
        before = self.all.get(connection.connection_id, connection)
        if health.has_ended(connection) or before.filter != connection.filter:
            self.ended(connection.connection_id)
        return super().put(connection)


def settings_of(life: TenantEpoch) -> EventSettings:
    return event_settings(life, shards=SHARDS)


@dataclass
class ReadConnections:
    """Implements :class:`orchestrator.events.delivery.ports.Connections`. Some rows cannot be read for a while."""

    connections: InMemoryConnections
    damaged: set[str]

    def of_origin(self, life: TenantEpoch, origin: str) -> Sequence[Connection | UnreadableRow]:
        return [self._read(each) for each in self.connections.of_origin(life, origin)]

    def connection(self, life: TenantEpoch, origin: str, connection_id: str) -> Connection | UnreadableRow | None:
        found = self.connections.connection(life, origin, connection_id)
        return self._read(found) if found else None

    def needing_care(self, is_wanted: Callable[[Connection], bool]) -> Iterator[Connection | UnreadableRow]:
        for each in self.connections.all.values():
            is_damaged = each.connection_id in self.damaged
            if each.needs_care and (is_damaged or is_wanted(each)):
                yield UnreadableConnection("", each.life, each.connection_id) if is_damaged else each

    def _read(self, connection: Connection) -> Connection | UnreadableRow:
        is_damaged = connection.connection_id in self.damaged
        return UnreadableRow(connection.connection_id) if is_damaged else connection


class Environment:
    def __init__(
        self, rng: random.Random, faults: Faults, lives: Sequence[TenantEpoch], source_ids: Sequence[str]
    ) -> None:
        self.rng = rng
        self.faults = faults
        self.clock = FakeClock()
        self.timeline = Timeline()
        self.table = InMemoryDeliveries()
        self.connections = WatchedConnections()
        self.damaged: set[str] = set()
        """The ids of connections whose rows cannot be read at present."""
        self._read = ReadConnections(self.connections, self.damaged)
        self.configurations = {
            life: InMemoryConfiguration(self.connections, settings_of(life), source_ids) for life in lives
        }
        self.replays = InMemoryReplays()
        self.receivers = Receivers(rng, failing=faults.failing)
        self.seen: Counter[str] = Counter()
        self.checks = Checks(self.table, self.connections, self.replays, self.receivers, self.clock, self.seen)
        self.connections.ended = self.checks.ended
        self.log: Callable[[str], None] | None = None
        self._lagging = Lagging(self.clock, rng, self.seen, faults.index_lag)
        partitions = Partitions(self.clock, faults.partition_reads, faults.partition_writes)
        simulated = Requests(partitions, rng, self._wait, self.seen), self._lagging, self.checks.replays
        self.simulated_table = SimulatedTable(self.table, *simulated)
        self._simulated_replays = SimulatedReplays(self.replays, *simulated)
        self._looks = Looks()
        self._broken: list[AssertionError] = []
        self._at_work: Call | None = None
        self._calls: list[Call] = []
        self._instances = [self._make_delivering() for _ in range(INSTANCES)]

    # Functions

    def _make_delivering(self) -> Delivering:
        clock = self.a_clock()
        return Delivering(
            table=self.table_port(),
            connections=self.port("connections", self._read),
            changes=self.port("changes", self.connections),
            sender=self.port("sender", self),
            queue=self.queue_port(),
            clock=clock,
            monotonic=lambda: clock.now().timestamp(),
            draw=self.rng.random,
            pause=self._wait,
        )

    def _make_dispatching(self) -> Dispatching:
        return Dispatching(
            table=self.table_port(),
            connections=self.port("connections", self._read),
            queue=self.queue_port(),
            content_of=lambda event: event.content,
            clock=self.a_clock(),
        )

    def _make_sweeping(self) -> Sweeping:
        return Sweeping(
            table=self.table_port(),
            connections=self.port("connections", self._read),
            changes=self.port("changes", self.connections),
            dispatching=self._make_dispatching(),
            queue=self.queue_port(),
            clock=self.a_clock(),
            looks=self._looks,
            random_below=self.rng.randrange,
        )

    def _make_redispatching(self) -> Redispatching:
        return Redispatching(
            settings=self.port("settings", self),
            table=self.table_port(),
            dispatching=self._make_dispatching(),
            clock=self.a_clock(),
            random_below=self.rng.randrange,
        )

    def _make_replaying(self) -> Replaying:
        return Replaying(
            replays=self.replays_port(),
            table=self.table_port(),
            connections=self.port("connections", self._read),
            dispatching=self._make_dispatching(),
            queue=self.queue_port(),
            clock=self.a_clock(),
            random_below=self.rng.randrange,
        )

    def listed_settings(self) -> list[EventSettings | UnreadableRow]:
        return [each.current for each in self.configurations.values() if each.current is not None]

    def a_clock(self) -> Any:
        skew = timedelta(seconds=self.rng.uniform(-1, 1) * self.faults.skew)
        return SkewedClock(self.clock, skew) if skew else self.clock

    def table_port(self) -> Any:
        return self.port("table", self.simulated_table)

    def replays_port(self) -> Any:
        return self.port("replays", self._simulated_replays)

    def queue_port(self) -> Any:
        return self.port("queue", self)

    def port(self, name: str, inner: Any) -> Any:
        return Port(name, inner, self._around)

    def _around(self, name: str, call: Callable[[], Any]) -> Any:
        faults, rng = self.faults, self.rng
        if self._at_work and rng.random() < faults.interleave:
            self._at_work.suspendable.suspend()
        if name.partition(".")[0] in DYNAMODB and rng.random() < faults.throttle:
            self.seen["throttled"] += 1
            raise Throttled(f"{name}: Rate exceeded")
        dies = rng.random() if faults.crash else 0.5
        if dies < faults.crash:
            self.seen["crashed before a call"] += 1
            raise Crash
        try:
            result = call()
        except AssertionError as broken:
            # Functions catch what goes wrong with a single delivery or replay. A broken promise ends the run.
            self._broken.append(broken)
            raise
        self.trace(name, result)
        if dies > 1 - faults.crash:
            self.seen["crashed after a call"] += 1
            raise Crash
        return result

    def call(
        self,
        function: Callable[[], Any],
        over: Callable[[BaseException | None], None],
        *,
        may_not_send: DeliveryRef | None = None,
        lives: timedelta = A_FUNCTION_LIVES,
    ) -> None:
        call = Call(SuspendableCall(function), over, self.clock.now() + lives, may_not_send)
        self._calls.append(call)
        self._go_on_with(call)

    def _go_on_with(self, call: Call) -> None:
        self._at_work = call
        try:
            call.suspendable.resume(Crash() if self.clock.now() >= call.dies_at else None)
        finally:
            self._at_work = None
        for broken in self._broken:
            raise broken
        if not call.suspendable.over:
            self.seen["suspended"] += 1
            rest, call.rest = call.rest or timedelta(seconds=self.rng.choice((0.01, 0.1, 1, 10, 40))), None
            self.later(min(rest, max(call.dies_at - self.clock.now(), timedelta())), partial(self._go_on_with, call))
            return
        self._calls.remove(call)
        error = call.suspendable.error
        if error is not None and not isinstance(error, Crash | BerthError):
            raise error
        call.over(error)

    def _wait(self, seconds: float) -> None:
        """The function at work waits, and others go on."""
        assert self._at_work is not None
        self._at_work.rest = timedelta(seconds=seconds)
        self._at_work.suspendable.suspend()

    def has_time(self) -> bool:
        assert self._at_work is not None
        return self.clock.now() < self._at_work.dies_at - TO_SPARE

    def close(self) -> None:
        for call in self._calls:
            while not call.suspendable.over:
                call.suspendable.resume(Abandoned())
        self._calls.clear()

    # Time

    def later(self, delay: timedelta, action: Callable[[], None]) -> None:
        jitter = timedelta(milliseconds=self.rng.randrange(1, 400))
        self.timeline.add(self.clock.now() + delay + jitter, action, Kind.OTHER)

    def run_until(self, until: datetime) -> None:
        while self.timeline.entries_left and self.timeline.next_due <= until:
            self.run_next()
        self.clock.advance(max(until - self.clock.now(), timedelta()))

    def run_next(self) -> None:
        entry = self.timeline.next()
        self.clock.advance(max(entry.due - self.clock.now(), timedelta()))
        if self.faults.index_lag and self.rng.random() < 0.3:
            self._lagging.note(self.table)
        entry.action()

    def trace(self, what: str, result: object = "") -> None:
        if self.log:
            self.log(f"{self.clock.now():%d %H:%M:%S.%f} {what} {result}")

    # The stream

    def accept(self, event: DispatchedEvent) -> None:
        if not self.simulated_table.accept(event.event):
            self.seen["event refused by a busy partition"] += 1
            return
        self.checks.accepted(event.event)
        if self.rng.random() < self.faults.lost_batch:
            self.seen["stream lost a batch"] += 1
            return
        batch = [event]
        self.later(timedelta(seconds=self.rng.choice((0, 1, 30))), partial(self._dispatch, batch))
        if self.rng.random() < self.faults.repeated_batch:
            self.seen["stream repeated a batch"] += 1
            again = timedelta(seconds=self.rng.choice((1, 20, 600, 7_200)))
            self.later(again, partial(self._dispatch, batch))

    def _dispatch(self, batch: Sequence[DispatchedEvent]) -> None:
        def over(error: BaseException | None) -> None:
            if error is not None:
                self.later(timedelta(seconds=1), partial(self._dispatch, batch))

        self.call(lambda: self._make_dispatching().dispatch(batch), over)

    # The queues

    def send(self, messages: Any) -> Any:
        """The queue's ``send``, and the sender's."""
        if isinstance(messages, Outgoing):
            return self._try(messages)
        unsent = []
        for message in messages:
            if self.rng.random() < self.faults.unsent:
                self.seen["message not sent"] += 1
                unsent.append(message)
            elif self.rng.random() < self.faults.lost:
                self.seen["message lost"] += 1
            else:
                self._send(message)
        return unsent

    def _send(self, message: DeliveryMessage) -> None:
        assert message.delay <= timedelta(seconds=900)
        late = timedelta(minutes=self.rng.choice((1, 4, 20))) if self.rng.random() < self.faults.late else timedelta()
        self.later(message.delay + late, partial(self._arrive, message, 1))
        if self.rng.random() < self.faults.twice:
            self.seen["message twice"] += 1
            again = timedelta(seconds=self.rng.choice((0, 0, 5, 400)))
            self.later(message.delay + again, partial(self._arrive, message, 1))

    def _arrive(self, message: DeliveryMessage, receives: int) -> None:
        def over(error: BaseException | None) -> None:
            if error is None:
                return
            if receives < MAX_RECEIVES:
                self.later(VISIBILITY, partial(self._arrive, message, receives + 1))
            else:
                self.seen["dead letter"] += 1
                self._recover(message)

        begun = self.checks.begin(message.ref)
        instance = self.rng.choice(self._instances)
        self.call(lambda: self._deliver(instance, message), over, may_not_send=message.ref if begun else None)

    def _deliver(self, instance: Delivering, message: DeliveryMessage) -> None:
        outcome = instance.deliver(message)
        self.seen[f"outcome {outcome}"] += 1

    def _try(self, outgoing: Outgoing) -> TryResult:
        self.checks.sent(outgoing, self._at_work.may_not_send if self._at_work else None)
        return self.receivers.send(outgoing)

    def _recover(self, message: DeliveryMessage) -> None:
        def over(error: BaseException | None) -> None:
            if error is not None:
                self.later(timedelta(seconds=60), partial(self._recover, message))

        recovering = Recovering(table=self.table_port(), clock=self.a_clock())
        self.call(lambda: recovering.recover(message), over)

    # Schedules

    def sweep(self) -> None:
        self.call(self._sweep, lambda _error: None)

    def _sweep(self) -> None:
        swept = self._make_sweeping().sweep(self.has_time)
        replayed = self._make_replaying().move_on(self.has_time)
        for error in [*swept.errors, *replayed.errors]:
            raise error

    def redispatch(self) -> None:
        """The nightly run. Lambda repeats one that fails, and then an alarm has an operator do so."""

        def over(error: BaseException | None) -> None:
            if error is not None:
                self.later(10 * MINUTE, self.redispatch)

        redispatching = self._make_redispatching()

        def run() -> None:
            for error in redispatching.nightly(self.has_time).errors:
                raise error

        self.call(run, over, lives=THE_NIGHTLY_RUN_LIVES)

    def end_faults(self) -> None:
        """Only the limits of partitions stay: they are no fault."""
        self.faults = Faults()
        self.receivers.failing = 0.0
        self._lagging.often = 0.0
