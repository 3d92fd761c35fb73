"""How many of the account's concurrent executions are reserved for getQueue, where nobody has said.

Reserved concurrency is an upper bound, too: a storm of calls then cannot starve the functions that do the work.
"""

from __future__ import annotations

from dataclasses import dataclass

from stacks.deploying.choices import Choice

SETTING = "berth:getQueueConcurrency"

UNRESERVED_AT_LEAST = 100
"""AWS keeps so many for functions that have none reserved, and refuses a deployment that would take one of them."""
ENOUGH = 50
"""An answer takes some 20 ms, so this is several times what API Gateway lets through per second."""
TOO_FEW = 10
"""A bound this low would turn away callers whom an unbounded function serves."""


@dataclass(frozen=True, slots=True)
class Account:
    """What AWS says about the account, in this region."""

    limit: int
    unreserved: int
    get_queues: int = 0
    """Reserved for getQueue by the deployment before."""


def choose(account: Account) -> Choice:
    """At most half of what may be reserved at all: others have a claim to it, too."""
    room = account.unreserved + account.get_queues - UNRESERVED_AT_LEAST
    chosen = min(ENOUGH, room // 2)
    if chosen < TOO_FEW:
        return Choice(
            None,
            f"No concurrency is reserved for getQueue: of the account's {account.limit} concurrent executions "
            f"{account.unreserved} are unreserved, and AWS keeps {UNRESERVED_AT_LEAST} of them. A storm of calls can "
            "therefore hold up the other functions. Have the quota raised (Service Quotas, AWS Lambda, Concurrent "
            "executions), and deploy again.",
        )
    return Choice(
        chosen,
        f"{chosen} of the account's {account.limit} concurrent executions are reserved for getQueue, which is also "
        f"the most that it uses. For another number: -c {SETTING}=N, or 0 for none.",
    )
