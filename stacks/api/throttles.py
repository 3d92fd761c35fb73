"""How many requests each route takes, from all callers together. API Gateway turns the others away with 429."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.tenants.credentials import CREDENTIAL_ROUTES


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

THROTTLES: Mapping[str, Throttle] = {
    "GET /tenants/{tenantId}/queue": QUEUES,
    **dict.fromkeys(CREDENTIAL_ROUTES, CREDENTIALS),
    "GET /tenants/{tenantId}": READS,
    "GET /tenants": READS,
    "GET /releases": READS,
    "GET /rollouts": READS,
    "GET /rollouts/{rolloutId}": READS,
    "GET /reconciliations/{reconciliationId}": READS,
    "GET /adoptions/{adoptionId}": READS,
    "GET /diagnosis": READS,
    "PUT /tenants/{tenantId}": ORDERS,
    "DELETE /tenants/{tenantId}": ORDERS,
    "POST /tenants/{tenantId}/upgrade": ORDERS,
    "POST /tenants/{tenantId}/retry": ORDERS,
    "PUT /tenants/{tenantId}/pin": ORDERS,
    "DELETE /tenants/{tenantId}/pin": ORDERS,
    "POST /rollouts": ORDERS,
    "POST /rollouts/{rolloutId}/pause": ORDERS,
    "POST /rollouts/{rolloutId}/resume": ORDERS,
    "POST /rollouts/{rolloutId}/abort": ORDERS,
    "POST /rollouts/{rolloutId}/approve": ORDERS,
    "POST /rollouts/{rolloutId}/retry": ORDERS,
    "POST /reconciliations": ORDERS,
    "POST /adoptions": ORDERS,
}
"""Every route of the API. A route that is not here cannot be deployed."""
