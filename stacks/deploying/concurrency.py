"""Choose how many of the account's concurrent executions to reserve for the functions behind the APIs, if nobody has
set it.

Reserved concurrency is also an upper limit: many calls of one function cannot take the concurrency of the others.
"""

from __future__ import annotations

from dataclasses import dataclass

from stacks.deploying.choices import Choice

UNRESERVED_AT_LEAST = 100
"""AWS requires this many to stay unreserved, and refuses a deployment that would leave fewer."""
ENOUGH = 50
"""A call takes about 20 ms, so this is several times what API Gateway allows per second for getQueue, and 2,500 events
per second.
"""
TOO_FEW = 10
"""A lower limit would throttle callers that are served without a limit."""


@dataclass(frozen=True, slots=True)
class Reservation:
    setting: str
    function: str
    """The function's name in messages."""
    output: str
    """The stack's output with the function's name in AWS."""
    share: int
    """The function gets at most one in ``share`` of the executions that may be reserved."""


GET_QUEUE = Reservation("berth:getQueueConcurrency", "getQueue", "GetQueueFunctionName", share=2)
INGEST = Reservation("berth:ingestConcurrency", "ingest", "IngestFunctionName", share=10)
RECEIVE = Reservation("berth:receiveConcurrency", "receive", "ReceiveFunctionName", share=10)
TENANT_EVENTS = Reservation("berth:tenantEventsConcurrency", "tenant_events", "TenantEventsFunctionName", share=10)
DELIVER = Reservation("berth:deliverConcurrency", "deliver_events", "DeliverEventsFunctionName", share=10)

RESERVATIONS = (GET_QUEUE, INGEST, RECEIVE, TENANT_EVENTS, DELIVER)
"""Together they get at most nine tenths of what may be reserved. Other functions may need some, too."""
OF_EVENTS = frozenset(each.setting for each in RESERVATIONS if each is not GET_QUEUE)
"""The settings of functions that only exist with the event plane."""


@dataclass(frozen=True, slots=True)
class Account:
    """The account's concurrency in this region."""

    limit: int
    unreserved: int
    reserved_for_berth: int = 0
    """The reservations of the previous deployment, for all functions in :data:`RESERVATIONS`."""


def choose(account: Account, reservation: Reservation = GET_QUEUE) -> Choice:
    room = account.unreserved + account.reserved_for_berth - UNRESERVED_AT_LEAST
    chosen = min(ENOUGH, room // reservation.share)
    function = reservation.function
    if chosen < TOO_FEW:
        return Choice(
            None,
            f"No concurrency is reserved for {function}: of the account's {account.limit} concurrent executions "
            f"{account.unreserved} are unreserved, and AWS requires {UNRESERVED_AT_LEAST} to stay unreserved. Many "
            f"calls of {function} at once can therefore delay the other functions. Have AWS raise the quota (Service "
            "Quotas, AWS Lambda, Concurrent executions), and deploy again.",
        )
    return Choice(
        chosen,
        f"{chosen} of the account's {account.limit} concurrent executions are reserved for {function}, which is also "
        f"its limit. For another number: -c {reservation.setting}=N, or 0 for none.",
    )
