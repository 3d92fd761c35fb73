"""How many tenants at once. Nobody publishes how much CloudFormation bears, so it is felt for.

A rollout begins with a few, and each of its stages where the one before had got to. Every tenant that succeeds lets one
more in, until CloudFormation throttles for the first time; from then on as many more as are in flight have to succeed
for one more. Throttling takes a part of them away. It never fails a tenant: who is in flight tries again later.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

FIRST = 4
"""As many at once as a rollout begins with."""

SLOWED_TO = 0.9
"""A little, because it is known only that it was too many, not by how many: calls that nobody makes are lost for good,
while those that are throttled cost little. If it is not enough, more is taken away soon."""
REACTION = timedelta(seconds=15)
"""Throttling within this time of having slowed down is still that of the pace before."""


@dataclass(frozen=True, slots=True)
class Pace:
    limit: float
    """As many at once as are let in now."""
    ceiling: int
    """As many as ever."""
    feeling_for_it: bool = True
    """Nothing was throttled yet."""
    throttles_seen: int = 0
    """How often CloudFormation had throttled when that was last looked at."""
    slowed_at: datetime | None = None

    @classmethod
    def beginning(cls, ceiling: int) -> Pace:
        return cls(float(min(FIRST, ceiling)), ceiling)

    def has_room(self, in_flight: int) -> bool:
        return in_flight < int(self.limit)

    def seeing(self, throttles: int, now: datetime) -> Pace:
        """After a look at how often CloudFormation has throttled so far."""
        if throttles <= self.throttles_seen:
            return self
        seen = replace(self, throttles_seen=throttles)
        if self.slowed_at is not None and now - self.slowed_at < REACTION:
            return seen
        return replace(seen, limit=max(1.0, self.limit * SLOWED_TO), feeling_for_it=False, slowed_at=now)

    def after_success(self, in_flight: int) -> Pace:
        """``in_flight`` counts the one that has just succeeded. Room that nobody used is no reason for more."""
        if in_flight < int(self.limit):
            return self
        more = 1.0 if self.feeling_for_it else 1.0 / self.limit
        return replace(self, limit=min(float(self.ceiling), self.limit + more))

    def after(self, earlier: Pace | None, throttles: int) -> Pace:
        """The pace of a stage that begins: as fast as the one before had got. What was throttled since then is past."""
        if earlier is None:
            return replace(self, throttles_seen=throttles)
        # One that never felt the limit may just have had a low ceiling, or few tenants.
        limit = max(self.limit, earlier.limit) if earlier.feeling_for_it else earlier.limit
        limit = min(limit, float(self.ceiling))
        return replace(self, limit=limit, feeling_for_it=earlier.feeling_for_it, throttles_seen=throttles)
