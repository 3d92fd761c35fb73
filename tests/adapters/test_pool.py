"""The pool in the table, and a tenant that takes a stack: one contract for the fakes and for DynamoDB."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orchestrator.adapters.dynamodb.pool import PoolTable
from orchestrator.common.tenant_ids import TenantId
from orchestrator.pool.ports import PoolRows
from orchestrator.pool.records import Member, Pool
from tests.adapters.conftest import TABLE
from tests.fakes import (
    NOON,
    VERSION,
)
from tests.fakes.pool import InMemoryPool

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

WARM, OTHER = TenantId("berth-warm-0123456789abcdef"), TenantId("globex")
MEMBERS = Pool({WARM.value: Member(NOON, VERSION), "berth-warm-1": Member(NOON)})


@pytest.fixture
def pool(rows: DynamoDBClient | None) -> PoolRows:
    return PoolTable(rows, TABLE) if rows else InMemoryPool()


def test_there_is_no_pool_at_first(pool: PoolRows) -> None:
    assert pool.pool() == Pool()


def test_the_pool_is_read_as_it_was_stored_and_not_overwritten_by_who_has_read_an_earlier_one(pool: PoolRows) -> None:
    assert pool.store(MEMBERS)
    assert pool.pool() == replace(MEMBERS, revision=1)
    assert not pool.store(MEMBERS)
    assert pool.store(pool.pool().without("berth-warm-1"))
    assert set(pool.pool().members) == {WARM.value}
