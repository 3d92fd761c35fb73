"""Tenants take turns, so a busy tenant does not delay the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from orchestrator.events.records import TenantEpoch


class _OfTenant(Protocol):
    @property
    def life(self) -> TenantEpoch: ...


RecordT = TypeVar("RecordT", bound=_OfTenant)


def rounds_of(records: Sequence[RecordT], random_below: Callable[[int], int]) -> list[RecordT]:
    """The first record of each tenant, then the second of each, and so on, beginning with any tenant.

    So what is cut short because the time is up does not leave out the same tenants always.
    """
    first = random_below(len(records)) if records else 0
    by_tenant: dict[TenantEpoch, list[RecordT]] = {}
    for record in [*records[first:], *records[:first]]:
        by_tenant.setdefault(record.life, []).append(record)
    most = max(map(len, by_tenant.values()), default=0)
    return [mine[number] for number in range(most) for mine in by_tenant.values() if number < len(mine)]
