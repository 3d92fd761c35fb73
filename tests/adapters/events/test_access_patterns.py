"""Every access pattern of the four designs that the event plane replaces is one request here, and none is a scan.

A list by an index is one Query and one BatchGetItem for its rows. docs/events-design.md has the same names.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator.adapters.dynamodb.connections import DynamoConnections
from orchestrator.adapters.dynamodb.deliveries import DynamoDeliveries
from orchestrator.events.accepting import NewEvent
from orchestrator.events.api_keys import digest_of
from orchestrator.events.delivery.history import DeliveryHistory
from orchestrator.events.listing import Filter, Kind
from orchestrator.events.records import Content, EventSettings
from orchestrator.events.statuses import EventStatus
from tests.adapters.conftest import TABLE
from tests.adapters.events import test_configuring, test_listing
from tests.adapters.events.lives import EVENTS_TABLE
from tests.fakes import ACME, NOON
from tests.fakes.events import connection, event_settings
from tests.present import present

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client

PAGE = Path(__file__).parents[3] / "docs" / "events-design.md"
EVENTS = event_settings(inbox=True)


@dataclass
class World:
    events: test_listing.World
    configuring: test_configuring.World
    settings: EventSettings
    key: str
    source_id: str
    form_id: str
    event_id: str
    submission_id: str
    connections: DynamoConnections
    history: DeliveryHistory

    def list(self, wanted: Filter) -> object:
        page = self.events.listing.page(EVENTS, wanted, cursor=None, limit=100)
        assert page.events
        return page


@pytest.fixture
def world(events_table: DynamoDBClient, bucket: S3Client) -> World:
    events, configuring = test_listing.event_world(events_table, bucket), test_configuring.World(events_table)
    settings = configuring.set()
    *failed, event_id = events.events(3, "order.completed")
    for each in failed:
        events.set_status(each, EventStatus.FAILED)
    source = configuring.source(settings).source.source_id
    form = configuring.form(settings).form_id
    for _ in range(2):
        events.accept(NewEvent("push", Content(b"{}"), source_id=source))
        submission = events.accept(NewEvent("form.submitted", Content(b"{}"), form_id=form))
    key = configuring.key(settings).text
    connections = DynamoConnections(events_table, TABLE, report=lambda row: pytest.fail(row.row))
    assert configuring.table.add_connection(connection(life=settings.life), present(configuring.table.settings(ACME)))
    history = DeliveryHistory(
        table=DynamoDeliveries(events_table, EVENTS_TABLE),
        connections=configuring.table,
        origins=connections,
        clock=events.clock,
    )
    return World(events, configuring, settings, key, source, form, event_id, submission, connections, history)


Pattern = tuple[Callable[[World], object], list[str]]
DAY = Filter(kind=Kind.SUBMISSIONS, since=NOON - timedelta(days=1), until=NOON + timedelta(days=1))
BY_INDEX = ["Query", "BatchGetItem"]

PATTERNS: dict[str, Pattern] = {
    "authenticate a key": (lambda world: world.configuring.table.api_key(digest_of(world.key)), ["GetItem"]),
    "create an event": (lambda world: world.events.events(1, "order.completed"), ["PutItem"]),
    "an event by its id": (lambda world: world.events.listing.find(EVENTS, world.event_id), ["GetItem"]),
    "a submission by its id": (lambda world: world.events.listing.find(EVENTS, world.submission_id), ["GetItem"]),
    "events, newest first": (lambda world: world.list(Filter()), ["Query"]),
    "events of a type": (lambda world: world.list(Filter(event_type="order.completed")), BY_INDEX),
    "events with a status": (lambda world: world.list(Filter(status=EventStatus.FAILED)), BY_INDEX),
    "events of a source": (lambda world: world.list(Filter(source_id=world.source_id)), BY_INDEX),
    "submissions of a period": (lambda world: world.list(DAY), ["Query"]),
    "submissions of a form": (lambda world: world.list(Filter(form_id=world.form_id)), BY_INDEX),
    "the inbox": (lambda world: world.events.inbox.page(EVENTS, limit=100).events, BY_INDEX),
    "mark an event as delivered": (
        lambda world: world.events.inbox.acknowledge(EVENTS, [world.event_id]),
        ["UpdateItem"],
    ),
    "a tenant's settings": (lambda world: world.configuring.table.settings(ACME), ["GetItem"]),
    "a source by its id": (lambda world: world.configuring.table.source(world.source_id), ["GetItem"]),
    "a form by its id": (lambda world: world.configuring.table.form(world.form_id), ["GetItem"]),
    "keys of a tenant": (lambda world: world.configuring.table.api_keys(world.settings.life), ["Query"]),
    "sources of a tenant": (lambda world: world.configuring.table.sources(world.settings.life), ["Query"]),
    "forms of a tenant": (lambda world: world.configuring.table.forms(world.settings.life), ["Query"]),
    "connections of a source": (lambda world: world.connections.of_origin(world.settings.life, "api"), ["Query"]),
    "destinations of a tenant": (
        lambda world: world.configuring.table.connections(world.settings.life),
        ["Query", "BatchGetItem"],
    ),
    "attempts of an event": (
        lambda world: world.history.attempts(EVENTS, world.event_id),
        ["GetItem", "Query", "Query", "Query"],
    ),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_each_pattern_is_its_requests_and_no_scan(world: World, name: str) -> None:
    pattern, requests = PATTERNS[name]
    with world.events.counting() as calls:
        found = pattern(world)
    assert found
    assert calls == requests


def test_the_page_names_these_patterns_with_their_requests() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## Access patterns")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| ([^|]+?) \| [^|]+ \| [^|]+ \| ([^|]+?) \|$", section, re.M))
    assert {name: rows.get(name) for name in PATTERNS} == {
        name: " and ".join(f"`{request}`" for request in requests) for name, (_, requests) in PATTERNS.items()
    }
