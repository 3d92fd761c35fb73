"""When a delivery that failed is tried again, and when it has failed for good.

By default there are eight tries: the first at once, then after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h and 10 h. Every wait
is longer or shorter by up to a fifth, so that a receiver that comes back is not met by all deliveries at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from orchestrator.common.errors import InvalidRequest

DEFAULT_WAITS = tuple(timedelta(seconds=seconds) for seconds in (5, 300, 1_800, 7_200, 18_000, 36_000, 36_000))
MAX_TRIES = 12
MAX_DURATION = timedelta(days=7)
SHORTEST_WAIT = timedelta(seconds=1)
JITTER = 0.2
LONGEST_RETRY_AFTER = timedelta(days=1)
"""A receiver that asks for more is asked again after this time."""


@dataclass(frozen=True, slots=True)
class RetrySchedule:
    waits: tuple[timedelta, ...] = DEFAULT_WAITS
    """The waits between the tries. A delivery that has failed once more than there are waits has failed for good."""

    @property
    def tries(self) -> int:
        return len(self.waits) + 1

    def next_try(
        self,
        failed_tries: int,
        *,
        first_try: datetime,
        now: datetime,
        draw: Callable[[], float],
        retry_after: timedelta | None = None,
    ) -> datetime | None:
        """When to try again after that many failed tries; ``None`` if the delivery has failed for good.

        ``draw`` returns a number from 0 to 1. ``retry_after`` is what the receiver asked for. It lengthens the wait and
        never shortens it, and no delivery takes longer than :data:`MAX_DURATION` in all.
        """
        if failed_tries > len(self.waits):
            return None
        planned = self.waits[failed_tries - 1] * (1 - JITTER + 2 * JITTER * draw())
        due = now + max(planned, min(retry_after or timedelta(), LONGEST_RETRY_AFTER))
        return due if due <= first_try + MAX_DURATION else None


def retry_schedule(seconds: list[int]) -> RetrySchedule:
    """A connection's own schedule. Raises :class:`InvalidRequest` if it is too long."""
    waits = tuple(timedelta(seconds=each) for each in seconds)
    if len(waits) >= MAX_TRIES:
        raise InvalidRequest(f"retry_seconds: there are at most {MAX_TRIES} tries, so at most {MAX_TRIES - 1} waits.")
    if any(wait < SHORTEST_WAIT for wait in waits):
        raise InvalidRequest("retry_seconds: a wait is at least 1 second.")
    if sum(waits, timedelta()) * (1 + JITTER) > MAX_DURATION:
        raise InvalidRequest(
            f"retry_seconds: all waits together, each longer by {JITTER:.0%}, have to end within {MAX_DURATION.days} "
            "days."
        )
    return RetrySchedule(waits)
