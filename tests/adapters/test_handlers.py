"""The functions themselves, as Lambda calls them, on AWS in process."""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError
from botocore.session import Session
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.adapters import aws
from orchestrator.adapters.dynamodb import DynamoTable
from orchestrator.errors import InvalidRequest, InvalidTenantId, UnknownRelease
from orchestrator.records import Operation, Status
from orchestrator.tenants import TenantId
from tests.adapters.conftest import REGION, TABLE, Endpoint, client
from tests.fakes import ACME, NOON, QUEUE, QUEUE_TABOO, VERSION, a_release, a_run, take

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

STACK_ID = f"arn:aws:cloudformation:eu-west-1:123456789012:stack/{ACME.stack_name}/1"


@cache
def session() -> Session:
    """One session for all tests: what it has read of the SDK's models serves them all."""
    return Session()


def emitter() -> Any:
    """What clients made from now on tell of their requests."""
    return session().get_component("event_emitter")


@dataclass
class Functions:
    """The functions, freshly loaded, and every request that they make to AWS."""

    table: DynamoTable
    dynamodb: DynamoDBClient
    machine: str
    requests: list[str] = field(default_factory=list)
    hooks: list[tuple[str, Callable[..., None]]] = field(default_factory=list)

    def load(self, name: str) -> ModuleType:
        return importlib.import_module(f"lambdas.{name}")

    def call(self, name: str, event: object) -> Any:
        return self.load(name).handler(event, None)

    def get_queue(self, event: object) -> tuple[int, dict[str, str], dict[str, Any]]:
        result = self.call("get_queue", event)
        return result["statusCode"], result["headers"], json.loads(result["body"])

    def throttle(self, operation: str) -> None:
        """Let AWS refuse this operation from now on."""

        def refuse(**_: object) -> None:
            raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "Rate exceeded"}}, operation)

        self.hook(f"before-call.*.{operation}", refuse)

    def note(self, model: Any, **_: object) -> None:
        self.requests.append(f"{model.service_model.service_name}.{model.name}")

    def hook(self, event: str, call: Callable[..., None]) -> None:
        emitter().register(event, call)
        self.hooks.append((event, call))

    @property
    def rows(self) -> int:
        return self.dynamodb.scan(TableName=TABLE)["Count"]

    @property
    def executions(self) -> list[str]:
        listed = client("stepfunctions").list_executions(stateMachineArn=self.machine)["executions"]
        return [execution["name"] for execution in listed]


def forget_functions() -> None:
    for name in [name for name in sys.modules if name == "lambdas" or name.startswith("lambdas.")]:
        del sys.modules[name]


@pytest.fixture
def functions(dynamodb: DynamoDBClient, monkeypatch: pytest.MonkeyPatch) -> Iterator[Functions]:
    """A function reads its settings and makes its clients when it is loaded, so each test loads it anew."""
    definition = {"StartAt": "Wait", "States": {"Wait": {"Type": "Wait", "Seconds": 9, "End": True}}}
    machine = client("stepfunctions").create_state_machine(
        name="create-tenant", roleArn="arn:aws:iam::123456789012:role/r", definition=json.dumps(definition)
    )["stateMachineArn"]
    environment = {
        "BERTH_TABLE": TABLE,
        "BERTH_VERSION": VERSION,
        "BERTH_CREATE_MACHINE": machine,
        "BERTH_STACK_ROLE": "arn:aws:iam::123456789012:role/tenant-stacks",
        "BERTH_METADATA_SERVICE_TOKEN": "arn:aws:lambda:eu-west-1:123456789012:function:tenant-metadata",
        "BERTH_DEPLOYMENT_MODE": "EXPRESS",
        "BERTH_RELEASE_BUCKET": "berth-releases",
        "POWERTOOLS_SERVICE_NAME": "berth",
        "POWERTOOLS_METRICS_NAMESPACE": "Berth",
        "POWERTOOLS_LOG_LEVEL": "CRITICAL",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(aws, "_session", session)
    functions = Functions(DynamoTable(dynamodb, TABLE), dynamodb, machine)
    functions.hook("before-call", functions.note)
    forget_functions()
    yield functions
    forget_functions()
    for event, call in functions.hooks:
        emitter().unregister(event, call)


def step_event(run: Any = None, **more: object) -> dict[str, object]:
    run = run or a_run()
    execution = {
        "Id": run.execution,
        "StartTime": run.started_at.isoformat(),
        "Input": {
            "tenantId": run.tenant.value,
            "operation": run.attempt.operation.value,
            "version": run.attempt.version,
            "attempt": run.attempt.number,
        },
    }
    return {"execution": execution, **more}


class TestGetQueue:
    def test_a_ready_tenant_costs_exactly_one_request(self, functions: Functions) -> None:
        take(functions.table, a_run())
        functions.table.publish(a_run(), stack_id=STACK_ID, queue=QUEUE, version=VERSION, at=NOON)

        status, headers, body = functions.get_queue({"tenantId": "acme"})

        assert functions.requests == ["dynamodb.GetItem"]
        assert (status, headers["Content-Type"]) == (200, "application/json")
        assert body["queueUrl"] == QUEUE.url

    def test_loading_the_function_makes_no_request(self, functions: Functions) -> None:
        functions.load("get_queue")
        assert functions.requests == []

    def test_over_http_and_called_directly_the_answer_is_the_same(self, functions: Functions) -> None:
        over_http = {
            "version": "2.0",
            "routeKey": "GET /tenants/{tenantId}/queue",
            "pathParameters": {"tenantId": "acme"},
        }
        assert functions.get_queue(over_http) == functions.get_queue({"tenantId": "acme"})

    def test_an_unknown_tenant_starts_one_execution_however_often_it_is_asked_for(self, functions: Functions) -> None:
        answers = [functions.get_queue({"tenantId": "acme"}) for _ in range(5)]
        assert {status for status, _, _ in answers} == {202}
        assert {headers["Retry-After"] for _, headers, _ in answers} == {"2"}
        assert {body["execution"].rpartition(":")[2] for _, _, body in answers} == set(functions.executions)
        assert functions.executions == [a_run().attempt.name]
        assert functions.rows == 0

    def test_an_execution_that_was_aborted_before_it_began_is_followed_by_the_next(self, functions: Functions) -> None:
        _, _, body = functions.get_queue({"tenantId": "acme"})
        client("stepfunctions").stop_execution(executionArn=body["execution"])
        status, _, _ = functions.get_queue({"tenantId": "acme"})
        assert status == 202
        assert set(functions.executions) == {a_run(1).attempt.name, a_run(2).attempt.name}

    def test_a_failed_tenant_is_told_its_root_cause_and_nothing_is_started(self, functions: Functions) -> None:
        functions.table.fail(a_run(), QUEUE_TABOO, NOON)
        status, headers, body = functions.get_queue({"tenantId": "acme"})
        assert (status, headers["Content-Type"]) == (424, "application/problem+json")
        assert body["rootCause"]["reason"] == QUEUE_TABOO.reason
        assert functions.executions == []

    def test_being_throttled_is_told_as_try_again(self, functions: Functions) -> None:
        functions.throttle("GetItem")
        status, headers, body = functions.get_queue({"tenantId": "acme"})
        assert (status, headers["Retry-After"]) == (503, "2")
        assert "Rate exceeded" in body["detail"]
        assert functions.executions == []

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # Nothing is to change in it.
    @given(
        event=st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.sampled_from(["tenantId", "pathParameters", "x"]), inner, max_size=3)
            ),
            max_leaves=6,
        )
    )
    def test_any_json_at_all_is_refused_or_answered_and_never_an_error(
        self, functions: Functions, event: object
    ) -> None:
        status, headers, body = functions.get_queue(event)
        asked = event.get("tenantId") if isinstance(event, dict) else None
        if isinstance(event, dict) and isinstance(event.get("pathParameters"), dict):
            asked = event["pathParameters"].get("tenantId")
        assert status == (202 if is_tenant_id(asked) else 400)
        assert headers["Content-Type"] == ("application/json" if status == 202 else "application/problem+json")
        assert body["tenantId" if status == 202 else "detail"]

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # Nothing is to change in it.
    @given(text=st.text(max_size=60).filter(lambda text: not is_tenant_id(text)), over_http=st.booleans())
    def test_any_text_that_is_no_tenant_id_is_refused_before_anything_is_asked_of_aws(
        self, functions: Functions, text: str, over_http: bool
    ) -> None:
        status, headers, body = functions.get_queue(
            {"pathParameters": {"tenantId": text}} if over_http else {"tenantId": text}
        )
        assert (status, headers["Content-Type"]) == (400, "application/problem+json")
        assert body["type"] == "urn:berth:problem:invalid-request"
        assert functions.requests == []

    @pytest.mark.parametrize(
        "event",
        [
            None,
            [],
            "acme",
            {},
            {"tenantid": "acme"},
            {"pathParameters": None},
            {"pathParameters": {}},
            {"pathParameters": {"tenantId": None}, "tenantId": "acme"},
            {"tenantId": None},
            {"tenantId": ["acme"]},
            {"tenantId": {"S": "acme"}},
            {"tenantId": 7},
            {"tenantId": "acme/../other"},
            {"tenantId": "acme#METADATA"},
            {"tenantId": "x" * 10_000},
        ],
        ids=lambda event: json.dumps(event)[:40],
    )
    def test_bad_input_writes_nothing_and_starts_nothing(self, functions: Functions, event: object) -> None:
        status, headers, body = functions.get_queue(event)
        assert (status, headers["Content-Type"]) == (400, "application/problem+json")
        assert body["detail"]
        assert functions.requests == []
        assert functions.rows == 0
        assert functions.executions == []


def is_tenant_id(value: object) -> bool:
    try:
        TenantId.parse(value)
    except InvalidTenantId:
        return False
    return True


class TestSteps:
    @pytest.fixture(autouse=True)
    def running(self, functions: Functions) -> None:
        functions.table.record_release(a_release())

    def test_begin_takes_the_tenant_and_says_so(self, functions: Functions) -> None:
        assert functions.call("begin", step_event()) == {"outcome": "begun"}
        lock = functions.table.lock(ACME)
        assert lock is not None
        assert lock.run == a_run()

    def test_begin_says_who_is_in_the_way(self, functions: Functions) -> None:
        now = datetime.now(UTC)
        take(functions.table, a_run(started_at=now))
        other = a_run(operation=Operation.UPDATE, started_at=now)
        told = functions.call("begin", step_event(other))
        assert told == {"outcome": "busy", "holder": a_run().execution}

    def test_await_stack_leaves_its_token_and_asks_the_stack(self, functions: Functions) -> None:
        take(functions.table, a_run())
        told = functions.call(
            "await_stack", step_event(stack={"outcome": "again", "reason": "Rate exceeded"}, taskToken="token")
        )
        assert told == {"outcome": "working"}
        lock = functions.table.lock(ACME)
        assert lock is not None
        assert lock.task_token == "token"

    def test_finish_publishes_once_the_queue_answers(self, functions: Functions) -> None:
        queue = {
            "arn": "arn:aws:sqs:eu-west-1:123456789012:acme",
            "url": "https://sqs.eu-west-1.amazonaws.com/123456789012/acme",
        }
        take(functions.table, a_run())
        stack = {"outcome": "done", "stackId": STACK_ID, "queue": queue, "version": VERSION}
        late = a_run(started_at=datetime.now(UTC))
        assert functions.call("finish", step_event(late, stack=stack)) == {"outcome": "notReady"}
        client("sqs").create_queue(QueueName="acme")
        assert functions.call("finish", step_event(late, stack=stack)) == {"outcome": "published"}
        metadata = functions.table.metadata(ACME)
        assert metadata is not None
        assert metadata.published

    def test_record_failure_tells_the_execution_what_to_fail_with(self, functions: Functions) -> None:
        take(functions.table, a_run())
        failure = {"Error": "UnknownRelease", "Cause": json.dumps({"errorMessage": "No such.", "errorType": "X"})}
        told = functions.call("record_failure", step_event(failure=failure))
        assert told["Error"] == "Berth.OperationFailed"
        assert "acme" in told["Cause"]
        assert "X: No such." in told["Cause"]
        (audit,) = functions.table.audits(ACME)
        assert audit.status is Status.FAILURE
        assert functions.table.lock(ACME) is None

    def test_being_throttled_is_an_outcome_that_the_machine_waits_for(self, functions: Functions) -> None:
        functions.throttle("TransactWriteItems")
        assert functions.call("begin", step_event()) == {
            "outcome": "again",
            "reason": "TransactWriteItems: Rate exceeded",
        }

    def test_a_fault_stays_a_fault(self, functions: Functions) -> None:
        run = a_run(version="9.9.9")
        take(functions.table, run)
        with pytest.raises(UnknownRelease, match=r"9\.9\.9 was never published"):
            functions.call("start_stack", step_event(run))

    @pytest.mark.parametrize(
        "name", ["begin", "start_stack", "await_stack", "inspect_stack", "finish", "record_failure", "stack_event"]
    )
    def test_an_event_that_cannot_be_understood_is_refused_before_anything_is_asked_of_aws(
        self, functions: Functions, name: str
    ) -> None:
        with pytest.raises(InvalidRequest):
            functions.call(name, {"execution": {"Id": "x"}})
        assert functions.requests == []

    def test_the_event_of_a_stack_that_nobody_waits_for_is_no_error(self, functions: Functions) -> None:
        functions.call("stack_event", {"detail": {"stack-id": STACK_ID}})
        assert functions.requests == ["dynamodb.GetItem"]


class TestWhatIsTold:
    """Logs and metrics: lines of JSON on standard output."""

    @pytest.fixture
    def lines(
        self,
        functions: Functions,  # noqa: ARG002 - its settings come first
        monkeypatch: pytest.MonkeyPatch,
        request: pytest.FixtureRequest,
        capsys: pytest.CaptureFixture[str],
    ) -> Callable[[], list[dict[str, Any]]]:
        # A service of its own has a logger of its own, which writes to this test's standard output.
        monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", request.node.name)
        monkeypatch.setenv("POWERTOOLS_LOG_LEVEL", "INFO")
        return lambda: [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    def test_a_step_is_logged_with_its_tenant_its_execution_and_its_outcome(
        self, functions: Functions, lines: Callable[[], list[dict[str, Any]]]
    ) -> None:
        functions.call("begin", step_event())
        (line,) = lines()
        assert (line["level"], line["message"], line["outcome"]) == ("INFO", "Step done", "begun")
        assert (line["tenant_id"], line["execution"]) == ("acme", a_run().execution)
        assert line["attempt"] == a_run().attempt.name
        assert 0 <= line["milliseconds"] < 60_000

    def test_a_fault_is_logged_with_its_tenant_and_its_execution(
        self, functions: Functions, lines: Callable[[], list[dict[str, Any]]]
    ) -> None:
        take(functions.table, a_run())
        with pytest.raises(UnknownRelease):
            functions.call("start_stack", step_event())
        (line,) = lines()
        assert (line["level"], line["exception_name"]) == ("ERROR", "UnknownRelease")
        assert (line["tenant_id"], line["execution"]) == ("acme", a_run().execution)

    def test_a_failed_operation_is_logged_with_its_root_cause_and_counted(
        self, functions: Functions, lines: Callable[[], list[dict[str, Any]]]
    ) -> None:
        failure = {"outcome": "failed", "reason": "It broke."}
        functions.call("record_failure", step_event(failure=failure))
        logged, counted = lines()
        assert "It broke." in logged["root_cause"]
        assert logged["tenant_id"] == "acme"
        assert counted["OperationFailed"] == [1.0]

    def test_being_throttled_is_counted(
        self, functions: Functions, lines: Callable[[], list[dict[str, Any]]], request: pytest.FixtureRequest
    ) -> None:
        functions.throttle("TransactWriteItems")
        functions.call("begin", step_event())
        (counted,) = [line for line in lines() if "_aws" in line]
        assert (counted["Throttled"], counted["service"]) == ([1.0], request.node.name)
        assert counted["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "Berth"

    def test_every_answer_is_logged_and_all_but_ready_ones_are_counted(
        self, functions: Functions, lines: Callable[[], list[dict[str, Any]]]
    ) -> None:
        functions.get_queue({"tenantId": "a/b"})
        functions.get_queue({"tenantId": "acme"})
        take(functions.table, a_run())
        functions.table.publish(a_run(), stack_id=STACK_ID, queue=QUEUE, version=VERSION, at=NOON)
        functions.get_queue({"tenantId": "acme"})
        told = lines()
        logged = [(line.get("tenant_id"), line["status"]) for line in told if "_aws" not in line]
        assert logged == [(None, 400), ("acme", 202), ("acme", 200)]
        counted = [name for line in told if "_aws" in line for name in line if name.startswith("Answered")]
        assert counted == ["Answered400", "Answered202"]


class TestCustomResources:
    """Called by CloudFormation; what they have to say goes to an address of its own."""

    PROPERTIES = {"TenantId": "acme", "InboundQueueArn": QUEUE.arn, "InboundQueueUrl": QUEUE.url}  # noqa: RUF012

    def test_a_stack_keeps_its_tenants_metadata_true(self, functions: Functions, endpoint: Endpoint) -> None:
        request = endpoint.event(StackId=STACK_ID, ResourceProperties=self.PROPERTIES)
        functions.call("tenant_metadata", request)
        metadata = functions.table.metadata(ACME)
        assert metadata is not None
        assert (metadata.queue, metadata.stack_id, metadata.version) == (QUEUE, STACK_ID, None)
        functions.call("tenant_metadata", {**request, "RequestType": "Delete"})
        assert functions.table.metadata(ACME) is None
        assert [answer["Status"] for answer in endpoint.answers] == ["SUCCESS", "SUCCESS"]

    def test_a_stack_that_is_not_the_published_queues_is_told_so(
        self, functions: Functions, endpoint: Endpoint
    ) -> None:
        take(functions.table, a_run())
        functions.table.publish(a_run(), stack_id=STACK_ID, queue=QUEUE, version=VERSION, at=NOON)
        functions.call("tenant_metadata", endpoint.event(ResourceProperties=self.PROPERTIES))
        (answer,) = endpoint.answers
        assert answer["Status"] == "FAILED"
        assert "another stack" in answer["Reason"]

    def test_a_release_is_published_and_its_address_told(self, functions: Functions, endpoint: Endpoint) -> None:
        template = b'{"Resources": {}}'
        for bucket in ("berth-releases", "assets"):
            client("s3").create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
        client("s3").put_object(Bucket="assets", Key="template.json", Body=template)
        properties = {
            "Version": VERSION,
            "Digest": hashlib.sha256(template).hexdigest(),
            "SourceBucket": "assets",
            "SourceKey": "template.json",
        }
        functions.call("publish_release", endpoint.event(ResourceProperties=properties))
        release = functions.table.release(VERSION)
        assert release is not None
        (answer,) = endpoint.answers
        assert (answer["Status"], answer["Data"]) == ("SUCCESS", {"TemplateUrl": release.template_url})

    def test_removing_the_control_plane_keeps_what_was_released(self, functions: Functions, endpoint: Endpoint) -> None:
        functions.table.record_release(a_release())
        properties = {"Version": VERSION, "Digest": "d" * 64, "SourceBucket": "b", "SourceKey": "k"}
        functions.call("publish_release", endpoint.event(RequestType="Delete", ResourceProperties=properties))
        assert functions.table.release(VERSION) is not None
        assert endpoint.answers[0]["Status"] == "SUCCESS"

    @pytest.mark.parametrize("name", ["tenant_metadata", "publish_release"])
    def test_what_was_refused_can_be_removed_so_that_its_stack_can_roll_back(
        self, functions: Functions, endpoint: Endpoint, name: str
    ) -> None:
        functions.call(name, endpoint.event(RequestType="Delete", ResourceProperties={}))
        assert [answer["Status"] for answer in endpoint.answers] == ["SUCCESS"]
        assert functions.requests == []

    @pytest.mark.parametrize("name", ["tenant_metadata", "publish_release"])
    @pytest.mark.parametrize("request_type", ["Create", "Update"])
    def test_a_request_that_cannot_be_understood_is_answered_too(
        self, functions: Functions, endpoint: Endpoint, name: str, request_type: str
    ) -> None:
        functions.call(name, endpoint.event(RequestType=request_type, ResourceProperties={}))
        (answer,) = endpoint.answers
        assert answer["Status"] == "FAILED"
        assert "required" in answer["Reason"]
        assert functions.requests == []

    def test_a_stack_whose_metadata_was_refused_can_be_rolled_back(
        self, functions: Functions, endpoint: Endpoint
    ) -> None:
        refused = endpoint.event(ResourceProperties={**self.PROPERTIES, "TenantId": "a/b"})
        functions.call("tenant_metadata", refused)
        functions.call("tenant_metadata", {**refused, "RequestType": "Delete", "PhysicalResourceId": "tenant-metadata"})
        assert [answer["Status"] for answer in endpoint.answers] == ["FAILED", "SUCCESS"]
        assert functions.rows == 0
