"""The limits for functions that start creates: the number of tenants, and the rate of each caller."""

from __future__ import annotations

from stacks.common.functions import BerthFunction, FunctionKit
from stacks.settings import Settings


def limit_tenants(function: BerthFunction, *, kit: FunctionKit, settings: Settings) -> None:
    kit.table.allow_keeping_the_count(function.role)
    function.function.add_environment("BERTH_MAX_TENANTS", str(settings.max_tenants))


def limit_creates(function: BerthFunction, *, kit: FunctionKit, settings: Settings) -> None:
    """Make the function enforce the limit on tenants, and a rate limit for each of its callers."""
    limit_tenants(function, kit=kit, settings=settings)
    kit.table.allow_counting_tenants(function.role)
    function.function.add_environment("BERTH_CREATES_PER_MINUTE", str(settings.creates_per_minute))
    if settings.creates_per_minute:
        kit.table.allow_counting_creates(function.role)
