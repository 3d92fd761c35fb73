"""Operators' requests cost the same for a small fleet and for a large one, in requests and read units."""

from __future__ import annotations

from functools import cache

import pytest

from bench.counted_table import Reads
from bench.growth import MAX_GROWTH, REQUESTS, read_by_request
from orchestrator.adapters.dynamodb import columns, history_rows, keys
from orchestrator.reconciling.fleet_counts import SMALL_FLEET
from orchestrator.tenants.history import HistoryEntry
from orchestrator.tenants.records import Operation, Status
from tests.fakes import ACME, NOON, VERSION

DRY_RUN = "GET /rollouts/{id}: a dry run of all tenants"
SMALL, LARGE = 100, 2 * SMALL_FLEET
FLAT = (
    "GET /releases and doctor: counts by version",
    "the number of tenants, before a create",
    "GET /tenants: a page",
    "GET /tenants/{id}, with as many operations",
    "GET /rollouts/{id}: a rollout in which all tenants failed",
    DRY_RUN,
)


@cache
def reads(size: int, name: str) -> Reads:
    return _fleet(size)[name]


@cache
def _fleet(size: int) -> dict[str, Reads]:
    return dict(read_by_request(size))


@pytest.mark.parametrize("name", FLAT)
def test_a_request_reads_no_more_of_a_large_fleet_than_of_a_small_one(name: str) -> None:
    small, large = reads(SMALL, name), reads(LARGE, name)
    assert large.requests <= small.requests * MAX_GROWTH
    assert large.units <= small.units * MAX_GROWTH


def test_all_requests_that_are_to_be_flat_are_measured() -> None:
    assert set(FLAT) <= {each.name for each in REQUESTS}


def test_rows_of_tenants_and_of_history_never_expire() -> None:
    attributes = {
        name
        for row in (columns.METADATA_ROW, columns.LOCK_ROW, columns.AUDIT_ROW)
        for column in row.values()
        for name in column.names
    }
    entry = HistoryEntry(ACME, NOON, Operation.CREATE, VERSION, 1, Status.SUCCESS, "arn:execution")
    assert keys.EXPIRY not in attributes | history_rows.history_row(entry).keys()
