"""The delays that a noisy tenant, and dead receivers, cause for others. Time is simulated.

Messages go through :mod:`bench.fair_queue`, and calls of the function are as Lambda makes them: up to ten messages
each, as long as the slowest, and a limited number at once for each queue. Which queue a message is for, and when it is
tried again, is decided by the product's own rules (:mod:`orchestrator.events.delivery.health` and ``retries``).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from random import Random
from statistics import median

from bench.fair_queue import FairQueue, Taken
from bench.measure import Result, percentile
from orchestrator.events.delivery import health as rules
from orchestrator.events.delivery.messages import MAX_DELAY
from orchestrator.events.delivery.records import Health, TryResult, Verdict
from orchestrator.events.delivery.retries import RetrySchedule

TENANTS = 50
CONNECTIONS_PER_TENANT = 2
DEAD = 10
SECONDS = 120.0
DEAD_SECONDS = 240.0
"""Ends before the breakers of dead connections open, after five minutes, which can only help."""
BATCH = 10
AT_ONCE = 25
"""Calls of the function at once for each queue, as deployed by default."""
BUSY_PER_SECOND = 800.0
"""Events of the quiet tenants together. With as many of a noisy tenant, there are more than can be delivered."""
CALM_PER_SECOND = 50.0
SEEDS = 10
"""How many dead connections take a call each before they are known depends on when their first events come."""
KNOWN_AFTER_SECONDS = 60.0
"""By then all dead connections are known, and what they have held up has arrived."""
_STREAM_SECONDS = 0.25
"""Lambda looks at a stream four times per second."""
_OVERHEAD_SECONDS = 0.02
"""The time that a try takes before the request is sent."""
_ANSWERED_SECONDS = (0.05, 0.2)
_DEADLINE_SECONDS = 15.0
"""A dead receiver hangs, which is the worst that it can do."""
_START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Setting:
    """The simulated load, and the limits of the functions."""

    quiet_per_second: float
    noisy_per_second: float = 0.0
    dead: int = 0
    is_fair: bool = True
    two_queues: bool = True
    moves_on: bool = True
    """False if connections left the first queue only at the end of a try, and messages that wait there stayed."""
    seconds: float = SECONDS
    seed: int = 1


@dataclass
class _Connection:
    tenant: str
    is_dead: bool = False
    health: Health = field(default_factory=Health)


@dataclass(frozen=True)
class _Message:
    connection: _Connection
    accepted: float
    tries: int = 0
    first_try: float | None = None
    moved: bool = False
    """True if it was not in the first queue, or is not any more."""


@dataclass
class Simulated:
    """The seconds from accept to received, by healthy connections of quiet tenants and of the noisy one."""

    quiet: list[tuple[float, float]] = field(default_factory=list)
    """When each was accepted, and how long it took."""
    noisy: list[tuple[float, float]] = field(default_factory=list)
    failed_tries: int = 0

    def milliseconds(self, part: int, *, noisy: bool = False, since: float = 0.0) -> float:
        times = [took for accepted, took in (self.noisy if noisy else self.quiet) if accepted >= since]
        return percentile(times, part) * 1000


class _Function:
    """Calls of the function with messages of one queue."""

    def __init__(self, simulation: Simulation, *, is_fair: bool) -> None:
        self._simulation = simulation
        self._queue = FairQueue(is_fair)
        self._free = AT_ONCE

    def send(self, message: _Message) -> None:
        self._queue.send(message.connection.tenant, message, self._simulation.now)
        self._call()

    def _call(self) -> None:
        while self._free and len(self._queue):
            batch = self._queue.receive(BATCH, self._simulation.now)
            self._free -= 1
            longest = max([self._simulation.tried(taken.body) for taken in batch])
            self._simulation.after(longest, partial(self._returned, batch))

    def _returned(self, batch: Sequence[Taken]) -> None:
        for taken in batch:
            self._queue.delete(taken, self._simulation.now)
        self._free += 1
        self._call()


class Simulation:
    def __init__(self, setting: Setting) -> None:
        self.now = 0.0
        self._setting = setting
        self._random = Random(setting.seed)
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self._first = _Function(self, is_fair=setting.is_fair)
        self._later = _Function(self, is_fair=setting.is_fair) if setting.two_queues else self._first
        self._quiet = [
            _Connection(f"tenant-{number // CONNECTIONS_PER_TENANT}")
            for number in range(TENANTS * CONNECTIONS_PER_TENANT)
        ]
        for number in range(setting.dead):
            self._quiet[number * len(self._quiet) // setting.dead].is_dead = True
        self._noisy = [_Connection("noisy")]
        self.simulated = Simulated()

    def run(self) -> Simulated:
        self._arrive(self._quiet, self._setting.quiet_per_second)
        self._arrive(self._noisy, self._setting.noisy_per_second)
        while self._events:
            self.now, _, event = heapq.heappop(self._events)
            event()
        return self.simulated

    def after(self, seconds: float, event: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now + seconds, next(self._numbers), event))

    def _arrive(self, connections: Sequence[_Connection], per_second: float) -> None:
        """Events come at random times, each for one connection."""
        if not per_second:
            return
        wait = self._random.expovariate(per_second)
        if self.now + wait > self._setting.seconds:
            return

        def accepted() -> None:
            connection = self._random.choice(connections)
            message = _Message(connection, self.now)
            self.after(self._random.uniform(0, _STREAM_SECONDS), lambda: self._dispatch(message))
            self._arrive(connections, per_second)

        self.after(wait, accepted)

    def _dispatch(self, message: _Message) -> None:
        if message.connection.health.is_good:
            self._first.send(message)
        else:
            self._later.send(replace(message, moved=True))

    def tried(self, message: _Message) -> float:
        """The time that a try takes. Its outcome is noted when it ends."""
        connection = message.connection
        if self._setting.moves_on and message.tries == 0 and not message.moved and not connection.health.is_good:
            moved = replace(message, moved=True)
            self.after(_OVERHEAD_SECONDS, lambda: self._later.send(moved))
            return _OVERHEAD_SECONDS
        if connection.is_dead:
            took = _DEADLINE_SECONDS
            if self._setting.moves_on:
                self.after(rules.SLOW_MILLISECONDS / 1000, lambda: self._slow(connection))
        else:
            took = self._random.uniform(*_ANSWERED_SECONDS)
            times = self.simulated.noisy if connection.tenant == "noisy" else self.simulated.quiet
            times.append((message.accepted, self.now + _OVERHEAD_SECONDS - message.accepted))
        began = self.now
        self.after(_OVERHEAD_SECONDS + took, lambda: self._note(message, began, took))
        return _OVERHEAD_SECONDS + took

    def _slow(self, connection: _Connection) -> None:
        """The function notes that a try takes long while it still runs."""
        connection.health = rules.while_slow(connection.health, _time(self.now))

    def _note(self, message: _Message, began: float, took: float) -> None:
        connection, at = message.connection, _time(self.now)
        if not connection.is_dead:
            connection.health = rules.after_success(connection.health, _answer(Verdict.DELIVERED, took), at)
            return
        self.simulated.failed_tries += 1
        answer = _answer(Verdict.RETRY, took)
        connection.health = rules.after_failure(connection.health, answer, at)
        first_try = began if message.first_try is None else message.first_try
        due = RetrySchedule().next_try(message.tries + 1, first_try=_time(first_try), now=at, draw=self._random.random)
        if due is not None and due - at <= MAX_DELAY and self.now < self._setting.seconds:
            again = _Message(connection, message.accepted, message.tries + 1, first_try)
            self.after((due - at).total_seconds(), lambda: self._later.send(again))


def _time(seconds: float) -> datetime:
    return _START + timedelta(seconds=seconds)


def _answer(verdict: Verdict, seconds: float) -> TryResult:
    return TryResult(verdict, int(seconds * 1000), slows=verdict is Verdict.RETRY)


def events_fairness() -> list[Result]:
    return [*noisy_results(), *dead_results()]


def noisy_results(seconds: float = SECONDS) -> list[Result]:
    """One tenant sends half of everything, and everything is more than the functions can deliver."""

    def simulate(noisy: float, *, is_fair: bool = True) -> Simulated:
        return Simulation(Setting(BUSY_PER_SECOND, noisy, is_fair=is_fair, seconds=seconds)).run()

    alone, fair, plain = simulate(0), simulate(BUSY_PER_SECOND), simulate(BUSY_PER_SECOND, is_fair=False)
    what = f"events fairness (simulated): {TENANTS} quiet tenants, {BUSY_PER_SECOND:g} events per second"
    return [
        *_compared(f"{what}: one more tenant sends as many, fair queues", fair, alone, "<= 1.5"),
        *_compared(f"{what}: one more tenant sends as many, queues without groups", plain, alone, ""),
        Result(f"{what}: alone, p95", round(alone.milliseconds(95)), "ms", ""),
        Result(
            f"{what}: the noisy tenant itself, fair queues, p95", round(fair.milliseconds(95, noisy=True)), "ms", ""
        ),
    ]


def dead_results(seconds: float = DEAD_SECONDS, seeds: int = SEEDS) -> list[Result]:
    """Some receivers hang, all of them from the first event on."""

    def simulate(dead: int, seed: int = 1, **changes: bool) -> Simulated:
        return Simulation(replace(Setting(CALM_PER_SECOND, dead=dead, seconds=seconds, seed=seed), **changes)).run()

    def ratio(seed: int) -> float:
        return simulate(DEAD, seed).milliseconds(95) / simulate(0, seed).milliseconds(95)

    none, both = simulate(0), simulate(DEAD)
    ratios = [ratio(seed) for seed in range(1, seeds + 1)]
    stayed, one = simulate(DEAD, moves_on=False), simulate(DEAD, two_queues=False)
    what = (
        f"events fairness (simulated): {TENANTS * CONNECTIONS_PER_TENANT} connections, {CALM_PER_SECOND:g} events per "
        f"second, {DEAD} hang from the first event on: the others"
    )
    known = f"{what}, from {KNOWN_AFTER_SECONDS:g} s on"
    return [
        *_compared(f"{known}, two queues", both, none, "<= 1.5", since=KNOWN_AFTER_SECONDS),
        *_compared(f"{known}, one queue", one, none, "", since=KNOWN_AFTER_SECONDS),
        Result(
            f"{what}, {seconds:g} s, two queues, p95 / without, median of {seeds} seeds",
            round(median(ratios), 2),
            "x",
            "<= 1.5",
        ),
        Result(
            f"{what}, {seconds:g} s, two queues, p95 / without, worst of {seeds} seeds", round(max(ratios), 2), "x", ""
        ),
        *_compared(f"{what}, {seconds:g} s, if connections left only at the end of a try", stayed, none, ""),
        *_compared(f"{what}, {seconds:g} s, one queue", one, none, ""),
    ]


def _compared(name: str, found: Simulated, before: Simulated, aim: str, *, since: float = 0.0) -> list[Result]:
    ours, others = found.milliseconds(95, since=since), before.milliseconds(95, since=since)
    return [
        Result(f"{name}, p95 / without", round(ours / others, 2), "x", aim),
        Result(f"{name}, p95", round(ours), "ms", ""),
    ]
