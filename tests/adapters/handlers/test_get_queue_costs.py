"""The requests that each response of getQueue costs, in order."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import timedelta

import pytest

from orchestrator.adapters.dynamodb.pool import PoolTable
from orchestrator.common.tenant_ids import WARM_PREFIX, TenantId
from orchestrator.pool.records import Member, MemberState, Pool
from orchestrator.reconciling.records import SETTLING
from orchestrator.rollouts.releasing import ReleaseOrdered
from orchestrator.tenants.fleet import LISTED_STATES
from orchestrator.tenants.order_results import Changed
from orchestrator.tenants.records import Operation, Request
from tests.adapters.conftest import TABLE, client
from tests.adapters.handlers.functions import Functions
from tests.costs import COUNTS
from tests.fakes import NOON, QUEUE_TABOO, VERSION, a_release, a_run, stack_arn, take

ASKING = {"tenantId": "acme"}
ROWS_OF_A_TAKING = 8
DELETE = a_run(operation=Operation.DELETE, started_at=NOON + timedelta(minutes=1))
GET, QUERY = "dynamodb.GetItem", "dynamodb.Query"
LOOK = [GET, QUERY, GET]
"""The metadata, which is not served; then the audits, and the metadata again, in this order."""
STATE = GET
"""Which release is current, and which were withdrawn: read if a create may have to be started."""
KEPT = "dynamodb.UpdateItem"
"""The kept number of tenants, to which the create is added."""
COUNT = [KEPT, *[QUERY] * len(LISTED_STATES), KEPT]
"""The count of all tenants, state by state, if none is kept, or if the fleet seems full and the count is old."""
NOTE = "dynamodb.UpdateItem"
"""The caller's creates of this minute. The first of a minute costs two."""
FIRST = [GET, QUERY, STATE]
"""The requests for a new tenant: its metadata and its audits, which are missing, and the release that it gets."""
POOL, BATCH, TAKE = GET, "dynamodb.BatchGetItem", "dynamodb.TransactWriteItems"
"""The list of the stacks that are kept ready, their records, and the transaction that gives one to the tenant."""
START, DESCRIBE = "stepfunctions.StartExecution", "stepfunctions.DescribeExecution"


def cost(functions: Functions, expected: int, *, tenant: str = "acme") -> list[str]:
    before = len(functions.requests)
    assert functions.get_queue({"tenantId": tenant})[0] == expected
    return functions.requests[before:]


def test_a_ready_tenant_costs_one_read(functions: Functions) -> None:
    functions.serve()
    assert cost(functions, 200) == [GET]
    take(functions.table, a_run(operation=Operation.UPDATE, version="0.2.0"))
    assert cost(functions, 200) == [GET]


def test_an_unknown_tenant(functions: Functions) -> None:
    assert cost(functions, 202) == [*LOOK, STATE, *COUNT, NOTE, NOTE, START]
    assert cost(functions, 202) == [*LOOK, STATE, KEPT, NOTE, START]
    assert cost(functions, 202, tenant="another") == [*LOOK, STATE, KEPT, NOTE, START]


class TestAPoolOfStacks:
    """A new tenant takes a stack that is kept ready. docs/costs.json has these counts."""

    @pytest.fixture
    def pool(self, functions: Functions, monkeypatch: pytest.MonkeyPatch) -> Functions:
        monkeypatch.setenv("BERTH_WARM_POOL", "standard=3")
        warm = [TenantId(f"{WARM_PREFIX}{number:016x}") for number in range(3)]
        for each in warm:
            functions.serve(a_run(tenant=each), stack_id=stack_arn(each))
        PoolTable(functions.dynamodb, TABLE).store(Pool({each.value: Member(NOON, VERSION) for each in warm}))
        return functions

    def test_a_new_tenant(self, pool: Functions) -> None:
        first = cost(pool, 200, tenant="new-1")
        assert first == [*FIRST, POOL, BATCH, TAKE]
        following = cost(pool, 200, tenant="new-2")
        assert following == [*FIRST, TAKE]
        assert len(pool.sent[-1][1]["TransactItems"]) == ROWS_OF_A_TAKING
        assert COUNTS["getQueue"] == {
            "a tenant in service": {"reads": 1},
            "a new tenant that takes a warm stack": {"reads": len(FIRST), "rows": ROWS_OF_A_TAKING},
            "the same, the first of a function process, 3 warm stacks": {
                "reads": len(FIRST) + 1 + 3,
                "rows": ROWS_OF_A_TAKING,
            },
        }

    def test_a_new_tenant_once_the_pool_is_empty(self, pool: Functions) -> None:
        for number in range(3):
            pool.get_queue({"tenantId": f"new-{number}"})
        started = [GET, STATE, *COUNT, NOTE, NOTE, START]
        assert cost(pool, 202) == [*FIRST, POOL, BATCH, *started]
        assert cost(pool, 202, tenant="another") == [*FIRST, POOL, GET, STATE, KEPT, NOTE, START]

    def test_a_settling_costs_one_read_of_each_stack(self, pool: Functions) -> None:
        pool.call("reconcile", {"reconciliationId": SETTLING})
        before = len(pool.sent)
        pool.call("reconcile", {"reconciliationId": SETTLING})
        about = [name for name, sent in pool.sent[before:] if WARM_PREFIX in str(sent)]
        assert about == [QUERY] * len(PoolTable(pool.dynamodb, TABLE).pool().members)

    @pytest.mark.parametrize("because", ["its release was withdrawn", "it is pinned to another release"])
    def test_a_stack_that_cannot_learn_its_tenant_costs_two_reads_every_minute(
        self, pool: Functions, because: str
    ) -> None:
        pool.table.record_release(a_release("0.0.1"))
        pool.get_queue({"tenantId": "new-1"})
        use_cases = pool.load("runtime").use_cases
        if because == "its release was withdrawn":
            assert isinstance(use_cases.releasing.withdraw(VERSION, "ada"), ReleaseOrdered)
        else:
            assert isinstance(use_cases.lifecycle.pin(TenantId("new-1"), "0.0.1", Request(by="ada")), Changed)
        pool.call("reconcile", {"reconciliationId": "pool"})
        members = PoolTable(pool.dynamodb, TABLE).pool().members
        (warm,) = (name for name, each in members.items() if each.state is MemberState.LEARNING)
        before = len(pool.sent)
        pool.call("reconcile", {"reconciliationId": "pool"})
        about = [name for name, sent in pool.sent[before:] if warm in str(sent) or "#new-1'" in str(sent)]
        assert sorted(about) == [GET, QUERY]


def test_an_unknown_tenant_in_the_next_minute(functions: Functions) -> None:
    functions.get_queue(ASKING)
    functions.clock.advance(timedelta(minutes=1))
    assert cost(functions, 202) == [*LOOK, STATE, KEPT, NOTE, NOTE, START]


def test_a_create_above_the_rate_limit(functions: Functions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERTH_CREATES_PER_MINUTE", "1")
    functions.get_queue(ASKING)
    assert cost(functions, 429, tenant="another") == [*LOOK, STATE, KEPT, NOTE]


def test_a_tenant_above_the_limit(functions: Functions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERTH_MAX_TENANTS", "1")
    functions.serve()
    assert cost(functions, 409, tenant="another") == [*LOOK, STATE, *COUNT, GET]
    assert cost(functions, 409, tenant="yet-another") == [*LOOK, STATE, KEPT, GET]


def test_an_unknown_tenant_where_get_queue_creates_none(functions: Functions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERTH_CREATE_ON_GET_QUEUE", "false")
    assert cost(functions, 404) == LOOK


def test_without_a_rate_limit(functions: Functions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERTH_CREATES_PER_MINUTE", "0")
    assert cost(functions, 202) == [*LOOK, STATE, *COUNT, START]
    assert cost(functions, 202) == [*LOOK, STATE, KEPT, START]


def test_a_tenant_during_its_create(functions: Functions) -> None:
    take(functions.table, a_run())
    assert cost(functions, 202) == LOOK


def test_a_tenant_whose_create_died(functions: Functions) -> None:
    run, machine = a_run(), os.environ["BERTH_CREATE_MACHINE"]
    execution = f"{machine.replace(':stateMachine:', ':execution:')}:{run.attempt.name}"
    take(functions.table, replace(run, execution=execution))
    functions.clock.advance(timedelta(minutes=6))
    assert cost(functions, 202) == [*LOOK, DESCRIBE, STATE, NOTE, NOTE, START]


def test_a_tenant_whose_create_an_earlier_system_never_ended(functions: Functions) -> None:
    """Its execution is another machine's, so nobody is asked about it."""
    take(functions.table, replace(a_run(), execution="arn:legacy"))
    functions.clock.advance(timedelta(minutes=6))
    assert cost(functions, 202) == LOOK
    functions.clock.advance(timedelta(hours=1))
    assert cost(functions, 202) == [*LOOK, STATE, NOTE, NOTE, START]


def test_an_attempt_that_ended_before_it_could_record_anything(functions: Functions) -> None:
    _, _, body = functions.get_queue(ASKING)
    client("stepfunctions").stop_execution(executionArn=body["execution"])
    assert cost(functions, 202) == [*LOOK, STATE, KEPT, NOTE, START, DESCRIBE, QUERY, GET, STATE, START]


def test_a_tenant_whose_create_failed(functions: Functions) -> None:
    functions.table.fail(a_run(), QUEUE_TABOO, NOON)
    assert cost(functions, 424) == [*LOOK, STATE]


def test_a_tenant_during_and_after_its_delete(functions: Functions) -> None:
    functions.serve()
    take(functions.table, DELETE)
    assert cost(functions, 409) == LOOK
    functions.table.remove(DELETE, at=DELETE.started_at)
    assert cost(functions, 410) == LOOK
