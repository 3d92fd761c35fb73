"""How creates are counted by caller: one contract for the fake and for DynamoDB."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.adapters.dynamodb.create_counts import DynamoCreateCounts, DynamoTenantCounts
from orchestrator.adapters.dynamodb.keys import CREATES_PREFIX, creates_key
from orchestrator.common.errors import Unsettled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.limits import TenantCount, TenantCounts
from orchestrator.tenants.ports import CreateCounts
from tests.adapters.conftest import TABLE
from tests.fakes import ACME, NOON, InMemoryCreateCounts, InMemoryTenantCounts

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

CALLER = "arn:aws:sts::123456789012:assumed-role/platform"
NEXT = NOON + timedelta(minutes=1)
GLOBEX, INITECH = TenantId.parse("globex"), TenantId.parse("initech")


@pytest.fixture
def counts(rows: DynamoDBClient | None) -> CreateCounts:
    return DynamoCreateCounts(rows, TABLE) if rows else InMemoryCreateCounts()


def test_creates_are_counted_up_to_the_limit(counts: CreateCounts) -> None:
    assert counts.count(CALLER, ACME, window=NOON, limit=2) is None
    assert counts.count(CALLER, GLOBEX, window=NOON, limit=2) is None
    assert counts.count(CALLER, INITECH, window=NOON, limit=2) == NOON


def test_a_tenant_is_counted_once(counts: CreateCounts) -> None:
    for _ in range(3):
        assert counts.count(CALLER, ACME, window=NOON, limit=1) is None
    assert counts.count(CALLER, GLOBEX, window=NOON, limit=1) == NOON
    assert counts.count(CALLER, ACME, window=NOON, limit=1) is None


def test_the_next_window_starts_at_zero(counts: CreateCounts) -> None:
    counts.count(CALLER, ACME, window=NOON, limit=1)
    assert counts.count(CALLER, GLOBEX, window=NEXT, limit=1) is None
    assert counts.count(CALLER, ACME, window=NEXT, limit=1) == NEXT


def test_a_window_that_another_clock_began_counts(counts: CreateCounts) -> None:
    counts.count(CALLER, ACME, window=NEXT, limit=2)
    assert counts.count(CALLER, GLOBEX, window=NOON, limit=2) is None
    assert counts.count(CALLER, INITECH, window=NOON, limit=2) == NEXT


def test_callers_are_counted_separately(counts: CreateCounts) -> None:
    counts.count(CALLER, ACME, window=NOON, limit=1)
    assert counts.count("another", GLOBEX, window=NOON, limit=1) is None


def test_a_create_is_remembered_while_its_window_is_recent(counts: CreateCounts) -> None:
    assert not counts.is_counted(CALLER, ACME, since=NOON)
    counts.count(CALLER, ACME, window=NOON, limit=1)
    counts.count(CALLER, GLOBEX, window=NOON, limit=1)
    assert counts.is_counted(CALLER, ACME, since=NOON)
    assert not counts.is_counted(CALLER, GLOBEX, since=NOON)
    assert not counts.is_counted("another", ACME, since=NOON)
    assert not counts.is_counted(CALLER, ACME, since=NEXT)


def test_a_caller_has_one_row_however_many_windows_and_tenants(dynamodb: DynamoDBClient) -> None:
    counts = DynamoCreateCounts(dynamodb, TABLE)
    for number in range(10):
        for tenant in (ACME, GLOBEX):
            counts.count(CALLER, tenant, window=NOON + number * timedelta(minutes=1), limit=1)
    (row,) = dynamodb.scan(TableName=TABLE)["Items"]
    assert row["pk"] == creates_key(CALLER)["pk"]
    assert row["Tenants"] == {"SS": ["acme"]}


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=3_000).filter(str.isprintable))
def test_any_caller_fits_a_key(caller: str) -> None:
    key = creates_key(caller)["pk"]["S"]
    assert key.startswith(CREATES_PREFIX)
    assert len(key) < 100


def test_conflicting_writes_are_not_retried_for_ever(monkeypatch: pytest.MonkeyPatch, dynamodb: DynamoDBClient) -> None:
    counts = DynamoCreateCounts(dynamodb, TABLE)
    monkeypatch.setattr(counts, "_update", lambda *_: {})
    with pytest.raises(Unsettled, match=r"acme.*Try again"):
        counts.count(CALLER, ACME, window=NOON, limit=1)


# The kept number of tenants


@pytest.fixture
def kept(rows: DynamoDBClient | None) -> TenantCounts:
    return DynamoTenantCounts(rows, TABLE) if rows else InMemoryTenantCounts()


def test_tenants_that_were_never_counted_have_only_started_creates(kept: TenantCounts) -> None:
    assert kept.start(0) == TenantCount(0)
    assert kept.start(1) == TenantCount(1)


def test_a_kept_count_keeps_the_creates_that_started_during_the_count(kept: TenantCounts) -> None:
    seen = kept.start(2)
    kept.start(1)
    kept.keep(7, NOON, seen=seen)
    assert kept.start(1) == TenantCount(2, 7, NOON)


def test_the_first_of_two_simultaneous_counts_is_kept(kept: TenantCounts) -> None:
    seen = kept.start(1)
    kept.keep(7, NOON, seen=seen)
    kept.keep(8, NEXT, seen=seen)
    again = kept.start(0)
    assert again == TenantCount(0, 7, NOON)
    kept.keep(9, NEXT, seen=again)
    assert kept.start(0) == TenantCount(0, 9, NEXT)
