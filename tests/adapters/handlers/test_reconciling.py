"""Executions that died, reconciliations and the control plane's health, over the table, the stacks and the queues."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from orchestrator.common.errors import InvalidRequest
from orchestrator.common.tenant_ids import TenantId
from orchestrator.reconciling.records import POOL, SETTLING, SURVEY, Kind, Reconciliation, ReconciliationStatus, Spec
from orchestrator.tenants.execution_input import machine_input
from orchestrator.tenants.operations import CHECK_HOLDER_AFTER
from orchestrator.tenants.records import Operation, Queue, Run, Status
from tests.adapters.conftest import client
from tests.adapters.handlers.functions import (
    ADA,
    RECONCILE,
    STACK_ROLE,
    Functions,
    Lines,
    input_of,
    plant_stack,
    queue_of,
)
from tests.fakes import ACME, NAMES, QUEUE_TABOO, VERSION, FakeStacks, a_release, a_run, take
from tests.functions import forget_functions
from tests.present import present

START = "POST /reconciliations"
SHOW = "GET /reconciliations/{reconciliationId}"
HEALTH = "GET /diagnosis"

AN_ID = "20200101-000000-0000"
COUNTED = ("OperationsStuck", "Repairs", "FindingsLeft")
GLOBEX = TenantId.parse("globex")


@dataclass
class Context:
    """The context that Lambda passes with the event."""

    milliseconds: int = 300_000

    def get_remaining_time_in_millis(self) -> int:
        return self.milliseconds


@pytest.fixture
def no_linger(functions: Functions, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001 - its settings come first
    """An aborted execution's last function has ended at once."""
    monkeypatch.setenv("BERTH_LINGER_SECONDS", "0")
    forget_functions()


@pytest.fixture
def dead(functions: Functions, no_linger: None) -> Run:  # noqa: ARG001 - else it would not be over
    """A create that has begun, and whose execution was aborted then."""
    functions.table.record_release(a_release())
    run = begun(functions)
    abort(run)
    return run


def begun(functions: Functions, run: Run | None = None) -> Run:
    """The run, as an execution that has begun."""
    run = run or a_run()
    execution = client("stepfunctions").start_execution(
        stateMachineArn=functions.machines[run.attempt.operation],
        name=run.attempt.name,
        input=json.dumps(machine_input(run.attempt, run.request)),
    )["executionArn"]
    run = replace(run, execution=execution)
    assert take(functions.table, run) is None
    return run


def abort(run: Run) -> None:
    client("stepfunctions").stop_execution(executionArn=run.execution)


def message(run: Run, name: str = "m-1", **changes: object) -> dict[str, str]:
    """The event of an ended execution, as SQS passes it to a function."""
    detail = {
        "executionArn": run.execution,
        "stateMachineArn": run.execution.replace(":execution:", ":stateMachine:").rpartition(":")[0],
        "name": run.attempt.name,
        "status": "ABORTED",
        "startDate": int(run.started_at.timestamp() * 1000),
        "input": json.dumps(machine_input(run.attempt, run.request)),
        **changes,
    }
    event = {"source": "aws.states", "detail-type": "Step Functions Execution Status Change", "detail": detail}
    return {"messageId": name, "body": json.dumps(event)}


def close(functions: Functions, *messages: dict[str, str]) -> list[str]:
    """The messages that come back."""
    response = functions.call("close_execution", {"Records": list(messages)})
    return [failure["itemIdentifier"] for failure in response["batchItemFailures"]]


def ends(functions: Functions, run: Run) -> list[Status]:
    """The recorded ends of the run."""
    entries = functions.table.history(run.tenant)
    return [entry.status for entry in entries if entry.execution == run.execution and entry.status != "Started"]


class TestCloseExecution:
    def test_an_aborted_run_is_closed_and_its_tenant_unlocked(self, functions: Functions, dead: Run) -> None:
        assert close(functions, message(dead)) == []
        (audit,) = functions.table.audits(ACME)
        assert audit.status is Status.FAILURE
        assert audit.root_cause is not None
        assert "The execution was aborted" in audit.root_cause.reason
        assert functions.table.lock(ACME) is None

    def test_a_run_with_a_complete_stack_has_succeeded(self, functions: Functions, dead: Run) -> None:
        stack = functions.use(FakeStacks()).plant_done(ACME)
        assert close(functions, message(dead)) == []
        assert ends(functions, dead) == [Status.SUCCESS]
        metadata = present(functions.table.metadata(ACME))
        assert (metadata.stack_id, metadata.version, metadata.queue) == (stack.stack_id, VERSION, stack.queue)

    def test_a_repeated_message_closes_a_run_once(self, functions: Functions, dead: Run) -> None:
        for _ in range(2):
            assert close(functions, message(dead)) == []
        assert ends(functions, dead) == [Status.FAILURE]

    def test_a_run_with_an_outcome_is_not_changed(self, functions: Functions, dead: Run) -> None:
        functions.table.fail(dead, QUEUE_TABOO, dead.started_at)
        assert close(functions, message(dead)) == []
        (audit,) = functions.table.audits(ACME)
        assert audit.root_cause == QUEUE_TABOO
        assert ends(functions, dead) == [Status.FAILURE]

    def test_a_run_aborted_just_now_is_left_to_the_schedule(self, functions: Functions) -> None:
        run = begun(functions)
        abort(run)
        assert close(functions, message(run)) == []
        assert ends(functions, run) == []
        assert functions.table.lock(ACME) is not None

    @pytest.mark.parametrize("operation", ["GetItem", "DescribeExecution", "DescribeStacks", "TransactWriteItems"])
    def test_only_throttled_messages_are_returned(self, functions: Functions, dead: Run, operation: str) -> None:
        functions.throttle(operation)
        assert close(functions, message(dead, "m-1")) == ["m-1"]
        assert ends(functions, dead) == []

    def test_other_messages_of_the_batch_are_not_returned(self, functions: Functions, dead: Run) -> None:
        ended = begun(functions, a_run(tenant=GLOBEX))
        functions.table.fail(ended, QUEUE_TABOO, ended.started_at)
        functions.throttle("DescribeExecution")
        assert close(functions, message(ended, "ended"), message(dead, "dead")) == ["dead"]

    @pytest.mark.parametrize(
        "spoil",
        [
            lambda response: response | {"body": "{"},
            lambda response: response | {"body": "[]"},
            lambda response: response | {"body": "[" * 100_000},
            lambda response: response | {"body": json.dumps({"detail": {}})},
            lambda response: {"body": response["body"]},
        ],
        ids=["no JSON", "no event", "deeply nested", "no execution", "no message"],
    )
    def test_an_invalid_event_is_an_error_and_becomes_a_dead_letter(
        self, functions: Functions, dead: Run, spoil: Callable[[dict[str, str]], dict[str, str]]
    ) -> None:
        with pytest.raises(InvalidRequest):
            close(functions, spoil(message(dead)))
        assert ends(functions, dead) == []

    @pytest.mark.parametrize("given", ["{}", "no JSON", '{"tenantId": "a/b"}', "[]"])
    def test_an_execution_without_an_operation_is_an_error(self, functions: Functions, dead: Run, given: str) -> None:
        with pytest.raises(InvalidRequest):
            close(functions, message(dead, input=given))

    def test_closed_runs_are_logged_and_counted(self, functions: Functions, dead: Run, lines: Lines) -> None:
        for _ in range(2):
            close(functions, message(dead))
        logged = lines()
        assert [line["settlement"] for line in logged if "settlement" in line] == ["settled", "nothing"]
        assert [line["tenant_id"] for line in logged if "settlement" in line] == ["acme", "acme"]
        assert sum("OperationSettled" in line for line in logged) == 1


def reconcile(functions: Functions, reconciliation: str, context: Context | None = None) -> None:
    functions.call("reconcile", {"reconciliationId": reconciliation}, context or Context())


def found(functions: Functions, reconciliation: str) -> Reconciliation:
    return present(functions.reconciliations.reconciliation(reconciliation))


def orphan() -> str:
    """A tenant's stack that stands, of a tenant that nobody knows."""
    return plant_stack(GLOBEX, role=STACK_ROLE)


class TestReconcile:
    def test_the_schedule_closes_dead_runs(self, functions: Functions, dead: Run) -> None:
        functions.clock.advance(CHECK_HOLDER_AFTER)
        reconcile(functions, SETTLING)
        assert ends(functions, dead) == [Status.FAILURE]
        done = found(functions, SETTLING)
        assert (done.status, done.counts, done.repaired) == (ReconciliationStatus.DONE, {Kind.UNFINISHED: 1}, 1)
        assert done.coverage.all_stacks is None

    @pytest.mark.usefixtures("stack")
    def test_a_healthy_fleet_has_no_findings(self, functions: Functions) -> None:
        reconcile(functions, SURVEY)
        done = found(functions, SURVEY)
        assert (done.status, done.findings) == (ReconciliationStatus.DONE, ())
        assert (done.coverage.tenants, done.coverage.stacks, done.coverage.all_stacks) == (1, 1, 1)

    def test_the_schedule_reports_differences_and_repairs_none(self, functions: Functions) -> None:
        orphan()
        reconcile(functions, SURVEY)
        (finding,) = found(functions, SURVEY).findings
        assert (finding.kind, finding.subject, finding.repaired) == (Kind.ORPHAN_STACK, "globex", False)
        assert functions.all_executions == []

    def test_a_foreign_stack_is_reported_and_not_adopted(self, functions: Functions) -> None:
        functions.table.record_release(a_release())
        planted = plant_stack(GLOBEX)
        asked = functions.operate(START, body={})[2]["reconciliationId"]
        reconcile(functions, asked)
        (finding,) = found(functions, asked).findings
        assert (finding.kind, finding.subject, finding.repaired) == (Kind.FOREIGN_STACK, NAMES.stack_of(GLOBEX), False)
        assert planted in finding.detail
        assert functions.all_executions == []

    @pytest.mark.parametrize("role", [None, STACK_ROLE], ids=["of another role", "of our role"])
    def test_metadata_is_not_corrected_to_a_queue_of_no_resource(self, functions: Functions, role: str | None) -> None:
        outputs = {
            "InboundQueueArn": {"Value": "arn:aws:sqs:eu-west-1:111111111111:evil"},
            "InboundQueueUrl": {"Value": "https://sqs.eu-west-1.amazonaws.com/111111111111/evil"},
            "Version": {"Value": VERSION},
        }
        url = client("sqs").create_queue(QueueName="acme-inbound")["QueueUrl"]
        queue = Queue("arn:aws:sqs:eu-west-1:123456789012:acme-inbound", url)
        functions.serve(queue=queue, stack_id=plant_stack(ACME, role=role, Outputs=outputs))
        asked = functions.operate(START, body={})[2]["reconciliationId"]
        reconcile(functions, asked)
        (finding,) = found(functions, asked).findings
        assert (finding.kind, finding.repaired) == (Kind.METADATA_DIFFERS, False)
        assert "not one of the resources" in finding.advice
        assert queue_of(functions) == queue

    def test_repairs_are_made_in_the_operators_name(self, functions: Functions) -> None:
        functions.table.record_release(a_release())
        orphan()
        asked = functions.operate(START, body={})[2]["reconciliationId"]
        reconcile(functions, asked)
        done = found(functions, asked)
        assert (done.status, done.repaired, done.ordered) == (ReconciliationStatus.DONE, 0, 1)
        (execution,) = functions.all_executions
        assert ADA in input_of(execution)["request"]["by"]

    def test_a_dry_run_changes_nothing(self, functions: Functions, dead: Run) -> None:
        orphan()
        asked = functions.operate(START, body={"dryRun": True})[2]["reconciliationId"]
        functions.clock.advance(CHECK_HOLDER_AFTER)
        reconcile(functions, asked)
        done = found(functions, asked)
        assert (done.counts, done.repaired) == ({Kind.UNFINISHED: 1, Kind.ORPHAN_STACK: 1}, 0)
        assert ends(functions, dead) == []
        assert functions.executions() == [dead.attempt.name]

    def test_an_unknown_reconciliation_is_not_run(self, functions: Functions) -> None:
        orphan()
        reconcile(functions, AN_ID)
        assert functions.rows == 0

    def test_an_ended_reconciliation_is_not_run_again(self, functions: Functions) -> None:
        asked = functions.operate(START, body={})[2]["reconciliationId"]
        reconcile(functions, asked)
        before = found(functions, asked)
        functions.clock.advance(timedelta(minutes=1))
        reconcile(functions, asked)
        assert found(functions, asked) == before

    def test_without_time_left_it_is_incomplete(self, functions: Functions, dead: Run) -> None:
        functions.clock.advance(CHECK_HOLDER_AFTER)
        spare = functions.load("reconcile").TO_SPARE_MILLISECONDS
        reconcile(functions, SURVEY, Context(spare))
        done = found(functions, SURVEY)
        assert (done.status, bool(done.reason)) == (ReconciliationStatus.INCOMPLETE, True)
        assert ends(functions, dead) == []
        reconcile(functions, SURVEY, Context(spare + 1))
        assert found(functions, SURVEY).status is ReconciliationStatus.DONE

    def test_a_survey_that_needs_more_time_is_continued_by_the_next_schedule(self, functions: Functions) -> None:
        orphan()
        asked = functions.operate(START, body={"dryRun": True})[2]["reconciliationId"]
        spare = functions.load("reconcile").TO_SPARE_MILLISECONDS
        reconcile(functions, asked, Context(spare))
        assert found(functions, asked).status is ReconciliationStatus.RUNNING
        reconcile(functions, SETTLING)
        done = found(functions, asked)
        assert (done.status, done.counts) == (ReconciliationStatus.DONE, {Kind.ORPHAN_STACK: 1})
        assert found(functions, SETTLING).status is ReconciliationStatus.DONE

    def test_with_throttling_it_is_incomplete(self, functions: Functions) -> None:
        functions.throttle("DescribeStacks")
        reconcile(functions, SURVEY)
        done = found(functions, SURVEY)
        assert (done.status, "Rate exceeded" in done.reason) == (ReconciliationStatus.INCOMPLETE, True)

    def test_the_schedule_of_the_pool_only_refills_the_pool(
        self, functions: Functions, monkeypatch: pytest.MonkeyPatch, lines: Lines
    ) -> None:
        functions.table.record_release(a_release())
        monkeypatch.setenv("BERTH_WARM_POOL", "standard=1")
        reconcile(functions, POOL)
        (execution,) = functions.all_executions
        assert "create-berth-warm-" in str(execution)
        assert [line["stacks"]["requested"] for line in lines() if "stacks" in line] == [1]
        assert functions.reconciliations.reconciliation(SETTLING) is None

    def test_a_pool_whose_requests_are_throttled_is_refilled_later(
        self, functions: Functions, monkeypatch: pytest.MonkeyPatch, lines: Lines
    ) -> None:
        monkeypatch.setenv("BERTH_WARM_POOL", "standard=1")
        functions.throttle("GetItem")
        reconcile(functions, POOL)
        assert [line["message"] for line in lines()] == ["The pool will be refilled later"]

    @pytest.mark.parametrize("event", [None, {}, {"reconciliationId": "all"}, {"reconciliationId": None}], ids=str)
    def test_an_event_without_a_reconciliation_is_an_error(self, functions: Functions, event: object) -> None:
        with pytest.raises(InvalidRequest):
            functions.call("reconcile", event, Context())

    def test_findings_are_logged_and_counted(self, functions: Functions, dead: Run, lines: Lines) -> None:  # noqa: ARG002
        orphan()
        functions.clock.advance(CHECK_HOLDER_AFTER)
        reconcile(functions, SURVEY)
        logged = lines()
        assert [line["finding"].split(":")[0] for line in logged if "finding" in line] == [
            Kind.UNFINISHED,
            Kind.ORPHAN_STACK,
        ]
        counted = {name: line[name] for line in logged for name in COUNTED if name in line}
        assert counted == {"Repairs": [1.0], "FindingsLeft": [1.0]}

    @pytest.mark.parametrize(("reconciliation", "expected"), [(SETTLING, {}), (SURVEY, {"FindingsLeft": [0.0]})])
    def test_only_a_survey_counts_that_there_is_nothing(
        self, functions: Functions, lines: Lines, reconciliation: str, expected: dict[str, list[float]]
    ) -> None:
        reconcile(functions, reconciliation)
        assert {name: line[name] for line in lines() for name in COUNTED if name in line} == expected

    def test_findings_of_a_dry_run_raise_no_alarm(self, functions: Functions, lines: Lines) -> None:
        orphan()
        now = functions.clock.now()
        asked = Reconciliation(AN_ID, "ada", Spec(dry_run=True), ReconciliationStatus.PENDING, now, now)
        functions.reconciliations.record_reconciliation(asked)
        reconcile(functions, AN_ID)
        assert found(functions, AN_ID).counts == {Kind.ORPHAN_STACK: 1}
        assert not [line for line in lines() if "FindingsLeft" in line]


class TestAsking:
    def test_a_request_is_recorded_and_the_function_invoked(self, functions: Functions) -> None:
        status, headers, body = functions.operate(START, body={"dryRun": True, "detectDrift": True})
        asked = body["reconciliationId"]
        assert (status, headers["Location"], headers["Retry-After"]) == (202, f"/reconciliations/{asked}", "2")
        assert (body["status"], body["dryRun"], body["detectDrift"]) == ("PENDING", True, True)
        spec = found(functions, asked).spec
        assert (spec.survey, spec.repair, spec.dry_run, spec.detect_drift) == (True, True, True, True)
        (called,) = functions.sent_to("lambda.Invoke")
        assert (called["FunctionName"], called["InvocationType"]) == (RECONCILE, "Event")
        assert json.loads(called["Payload"]) == {"reconciliationId": asked}

    def test_a_reconciliation_is_shown_while_it_runs_and_afterwards(self, functions: Functions) -> None:
        asked = functions.operate(START)[2]["reconciliationId"]
        status, headers, body = functions.operate(SHOW, reconciliation=asked)
        assert (status, body["status"], headers["Retry-After"]) == (200, "PENDING", "2")
        orphan()
        functions.call("reconcile", {"reconciliationId": asked}, Context())
        status, headers, body = functions.operate(SHOW, reconciliation=asked)
        assert (status, body["status"], "Retry-After" in headers) == (200, "DONE", False)
        assert (body["counts"], body["findings"][0]["subject"]) == ({"orphan-stack": 1}, "globex")
        assert ADA in body["requestedBy"]

    @pytest.mark.parametrize("reconciliation", [SETTLING, SURVEY])
    def test_scheduled_reconciliations_have_no_route(self, functions: Functions, reconciliation: str) -> None:
        reconcile(functions, reconciliation)
        assert functions.operate(SHOW, reconciliation=reconciliation)[0] == 400

    @pytest.mark.parametrize(
        ("route", "operation"),
        [(START, "PutItem"), (START, "Invoke"), (SHOW, "GetItem"), (HEALTH, "Query"), (HEALTH, "GetItem")],
    )
    def test_throttling_is_answered_with_try_again(self, functions: Functions, route: str, operation: str) -> None:
        functions.throttle(operation)
        status, headers, body = functions.operate(route, reconciliation=AN_ID)
        assert (status, headers["Retry-After"]) == (503, "2")
        assert body["type"] == "urn:berth:problem:try-again"


@pytest.mark.usefixtures("stack_limit")
class TestHealth:
    @pytest.fixture
    def letters(self, functions: Functions, monkeypatch: pytest.MonkeyPatch) -> str:  # noqa: ARG002 - its settings come first
        """The queue of events that nobody could handle."""
        url: str = client("sqs").create_queue(QueueName="letters")["QueueUrl"]
        monkeypatch.setenv("BERTH_DEAD_LETTER_QUEUES", json.dumps({"stack events": url}))
        forget_functions()
        return url

    def checks(self, functions: Functions) -> tuple[str, dict[str, str]]:
        status, _, body = functions.operate(HEALTH)
        assert (status, body["version"], body["templateVersion"]) == (200, "0.10.0", VERSION)
        return body["verdict"], {check["name"]: check["verdict"] for check in body["checks"]}

    def test_a_new_control_plane_has_unknown_health(self, functions: Functions) -> None:
        verdict, checks = self.checks(functions)
        assert verdict == "unknown"
        assert checks["operations"] == "ok"
        assert (checks["reconciler"], checks["survey"], checks["stacks"]) == ("unknown", "unknown", "unknown")

    @pytest.mark.usefixtures("stack", "letters")
    def test_a_healthy_control_plane_is_ok(self, functions: Functions) -> None:
        for name in (SETTLING, SURVEY):
            reconcile(functions, name)
        verdict, checks = self.checks(functions)
        assert verdict == "ok", checks
        assert checks.keys() >= {"operations", "tenants", "reconciler", "survey", "dead letters", "stacks"}

    def test_the_stacks_are_counted_against_their_limit(self, functions: Functions, stack_limit: int) -> None:
        orphan()
        reconcile(functions, SURVEY)
        (stacks,) = [check for check in functions.operate(HEALTH)[2]["checks"] if check["name"] == "stacks"]
        assert f"1 of at most {stack_limit}" in stacks["detail"]

    def test_an_operation_past_its_deadline_is_a_problem(self, functions: Functions) -> None:
        begun(functions, a_run(operation=Operation.DELETE))
        functions.clock.advance(timedelta(hours=1))
        verdict, checks = self.checks(functions)
        assert (verdict, checks["operations"]) == ("problem", "problem")

    def test_a_dead_letter_is_a_problem(self, functions: Functions, letters: str) -> None:
        assert self.checks(functions)[1]["dead letters"] == "ok"
        client("sqs").send_message(QueueUrl=letters, MessageBody="x")
        assert self.checks(functions)[1]["dead letters"] == "problem"
