"""The number of tenants at each version and in each state, without listing a large fleet for each request.

DynamoDB cannot count without reading. A small fleet is counted when somebody asks. The counts of a large fleet are
kept in a row, and the scheduled reconciliation renews them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from orchestrator.tenants.records import TenantState

if TYPE_CHECKING:
    from orchestrator.common.times import Clock
    from orchestrator.reconciling.ports import FleetCountsLedger
    from orchestrator.tenants.limits import TenantCounts
    from orchestrator.tenants.ports import FleetReader

SMALL_FLEET = 1_000
"""Fleets of up to this many tenants are counted for each request."""

_KEPT_FOR = timedelta(minutes=4, seconds=30)
"""The counts are renewed by the next scheduled reconciliation after this time."""
_TENANTS_PER_KEPT_FOR = 10_000
"""A larger fleet is counted less often, so that counting costs the same for every larger fleet."""
_MISSED_RENEWALS = 4
"""Counts that were not renewed this many times are not trusted: the reconciliation does not run."""


@dataclass(frozen=True, slots=True)
class FleetCounts:
    at: datetime
    by_version: Mapping[str, Mapping[TenantState, int]]
    """Deleted tenants are not counted. Tenants without a version are under the empty text."""
    warm: int = 0
    """The number of stacks that are kept ready."""

    @property
    def total(self) -> int:
        """The number of tenants and of stacks that are kept ready. The limit on tenants is for both together."""
        return self.warm + sum(sum(states.values()) for states in self.by_version.values())

    @property
    def kept_for(self) -> timedelta:
        return _KEPT_FOR * max(1.0, self.total / _TENANTS_PER_KEPT_FOR)


@dataclass(frozen=True, slots=True)
class FleetCounter:
    fleet: FleetReader
    ledger: FleetCountsLedger
    clock: Clock
    tenant_counts: TenantCounts
    """The number of tenants that limits their creates."""

    def current(self) -> FleetCounts:
        """The counts of now or, if the fleet is large, those that were kept last."""
        kept = self.ledger.fleet_counts()
        if kept is None or kept.total <= SMALL_FLEET or self._age(kept) > kept.kept_for * _MISSED_RENEWALS:
            return self._count()
        return kept

    def renew(self) -> None:
        """Count the fleet and keep the counts, if those that are kept are old."""
        kept = self.ledger.fleet_counts()
        if kept is None or self._age(kept) >= kept.kept_for:
            seen = self.tenant_counts.start(0)
            counts = self._count()
            self.ledger.keep_fleet_counts(counts)
            self.tenant_counts.keep(counts.total, counts.at, seen=seen)

    def _count(self) -> FleetCounts:
        counted = self.fleet.versions_in_use()
        return FleetCounts(self.clock.now(), counted.by_version, counted.warm)

    def _age(self, counts: FleetCounts) -> timedelta:
        return self.clock.now() - counts.at
