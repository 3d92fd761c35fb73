"""The newest operations of the whole fleet."""

from __future__ import annotations

from datetime import timedelta

from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.recent import ExecutionStatus, RecentExecution, RecentOperation, recent_operations
from orchestrator.tenants.records import Operation
from tests.fakes import EXPLICIT, NEXT_VERSION, NOON, FakeClock, FakeExecutions, an_attempt, execution_arn


def test_operations_of_all_kinds_are_merged_newest_first() -> None:
    clock = FakeClock()
    executions = FakeExecutions(clock)
    begun = []
    for number, operation in enumerate((Operation.CREATE, Operation.DELETE, Operation.UPDATE, Operation.CREATE), 1):
        attempt = an_attempt(number, operation=operation, version=NEXT_VERSION)
        begun.append(executions.start(attempt, EXPLICIT))
        clock.advance(timedelta(seconds=1))
    found = recent_operations(executions, limit=3)
    assert [each.ran.execution for each in found] == begun[:0:-1]
    assert [each.operation for each in found] == [Operation.CREATE, Operation.UPDATE, Operation.DELETE]


def test_the_tenant_and_the_release_are_read_from_the_name() -> None:
    tenant = TenantId.parse("acme-0-1")
    update = an_attempt(12, tenant=tenant, operation=Operation.UPDATE, version="1.20.3")
    found = RecentOperation(Operation.UPDATE, _ran(update.name))
    assert (found.tenant, found.release) == (tenant, "1.20.3")
    delete = RecentOperation(Operation.DELETE, _ran(an_attempt(2, tenant=tenant, operation=Operation.DELETE).name))
    assert (delete.tenant, delete.release) == (tenant, None)


def test_an_execution_that_somebody_has_started_by_hand_has_no_tenant() -> None:
    assert RecentOperation(Operation.CREATE, _ran("my-test")).tenant is None


def _ran(name: str) -> RecentExecution:
    return RecentExecution(name, execution_arn(name), ExecutionStatus.SUCCEEDED, NOON, NOON)
