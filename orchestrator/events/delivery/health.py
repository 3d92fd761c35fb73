"""The health of a connection: when its deliveries leave the quick queue, when its breaker opens, when it is disabled.

Health is written only when it changes, so a healthy connection costs nothing, and a dead one a write now and then.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from orchestrator.events.delivery.records import Connection, ConnectionStatus, Health, TryResult

SLOW_MILLISECONDS = 2_000
"""A delivery that takes longer moves its connection to the queue for slow ones, even before it has ended."""
SLOW_FOR = timedelta(minutes=5)
"""It stays there for so long, however quick its next answers are: a receiver that is slow now and then would otherwise
hold up the quick ones each time, and cost a write each time."""
BREAKER_AFTER = timedelta(minutes=5)
"""The breaker opens at a failure once there was nothing but failures for so long."""
FIRST_OPEN = timedelta(minutes=1)
LONGEST_OPEN = timedelta(hours=1)
DISABLED_AFTER = timedelta(days=5)
"""A connection is disabled at a failure once there was nothing but failures for so long."""
PROBED_FOR = timedelta(minutes=5)
"""For so long after the breaker was open, the sweep looks every minute for a parked delivery that shows whether the
receiver works again. If none is parked by then, the next event shows it."""


def while_slow(health: Health, at: datetime) -> Health:
    """The health during a try that already takes long, however it may end."""
    return replace(health, slow_since=health.slow_since or at)


def after_success(health: Health, answer: TryResult, at: datetime) -> Health:
    since = health.slow_since
    if answer.milliseconds > SLOW_MILLISECONDS:
        return Health(slow_since=since or at)
    return Health(slow_since=since if since is not None and at - since < SLOW_FOR else None)


def after_failure(health: Health, answer: TryResult, at: datetime) -> Health:
    failing_since = health.failing_since or at
    is_slow = answer.slows or answer.milliseconds > SLOW_MILLISECONDS
    failed = replace(
        health, failing_since=failing_since, slow_since=(health.slow_since or at) if is_slow else health.slow_since
    )
    if at - failing_since < BREAKER_AFTER or is_open(health, at):
        return failed
    open_for = min(FIRST_OPEN * 2 ** min(health.opened, 10), LONGEST_OPEN)
    return replace(failed, open_until=at + open_for, opened=health.opened + 1)


def is_open(health: Health, at: datetime) -> bool:
    return health.open_until is not None and at < health.open_until


def parks(connection: Connection, at: datetime, *, asked: bool = False) -> bool:
    """True if deliveries wait, instead of being tried. A try that a resend has asked for waits for no breaker."""
    return connection.status is ConnectionStatus.PAUSED or (not asked and is_open(connection.health, at))


def only_waits(connection: Connection, at: datetime) -> bool:
    """True if nothing has to be done for what is parked, but to fail what is about to expire."""
    if has_ended(connection) or parks(connection, at):
        return not has_ended(connection)
    open_until = connection.health.open_until
    return open_until is not None and at - open_until >= PROBED_FOR


def has_ended(connection: Connection) -> bool:
    """True if deliveries fail, instead of being tried."""
    return connection.status in (ConnectionStatus.DISABLED, ConnectionStatus.DELETED)


def why_ended(connection: Connection | None) -> str:
    if connection is None or connection.status is ConnectionStatus.DELETED:
        return "The connection was deleted."
    return f"The connection is disabled: {connection.reason or 'an operator has disabled it.'}"


def why_to_disable(health: Health, answer: TryResult, at: datetime) -> str | None:
    """Why a connection is to be disabled after this failure. ``None`` if it is not."""
    if health.failing_since is None or at - health.failing_since < DISABLED_AFTER:
        return None
    last = f"{answer.code} {answer.text}".strip() if answer.code else answer.text
    return f"There was nothing but failures for {DISABLED_AFTER.days} days. The last answer: {last}"
