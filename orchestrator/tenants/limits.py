"""The limits of creates: the maximum number of tenants, and the maximum number of creates per caller and minute.

Both limits apply to platforms (getQueue) and to other teams' stacks (Custom::TenantQueue). Only the maximum number of
tenants applies to operators.
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
COUNT_MAX_AGE = timedelta(minutes=1)
"""How long a count of the tenants is used before the tenants are counted again.

Creates within this time may exceed the maximum. Their number is bounded by each caller's rate, and the default maximum
is well below the quota of an account.
"""

MAX_ORDERS_PER_COUNT = 1_000
"""An upper bound of the creates that operators can start while a count is used: the API allows fewer requests.

If the count is further below the maximum than this, it is not repeated for operators' creates. Closer to the maximum it
is repeated for each create, so that an operator who has deleted tenants can create others at once.
"""

TENANT_QUEUE_RESOURCES = "Custom::TenantQueue"
"""The caller for which the creates of all other teams' stacks are counted together. The stacks' names cannot be
trusted, because they come from the event.
"""


@dataclass(frozen=True, slots=True)
class CreateRate:
    """The maximum number of creates per caller and minute."""

    counts: CreateCounts
    clock: Clock
    per_minute: int

    def check(self, tenant: TenantId, caller: str) -> TooManyCreates | None:
        now = self.clock.now()
        full = self.counts.count(counted_as(caller), tenant, window=_minute(now), limit=self.per_minute)
        if full is None:
            return None
        # The window may have been opened by a function whose clock is slightly ahead.
        seconds = min(max(full + WINDOW - now, timedelta(seconds=1)), WINDOW)
        return TooManyCreates(self.per_minute, -int(-seconds.total_seconds() // 1))

    def has_just_started(self, tenant: TenantId, caller: str) -> bool:
        """True if the caller has started the tenant's create in this minute or in the previous one."""
        return self.counts.is_counted(counted_as(caller), tenant, since=_minute(self.clock.now()) - WINDOW)


@dataclass(frozen=True, slots=True)
class Limits:
    """Implements :class:`orchestrator.tenants.ports.CreateLimits`."""

    count_tenants: Callable[[], int]
    max_tenants: int
    rate: CreateRate | None = None
    """``None`` if creates are not counted by caller."""

    def check(self, tenant: TenantId, *, is_new: bool, caller: str | None) -> Limited | None:
        # The maximum number of tenants is checked first, because that check writes nothing.
        if is_new and (tenants := self.count_tenants()) >= self.max_tenants:
            # The caller may be polling for a create that was started below the maximum and has not begun yet.
            started = self.rate is not None and caller is not None and self.rate.has_just_started(tenant, caller)
            return None if started else FleetFull(tenants, self.max_tenants)
        if self.rate is None or caller is None:
            return None
        return self.rate.check(tenant, caller)


class Unlimited:
    """Implements :class:`orchestrator.tenants.ports.CreateLimits` for repairs, which create only existing tenants."""

    def check(self, tenant: TenantId, *, is_new: bool, caller: str | None) -> None:  # noqa: ARG002 - as the port has it
        return None


class CachedTenantCount:
    """The number of tenants. It is counted again if the last count is too old, or is at least ``doubted``."""

    def __init__(self, count_tenants: Callable[[], int], clock: Clock, *, doubted: int | None = None) -> None:
        self._count_tenants = count_tenants
        self._clock = clock
        self._doubted = doubted
        self._counted: tuple[datetime, int] | None = None

    def __call__(self) -> int:
        now = self._clock.now()
        if self._counted is None or now - self._counted[0] >= COUNT_MAX_AGE or self._is_doubted(self._counted[1]):
            self._counted = now, self._count_tenants()
        return self._counted[1]

    def _is_doubted(self, count: int) -> bool:
        return self._doubted is not None and count >= self._doubted


def _minute(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0)
