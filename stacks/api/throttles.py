"""The rate limit of each route, for all callers together. API Gateway refuses further requests with 429."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.api.route import Rate


@dataclass(frozen=True, slots=True)
class Throttle:
    per_second: int
    burst: int


QUEUES = Throttle(per_second=500, burst=1000)
"""Platforms call often, and each request is one cheap read. This is well below the 10,000 requests per second that all
HTTP APIs of an account share.
"""
CREDENTIALS = Throttle(per_second=100, burst=200)
"""Each request starts a session of STS, whose rate limit the whole account shares. A session lasts at least 15 minutes,
so nobody needs one per message.
"""
READS = Throttle(per_second=50, burst=100)
"""Operators and their scripts read. A page of tenants or a diagnosis reads much of the table, and a command that waits
for several operations or rollouts sends a request every two seconds for each of them.
"""
ORDERS = Throttle(per_second=10, burst=20)
"""CloudFormation allows one or two changes of stacks per second. More orders than this only add to a backlog."""

EVENTS = Throttle(per_second=2000, burst=4000)
"""Producers of all tenants together. Each tenant's plan limits it further."""
SUBMISSIONS = Throttle(per_second=500, burst=1000)
"""Forms and webhooks, which anybody may send. Apart from the routes with keys, so that a flood stops only itself."""
EVENT_READS = Throttle(per_second=500, burst=1000)
"""Tenants read their events, and configure. Each tenant's plan limits it further. API Gateway counts requests before
anybody looks at their keys, so a lower limit could be used up by a few requests of strangers.
"""

THROTTLES: Mapping[Rate, Throttle] = {
    Rate.QUEUES: QUEUES,
    Rate.CREDENTIALS: CREDENTIALS,
    Rate.READS: READS,
    Rate.ORDERS: ORDERS,
    Rate.EVENTS: EVENTS,
    Rate.SUBMISSIONS: SUBMISSIONS,
    Rate.EVENT_READS: EVENT_READS,
}
