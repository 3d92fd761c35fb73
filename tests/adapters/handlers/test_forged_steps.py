"""Anyone who may invoke a state's function can act as its machine. The function trusts only what it can check.

Step Functions confirms an operation before it takes a tenant. From then on the lock says which operation it is, and
CloudFormation which queue the tenant's stack has.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from orchestrator.common.errors import BerthError, Conflict, Unsettled
from orchestrator.tenants.records import Operation, Queue, Request, Run, Status
from tests.adapters.handlers.functions import CREATE, DELETE, UPDATE, Functions, queue_of, served, step, step_event
from tests.fakes import (
    ACME,
    NEXT_VERSION,
    NOON,
    OTHER_QUEUE,
    QUEUE,
    VERSION,
    FakeStacks,
    a_release,
    a_resource,
    a_run,
    stack_arn,
    take,
)
from tests.present import present

RUNS = [a_run(2, version=NEXT_VERSION), UPDATE, DELETE]
by_operation = pytest.mark.parametrize("run", RUNS, ids=["create", "update", "delete"])
IN_2099 = datetime(2099, 1, 1, tzinfo=UTC)
EVIL = Queue("arn:aws:sqs:eu-west-1:666666666666:evil", "https://sqs.eu-west-1.amazonaws.com/666666666666/evil")


def done(queue: Queue = QUEUE, *, stack_id: str | None = None, version: str = NEXT_VERSION) -> dict[str, Any]:
    """A forged result of InspectStack."""
    shown = {"arn": queue.arn, "url": queue.url}
    return {
        "outcome": "done",
        "stackId": stack_id or stack_arn(),
        "queue": shown,
        "version": version,
        "changedAt": None,
    }


def everything(functions: Functions) -> tuple[object, ...]:
    table = functions.table
    return table.metadata(ACME), table.lock(ACME), list(table.audits(ACME)), list(table.history(ACME))


# Operations that nobody has started


@by_operation
def test_an_operation_without_an_execution_locks_no_tenant(functions: Functions, stacks: FakeStacks, run: Run) -> None:
    before = everything(functions)
    response = functions.call("begin", step_event(run))
    assert response["outcome"] == "again"
    assert "Step Functions does not show" in response["reason"]
    assert everything(functions) == before
    assert served(functions)
    assert stacks.calls == []


@by_operation
def test_an_operation_with_other_input_than_its_execution_locks_no_tenant(
    functions: Functions, stacks: FakeStacks, run: Run
) -> None:
    """Somebody who knows of an execution calls the function before its machine does."""
    assert stacks
    before = everything(functions)
    forged = replace(run, request=Request(by="ada", explicit=True, force=True, allow_replacement=True))
    functions.shown = {run.execution: run}
    assert functions.call("begin", step_event(forged))["outcome"] == "again"
    assert everything(functions) == before


@by_operation
def test_an_ended_execution_locks_no_tenant(functions: Functions, stacks: FakeStacks, run: Run) -> None:
    assert stacks
    before = everything(functions)
    functions.answer("DescribeExecution", {"status": "ABORTED", "startDate": NOON, "input": "{}"})
    functions.use(stacks)
    assert functions.call("begin", step_event(run))["outcome"] == "again"
    assert everything(functions) == before


@by_operation
def test_an_operation_that_was_never_started_cannot_fail(functions: Functions, stacks: FakeStacks, run: Run) -> None:
    assert stacks
    before = everything(functions)
    with pytest.raises(Unsettled, match="Nothing was recorded"):
        functions.call("record_failure", step_event(run, failure={"outcome": "failed", "reason": "It broke."}))
    assert everything(functions) == before


def test_a_forged_failure_does_not_change_a_deleted_tenant(functions: Functions) -> None:
    functions.serve()
    functions.remove(DELETE)
    later = a_run(99_999, operation=Operation.DELETE)
    with pytest.raises(Unsettled):
        functions.call("record_failure", step_event(later, failure={"outcome": "failed", "reason": "It broke."}))
    assert functions.get_queue({"tenantId": "acme"})[0] == 410


def test_a_waiting_execution_records_only_its_own_failure(functions: Functions, stacks: FakeStacks) -> None:
    assert stacks
    take(functions.table, UPDATE)
    before = functions.table.metadata(ACME), functions.table.lock(ACME)
    failure = {"outcome": "failed", "reason": "Another operation owned the tenant all the time."}
    step(functions, "record_failure", DELETE, failure=failure)
    assert (functions.table.metadata(ACME), functions.table.lock(ACME)) == before
    failed = [audit.operation for audit in functions.table.audits(ACME) if audit.status is Status.FAILURE]
    assert failed == [Operation.DELETE]


@pytest.mark.parametrize(
    ("name", "more"),
    [("begin", {}), ("record_failure", {"failure": {"outcome": "failed", "reason": "It broke."}})],
    ids=["begin", "record_failure"],
)
@by_operation
def test_the_time_of_a_request_is_the_start_of_its_execution(
    functions: Functions, stacks: FakeStacks, run: Run, name: str, more: dict[str, Any]
) -> None:
    """A delete that was requested in the future would refuse every later create."""
    assert stacks
    functions.shown = {run.execution: run}
    functions.call(name, step_event(replace(run, started_at=IN_2099), **more))
    (audit,) = [audit for audit in functions.table.audits(ACME) if audit.execution == run.execution]
    assert audit.asked_at == run.started_at
    lock = functions.table.lock(ACME)
    assert lock is None or lock.run.started_at == run.started_at


# Operations that are under way, and something else that is said about them


def test_an_update_is_not_finished_as_a_delete(functions: Functions, stacks: FakeStacks) -> None:
    assert stacks
    take(functions.table, UPDATE)
    before = everything(functions)
    forged = replace(DELETE, execution=UPDATE.execution)
    with pytest.raises(Conflict, match="cannot end with"):
        step(functions, "finish", forged, stack={"outcome": "gone"})
    assert everything(functions) == before
    assert served(functions)


def test_a_delete_is_not_finished_while_the_stack_stands(functions: Functions, stacks: FakeStacks) -> None:
    (stack,) = stacks.living
    take(functions.table, DELETE)
    before = everything(functions)
    with pytest.raises(Conflict, match="was reported as done"):
        step(functions, "finish", DELETE, stack={"outcome": "gone"})
    assert everything(functions) == before
    stacks.change(stack.stack_id, "DELETE_COMPLETE")
    assert step(functions, "finish", DELETE, stack={"outcome": "gone"}) == {"outcome": "removed"}


@pytest.mark.parametrize(
    "response",
    [
        pytest.param(done(EVIL), id="an attacker's queue"),
        pytest.param(done(OTHER_QUEUE), id="another tenant's queue"),
        pytest.param(done(Queue(QUEUE.arn, EVIL.url)), id="half of it"),
        pytest.param(done(stack_id=stack_arn(number=66)), id="another stack"),
        pytest.param(done(version="9.9.9"), id="another version"),
    ],
)
@pytest.mark.parametrize("operation", [Operation.CREATE, Operation.UPDATE])
def test_the_published_queue_is_the_one_of_the_stack(
    functions: Functions, stacks: FakeStacks, operation: Operation, response: dict[str, Any]
) -> None:
    run = a_run(operation=operation, version=NEXT_VERSION)
    take(functions.table, run)
    before = everything(functions)
    stacks.plant_done(ACME, queue=EVIL, ours=False)  # Whoever can make a stack has made one of that name.
    with pytest.raises(BerthError):
        step(functions, "finish", run, stack=response)
    assert everything(functions) == before
    assert queue_of(functions) == QUEUE


def test_a_recorded_queue_is_published_with_the_outputs_that_cloudformation_shows(
    functions: Functions, stacks: FakeStacks
) -> None:
    take(functions.table, UPDATE)
    stacks.calls.clear()
    assert step(functions, "finish", UPDATE, stack=done()) == {"outcome": "published"}
    assert stacks.calls == ["find"], "the payload is not trusted with the outputs"


def test_the_owner_of_a_tenant_is_the_recorded_requester(functions: Functions) -> None:
    stacks = functions.use(FakeStacks())
    stacks.plant_done(ACME)
    take(functions.table, CREATE)
    forged = replace(CREATE, request=Request(by=str(a_resource()), resource=a_resource(), explicit=True))
    step(functions, "finish", forged, stack=done(version=VERSION))
    metadata = present(functions.table.metadata(ACME))
    assert metadata.created_by == CREATE.request.by


def test_a_forged_permission_does_not_replace_a_queue(functions: Functions, stacks: FakeStacks) -> None:
    (stack,) = stacks.living
    take(functions.table, UPDATE)
    forged = replace(DELETE, execution=UPDATE.execution, request=Request(force=True, allow_replacement=True))
    response = step(functions, "start_stack", forged)
    assert response["outcome"] == "reviewing"
    assert "delete" not in stacks.calls
    assert stacks.find(stack.stack_id) == stack


def test_a_failure_does_not_describe_other_stacks(functions: Functions, stacks: FakeStacks) -> None:
    take(functions.table, UPDATE)
    elsewhere = stack_arn(a_run().tenant).replace("berth-tenant-", "payroll-")
    stacks.calls.clear()
    failure = {"outcome": "failed", "reason": "It broke.", "failedStack": elsewhere}
    assert "It broke." in step(functions, "record_failure", UPDATE, failure=failure)["Cause"]
    assert stacks.calls == []


# Events about executions that have ended


def test_an_ended_execution_is_closed_from_its_own_row(functions: Functions) -> None:
    """It had lost its lock, so only its audit row says what it was at."""
    functions.serve()
    functions.use(FakeStacks())
    take(functions.table, UPDATE)
    functions.dynamodb.delete_item(TableName="berth", Key={"pk": {"S": "TENANT_ID#acme"}, "sk": {"S": "LOCK"}})
    forged = step_event(a_run(99_999, operation=Operation.DELETE))["execution"]
    detail = {
        "executionArn": UPDATE.execution,
        "startDate": int((NOON - timedelta(hours=1)).timestamp() * 1000),
        "input": json.dumps(forged["Input"]),  # type: ignore[index]
    }
    body = json.dumps({"source": "aws.states", "detail": detail})
    functions.call("close_execution", {"Records": [{"messageId": "1", "body": body}]})
    audits = {audit.operation: (audit.status, audit.attempt) for audit in functions.table.audits(ACME)}
    assert audits == {Operation.CREATE: (Status.SUCCESS, 1), Operation.UPDATE: (Status.FAILURE, 1)}


def test_the_releases_of_these_tests_are_published(functions: Functions, stacks: FakeStacks) -> None:
    """Otherwise the tests above might see a refusal for that reason."""
    assert stacks
    assert functions.table.release(NEXT_VERSION) == a_release(NEXT_VERSION)
    assert step(functions, "begin", UPDATE)["outcome"] == "begun"
