"""The adaptive limit on concurrent tenants.

CloudFormation's rate limits are not documented, so the limit adapts, like TCP's congestion window. It starts with a
part of the ceiling and grows by one per tenant that succeeds (slow start), until CloudFormation throttles for the first
time. From then on the limit grows by about one each time that as many tenants have succeeded as the limit allows at
once. Throttling lowers the limit. Throttling never fails a tenant: operations in flight retry their calls later. Each
stage starts with the limit that the stage before had reached.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

MIN_INITIAL_LIMIT, MAX_INITIAL_LIMIT = 8, 16
"""The bounds of the limit at the start of a rollout, which is a quarter of the ceiling."""

DECREASE_FACTOR = 0.9
"""The limit is multiplied by this factor after throttling. The decrease is small, because throttled calls are cheap
and unused capacity is lost. If the decrease was not enough, the next one follows soon."""
REACTION_TIME = timedelta(seconds=15)
"""Throttling within this time after a decrease is still caused by the earlier limit, so it causes no other decrease.
A stage begins with many calls at once, so throttling within this time after its start does not count either."""

CHECKS_PER_BAKE = 120
"""The maximum number of checks of the alarm per bake. An execution's history is limited."""
MIN_CHECK_SECONDS = 15


def check_interval(bake_seconds: int) -> int:
    """The number of seconds between two checks of a bake. A promotion takes effect at the next check."""
    return max(MIN_CHECK_SECONDS, math.ceil(bake_seconds / CHECKS_PER_BAKE))


@dataclass(frozen=True, slots=True)
class Pace:
    limit: float
    """The number of tenants that may be in flight now."""
    ceiling: int
    """The maximum of the limit."""
    slow_start: bool = True
    """True until CloudFormation has throttled for the first time."""
    throttles_seen: int = 0
    """The number of throttled calls when it was last read."""
    slowed_at: datetime | None = None
    """The time when the limit was last lowered, or when the stage began."""

    @classmethod
    def initial(cls, ceiling: int) -> Pace:
        first = max(MIN_INITIAL_LIMIT, min(MAX_INITIAL_LIMIT, ceiling // 4))
        return cls(float(min(first, ceiling)), ceiling)

    @property
    def at_once(self) -> int:
        """The limit as a whole number of tenants."""
        return int(min(self.limit, self.ceiling))

    def has_room(self, in_flight: int) -> bool:
        return in_flight < self.at_once

    def with_throttles(self, throttles: int, now: datetime) -> Pace:
        """The pace after reading the total number of throttled calls. The limit is lowered if there are new ones."""
        if throttles <= self.throttles_seen:
            return self
        seen = replace(self, throttles_seen=throttles)
        if self.slowed_at is not None and now - self.slowed_at < REACTION_TIME:
            return seen
        return replace(seen, limit=max(1.0, self.limit * DECREASE_FACTOR), slow_start=False, slowed_at=now)

    def slowed_to(self, slower: Pace) -> Pace:
        """The pace with the limit of ``slower`` and its throttles. The ceiling stays: only operators change it."""
        return replace(
            self,
            limit=slower.limit,
            slow_start=slower.slow_start,
            throttles_seen=slower.throttles_seen,
            slowed_at=slower.slowed_at,
        )

    def growth(self, in_flight: int) -> float:
        """How much the limit grows when a tenant has succeeded. It grows only if it was fully used.

        ``in_flight`` includes the tenant that has just succeeded.
        """
        if in_flight < self.at_once or self.limit >= self.ceiling:
            return 0.0
        return 1.0 if self.slow_start else 1.0 / self.limit

    def grown_by(self, growth: float) -> Pace:
        return replace(self, limit=min(float(self.ceiling), self.limit + growth)) if growth else self

    def continued_from(self, earlier: Pace | None, throttles: int, now: datetime) -> Pace:
        """The pace of a stage that begins now, with the limit of the earlier stage.

        Throttling between the stages is ignored.
        """
        begun = replace(self, throttles_seen=throttles, slowed_at=now)
        if earlier is None:
            return begun
        # A stage without throttling may have ended with a low limit because of its ceiling, or its few tenants.
        limit = max(self.limit, earlier.limit) if earlier.slow_start else earlier.limit
        limit = min(limit, float(self.ceiling))
        return replace(begun, limit=limit, slow_start=earlier.slow_start)
