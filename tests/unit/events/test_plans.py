"""Plans."""

from __future__ import annotations

from datetime import timedelta

import pytest

from orchestrator.events import plans
from orchestrator.events.event_ids import MAX_SHARDS
from orchestrator.events.plans import LONGEST_DELIVERY, PLANS, Plan, time_to_live


@pytest.mark.parametrize("plan", Plan)
def test_no_row_expires_before_its_retention_or_its_last_retry(plan: Plan) -> None:
    assert time_to_live(plan) >= max(PLANS[plan].retention, LONGEST_DELIVERY)


@pytest.mark.parametrize("plan", Plan)
def test_the_shards_of_a_plan_fit_into_the_last_digit_of_an_id(plan: Plan) -> None:
    assert 1 <= PLANS[plan].shards <= MAX_SHARDS


@pytest.mark.parametrize("plan", Plan)
def test_the_documented_table_is_the_one_in_use(plan: Plan) -> None:
    limits = PLANS[plan]
    days = limits.retention / timedelta(days=1)
    retention = "24 hours" if days == 1 else f"{days:.0f} days"
    row = next(line for line in (plans.__doc__ or "").splitlines() if line.startswith(f"| {plan} "))
    columns = [column.strip() for column in row.strip("|").split("|")]
    numbers = (limits.events_per_month, limits.events_per_second, limits.shards, limits.requests_per_second)
    assert columns == [plan, retention, *(f"{number:,}" for number in numbers)]
