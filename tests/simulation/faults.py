"""What may go wrong, and how often. A seed decides how bad the faults is; in the end it is always calm."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Faults:
    """Chances, if not said otherwise."""

    crash: float = 0.0
    """A function dies before a call, or as often after it: then nobody knows what came of it."""
    slow: float = 0.0
    """A call of a function may be held between any two of its calls to the outside."""
    hold: float = 0.0
    """It is, there."""
    no_function_free: float = 0.0
    """A state has to wait because too many functions are running."""
    cut_short: float = 0.0
    """An execution is aborted or times out before a state, or in the middle of a function that is held."""
    throttled: frozenset[str] = field(default_factory=frozenset)
    """Services that refuse most calls for the time being."""
    lost_ends: float = 0.0
    """Nobody hears that an execution has ended."""
    lost_settlements: float = 0.0
    """Nobody hears that a stack has settled."""
    duplicates: float = 0.0
    """An event comes again."""
    late: float = 0.0
    """It comes minutes later than it might."""
    stack_fails: float = 0.0
    stack_hangs: float = 0.0
    """For longer than an operation may take."""
    undoing_fails: float = 0.0
    skew: float = 0.0
    """By how many seconds the clocks of functions are wrong, at most."""
    stale: float = 0.0
    """The index, or the list of stacks, is that of some time ago."""
    old_code: float = 0.0
    """An execution is started by code that knew of no requests."""
    lag: float = 0.0
    """A count of messages shows how many there were some time ago."""
    other_failures: float = 0.0
    """The stack of another team fails for reasons of its own, and is rolled back."""

    def ended(self) -> Faults:
        return replace(NO_FAULTS, skew=self.skew, lag=self.lag)


NO_FAULTS = Faults()
SERVICES = ("table", "stacks", "executions", "queues")

# Some that have one thing in plenty

CRASHES = Faults(crash=0.1, skew=1.0)
LOST_RESULTS = Faults(crash=0.04, slow=0.3, hold=0.5, no_function_free=0.05, other_failures=0.3)
ORPHANED_CALLS = Faults(slow=0.9, hold=0.4, cut_short=0.05, lost_ends=0.5)
ABORTED_EXECUTIONS = Faults(cut_short=0.2, lost_ends=1.0, lost_settlements=0.5, old_code=1.0, stale=0.5)
REPEATED_EVENTS = Faults(duplicates=0.9, late=0.5, old_code=0.5, cut_short=0.02, lag=0.5)
FAILING_STACKS = Faults(stack_fails=0.4, undoing_fails=0.5, stack_hangs=0.1, cut_short=0.05, other_failures=0.5)
STALE_COUNTS = Faults(lag=0.9, late=0.3, stack_fails=0.1, stack_hangs=0.1, other_failures=0.3)

KINDS = (CRASHES, LOST_RESULTS, ORPHANED_CALLS, ABORTED_EXECUTIONS, REPEATED_EVENTS, FAILING_STACKS, STALE_COUNTS)


def draw_faults(rng: random.Random) -> Faults:
    """One thing in plenty, or some of all."""
    return rng.choice(KINDS) if rng.random() < 0.5 else _mixed(rng)


def _mixed(rng: random.Random) -> Faults:
    def sometimes(*amounts: float) -> float:
        return rng.choice((0.0, *amounts))

    return Faults(
        crash=sometimes(0.01, 0.05),
        slow=sometimes(0.2, 0.6),
        hold=0.5,
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
