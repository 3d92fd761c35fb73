"""The parts of the benchmark that need tables run, and the table reports what the floor says, on small counts."""

from __future__ import annotations

from collections.abc import Iterator

import boto3
import pytest
from botocore.session import Session

from bench.event_capacity import FLOOR, capacity_results
from bench.event_plane import EventPlane, made, make_tables
from bench.event_settings import EVENTS_TABLE, FUNCTION_ENVIRONMENT, TABLE
from bench.event_sizes import a_row, largest_payload
from bench.event_speed import accept_results, read_results
from orchestrator.adapters import aws as aws_clients
from orchestrator.local.emulator import Emulator
from tests.adapters.handlers.functions import forget_functions


@pytest.fixture
def event_plane(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> Iterator[EventPlane]:
    environment = FUNCTION_ENVIRONMENT | emulator.client_environment() | {"POWERTOOLS_LOG_LEVEL": "CRITICAL"}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    session = Session()
    monkeypatch.setattr(aws_clients, "_session", lambda: session)
    client = boto3.session.Session().client("dynamodb")
    make_tables(client)
    forget_functions()
    yield made(client)
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


@pytest.mark.parametrize(("type_index", "inbox"), [(False, False), (True, True)])
def test_the_table_reports_another_write_unit_for_one_byte_more(
    event_plane: EventPlane, type_index: bool, inbox: bool
) -> None:
    largest = largest_payload(type_index=type_index, inbox=inbox)
    units = [
        event_plane.client.put_item(
            TableName=EVENTS_TABLE,
            Item=a_row(b"x" * size, type_index=type_index, inbox=inbox) | {"sk": {"S": f"EVT#{size:036}"}},
            ReturnConsumedCapacity="INDEXES",
        )["ConsumedCapacity"]["Table"]["CapacityUnits"]
        for size in (largest, largest + 1)
    ]
    assert units == [1, 2]
