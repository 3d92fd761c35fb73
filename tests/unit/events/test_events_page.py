"""The guides to events say what is true of plans and limits."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path

import pytest

from orchestrator.adapters.http_sender import DEADLINE_SECONDS, MAX_BODY_BYTES, MAX_HEAD_BYTES
from orchestrator.cli.render import duration
from orchestrator.events import plans
from orchestrator.events.configuring_connections import MAX_DOCUMENT_BYTES, MAX_PER_ORIGIN, MAX_PER_TENANT
from orchestrator.events.configuring_forms import MAX_FORMS
from orchestrator.events.configuring_keys import DEFAULT_OVERLAP, MAX_KEYS, MAX_OVERLAP
from orchestrator.events.configuring_sources import GENERATING_PROVIDERS, MAX_SOURCES
from orchestrator.events.delivery import replaying, replays
from orchestrator.events.delivery.answers import MAX_TEXT
from orchestrator.events.delivery.filters import MAX_CHOICES, MAX_CONDITIONS, MAX_DEPTH, OPERATORS, check_filter
from orchestrator.events.delivery.health import (
    BREAKER_AFTER,
    DISABLED_AFTER,
    FIRST_OPEN,
    LONGEST_OPEN,
    SLOW_MILLISECONDS,
)
from orchestrator.events.delivery.history import ShownState
from orchestrator.events.delivery.mail import MAX_PAYLOAD_BYTES
from orchestrator.events.delivery.payloads import Payload
from orchestrator.events.delivery.queue_message import MAX_MESSAGE_BYTES
from orchestrator.events.delivery.retries import DEFAULT_WAITS, MAX_DURATION, MAX_TRIES
from orchestrator.events.delivery.signing import ROTATION_OVERLAP, new_signing_secret
from orchestrator.events.delivery.transforms import MAX_PATH_KEYS, MAX_STEPS, check_transform, transformed
from orchestrator.events.delivery.webhook_request import webhook_request
from orchestrator.events.plans import LONGEST_DELIVERY, PLANS, Plan
from orchestrator.events.statuses import EventStatus
from tests.fakes.sending import outgoing

ROOT = Path(__file__).parents[3]
FOR_OPERATORS, FOR_TENANTS, FOR_RECEIVERS, SOURCES = (
    (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    for name in ("events-for-operators", "events-for-tenants", "webhook-receivers", "webhooks-and-forms")
)
HELP = (ROOT / "orchestrator" / "cli" / "events.py").read_text(encoding="utf-8")


def section(page: str, heading: str) -> str:
    """The text under a heading, in one line."""
    return " ".join(page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0].split())


def shown(retention: timedelta) -> str:
    return f"{retention.days} days" if retention > timedelta(days=1) else f"{retention // timedelta(hours=1)} hours"


@pytest.mark.parametrize("plan", Plan)
def test_the_table_of_plans(plan: Plan) -> None:
    limits = PLANS[plan]
    retention, month, second = shown(limits.retention), f"{limits.events_per_month:,}", f"{limits.events_per_second:,}"
    requests = limits.requests_per_second
    assert f"| `{plan}` | {retention} | {month} | {second} | {limits.shards} | {requests} |" in FOR_OPERATORS
    assert re.search(
        rf"^\| {plan} +\| {retention} +\| +{month} \| +{second} \| +{limits.shards} \| +{requests} \|$",
        plans.__doc__,
        re.M,
    )
    assert re.search(rf"^  {plan} +{retention} +{month} events per month +{second} per second$", HELP, re.M)


def test_the_page_has_the_limits_of_the_code() -> None:
    assert MAX_SOURCES == MAX_FORMS
    assert f"at most {MAX_SOURCES} of each" in SOURCES
    keys, hours = section(FOR_TENANTS, "API keys"), timedelta(hours=1)
    assert f"at most {MAX_KEYS} keys" in keys
    assert f"overlap: {DEFAULT_OVERLAP // hours} hours, or `--overlap HOURS` from 0 to {MAX_OVERLAP // hours}" in keys


def test_limits_and_retries_of_connections() -> None:
    connections = section(FOR_TENANTS, "Connections")
    assert f"At most {MAX_PER_ORIGIN} connections per origin, and {MAX_PER_TENANT} per tenant." in connections
    *waits, last = map(duration, (wait.total_seconds() for wait in DEFAULT_WAITS))
    assert f"tried again after {', '.join(waits)} and {last}," in connections
    assert f"at most {MAX_TRIES} tries within {MAX_DURATION.days} days" in connections
    assert f"at most {MAX_DOCUMENT_BYTES // 1024} KB as JSON" in connections
    assert f"for {ROTATION_OVERLAP // timedelta(hours=1)} hours deliveries carry both signatures" in connections


def test_the_table_of_retries() -> None:
    since = timedelta()
    for number, wait in enumerate(DEFAULT_WAITS, 2):
        since += wait
        assert f"| {number} | {duration(wait.total_seconds())} | {duration(since.total_seconds())} |" in FOR_TENANTS
    assert f"| {len(DEFAULT_WAITS) + 2} |" not in FOR_TENANTS


def test_the_end_of_retries() -> None:
    retries = section(FOR_TENANTS, "Retries and their end")
    minutes, days = timedelta(minutes=1), timedelta(days=1)
    assert f"after {BREAKER_AFTER // minutes} minutes of nothing but failures" in retries
    assert (minutes, timedelta(hours=1)) == (FIRST_OPEN, LONGEST_OPEN)
    assert "parked for a minute, then one is tried, and so on with waits that double, up to an hour" in retries
    assert f"disabled** after {DISABLED_AFTER // days} days of nothing but failures" in retries
    assert f"expires {LONGEST_DELIVERY // days} days after it came in" in retries
    assert f"takes more than {SLOW_MILLISECONDS // 1_000} seconds" in retries
    for state in (*ShownState, *EventStatus):
        assert f"| `{state}` |" in retries


def test_the_table_of_transforms() -> None:
    """Each row adds a step, and shows the payload after it."""
    (given,) = re.findall(r"\| step \| example \| on `(.*)` \|", FOR_TENANTS)
    document: dict[str, object] = {}
    for step in ("remove", "rename", "set", "wrap"):
        (row,) = re.findall(rf"^\| `{step}` \| `(.*)` \| `(.*)` \|$", FOR_TENANTS, re.M)
        document[step] = json.loads(row[0])
        check_transform(document)
        assert json.dumps(transformed(document, json.loads(given))) == row[1]


def test_the_reference_of_filters() -> None:
    filters = section(FOR_TENANTS, "Filters and transforms")
    (example,) = re.findall(r"```json (.*?)```", filters)
    check_filter(json.loads(example))
    for operator in (*OPERATORS, "$and", "$or", "$not"):
        assert operator in filters
    assert f"one of up to {MAX_CHOICES} values" in filters
    assert f"at most {MAX_CONDITIONS} conditions and {MAX_DEPTH} levels" in filters
    assert f"up to {MAX_PATH_KEYS} keys" in filters
    assert f"at most {MAX_STEPS} steps" in filters


def test_secrets_that_are_made() -> None:
    (named,) = re.findall(r"For ([^.]*?) a secret can be left out", " ".join(SOURCES.split()))
    assert set(re.findall("`([a-z-]+)`", named)) == set(GENERATING_PROVIDERS)


def test_the_page_shows_the_request_that_a_receiver_gets() -> None:
    receiver = section(FOR_RECEIVERS, "What a receiver gets")
    kilobyte = 1_024
    assert f"none within {DEADLINE_SECONDS:g} seconds" in receiver
    assert f"{MAX_BODY_BYTES // kilobyte} KB of an answer are read, {MAX_TEXT:,} characters are kept" in receiver
    assert f"headers may have {MAX_HEAD_BYTES // kilobyte} KB" in receiver
    assert f"Messages above {MAX_MESSAGE_BYTES // kilobyte} KB" in receiver
    assert f"up to {MAX_PAYLOAD_BYTES // kilobyte} KB of a payload" in receiver
    assert f"for {ROTATION_OVERLAP // timedelta(hours=1)} hours after a rotation" in receiver
    request = webhook_request(outgoing(), Payload(b"", "text/plain"), [new_signing_secret()], version="1")
    for name in request.headers.keys() - {"accept", "content-type"}:
        assert f"`{name}`" in receiver


def test_the_page_states_the_limits_of_replays() -> None:
    looking = section(FOR_TENANTS, "Looking at deliveries, and sending again")
    assert f"up to {replaying.PAGE * replaying.PAGES:,} deliveries per minute" in looking
    assert f"{replays.MAX_RUNNING} replays of a tenant run at a time" in looking
    assert f"the replays of the last {replays.KEPT_FOR.days} days" in looking
