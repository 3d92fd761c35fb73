"""The pool in the table, and a tenant that takes a stack: one contract for the fakes and for DynamoDB."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.adapters.dynamodb.pool import PoolTable
from orchestrator.common.tenant_ids import TenantId
from orchestrator.pool.ports import PoolRows
from orchestrator.pool.records import Member, MemberState, Pool, TierOfPool
from orchestrator.pool.seen import SeenStacks
from orchestrator.pool.taking import Taking, taken
from orchestrator.tenants.ports import Publication
from orchestrator.tenants.ready import Ready
from orchestrator.tenants.records import Attempt, Metadata, Operation, Request, Status, TenantState
from tests.adapters.conftest import TABLE
from tests.adapters.tables import WholeTable
from tests.fakes import ACME, NOON, QUEUE, VERSION, FakeClock, FakeExecutions, a_run, stack_arn, take
from tests.fakes.pool import InMemoryPool
from tests.present import present

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

WARM, OTHER = TenantId("berth-warm-0123456789abcdef"), TenantId("globex")
OTHER_WARM = TenantId("berth-warm-1")
MEMBERS = Pool(
    {
        WARM.value: Member(NOON, VERSION, state=MemberState.READY),
        OTHER_WARM.value: Member(NOON),
        "berth-warm-2": Member(NOON, tier="gold", state=MemberState.FAILED),
    },
    {"gold": TierOfPool(NOON, "Queue quota exceeded.", NOON), "standard": TierOfPool(NOON)},
)


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
    assert set(pool.pool().members) == {WARM.value, "berth-warm-2"}


def test_the_metadata_of_many_is_that_of_those_that_have_any(table: WholeTable) -> None:
    a_warm_stack(table)
    other = a_warm_stack(table, OTHER_WARM)
    found = table.metadata_of([WARM, TenantId("berth-warm-none"), OTHER_WARM])
    assert {each.tenant: each for each in found} == {WARM: present(table.metadata(WARM)), OTHER_WARM: other}
    assert table.metadata_of([]) == []


# A tenant takes a stack


def a_warm_stack(table: WholeTable, warm: TenantId = WARM) -> Metadata:
    run = a_run(tenant=warm)
    take(table, run)
    publication = Publication(
        stack_arn(warm),
        QUEUE,
        VERSION,
        "a fingerprint",
        created_by="pool",
        stack_changed_at=NOON,
        resources={"BucketName": "a-bucket"},
        tier="gold",
    )
    table.publish(run, publication, at=NOON)
    return present(table.metadata(warm))


def taking(table: WholeTable) -> Taking:
    pool = InMemoryPool()
    pool.store(MEMBERS)
    return Taking(pool, table, FakeExecutions(), FakeClock(), SeenStacks())


def the_create(tenant: TenantId = ACME) -> Attempt:
    return Attempt(tenant, Operation.CREATE, VERSION, 1)


def test_a_tenant_takes_a_stack_with_everything_that_is_recorded_about_it(table: WholeTable) -> None:
    warm = a_warm_stack(table)
    assert taking(table).take(the_create(), Request(by="a platform")) == Ready(
        QUEUE, VERSION, {"BucketName": "a-bucket"}
    )
    own = present(table.metadata(ACME))
    assert (own.queue, own.stack_id, own.version, own.deployed) == (QUEUE, warm.stack_id, VERSION, "a fingerprint")
    assert (own.stack_changed_at, own.resources, own.tier) == (NOON, {"BucketName": "a-bucket"}, "gold")
    assert (own.created_by, own.created_at) == ("a platform", NOON)
    given = present(table.metadata(WARM))
    assert (given.given_to, given.gone_stack_id, given.queue, given.stack_id) == (ACME.value, warm.stack_id, None, None)
    assert [each.tenant for each in table.tenants_in(TenantState.READY, limit=10)] == [ACME]
    (audit,) = table.audits(ACME)
    assert (audit.status, audit.attempt, audit.version) == (Status.SUCCESS, 0, VERSION)


def test_a_stack_is_taken_once(table: WholeTable) -> None:
    a_warm_stack(table)
    taking(table).take(the_create(), Request())
    assert taking(table).take(the_create(OTHER), Request()) is None
    assert table.metadata(OTHER) is None
    assert table.audits(OTHER) == []


def test_a_stack_that_an_operation_is_at_work_on_is_not_taken(table: WholeTable) -> None:
    a_warm_stack(table)
    take(table, a_run(tenant=WARM, operation=Operation.DELETE))
    assert taking(table).take(the_create(), Request()) is None
    assert table.metadata(ACME) is None


def test_a_tenant_that_has_begun_to_be_created_takes_none(table: WholeTable) -> None:
    warm = a_warm_stack(table)
    take(table, a_run())
    assert taking(table).take(the_create(), Request()) is None
    assert table.metadata(WARM) == warm


@pytest.mark.parametrize(
    "changes",
    [
        {"deployed": "another"},
        {"deployed": None},
        {"stack_changed_at": NOON + timedelta(seconds=1)},
        {"resources": {}},
        {"tier": "silver"},
    ],
    ids=str,
)
def test_a_stack_whose_record_has_changed_since_it_was_read_is_not_given_as_it_was(
    table: WholeTable, changes: dict[str, Any]
) -> None:
    seen = a_warm_stack(table)
    run = a_run(tenant=WARM, operation=Operation.UPDATE, started_at=NOON + timedelta(seconds=1))
    take(table, run)
    now: dict[str, Any] = {
        "deployed": "a fingerprint",
        "stack_changed_at": NOON,
        "resources": seen.resources,
        "tier": "gold",
        **changes,
    }
    table.publish(run, Publication(stack_arn(WARM), QUEUE, VERSION, **now), at=run.started_at)
    assert not table.apply(taken(seen, a_run(number=0)))
    assert table.apply(taken(present(table.metadata(WARM)), a_run(number=0)))
    own = present(table.metadata(ACME))
    assert {name: getattr(own, name) for name in now} == now
