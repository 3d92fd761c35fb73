"""The states of the machines: one function each, called with what the state before it said."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from orchestrator.common.errors import InvalidRequest, LostOwnership, StackNotOurs, Throttled, UnknownRelease
from orchestrator.tenants.deadlines import DEADLINE, MAX_WAIT_FOR_TURN
from orchestrator.tenants.outcomes import Done
from orchestrator.tenants.records import Operation, Request, RootCause, Run, Status
from tests.adapters.conftest import client
from tests.adapters.handlers.functions import (
    CREATE,
    DELETE,
    SERVICE_TOKEN,
    STACK_ROLE,
    UPDATE,
    Functions,
    Lines,
    plant_stack,
    queue_of,
    served,
    step,
)
from tests.fakes import (
    ACME,
    EXPLICIT,
    NEXT_VERSION,
    NOON,
    QUEUE,
    VERSION,
    FakeStacks,
    a_release,
    a_run,
    stack_arn,
    take,
)
from tests.present import present


class TestBegin:
    def test_begin_locks_the_tenant(self, functions: Functions) -> None:
        functions.table.record_release(a_release())
        assert step(functions, "begin", CREATE) == {"outcome": "begun"}
        lock = present(functions.table.lock(ACME))
        assert lock.run == CREATE

    @pytest.mark.parametrize("run", [UPDATE, DELETE], ids=["update", "delete"])
    def test_begin_returns_the_holder_of_a_busy_tenant(self, functions: Functions, run: Run) -> None:
        take(functions.table, CREATE)
        assert step(functions, "begin", run) == {"outcome": "busy", "holder": CREATE.execution}

    @pytest.mark.parametrize("run", [UPDATE, DELETE], ids=["update", "delete"])
    def test_begin_takes_over_from_a_dead_execution(self, functions: Functions, run: Run) -> None:
        functions.serve()
        functions.table.record_release(a_release(NEXT_VERSION))
        dead = a_run(2, operation=Operation.UPDATE)
        take(functions.table, dead)
        functions.clock.advance(timedelta(minutes=5))
        assert step(functions, "begin", run) == {"outcome": "begun"}
        lock = present(functions.table.lock(ACME))
        assert lock.run.execution == run.execution

    def test_an_update_begins_with_its_request_and_the_tenant_stays_ready(
        self, functions: Functions, stacks: FakeStacks
    ) -> None:
        run = a_run(
            operation=Operation.UPDATE,
            version=NEXT_VERSION,
            started_at=UPDATE.started_at,
            request=Request(by="ada", allow_replacement=True),
        )
        assert step(functions, "begin", run) == {"outcome": "begun"}
        lock = present(functions.table.lock(ACME))
        assert lock.run.request == run.request
        assert served(functions)
        assert stacks.calls == []

    def test_a_delete_begins_by_withdrawing_the_queue(self, functions: Functions) -> None:
        functions.serve()
        assert step(functions, "begin", DELETE) == {"outcome": "begun"}
        metadata = present(functions.table.metadata(ACME))
        assert (metadata.withdrawn_by, metadata.published) == (DELETE.execution, False)
        assert functions.get_queue({"tenantId": "acme"})[0] == 409

    def test_only_an_explicit_create_revives_a_deleted_tenant(self, functions: Functions) -> None:
        functions.serve()
        functions.remove(DELETE)
        stray = a_run(2, started_at=NOON + timedelta(minutes=2), request=Request(by="a platform"))
        response = step(functions, "begin", stray)
        assert response["outcome"] == "failed"
        assert "was deleted" in response["reason"]
        step(functions, "record_failure", stray, failure=response)
        assert functions.get_queue({"tenantId": "acme"})[0] == 410
        explicit = a_run(3, started_at=NOON + timedelta(minutes=3), request=EXPLICIT)
        assert step(functions, "begin", explicit) == {"outcome": "begun"}
        assert functions.get_queue({"tenantId": "acme"})[0] == 202

    @pytest.mark.parametrize(
        ("run", "reason"),
        [
            (a_run(operation=Operation.UPDATE, version="9.9.9"), "never published"),
            (a_run(version="9.9.9"), "never published"),
            (a_run(operation=Operation.UPDATE, version="0.0.9"), "is older"),
        ],
        ids=["update to nowhere", "create of nothing", "downgrade"],
    )
    def test_a_run_that_is_not_allowed_fails(self, functions: Functions, run: Run, reason: str) -> None:
        functions.serve()
        functions.table.record_release(a_release("0.0.9"))
        response = step(functions, "begin", run)
        assert (response["outcome"], response["failedStack"]) == ("failed", None)
        assert reason in response["reason"]


class TestCreate:
    def test_a_stack_is_created_and_its_queue_published(self, functions: Functions, stack: str) -> None:
        (sent,) = functions.sent_to("cloudformation.CreateStack")
        assert sent["RoleARN"] == STACK_ROLE
        assert sent["Parameters"][1]["ParameterValue"] == SERVICE_TOKEN
        metadata = present(functions.table.metadata(ACME))
        assert (metadata.stack_id, metadata.version, metadata.published) == (stack, VERSION, True)
        assert functions.table.lock(ACME) is None

    def test_a_stack_that_somebody_else_created_is_not_adopted(self, functions: Functions) -> None:
        functions.table.record_release(a_release())
        planted = plant_stack(ACME)
        assert step(functions, "begin", CREATE) == {"outcome": "begun"}
        with pytest.raises(StackNotOurs, match="Berth did not make it"):
            step(functions, "start_stack", CREATE)
        (stack,) = client("cloudformation").describe_stacks(StackName=planted)["Stacks"]
        assert stack["StackStatus"] == "CREATE_COMPLETE"
        assert not served(functions)

    def test_an_own_stack_is_adopted_after_a_lost_response(self, functions: Functions) -> None:
        functions.table.record_release(a_release())
        made = plant_stack(ACME, role=STACK_ROLE)
        step(functions, "begin", CREATE)
        inspected = step(functions, "start_stack", CREATE)
        assert (inspected["outcome"], inspected["stackId"]) == ("done", made)
        assert step(functions, "finish", CREATE, stack=inspected) == {"outcome": "published"}

    def test_a_queue_that_is_no_resource_of_the_stack_is_not_published(self, functions: Functions) -> None:
        functions.table.record_release(a_release())
        url = client("sqs").create_queue(QueueName="evil")["QueueUrl"]
        outputs = {
            "InboundQueueArn": {"Value": "arn:aws:sqs:eu-west-1:123456789012:evil"},
            "InboundQueueUrl": {"Value": url},
            "Version": {"Value": VERSION},
        }
        plant_stack(ACME, role=STACK_ROLE, Outputs=outputs)
        step(functions, "begin", CREATE)
        assert step(functions, "start_stack", CREATE)["outcome"] == "notReady"
        functions.clock.advance(2 * DEADLINE)
        inspected = step(functions, "inspect_stack", CREATE)
        assert inspected["outcome"] == "failed"
        assert url in inspected["reason"]

    def test_a_queue_that_does_not_answer_yet_is_not_published(self, functions: Functions, stack: str) -> None:
        again = a_run(2)
        take(functions.table, again)
        client("sqs").delete_queue(QueueUrl=queue_of(functions).url)
        remember(functions, again, stack)
        response = step(functions, "inspect_stack", again)
        assert response == {"outcome": "notReady", "reason": "its queue cannot be used yet"}


def remember(functions: Functions, run: Run, stack_id: str, outcome: str = "started") -> None:
    """An earlier step of the run has started the stack."""
    functions.table.remember_started(run, "an earlier token", stack_id=stack_id, outcome=outcome)


class TestStartStack:
    """StartStack waits with its task token, and CloudFormation's event ends the wait."""

    def test_a_create_waits_for_its_stack_and_is_resumed_with_it(self, functions: Functions) -> None:
        functions.table.record_release(a_release())
        stacks = functions.use(FakeStacks())
        step(functions, "begin", CREATE)
        assert step(functions, "start_stack", CREATE, taskToken="token") == {"outcome": "waiting"}
        assert functions.sent_to("stepfunctions.SendTaskSuccess") == []
        (created,) = stacks.living
        stacks.settle()
        functions.call("stack_event", {"detail": {"stack-id": created.stack_id}})
        (sent,) = functions.sent_to("stepfunctions.SendTaskSuccess")
        resumed = json.loads(sent["output"])
        assert (sent["taskToken"], resumed["outcome"], resumed["stackId"]) == ("token", "done", created.stack_id)
        assert step(functions, "finish", CREATE, stack=resumed) == {"outcome": "published"}

    def test_an_outcome_without_a_change_ends_the_wait_at_once(self, functions: Functions) -> None:
        functions.table.record_release(a_release())
        functions.use(FakeStacks()).throttled_calls = 1
        step(functions, "begin", CREATE)
        outcome = step(functions, "start_stack", CREATE, taskToken="token")
        assert outcome == {"outcome": "again", "reason": "find: Rate exceeded", "throttled": True}
        (sent,) = functions.sent_to("stepfunctions.SendTaskSuccess")
        assert (sent["taskToken"], json.loads(sent["output"])) == ("token", outcome)

    def test_throttling_of_the_table_ends_the_wait_at_once(self, functions: Functions) -> None:
        functions.throttle("GetItem")
        assert step(functions, "start_stack", CREATE, taskToken="token")["outcome"] == "again"
        assert len(functions.sent_to("stepfunctions.SendTaskSuccess")) == 1

    def test_after_the_timeout_the_stack_is_inspected_that_was_started(self, functions: Functions) -> None:
        functions.table.record_release(a_release())
        stacks = functions.use(FakeStacks())
        step(functions, "begin", CREATE)
        step(functions, "start_stack", CREATE, taskToken="token")
        assert step(functions, "inspect_stack", CREATE) == {"outcome": "working"}
        assert step(functions, "await_stack", CREATE, taskToken="another token") == {"outcome": "waiting"}
        stacks.settle()
        assert step(functions, "inspect_stack", CREATE)["outcome"] == "done"


class TestAwaitStack:
    @pytest.mark.parametrize("run", [CREATE, UPDATE, DELETE], ids=["create", "update", "delete"])
    def test_await_stack_stores_the_task_token(self, functions: Functions, run: Run) -> None:
        take(functions.table, run)
        assert step(functions, "await_stack", run) == {"outcome": "settled"}
        lock = present(functions.table.lock(ACME))
        assert lock.task_token == "token"

    def test_a_run_whose_stack_is_not_changing_continues_at_once(
        self, functions: Functions, stacks: FakeStacks
    ) -> None:
        (planted,) = stacks.living
        take(functions.table, UPDATE)
        remember(functions, UPDATE, planted.stack_id, "unchanged")
        step(functions, "await_stack", UPDATE)
        sent = {"taskToken": "token", "output": '{"outcome": "settled"}'}
        assert functions.sent_to("stepfunctions.SendTaskSuccess") == [sent]

    def test_a_run_whose_stack_is_changing_waits(self, functions: Functions, stacks: FakeStacks) -> None:
        (planted,) = stacks.living
        stacks.change(planted.stack_id, "UPDATE_IN_PROGRESS")
        take(functions.table, UPDATE)
        remember(functions, UPDATE, planted.stack_id)
        step(functions, "await_stack", UPDATE)
        assert functions.sent_to("stepfunctions.SendTaskSuccess") == []

    def test_an_event_of_any_other_stack_is_no_error(self, functions: Functions, stacks: FakeStacks) -> None:
        (planted,) = stacks.living
        functions.call("stack_event", {"detail": {"stack-id": planted.stack_id}})
        assert functions.requests == ["dynamodb.GetItem"]


class TestInspectStack:
    def test_a_stack_that_is_still_changing_at_the_deadline_fails_the_run(
        self, functions: Functions, stacks: FakeStacks
    ) -> None:
        (planted,) = stacks.living
        stacks.change(planted.stack_id, "UPDATE_IN_PROGRESS")
        take(functions.table, UPDATE)
        functions.clock.advance(DEADLINE + timedelta(minutes=2))
        remember(functions, UPDATE, planted.stack_id)
        response = step(functions, "inspect_stack", UPDATE)
        assert response["outcome"] == "failed"
        assert "UPDATE_IN_PROGRESS after 30 minutes" in response["reason"]


class TestFinish:
    DONE: dict[str, object] = {  # noqa: RUF012
        "outcome": "done",
        "stackId": stack_arn(),
        "queue": {"arn": QUEUE.arn, "url": QUEUE.url},
        "version": VERSION,
        "changedAt": None,
    }

    @pytest.mark.parametrize(
        ("run", "stack"),
        [(CREATE, {"outcome": "gone"}), (UPDATE, {"outcome": "gone"}), (DELETE, DONE)],
        ids=["create", "update", "delete"],
    )
    def test_an_operation_refuses_the_outcome_of_another(
        self, functions: Functions, run: Run, stack: dict[str, object]
    ) -> None:
        take(functions.table, run)
        with pytest.raises(InvalidRequest, match="does not end with"):
            step(functions, "finish", run, stack=stack)
        assert functions.requests == []

    def test_finishing_twice_is_finishing_once(self, functions: Functions) -> None:
        functions.use(FakeStacks()).let_stand(ACME, Done(stack_arn(), QUEUE, VERSION))
        take(functions.table, CREATE)
        for _ in range(2):
            assert step(functions, "finish", CREATE, stack=self.DONE) == {"outcome": "published"}
        assert [entry.status for entry in functions.table.history(ACME)] == [Status.STARTED, Status.SUCCESS]

    def test_throttling_is_left_to_the_retry_of_the_state(self, functions: Functions) -> None:
        take(functions.table, CREATE)
        functions.throttle("TransactWriteItems")
        functions.use(FakeStacks()).let_stand(ACME, Done(stack_arn(), QUEUE, VERSION))
        with pytest.raises(Throttled):
            step(functions, "finish", CREATE, stack=self.DONE)


class TestRecordFailure:
    @pytest.mark.parametrize("run", [CREATE, UPDATE, DELETE], ids=["create", "update", "delete"])
    def test_a_failure_is_recorded_and_the_tenant_unlocked(self, functions: Functions, run: Run) -> None:
        functions.use(FakeStacks())
        take(functions.table, run)
        failure = {"Error": "UnknownRelease", "Cause": json.dumps({"errorMessage": "No such.", "errorType": "X"})}
        response = step(functions, "record_failure", run, failure=failure)
        assert response["Error"] == "Berth.OperationFailed"
        assert response["Cause"].startswith("Tenant acme: ")
        assert "X: No such." in response["Cause"]
        (audit,) = functions.table.audits(ACME)
        assert (audit.status, audit.operation) == (Status.FAILURE, run.attempt.operation)
        assert functions.table.lock(ACME) is None

    def test_the_root_cause_is_the_first_failed_resource(self, functions: Functions, stacks: FakeStacks) -> None:
        (planted,) = stacks.living
        stacks.failures.append("Access denied.")
        stacks.create_change_set(ACME, planted.stack_id, release=a_release(NEXT_VERSION), name="changes")
        stacks.execute_change_set(planted.stack_id, "changes", client_token="token")
        stacks.settle()
        take(functions.table, UPDATE)
        failure = {"outcome": "failed", "reason": "It broke.", "failedStack": planted.stack_id}
        step(functions, "record_failure", UPDATE, failure=failure)
        (audit,) = [audit for audit in functions.table.audits(ACME) if audit.operation is Operation.UPDATE]
        assert audit.root_cause == RootCause("InboundQueue", "AWS::SQS::Queue", "Access denied.")

    def test_a_run_that_lost_its_lock_cannot_record_a_failure(self, functions: Functions) -> None:
        take(functions.table, a_run(2))
        with pytest.raises(LostOwnership, match="another attempt"):
            step(functions, "record_failure", CREATE, failure={"outcome": "failed", "reason": "It broke."})
        lock = present(functions.table.lock(ACME))
        assert lock.run.attempt.number == 2


class TestAllSteps:
    def test_throttling_is_an_outcome(self, functions: Functions) -> None:
        functions.throttle("TransactWriteItems")
        assert step(functions, "begin", CREATE) == {
            "outcome": "again",
            "reason": "TransactWriteItems: Rate exceeded",
            "throttled": True,
        }

    def test_throttling_after_the_deadline_is_an_error(self, functions: Functions) -> None:
        functions.throttle("TransactWriteItems")
        functions.clock.advance(2 * DEADLINE)
        with pytest.raises(Throttled):
            step(functions, "begin", UPDATE)

    def test_throttling_is_no_error_of_a_create_that_may_have_waited_for_its_turn(self, functions: Functions) -> None:
        functions.throttle("TransactWriteItems")
        functions.clock.advance(DEADLINE + timedelta(seconds=1))
        assert step(functions, "begin", CREATE)["outcome"] == "again"
        functions.clock.advance(MAX_WAIT_FOR_TURN)
        with pytest.raises(Throttled):
            step(functions, "begin", CREATE)

    def test_other_errors_are_errors(self, functions: Functions) -> None:
        run = a_run(version="9.9.9")
        take(functions.table, run)
        with pytest.raises(UnknownRelease, match=r"9\.9\.9 was never published"):
            step(functions, "start_stack", run)

    @pytest.mark.parametrize(
        "name",
        [
            "begin",
            "start_stack",
            "await_stack",
            "inspect_stack",
            "finish",
            "record_failure",
            "settle_tenant_queue",
            "stack_event",
        ],
    )
    def test_an_invalid_event_is_refused_before_any_call_to_aws(self, functions: Functions, name: str) -> None:
        events: list[object] = [None, [], {}, {"execution": {"Id": "x"}}]
        for event in events:
            with pytest.raises(InvalidRequest):
                functions.call(name, event)
        assert functions.requests == []


class TestWhatIsLogged:
    """Logs and metrics: lines of JSON on standard output."""

    def test_a_step_is_logged_with_tenant_execution_and_outcome(self, functions: Functions, lines: Lines) -> None:
        functions.table.record_release(a_release())
        step(functions, "begin", CREATE)
        (line,) = lines()
        assert (line["level"], line["message"], line["response"]["outcome"]) == ("INFO", "Step done", "begun")
        assert (line["tenant_id"], line["execution"]) == ("acme", CREATE.execution)
        assert line["attempt"] == CREATE.attempt.name
        assert line["milliseconds"] >= 0

    def test_an_error_is_logged_with_tenant_and_execution(self, functions: Functions, lines: Lines) -> None:
        take(functions.table, CREATE)
        with pytest.raises(UnknownRelease):
            step(functions, "start_stack", CREATE)
        (line,) = lines()
        assert (line["level"], line["exception_name"]) == ("ERROR", "UnknownRelease")
        assert (line["tenant_id"], line["execution"]) == ("acme", CREATE.execution)

    def test_a_failed_operation_is_logged_with_its_root_cause_and_counted(
        self, functions: Functions, lines: Lines
    ) -> None:
        step(functions, "record_failure", CREATE, failure={"outcome": "failed", "reason": "It broke."})
        logged, counted = lines()
        assert "It broke." in logged["root_cause"]
        assert logged["tenant_id"] == "acme"
        assert counted["OperationFailed"] == [1.0]

    def test_throttling_is_counted(self, functions: Functions, lines: Lines) -> None:
        functions.throttle("TransactWriteItems")
        step(functions, "begin", CREATE)
        (counted,) = [line for line in lines() if "_aws" in line]
        assert (counted["Throttled"], counted["service"]) == ([1.0], "berth")
        assert counted["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "Berth"
