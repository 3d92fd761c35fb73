"""The functions, and tenants for them to work on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from orchestrator.adapters import aws, ports
from orchestrator.adapters.unfinished_work import LambdaUnfinishedWork
from orchestrator.common.callers import digest_of
from orchestrator.tenants.records import Operation
from tests.adapters.conftest import REGION, TABLE, Endpoint, client
from tests.adapters.handlers.functions import (
    CREATE,
    DELAYING,
    OWN_STACK,
    PROOF,
    RECONCILE,
    RELEASES,
    SERVICE_TOKEN,
    SOURCES,
    STACK_ROLE,
    TEMPLATE,
    Functions,
    Lines,
    emitter,
    publish_template,
    session,
    step,
)
from tests.adapters.tables import WholeTable
from tests.fakes import ACME, NEXT_VERSION, VERSION, FakeClock, FakeStacks, a_release
from tests.functions import forget_functions

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


@pytest.fixture
def functions(dynamodb: DynamoDBClient, monkeypatch: pytest.MonkeyPatch) -> Iterator[Functions]:
    """A function reads its settings and makes its clients when it is loaded, so each test loads it anew."""
    machines = {operation: make_machine(f"{operation.lower()}-tenant") for operation in Operation}
    tenant_queue_machine, rollout_machine = make_machine("tenant-queue"), make_machine("rollout")
    environment = {
        "BERTH_NAME": "Berth",
        "BERTH_TABLE": TABLE,
        "BERTH_VERSION": "0.10.0",
        "BERTH_TEMPLATE_VERSION": VERSION,
        "BERTH_LINGER_SECONDS": "60",
        "BERTH_MAX_TENANTS": "1900",
        "BERTH_CREATES_PER_MINUTE": "60",
        "BERTH_CREATE_ON_GET_QUEUE": "true",
        "BERTH_RETRY_AFTER_SECONDS": "5",
        "BERTH_LOCATION": f"aws:{REGION}:123456789012",
        "BERTH_EMPTY_FOR_SECONDS": "60",
        "BERTH_STACK_EVENTS": "true",
        **{f"BERTH_{operation}_MACHINE": machine for operation, machine in machines.items()},
        "BERTH_TENANT_QUEUE_MACHINE": tenant_queue_machine,
        "BERTH_ROLLOUT_MACHINE": rollout_machine,
        "BERTH_ROLLOUT_CONCURRENCY": "8",
        "BERTH_STACK_ROLE": STACK_ROLE,
        "BERTH_METADATA_SERVICE_TOKEN": SERVICE_TOKEN,
        "BERTH_RELEASE_BUCKET": RELEASES,
        "BERTH_SOURCE_BUCKET": SOURCES,
        "BERTH_STACK_ID": OWN_STACK,
        "BERTH_API": "api-1",
        "BERTH_API_STAGE": "$default",
        "BERTH_RECONCILE_FUNCTION": RECONCILE,
        "BERTH_DEAD_LETTER_QUEUES": "{}",
        "BERTH_API_PROOF_DIGEST": digest_of(PROOF),
        "BERTH_SERVICE": "berth",
        "BERTH_METRICS_NAMESPACE": "Berth",
        "AWS_LAMBDA_LOG_LEVEL": "FATAL",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    clock = FakeClock()
    monkeypatch.setattr(aws, "_session", session)
    monkeypatch.setattr(ports, "SystemClock", lambda: clock)
    monkeypatch.setattr(ports, "sleep", lambda seconds: clock.advance(timedelta(seconds=seconds)))
    # moto answers for functions that do not exist.
    monkeypatch.setattr(LambdaUnfinishedWork, "unfinished", lambda _self, _tenant: {})
    functions = Functions(WholeTable(dynamodb, TABLE), dynamodb, clock, machines, tenant_queue_machine, rollout_machine)
    functions.hook("provide-client-params", functions.note)
    functions.hook("before-call.sfn.DescribeExecution", functions.show_execution)
    forget_functions()
    yield functions
    forget_functions()
    for event, call in functions.hooks:
        emitter().unregister(event, call)
    # Stacks are changed in CloudFormation's default mode, which waits for resources and rolls back.
    assert not [name for name, params in functions.sent if "DeploymentConfig" in params]


@pytest.fixture
def endpoint(functions: Functions, endpoint: Endpoint) -> Endpoint:
    functions.endpoint = endpoint
    return endpoint


def make_machine(name: str) -> str:
    """A machine whose executions run until they are stopped."""
    definition = {"StartAt": "Wait", "States": {"Wait": {"Type": "Wait", "Seconds": 9, "End": True}}}
    arn: str = client("stepfunctions").create_state_machine(
        name=name, roleArn="arn:aws:iam::123456789012:role/r", definition=json.dumps(definition)
    )["stateMachineArn"]
    return arn


@pytest.fixture
def lines(
    functions: Functions,  # noqa: ARG001 - its settings come first
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Lines:
    """The logs and metrics: lines of JSON on standard output."""
    monkeypatch.setenv("AWS_LAMBDA_LOG_LEVEL", "INFO")
    return lambda: [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.fixture
def stack(functions: Functions) -> str:
    """The tenant has a stack and a queue, on moto, and a second release that changes it."""
    client("s3").create_bucket(Bucket=RELEASES, CreateBucketConfiguration={"LocationConstraint": REGION})
    publish_template(functions, VERSION, TEMPLATE)
    publish_template(functions, NEXT_VERSION, DELAYING)
    for name in ("begin", "start_stack"):
        step(functions, name, CREATE)
    inspected = step(functions, "inspect_stack", CREATE)
    assert step(functions, "finish", CREATE, stack=inspected) == {"outcome": "published"}
    functions.clock.advance(timedelta(minutes=1))
    return str(inspected["stackId"])


@pytest.fixture
def stacks(functions: Functions) -> FakeStacks:
    """The tenant has a stack and a queue, on a CloudFormation that can do all that the real one can."""
    stacks = functions.use(FakeStacks())
    planted = stacks.plant_done(ACME, template_url=a_release().template_url)
    functions.serve(stack_id=planted.stack_id)
    functions.table.record_release(a_release(NEXT_VERSION))
    functions.clock.advance(timedelta(minutes=1))
    return stacks


@pytest.fixture
def stack_limit(functions: Functions) -> int:
    """The maximum number of stacks in the account."""
    functions.answer("DescribeAccountLimits", {"AccountLimits": [{"Name": "StackLimit", "Value": 2000}]})
    functions.answer("GetAccountSettings", {"AccountLimit": {"ConcurrentExecutions": 1000}})
    return 2000
