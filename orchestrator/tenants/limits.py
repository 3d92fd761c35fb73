"""How many tenants there may be, and how fast one caller may add to them: one rule for all who start creates.

Platforms by getQueue, and other teams' stacks by Custom::TenantQueue, are held to both limits; operators to the
number of tenants alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from orchestrator.common.callers import counted_as
from orchestrator.tenants.decisions import FleetFull, Limited, TooManyCreates

if TYPE_CHECKING:
    from orchestrator.common.tenant_ids import TenantId
    from orchestrator.common.times import Clock
    from orchestrator.tenants.ports import CreateCounts

WINDOW = timedelta(minutes=1)
COUNT_HOLDS_FOR = timedelta(minutes=1)
"""How long a count of the fleet is believed.

The cap may be passed by what is created within that time. That is bounded by the rate of each caller, and the default
cap is well below what an account may have.
"""

MAX_ORDERS_PER_COUNT = 1_000
"""More orders than the API lets through while a count is believed. Further below the cap than this, a count that
operators are held to need not be made anew. Nearer to the cap it is made for each create: who made room may use it.
"""

TENANT_QUEUE_RESOURCES = "Custom::TenantQueue"
"""Whom the creates of all other teams' stacks are counted for. Their names are not to be relied on: they are told by
whoever invokes the function.
"""


@dataclass(frozen=True, slots=True)
class CreateRate:
    """How many creates each caller may start per minute."""

    counts: CreateCounts
    clock: Clock
    per_minute: int

    def check(self, tenant: TenantId, caller: str) -> TooManyCreates | None:
        now = self.clock.now()
        full = self.counts.count(counted_as(caller), tenant, window=_minute(now), limit=self.per_minute)
        if full is None:
            return None
        # Another function's clock may be ahead, and never by much.
        seconds = min(max(full + WINDOW - now, timedelta(seconds=1)), WINDOW)
        return TooManyCreates(self.per_minute, -int(-seconds.total_seconds() // 1))

    def has_just_started(self, tenant: TenantId, caller: str) -> bool:
        """Whether the caller has started that tenant's create in this minute or in the one before."""
        return self.counts.is_counted(counted_as(caller), tenant, since=_minute(self.clock.now()) - WINDOW)


@dataclass(frozen=True, slots=True)
class Limits:
    """Implements :class:`orchestrator.tenants.ports.CreateLimits`."""

    count_tenants: Callable[[], int]
    max_tenants: int
    rate: CreateRate | None = None
    """``None`` where creates are not counted by caller."""

    def check(self, tenant: TenantId, *, another: bool, caller: str | None) -> Limited | None:
        # The cap first: a fleet that is full costs no write, however often it is asked for another tenant.
        if another and (tenants := self.count_tenants()) >= self.max_tenants:
            # A create that was started below the cap, and has not begun, is asked for again by whoever waits for it.
            started = self.rate is not None and caller is not None and self.rate.has_just_started(tenant, caller)
            return None if started else FleetFull(tenants, self.max_tenants)
        if self.rate is None or caller is None:
            return None
        return self.rate.check(tenant, caller)


class Unlimited:
    """Implements :class:`orchestrator.tenants.ports.CreateLimits` for repairs: what they create is there already."""

    def check(self, tenant: TenantId, *, another: bool, caller: str | None) -> None:  # noqa: ARG002 - as the port has it
        return None


class CountOfTheFleet:
    """The number of tenants, counted anew when the last count is too old to be believed, or as large as ``doubted``."""

    def __init__(self, count_tenants: Callable[[], int], clock: Clock, *, doubted: int | None = None) -> None:
        self._count_tenants = count_tenants
        self._clock = clock
        self._doubted = doubted
        self._counted: tuple[datetime, int] | None = None

    def __call__(self) -> int:
        now = self._clock.now()
        if self._counted is None or now - self._counted[0] >= COUNT_HOLDS_FOR or self._is_doubted(self._counted[1]):
            self._counted = now, self._count_tenants()
        return self._counted[1]

    def _is_doubted(self, count: int) -> bool:
        return self._doubted is not None and count >= self._doubted


def _minute(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0)
