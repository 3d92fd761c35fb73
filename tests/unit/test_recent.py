"""The newest operations of the whole fleet."""

from __future__ import annotations

from datetime import timedelta

from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.recent import (
    REMEMBERED_FOR,
    ExecutionStatus,
    RecentExecution,
    RecentOperation,
    RecentOperations,
)
from orchestrator.tenants.records import Operation
from tests.fakes import EXPLICIT, NEXT_VERSION, NOON, FakeClock, FakeExecutions, an_attempt, execution_arn
from tests.present import present


def test_operations_of_all_kinds_are_merged_newest_first() -> None:
    clock = FakeClock()
    executions = FakeExecutions(clock)
    begun = []
    for number, operation in enumerate((Operation.CREATE, Operation.DELETE, Operation.UPDATE, Operation.CREATE), 1):
        attempt = an_attempt(number, operation=operation, version=NEXT_VERSION)
        begun.append(executions.start(attempt, EXPLICIT))
        clock.advance(timedelta(seconds=1))
    found = RecentOperations(executions, clock).newest(limit=3)
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


class Counted(FakeExecutions):
    """Counts the lists, each of the executions of one machine."""

    lists = 0

    def recent(self, operation: Operation, *, limit: int) -> list[RecentExecution]:
        self.lists += 1
        return super().recent(operation, limit=limit)


def test_however_many_ask_within_some_seconds_the_executions_are_listed_once() -> None:
    clock = FakeClock()
    executions = Counted(clock)
    recent = RecentOperations(executions, clock)
    started = executions.start(an_attempt(), EXPLICIT)
    assert [each.ran.execution for _ in range(20) for each in recent.newest(limit=50)] == [started] * 20
    assert executions.lists == len(Operation)


def test_an_operation_is_listed_and_has_its_new_status_after_some_seconds() -> None:
    clock = FakeClock()
    executions = Counted(clock)
    recent = RecentOperations(executions, clock)
    assert recent.newest(limit=50) == []
    execution = present(executions.start(an_attempt(), EXPLICIT))
    clock.advance(REMEMBERED_FOR)
    assert [each.ran.status for each in recent.newest(limit=50)] == [ExecutionStatus.RUNNING]
    executions.end(execution)
    clock.advance(REMEMBERED_FOR)
    assert [each.ran.status for each in recent.newest(limit=50)] == [ExecutionStatus.SUCCEEDED]


def test_a_shorter_list_is_a_part_of_a_longer_one_and_a_longer_one_is_listed_anew() -> None:
    clock = FakeClock()
    executions = Counted(clock)
    recent = RecentOperations(executions, clock)
    for number in (1, 2, 3):
        executions.start(an_attempt(number), EXPLICIT)
        clock.advance(timedelta(milliseconds=1))
    assert [len(recent.newest(limit=limit)) for limit in (2, 1)] == [2, 1]
    assert executions.lists == len(Operation)
    assert len(recent.newest(limit=3)) == 3
    assert executions.lists == 2 * len(Operation)


def test_a_clock_that_was_set_back_does_not_keep_an_old_list() -> None:
    clock = FakeClock()
    executions = Counted(clock)
    recent = RecentOperations(executions, clock)
    recent.newest(limit=1)
    clock.advance(-timedelta(hours=1))
    recent.newest(limit=1)
    assert executions.lists == 2 * len(Operation)


def _ran(name: str) -> RecentExecution:
    return RecentExecution(name, execution_arn(name), ExecutionStatus.SUCCEEDED, NOON, NOON)
