"""The faults that are injected, and how often. Every run ends with a time without faults."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Faults:
    """Probabilities, unless said otherwise."""

    crash: float = 0.0
    """A function dies before a call to the outside, or, as often, after it and before it could use the result."""
    slow: float = 0.0
    """A call of a function is slow: it may be suspended before any of its calls to the outside."""
    suspend: float = 0.0
    """A slow call is suspended before one of its calls to the outside."""
    no_function_free: float = 0.0
    """Lambda is at its concurrency limit, so a state has to wait."""
    cut_short: float = 0.0
    """An execution is aborted or times out before a state, or while its function is suspended."""
    throttled: frozenset[str] = field(default_factory=frozenset)
    """The services that throttle most calls. Not a probability."""
    lost_ends: float = 0.0
    """The event that an execution has ended is lost."""
    lost_settlements: float = 0.0
    """The event that a stack has settled is lost."""
    duplicates: float = 0.0
    """An event is delivered twice."""
    late: float = 0.0
    """An event is delivered minutes late."""
    stack_fails: float = 0.0
    stack_hangs: float = 0.0
    """CloudFormation takes longer than an operation may take."""
    undoing_fails: float = 0.0
    skew: float = 0.0
    """The greatest error of a function's clock, in seconds. Not a probability."""
    stale: float = 0.0
    """A read of the index, or of the list of stacks, returns an older state."""
    old_code: float = 0.0
    """An execution is started by an old release, whose input has no request."""
    lag: float = 0.0
    """A count of messages is an older one."""
    other_failures: float = 0.0
    """Another resource in the stack of another team fails, and the stack is rolled back."""

    def without_most(self) -> Faults:
        return replace(NO_FAULTS, skew=self.skew, lag=self.lag)


NO_FAULTS = Faults()
SERVICES = ("table", "stacks", "executions", "queues")

# Sets that have one kind of fault in plenty

CRASHES = Faults(crash=0.1, skew=1.0)
LOST_RESULTS = Faults(crash=0.04, slow=0.3, suspend=0.5, no_function_free=0.05, other_failures=0.3)
ORPHANED_CALLS = Faults(slow=0.9, suspend=0.4, cut_short=0.05, lost_ends=0.5)
ABORTED_EXECUTIONS = Faults(cut_short=0.2, lost_ends=1.0, lost_settlements=0.5, old_code=1.0, stale=0.5)
REPEATED_EVENTS = Faults(duplicates=0.9, late=0.5, old_code=0.5, cut_short=0.02, lag=0.5)
FAILING_STACKS = Faults(stack_fails=0.4, undoing_fails=0.5, stack_hangs=0.1, cut_short=0.05, other_failures=0.5)
STALE_COUNTS = Faults(lag=0.9, late=0.3, stack_fails=0.1, stack_hangs=0.1, other_failures=0.3)

KINDS = (CRASHES, LOST_RESULTS, ORPHANED_CALLS, ABORTED_EXECUTIONS, REPEATED_EVENTS, FAILING_STACKS, STALE_COUNTS)


def draw_faults(rng: random.Random) -> Faults:
    """One of the sets above, or a mixture."""
    return rng.choice(KINDS) if rng.random() < 0.5 else _mixed(rng)


def _mixed(rng: random.Random) -> Faults:
    def sometimes(*amounts: float) -> float:
        return rng.choice((0.0, *amounts))

    return Faults(
        crash=sometimes(0.01, 0.05),
        slow=sometimes(0.2, 0.6),
        suspend=0.5,
        cut_short=sometimes(0.03, 0.1, 0.25),
        lost_ends=sometimes(0.0, 0.5, 1.0),
        lost_settlements=sometimes(0.0, 0.3, 1.0),
        duplicates=sometimes(0.3, 0.8),
        late=sometimes(0.1, 0.4),
        stack_fails=sometimes(0.15, 0.4),
        stack_hangs=sometimes(0.0, 0.1, 0.3),
        undoing_fails=sometimes(0.2, 0.5),
        skew=sometimes(0.5, 2.0),
        stale=sometimes(0.3, 0.8),
        old_code=sometimes(0.0, 0.5),
        lag=sometimes(0.3, 0.8),
        no_function_free=sometimes(0.0, 0.05),
        other_failures=sometimes(0.2, 0.5),
    )
