"""The limits of a plan."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.authorising import Standing
from orchestrator.events.plans import MAX_BATCH, PLANS, Plan
from orchestrator.events.quotas import OverLimit, Quotas, month_of
from orchestrator.events.records import EventSettings, TenantEpoch

AT = datetime(2026, 11, 17, 12, tzinfo=UTC)
FREE = PLANS[Plan.FREE]


def standing(tenant: str = "acme", used: int = 0, plan: Plan = Plan.FREE, at: datetime = AT) -> Standing:
    life = TenantEpoch(TenantId(tenant), "5f3a9c01")
    settings = EventSettings(life, "created", plan, 1, inbox=True, type_index=True, created_at=AT, updated_at=AT)
    return Standing(settings, used, month_of(at))


def accept(quotas: Quotas, given: Standing, at: datetime = AT) -> bool:
    if quotas.take(given, at) is not None:
        return False
    quotas.count(given)
    return True


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


def test_a_tenant_may_send_a_batch_at_once_and_then_waits_for_it(quotas: Quotas, watch: Watch) -> None:
    for _ in range(MAX_BATCH):
        assert quotas.take(standing(), AT) is None
    refused = quotas.take(standing(), AT)
    assert isinstance(refused, OverLimit)
    assert (refused.retry_after_seconds, "10 events per second" in refused.reason) == (1, True)
    watch.seconds += 0.1
    assert quotas.take(standing(), AT) is None
    assert quotas.take(standing(), AT) is not None


@pytest.mark.parametrize(("plan", "at_once"), [(Plan.FREE, MAX_BATCH), (Plan.STARTER, 50), (Plan.PRO, 1_000)])
def test_a_pause_saves_up_one_second_or_one_batch(quotas: Quotas, watch: Watch, plan: Plan, at_once: int) -> None:
    quotas.take(standing(plan=plan), AT)
    watch.seconds += 3600
    taken = [quotas.take(standing(plan=plan), AT) for _ in range(at_once + 1)]
    assert taken.index(next(each for each in taken if each)) == at_once


def test_what_is_given_back_can_be_used_again(quotas: Quotas) -> None:
    taken = [quotas.take(standing(), AT) for _ in range(MAX_BATCH)]
    quotas.give_back(standing())
    assert [*taken, quotas.take(standing(), AT)] == [None] * (MAX_BATCH + 1)
    assert quotas.take(standing(), AT) is not None


def test_one_tenants_rate_does_not_depend_on_anothers(quotas: Quotas) -> None:
    for _ in range(MAX_BATCH):
        quotas.take(standing("noisy"), AT)
    assert quotas.take(standing("noisy"), AT) is not None
    assert quotas.take(standing("quiet"), AT) is None


def test_the_month_closes_when_its_events_are_used(quotas: Quotas) -> None:
    assert quotas.take(standing(used=FREE.events_per_month - 1), AT) is None
    refused = quotas.take(standing(used=FREE.events_per_month), AT)
    assert isinstance(refused, OverLimit)
    assert "10,000 events per month" in refused.reason
    assert refused.retry_after_seconds == (datetime(2026, 12, 1, tzinfo=UTC) - AT).total_seconds()


def test_events_accepted_since_the_last_read_count(quotas: Quotas) -> None:
    almost = standing(used=FREE.events_per_month - 2)
    assert [accept(quotas, almost) for _ in range(3)] == [True, True, False]


def test_refused_events_do_not_count(quotas: Quotas) -> None:
    almost = standing(used=FREE.events_per_month - 1)
    assert [quotas.take(almost, AT) for _ in range(3)] == [None, None, None]
    assert [accept(quotas, almost) for _ in range(2)] == [True, False]


def test_another_plan_takes_effect_at_once(quotas: Quotas) -> None:
    full = standing(used=FREE.events_per_month)
    assert quotas.take(full, AT) is not None
    assert quotas.take(replace(full, settings=replace(full.settings, plan=Plan.STARTER)), AT) is None


def test_december_ends_with_the_year(quotas: Quotas) -> None:
    at = datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC)
    refused = quotas.take(standing(used=FREE.events_per_month, at=at), at)
    assert isinstance(refused, OverLimit)
    assert (refused.retry_after_seconds, "2027-01-01" in refused.reason) == (1, True)


JUST_BEFORE_DECEMBER = datetime(2026, 11, 30, 23, 59, 55, tzinfo=UTC)
DECEMBER = datetime(2026, 12, 1, tzinfo=UTC)


def test_a_new_month_begins_at_once_though_the_usage_of_the_last_one_is_remembered(quotas: Quotas) -> None:
    full = standing(used=FREE.events_per_month, at=JUST_BEFORE_DECEMBER)
    assert quotas.take(full, JUST_BEFORE_DECEMBER) is not None
    assert quotas.take(full, DECEMBER) is None


def test_events_of_last_month_do_not_count_in_a_new_one(quotas: Quotas) -> None:
    almost = standing(used=FREE.events_per_month - 1, at=JUST_BEFORE_DECEMBER)
    assert [accept(quotas, almost, JUST_BEFORE_DECEMBER) for _ in range(2)] == [True, False]
    assert accept(quotas, almost, DECEMBER)
    assert accept(quotas, standing(used=0, at=DECEMBER), DECEMBER)


def test_the_announced_wait_ends_in_the_new_month(quotas: Quotas) -> None:
    at = DECEMBER - timedelta(milliseconds=1500)
    refused = quotas.take(standing(used=FREE.events_per_month, at=at), at)
    assert isinstance(refused, OverLimit)
    assert at + timedelta(seconds=refused.retry_after_seconds) >= DECEMBER


def test_forms_close_at_half_of_the_month_and_leave_the_other_half_to_keys_and_signatures(
    quotas: Quotas, watch: Watch
) -> None:
    half = FREE.events_per_month // 2
    submitted = replace(standing(used=half), submitted=half)
    refused = quotas.take(submitted, AT, submission=True)
    assert isinstance(refused, OverLimit)
    assert "5,000 submissions of forms per month" in refused.reason
    assert refused.retry_after_seconds == (datetime(2026, 12, 1, tzinfo=UTC) - AT).total_seconds()
    assert quotas.take(submitted, AT) is None
    watch.seconds += 1
    # Whatever else the tenant sends leaves the forms their half.
    assert quotas.take(replace(standing(used=half), submitted=0), AT, submission=True) is None


def test_submissions_that_were_accepted_since_the_last_read_count(quotas: Quotas) -> None:
    almost = replace(standing(), submitted=FREE.events_per_month // 2 - 2)
    taken = []
    for _ in range(3):
        taken.append(quotas.take(almost, AT, submission=True) is None)
        quotas.count(almost, submission=True)
    assert taken == [True, True, False]


def test_submissions_of_a_month_that_is_over_do_not_count(quotas: Quotas) -> None:
    last_month = replace(standing(), submitted=FREE.events_per_month, month="2026-10")
    assert quotas.take(last_month, AT, submission=True) is None
