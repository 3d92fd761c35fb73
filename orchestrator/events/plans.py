"""The plans that tenants are on. All limits that differ by plan are in this one table.

| plan    | retention | events per month | events per second | shards | requests per second |
|---------|-----------|------------------|-------------------|--------|---------------------|
| free    | 24 hours  |           10,000 |                10 |      1 |                   2 |
| starter | 7 days    |          100,000 |                50 |      1 |                   5 |
| pro     | 30 days   |        2,000,000 |             1,000 |      2 |                  20 |
| team    | 90 days   |       20,000,000 |             2,000 |      4 |                  50 |

A partition takes 1,000 write units per second. An event with one connection costs two, so a shard carries about 500
events per second. After a pause, the events of one second may come at once, and at least one batch of 25.

Requests are those that read and configure. To read and acknowledge 100 events takes two of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

MAX_BATCH = 25
"""The maximum number of events in one request."""


class Plan(StrEnum):
    FREE = "free"
    STARTER = "starter"
    PRO = "pro"
    TEAM = "team"


@dataclass(frozen=True, slots=True)
class PlanLimits:
    retention: timedelta
    """How long finished events can be read."""
    events_per_month: int
    events_per_second: int
    shards: int
    """The number of partitions among which a tenant's events are spread. At most 16: the last digit of an id."""
    requests_per_second: int
    """How often the tenant may ask for events, acknowledge them, or change its keys, sources and forms."""

    @property
    def events_at_once(self) -> int:
        """How many events may come at once after a pause: those of a second, and at least one batch."""
        return max(self.events_per_second, MAX_BATCH)

    @property
    def submissions_per_month(self) -> int:
        """Submissions of forms are events. Anybody can send them, so they may use half of the month."""
        return self.events_per_month // 2


PLANS: Mapping[Plan, PlanLimits] = {
    Plan.FREE: PlanLimits(timedelta(hours=24), 10_000, 10, 1, 2),
    Plan.STARTER: PlanLimits(timedelta(days=7), 100_000, 50, 1, 5),
    Plan.PRO: PlanLimits(timedelta(days=30), 2_000_000, 1_000, 2, 20),
    Plan.TEAM: PlanLimits(timedelta(days=90), 20_000_000, 2_000, 4, 50),
}

LONGEST_DELIVERY = timedelta(days=8)
"""Retries may take seven days. No row expires before the last retry is over."""


def time_to_live(plan: Plan) -> timedelta:
    """How long the row of an event is kept: never less than its delivery may take."""
    return max(PLANS[plan].retention, LONGEST_DELIVERY)


LIFETIMES_DAYS = tuple(sorted({time_to_live(plan).days for plan in Plan}))
"""All the times to live that there are. A bucket can only expire objects by their prefix, so each has its own."""
