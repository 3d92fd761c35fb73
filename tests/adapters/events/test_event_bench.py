"""The parts of the benchmark that need tables run, and the table reports what the floor says, on small counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import boto3
import pytest
from botocore.session import Session

from bench.delivery_capacity import delivery_capacity_results
from bench.delivery_checks import check
from bench.delivery_receivers import Kind, receivers
from bench.event_capacity import FLOOR, capacity_results
from bench.event_delivery import DeliveryBench, make_queue
from bench.event_plane import EventPlane, made, make_tables
from bench.event_settings import EVENTS_TABLE, FUNCTION_ENVIRONMENT, TABLE
from bench.event_speed import accept_results, read_results
from orchestrator.adapters import aws as aws_clients
from orchestrator.local.emulator import Emulator
from tests.functions import forget_functions


@pytest.fixture
def event_plane(tables: Tables) -> EventPlane:
    return made(tables.client)


@dataclass(frozen=True)
class Tables:
    client: Any
    session: Session
    """The session from which the functions make their clients."""


@pytest.fixture
def tables(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tables]:
    environment = FUNCTION_ENVIRONMENT | emulator.client_environment() | {"AWS_LAMBDA_LOG_LEVEL": "FATAL"}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    session = Session()
    monkeypatch.setattr(aws_clients, "_session", lambda: session)
    client = boto3.session.Session().client("dynamodb")
    make_tables(client)
    forget_functions()
    yield Tables(client, session)
    forget_functions()
    for table in (TABLE, EVENTS_TABLE):
        client.delete_table(TableName=table)


def test_accepting_and_reading_are_compared_with_bare_requests(event_plane: EventPlane) -> None:
    results = accept_results(event_plane, 10) + read_results(event_plane, 1)
    assert all(result.value > 0 for result in results)
    assert [result.name for result in results if "its 3 bare requests, p50" in result.name]


def test_an_event_costs_what_the_floor_says(event_plane: EventPlane) -> None:
    results = capacity_results(event_plane, len(FLOOR))
    assert [result for result in results if result.is_broken] == []


# Deliveries


def test_a_delivered_event_costs_what_the_page_says(event_plane: EventPlane) -> None:
    results = delivery_capacity_results(event_plane, 3)
    assert [(result.name, result.details) for result in results if result.is_broken] == []


KINDS = [Kind.QUICK, Kind.QUICK, Kind.SLOW, Kind.REFUSING]


@pytest.fixture
def delivery_bench(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> Iterator[DeliveryBench]:
    sqs, kms = (boto3.session.Session().client(service) for service in ("sqs", "kms"))
    for name, value in {
        "BERTH_FIRST_QUEUE": make_queue(sqs, "bench-first"),
        "BERTH_LATER_QUEUE": make_queue(sqs, "bench-later"),
        "BERTH_SECRETS_KEY": kms.create_key()["KeyMetadata"]["KeyId"],
        "BERTH_VERSION": "0.0.0",
        "BERTH_LOOPBACK_DESTINATIONS": "true",
    }.items():
        monkeypatch.setenv(name, value)
    with receivers(KINDS, slow_seconds=0.01) as there:
        yield DeliveryBench(tables.client, tables.session, there, KINDS, per_second=100)
    for name in ("bench-first", "bench-later", "floor"):
        sqs.delete_queue(QueueUrl=sqs.get_queue_url(QueueName=name)["QueueUrl"])


def test_events_reach_living_receivers_and_those_of_dead_ones_are_on_record(delivery_bench: DeliveryBench) -> None:
    published, unrecorded = delivery_bench.berth(8, drain=60)
    floor = delivery_bench.floor(4)
    checked = check([*published, *floor], delivery_bench.receivers.arrivals(), KINDS)
    assert (checked.lost, checked.misdirected, unrecorded) == ([], [], [])
    assert {kind: len(times) for kind, times in checked.milliseconds.items()} == {Kind.QUICK: 4 + 4, Kind.SLOW: 2}
