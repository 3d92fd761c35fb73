"""The faults in a run, and how often each occurs."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import timedelta

A_FUNCTION_LIVES = timedelta(seconds=60)
"""A function that is still at work after so long is ended, wherever it is."""


@dataclass(frozen=True)
class Faults:
    crash: float = 0.0
    """The function dies before or after a call."""
    throttle: float = 0.0
    """DynamoDB is busy."""
    interleave: float = 0.0
    """A function is suspended before a call, while others go on."""
    unsent: float = 0.0
    """SQS refuses a message of a batch."""
    lost: float = 0.0
    """A message never arrives."""
    twice: float = 0.0
    """A message arrives twice."""
    late: float = 0.0
    """A message arrives minutes late."""
    repeated_batch: float = 0.0
    """The stream hands over a batch again."""
    lost_batch: float = 0.0
    """The stream loses a batch. The nightly run finds its events."""
    index_lag: float = 0.0
    """An index answers as it was before the last writes."""
    skew: float = 0.0
    """How many seconds the clocks of functions differ, at most."""
    failing: float = 0.0
    """A try fails."""
    partition_writes: int = 0
    """How many writes a partition takes per second. 0 is no limit."""
    partition_reads: int = 0


def draw_faults(rng: random.Random) -> Faults:
    def some(most: float) -> float:
        return rng.choice((0.0, 0.0, most / 4, most))

    return Faults(
        crash=some(0.06),
        throttle=some(0.05),
        interleave=some(0.5),
        unsent=some(0.2),
        lost=some(0.2),
        twice=some(0.4),
        late=some(0.3),
        repeated_batch=some(0.4),
        lost_batch=some(0.2),
        index_lag=some(0.5),
        skew=rng.choice((0.0, 0.0, 2.0, 10.0)),
        failing=some(0.8),
        partition_writes=rng.choice((0, 0, 1, 2, 5)),
        partition_reads=rng.choice((0, 0, 2, 5, 10)),
    )
