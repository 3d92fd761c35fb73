"""docs/events.md says what is true of plans and limits."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest

from orchestrator.events import plans
from orchestrator.events.configuring_forms import MAX_FORMS
from orchestrator.events.configuring_keys import DEFAULT_OVERLAP, MAX_KEYS, MAX_OVERLAP
from orchestrator.events.configuring_sources import GENERATING_PROVIDERS, MAX_SOURCES
from orchestrator.events.plans import PLANS, Plan

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "events.md").read_text(encoding="utf-8")
HELP = (ROOT / "orchestrator" / "cli" / "events.py").read_text(encoding="utf-8")


def shown(retention: timedelta) -> str:
    return f"{retention.days} days" if retention > timedelta(days=1) else f"{retention // timedelta(hours=1)} hours"


@pytest.mark.parametrize("plan", Plan)
def test_the_table_of_plans(plan: Plan) -> None:
    limits = PLANS[plan]
    retention, month, second = shown(limits.retention), f"{limits.events_per_month:,}", f"{limits.events_per_second:,}"
    requests = limits.requests_per_second
    assert f"| `{plan}` | {retention} | {month} | {second} | {limits.shards} | {requests} |" in PAGE
    assert re.search(
        rf"^\| {plan} +\| {retention} +\| +{month} \| +{second} \| +{limits.shards} \| +{requests} \|$",
        plans.__doc__,
        re.M,
    )
    assert re.search(rf"^  {plan} +{retention} +{month} events per month +{second} per second$", HELP, re.M)


def test_limits() -> None:
    assert f"at most {MAX_KEYS} keys" in PAGE
    assert MAX_SOURCES == MAX_FORMS
    assert f"at most {MAX_SOURCES} of each" in PAGE
    hours = timedelta(hours=1)
    assert (
        f"the overlap: {DEFAULT_OVERLAP // hours} hours, or\n  `--overlap HOURS` from 0 to {MAX_OVERLAP // hours}"
        in PAGE
    )


def test_secrets_that_are_made() -> None:
    (named,) = re.findall(r"For ([^.]*?) a secret can be left out", PAGE.replace("\n  ", " "))
    assert set(re.findall("`([a-z-]+)`", named)) == set(GENERATING_PROVIDERS)
