"""The limits of a plan."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.authorising import Standing
from orchestrator.events.plans import PLANS, Plan
from orchestrator.events.quotas import OverLimit, Quotas
from orchestrator.events.records import EventSettings, TenantEpoch

AT = datetime(2026, 11, 17, 12, tzinfo=UTC)
FREE = PLANS[Plan.FREE]


def standing(tenant: str = "acme", used: int = 0, plan: Plan = Plan.FREE) -> Standing:
    life = TenantEpoch(TenantId(tenant), "5f3a9c01")
    return Standing(
        EventSettings(life, "created", plan, 1, inbox=True, type_index=True, created_at=AT, updated_at=AT), used
    )


class Watch:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def quotas(watch: Watch) -> Quotas:
    return Quotas(monotonic=watch)


def test_a_tenant_may_send_its_rate_at_once_and_then_waits_for_it(quotas: Quotas, watch: Watch) -> None:
    for _ in range(FREE.events_per_second):
        assert quotas.take(standing(), AT) is None
    refused = quotas.take(standing(), AT)
    assert isinstance(refused, OverLimit)
    assert (refused.retry_after_seconds, "10 events per second" in refused.reason) == (1, True)
    watch.seconds += 0.1
    assert quotas.take(standing(), AT) is None
    assert quotas.take(standing(), AT) is not None


def test_a_pause_saves_up_no_more_than_one_second(quotas: Quotas, watch: Watch) -> None:
    quotas.take(standing(), AT)
    watch.seconds += 3600
    taken = [quotas.take(standing(), AT) for _ in range(FREE.events_per_second + 1)]
    assert taken.index(next(each for each in taken if each)) == FREE.events_per_second


def test_one_tenants_rate_does_not_depend_on_anothers(quotas: Quotas) -> None:
    for _ in range(FREE.events_per_second):
        quotas.take(standing("noisy"), AT)
    assert quotas.take(standing("noisy"), AT) is not None
    assert quotas.take(standing("quiet"), AT) is None


def test_the_month_closes_when_its_events_are_used(quotas: Quotas) -> None:
    assert quotas.take(standing(used=FREE.events_per_month - 1), AT) is None
    refused = quotas.take(standing(used=FREE.events_per_month), AT)
    assert isinstance(refused, OverLimit)
    assert "10,000 events per month" in refused.reason
    assert refused.retry_after_seconds == (datetime(2026, 12, 1, tzinfo=UTC) - AT).total_seconds()


def test_what_was_accepted_since_the_last_read_counts(quotas: Quotas) -> None:
    almost = standing(used=FREE.events_per_month - 2)
    assert [quotas.take(almost, AT) is None for _ in range(3)] == [True, True, False]


def test_another_plan_takes_effect_at_once(quotas: Quotas) -> None:
    full = standing(used=FREE.events_per_month)
    assert quotas.take(full, AT) is not None
    assert quotas.take(replace(full, settings=replace(full.settings, plan=Plan.STARTER)), AT) is None


def test_december_ends_with_the_year(quotas: Quotas) -> None:
    refused = quotas.take(standing(used=FREE.events_per_month), datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC))
    assert isinstance(refused, OverLimit)
    assert (refused.retry_after_seconds, "2027-01-01" in refused.reason) == (1, True)
