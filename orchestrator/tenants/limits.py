"""The limits of creates: the maximum number of tenants, and the maximum number of creates per caller and minute.

Both limits apply to platforms (getQueue) and to other teams' stacks (Custom::TenantQueue). Only the maximum number of
tenants applies to operators.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from orchestrator.common.callers import counted_as
from orchestrator.tenants.decisions import FleetFull, Limited, TooManyCreates

if TYPE_CHECKING:
    from orchestrator.common.tenant_ids import TenantId
    from orchestrator.common.times import Clock
    from orchestrator.tenants.ports import CreateCounts

WINDOW = timedelta(minutes=1)
COUNT_MAX_AGE = timedelta(minutes=1)
"""How old a count may be for refusing the creates of platforms and of other teams' stacks.

If the fleet seems full, the tenants are counted at most this often, however many callers ask. A tenant that was deleted
makes room after this time. Creates within this time may exceed the maximum. Their number is bounded by each caller's
rate, and the default maximum is well below the quota of an account.
"""

KEPT_COUNT_MAX_AGE = timedelta(hours=4)
"""The scheduled reconciliation counts the tenants more often than this. If it does not run, creates count them."""

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
        # The maximum number of tenants is checked first, so that a full fleet counts nothing for the caller.
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


@dataclass(frozen=True, slots=True)
class TenantCount:
    """The number of tenants when they were last counted, and the number of creates that were started since."""

    started: int
    """It may be too high: a caller that repeats its request before the create begins is counted again."""
    counted: int | None = None
    """``None`` if the tenants were never counted."""
    at: datetime | None = None
    """When the tenants were counted."""


class TenantCounts(Protocol):
    """One count of the tenants that all functions share."""

    def start(self, creates: int) -> TenantCount:
        """Add creates to those that were started since the tenants were counted, and return the count."""

    def keep(self, tenants: int, at: datetime, *, seen: TenantCount) -> None:
        """Replace the count. Creates that were started after it was ``seen`` still count as started.

        Nothing is replaced if another function has replaced the count since it was seen.
        """


@dataclass(frozen=True, slots=True)
class KeptTenantCount:
    """The number of tenants, for a create that is about to be started.

    DynamoDB cannot count without reading, so the tenants are counted only if the kept count, and the creates that were
    started since, reach the maximum. Deleted tenants are subtracted by the next count. So the kept count is too high
    rather than too low, except for creates that had not begun when the tenants were counted.
    """

    count_tenants: Callable[[], int]
    kept: TenantCounts
    clock: Clock
    max_tenants: int
    max_age: timedelta = COUNT_MAX_AGE
    """How old a count may be that refuses a create. Operators may use the room of a deleted tenant at once."""

    def __call__(self) -> int:
        now, seen = self.clock.now(), self.kept.start(1)
        if seen.counted is not None and seen.at is not None:
            age, at_most = now - seen.at, seen.counted + seen.started - 1
            if age < KEPT_COUNT_MAX_AGE and at_most < self.max_tenants:
                return at_most
            if age < self.max_age:
                return seen.counted
        tenants = self.count_tenants()
        self.kept.keep(tenants, now, seen=replace(seen, started=seen.started - 1))
        return tenants


def _minute(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0)
