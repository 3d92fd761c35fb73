"""Rates, and the requests per second of a plan."""

from __future__ import annotations

import pytest

from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.plans import PLANS, Plan
from orchestrator.events.quotas import OverLimit
from orchestrator.events.rates import REQUESTS_SAVED_UP_SECONDS, Rates, RequestQuotas
from orchestrator.events.records import TenantEpoch
from tests.fakes.events import Watch, event_settings


@pytest.mark.parametrize("plan", Plan)
def test_a_tenant_gets_the_requests_of_its_plan_and_is_told_when_to_come_back(plan: Plan) -> None:
    watch, settings, per_second = Watch(), event_settings(plan=plan), PLANS[plan].requests_per_second
    quotas = RequestQuotas(monotonic=watch)
    taken = [quotas.take(settings) for _ in range(per_second * REQUESTS_SAVED_UP_SECONDS + 1)]
    assert taken[:-1] == [None] * (per_second * REQUESTS_SAVED_UP_SECONDS)
    over = taken[-1]
    assert isinstance(over, OverLimit)
    assert f"more than the {per_second} requests per second of its plan {plan}" in over.reason
    watch.seconds += over.retry_after_seconds
    assert [quotas.take(settings) is None for _ in range(per_second + 1)] == [True] * per_second + [False]


def test_one_tenants_requests_do_not_depend_on_anothers() -> None:
    quotas = RequestQuotas(monotonic=Watch())
    while quotas.take(event_settings()) is None:
        pass
    assert quotas.take(event_settings(TenantEpoch(TenantId("globex"), "5f3a9c01"))) is None


def test_the_memory_for_rates_is_bounded() -> None:
    rates = Rates(monotonic=Watch())
    for number in range(5_000):
        assert rates.take(number, per_second=1, at_once=1) is None
    assert len(rates._left) <= 2_000


def test_a_rate_of_nothing_is_never_over() -> None:
    assert Rates(monotonic=Watch()).take("form_1", per_second=0, at_once=0) == 60
