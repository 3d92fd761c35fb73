"""How many requests each route takes, from all callers together. API Gateway turns the others away with 429."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.api.route import Rate


@dataclass(frozen=True, slots=True)
class Throttle:
    per_second: int
    burst: int


QUEUES = Throttle(per_second=500, burst=1000)
"""Platforms ask often, and each answer is one cheap read. Well under the 10,000 per second that all HTTP APIs of an
account share.
"""
CREDENTIALS = Throttle(per_second=100, burst=200)
"""Each answer is a session of STS, whose rate all of the account shares. A session lasts for 15 minutes at least, so
nobody needs one per message.
"""
READS = Throttle(per_second=50, burst=100)
"""People and their scripts look. A page of tenants or a diagnosis reads much of the table, and whoever follows many
operations or rollouts at once asks every two seconds for each.
"""
ORDERS = Throttle(per_second=10, burst=20)
"""CloudFormation bears one or two changes of stacks per second. More orders than this only grow a backlog."""

THROTTLES: Mapping[Rate, Throttle] = {
    Rate.QUEUES: QUEUES,
    Rate.CREDENTIALS: CREDENTIALS,
    Rate.READS: READS,
    Rate.ORDERS: ORDERS,
}
