"""Refuse a deployment with fewer queues of the pool, if tenants still need those that it would remove.

CloudFormation keeps such a queue, but it is no longer among the queues that consumers are told of, deliveries may not
send to it, and CloudFormation cannot add it again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from orchestrator.common.errors import BerthError
from orchestrator.tenants.pooling import POOL_RETENTION
from orchestrator.tenants.selections import listed

SETTING = "berth:pooledQueues"
OUTPUT = "PooledQueueUrls"


class PoolInUse(BerthError):
    """The deployment would remove queues of the pool that tenants still need."""


def check(
    outputs: Mapping[str, str], given: object, tenants_of: Callable[[Sequence[str]], Collection[str] | None]
) -> None:
    """``outputs`` are those of the previous deployment, and ``given`` is the value of the setting, if it is set.

    ``tenants_of`` finds the tenants that need any of these queues; ``None`` if the table could not be read.
    """
    before = [url for url in outputs.get(OUTPUT, "").split(",") if url]
    number = str(given if given is not None else 0)
    # The app says what is wrong with a value that is not a number.
    removed = before[int(number) :] if number.isdecimal() else []
    if not removed:
        return
    tenants = tenants_of(removed)
    if tenants is not None and not tenants:
        return
    names = ", ".join(url.rpartition("/")[2] for url in removed)
    if tenants is None:
        who = "the table could not be read, so nobody knows which tenants still need them"
    else:
        who = f"tenants still need them: {listed(sorted(tenants))}"
    raise PoolInUse(
        f"Nothing was built or deployed: {SETTING} was {len(before)}, and with {number} the pool would lose {names}, "
        f"but {who}. Deploy with {SETTING}={len(before)}. To have fewer queues, first deploy with a berth:defaultTier "
        "other than pooled, so that nobody joins, and give these tenants queues of their own: berth move TENANT --tier "
        f"TIER. Their messages in the pool have expired {POOL_RETENTION.days} days later."
    )
