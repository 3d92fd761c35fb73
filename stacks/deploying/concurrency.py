"""Choose how many of the account's concurrent executions to reserve for getQueue, if nobody has set it.

Reserved concurrency is also an upper limit: many calls of getQueue cannot take the concurrency of the other functions.
"""

from __future__ import annotations

from dataclasses import dataclass

from stacks.deploying.choices import Choice

SETTING = "berth:getQueueConcurrency"

UNRESERVED_AT_LEAST = 100
"""AWS requires this many to stay unreserved, and refuses a deployment that would leave fewer."""
ENOUGH = 50
"""A call takes about 20 ms, so this is several times what API Gateway allows per second."""
TOO_FEW = 10
"""A lower limit would throttle callers that are served without a limit."""


@dataclass(frozen=True, slots=True)
class Account:
    """The account's concurrency in this region."""

    limit: int
    unreserved: int
    reserved_for_get_queue: int = 0
    """The reservation of the previous deployment."""


def choose(account: Account) -> Choice:
    """Take at most half of the concurrency that may be reserved: other functions may need some, too."""
    room = account.unreserved + account.reserved_for_get_queue - UNRESERVED_AT_LEAST
    chosen = min(ENOUGH, room // 2)
    if chosen < TOO_FEW:
        return Choice(
            None,
            f"No concurrency is reserved for getQueue: of the account's {account.limit} concurrent executions "
            f"{account.unreserved} are unreserved, and AWS requires {UNRESERVED_AT_LEAST} to stay unreserved. Many "
            "calls of getQueue at once can therefore delay the other functions. Have AWS raise the quota (Service "
            "Quotas, AWS Lambda, Concurrent executions), and deploy again.",
        )
    return Choice(
        chosen,
        f"{chosen} of the account's {account.limit} concurrent executions are reserved for getQueue, which is also "
        f"its limit. For another number: -c {SETTING}=N, or 0 for none.",
    )
