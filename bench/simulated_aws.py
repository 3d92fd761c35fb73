"""A simulated account and region of AWS, on a virtual clock: quotas, and the time that stacks take."""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Generator
from dataclasses import dataclass

from bench.simulated_ledger import VirtualClock

Steps = Generator[float | None, None, None]
"""A simulated process. It yields the seconds until its next step; ``None`` means until another process resumes it."""

EXECUTIONS_PER_SECOND, TRANSITIONS_PER_SECOND = 300, 1_500
"""Step Functions' quotas in a large region: StartExecution, and state transitions."""

_ATTEMPTS = 4
"""The number of attempts that the SDK makes for one call (``orchestrator.adapters.aws.CLIENT_CONFIG``)."""


@dataclass(slots=True)
class Quota:
    """A token bucket. Calls without a token are throttled, and use none."""

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
    """The conditions of one simulation. CloudFormation publishes no limits, so the rates are assumptions."""

    mutations_per_second: float = 1.5
    reads_per_second: float = 5.0
    mutations_burst: float = 5.0
    reads_burst: float = 10.0
    drops_to_after: tuple[float, float] | None = None
    """A factor for the quotas, and the time in seconds from which it applies."""
    stack_seconds: float = 10.0
    slow: float = 0.0
    """The fraction of stacks that take ten times as long."""
    failing: float = 0.0
    """The fraction of tenants whose update fails and is rolled back."""
    strays: float = 0.0
    """The fraction of calls that are throttled because others call CloudFormation, too."""
    slow_reviews: float = 0.0
    """The fraction of change sets that are not ready at their first check."""
    overtaken: float = 0.0
    """The fraction of writes that fail because another tenant's write came first."""


QUIET = Conditions()
FAULTY = Conditions(slow=0.02, failing=0.02, strays=0.02, overtaken=0.05)


class SimulatedAws:
    """One account and region: its clock, its processes, and its quotas."""

    def __init__(self, conditions: Conditions, seed: int) -> None:
        self.conditions = conditions
        self.chance = random.Random(seed)
        self.clock = VirtualClock()
        self.mutations = Quota(conditions.mutations_per_second, conditions.mutations_burst)
        self.reads = Quota(conditions.reads_per_second, conditions.reads_burst)
        self.executions = Quota(EXECUTIONS_PER_SECOND, 1_300)
        self.transitions = Quota(TRANSITIONS_PER_SECOND, 5_000)
        self.refused = 0
        """Throttled attempts, the SDK's retries included."""
        self.throttled = 0
        """Calls that were throttled at every attempt. Berth counts these, and adapts its pace to them."""
        self._queue: list[tuple[float, int, Steps]] = []
        self._order = itertools.count()
        if conditions.drops_to_after:
            self.go_on(self._drop(*conditions.drops_to_after))

    def throttles(self) -> int:
        return self.throttled

    def go_on(self, steps: Steps, after: float = 0.0) -> None:
        heapq.heappush(self._queue, (self.clock.seconds + after, next(self._order), steps))

    def run(self) -> None:
        """Run until no process is left."""
        while self._queue:
            self.clock.seconds, _, steps = heapq.heappop(self._queue)
            delay = next(steps, None)
            if delay is not None:
                self.go_on(steps, delay)

    def between(self, least: float, most: float) -> float:
        return least + (most - least) * self.chance.random()

    def function(self) -> float:
        """The seconds that a function takes, without its calls of CloudFormation."""
        return self.between(0.05, 0.1)

    def call(self, quota: Quota) -> Generator[float | None, None, bool]:
        """One call of CloudFormation, with the SDK's own retries. ``False`` if every attempt was throttled."""
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
        """Enter states. Without quota, Step Functions delays a transition; it does not fail."""
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
