"""The adaptive limit on concurrent tenants.

CloudFormation's rate limits are not documented, so the limit adapts, like TCP's congestion window. It starts low and
grows by one per tenant that succeeds (slow start), until CloudFormation throttles for the first time. From then on the
limit grows by about one each time that as many tenants have succeeded as the limit allows at once. Throttling lowers
the limit. Throttling never fails a tenant: operations in flight retry their calls later. Each stage starts with the
limit that the stage before had reached.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

INITIAL_LIMIT = 4
"""The limit at the start of a rollout."""

DECREASE_FACTOR = 0.9
"""The limit is multiplied by this factor after throttling. The decrease is small, because throttled calls are cheap
and unused capacity is lost. If the decrease was not enough, the next one follows soon."""
REACTION_TIME = timedelta(seconds=15)
"""Throttling within this time after a decrease is still caused by the earlier limit, so it causes no other decrease."""


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

    @classmethod
    def initial(cls, ceiling: int) -> Pace:
        return cls(float(min(INITIAL_LIMIT, ceiling)), ceiling)

    def has_room(self, in_flight: int) -> bool:
        return in_flight < int(self.limit)

    def with_throttles(self, throttles: int, now: datetime) -> Pace:
        """The pace after reading the total number of throttled calls. The limit is lowered if there are new ones."""
        if throttles <= self.throttles_seen:
            return self
        seen = replace(self, throttles_seen=throttles)
        if self.slowed_at is not None and now - self.slowed_at < REACTION_TIME:
            return seen
        return replace(seen, limit=max(1.0, self.limit * DECREASE_FACTOR), slow_start=False, slowed_at=now)

    def after_success(self, in_flight: int) -> Pace:
        """The pace after a tenant has succeeded. The limit grows only if it was fully used.

        ``in_flight`` includes the tenant that has just succeeded.
        """
        if in_flight < int(self.limit):
            return self
        more = 1.0 if self.slow_start else 1.0 / self.limit
        return replace(self, limit=min(float(self.ceiling), self.limit + more))

    def continued_from(self, earlier: Pace | None, throttles: int) -> Pace:
        """The pace of a new stage, with the limit of the earlier stage. Throttling between the stages is ignored."""
        if earlier is None:
            return replace(self, throttles_seen=throttles)
        # A stage without throttling may have ended with a low limit because of its ceiling, or its few tenants.
        limit = max(self.limit, earlier.limit) if earlier.slow_start else earlier.limit
        limit = min(limit, float(self.ceiling))
        return replace(self, limit=limit, slow_start=earlier.slow_start, throttles_seen=throttles)
