"""What AWS gives an account and region, on a virtual clock: quotas, and stacks that take their time."""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Generator
from dataclasses import dataclass

from bench.simulated_ledger import VirtualClock

Steps = Generator[float | None, None, None]
"""Something that goes on in steps. It yields how long the next one takes; ``None``: until someone lets it go on."""

EXECUTIONS_A_SECOND, TRANSITIONS_A_SECOND = 300, 1_500
"""Step Functions' quotas in a large region: StartExecution, and state transitions."""

_ATTEMPTS = 4
"""Of one call, by the SDK (``orchestrator.adapters.aws.CLIENT_CONFIG``)."""


@dataclass(slots=True)
class Quota:
    """A bucket of calls that fills up again. Calls that it has nothing for are throttled and cost nothing."""

    rate: float
    burst: float
    left: float = 0.0
    filled_at: float = 0.0
    granted: int = 0
    granted_at: float = 0.0

    def __post_init__(self) -> None:
        self.left = self.burst

    def take(self, now: float) -> bool:
        self._fill(now)
        if self.left < 1.0:
            return False
        self.left -= 1.0
        self.granted += 1
        self.granted_at = now
        return True

    def change(self, rate: float, now: float) -> None:
        self._fill(now)
        self.rate = rate

    def _fill(self, now: float) -> None:
        self.left = min(self.burst, self.left + (now - self.filled_at) * self.rate)
        self.filled_at = now


@dataclass(frozen=True, slots=True)
class Conditions:
    """What it is like that day. The rates are those of ``docs``: CloudFormation publishes none."""

    mutations_a_second: float = 1.5
    reads_a_second: float = 5.0
    mutations_burst: float = 5.0
    reads_burst: float = 10.0
    drops_to_after: tuple[float, float] | None = None
    """From then on (seconds) only this part of the calls is granted."""
    stack_seconds: float = 10.0
    slow: float = 0.0
    """The part of the stacks that take ten times as long."""
    failing: float = 0.0
    """The part of the tenants whose update fails, and is rolled back."""
    strays: float = 0.0
    """The part of the calls that are throttled for no reason of ours: others call CloudFormation, too."""
    slow_reviews: float = 0.0
    """The part of the change sets that are not drawn up when they are first looked at."""
    overtaken: float = 0.0
    """The part of the writes before which another tenant's write came."""


QUIET = Conditions()
FAULTY = Conditions(slow=0.02, failing=0.02, strays=0.02, overtaken=0.05)


class SimulatedAws:
    """One account and region: its clock, what goes on in it, and its quotas."""

    def __init__(self, conditions: Conditions, seed: int) -> None:
        self.conditions = conditions
        self.chance = random.Random(seed)
        self.clock = VirtualClock()
        self.mutations = Quota(conditions.mutations_a_second, conditions.mutations_burst)
        self.reads = Quota(conditions.reads_a_second, conditions.reads_burst)
        self.executions = Quota(EXECUTIONS_A_SECOND, 1_300)
        self.transitions = Quota(TRANSITIONS_A_SECOND, 5_000)
        self.refused = 0
        """Calls that were throttled, each time the SDK made them."""
        self.throttled = 0
        """Calls that were given up: what Berth counts, and its pace sees."""
        self._queue: list[tuple[float, int, Steps]] = []
        self._order = itertools.count()
        if conditions.drops_to_after:
            self.go_on(self._drop(*conditions.drops_to_after))

    def throttles(self) -> int:
        return self.throttled

    def go_on(self, steps: Steps, after: float = 0.0) -> None:
        heapq.heappush(self._queue, (self.clock.seconds + after, next(self._order), steps))

    def run(self) -> None:
        """Until nothing goes on any more."""
        while self._queue:
            self.clock.seconds, _, steps = heapq.heappop(self._queue)
            delay = next(steps, None)
            if delay is not None:
                self.go_on(steps, delay)

    def between(self, least: float, most: float) -> float:
        return least + (most - least) * self.chance.random()

    def function(self) -> float:
        """How long a function takes, without what it asks CloudFormation."""
        return self.between(0.05, 0.1)

    def call(self, quota: Quota) -> Generator[float | None, None, bool]:
        """One call of CloudFormation, with the SDK's own retries. ``False`` when it was throttled all the time."""
        for attempt in range(_ATTEMPTS):
            yield self.between(0.02, 0.08)
            stray = self.conditions.strays and self.chance.random() < self.conditions.strays
            if not stray and quota.take(self.clock.seconds):
                return True
            self.refused += 1
            if attempt + 1 < _ATTEMPTS:
                yield self.chance.random() * 2**attempt
        self.throttled += 1
        return False

    def enter(self, states: int = 1) -> Steps:
        """Step Functions holds a transition back for which there is no quota; it fails nothing."""
        for _ in range(states):
            while not self.transitions.take(self.clock.seconds):
                yield 0.1

    def start_execution(self) -> Steps:
        while not self.executions.take(self.clock.seconds):
            yield self.between(0.5, 2.0)

    def _drop(self, part: float, after: float) -> Steps:
        yield after
        for quota in (self.mutations, self.reads):
            quota.change(quota.rate * part, self.clock.seconds)
