"""The functions themselves, as Lambda calls them, on AWS in process."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

from botocore.awsrequest import AWSResponse
from botocore.exceptions import ClientError
from botocore.session import Session

from orchestrator.adapters.dynamodb.reconciliations import ReconciliationTable
from orchestrator.adapters.dynamodb.rollouts import RolloutTable
from orchestrator.common.tenant_ids import TenantId
from orchestrator.releases.published import digest_of
from orchestrator.releases.records import Release
from orchestrator.tenants.execution_input import machine_input, request_from
from orchestrator.tenants.ports import Publication
from orchestrator.tenants.records import Operation, Queue, Request, Run
from orchestrator.tenants.stack_resources import StackResource
from stacks.common.function_code import module_of
from tests.adapters.conftest import REGION, TABLE, Endpoint, client
from tests.adapters.tables import WholeTable
from tests.fakes import (
    ACME,
    NAMES,
    NEXT_VERSION,
    NOON,
    QUEUE,
    VERSION,
    FakeClock,
    FakeQueues,
    FakeResources,
    FakeStacks,
    a_release,
    a_run,
    parameters_of,
    stack_arn,
    take,
)
from tests.functions import forget_functions
from tests.present import present

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

STACK_ROLE = "arn:aws:iam::123456789012:role/tenant-stacks"
SERVICE_TOKEN = parameters_of(ACME)["MetadataServiceToken"]
RELEASES = "berth-releases"
SOURCES = "cdk-assets"
RECONCILE = "reconcile"
OWN_STACK = f"arn:aws:cloudformation:{REGION}:123456789012:stack/Berth/0a1b"
OF_A_DEPLOYMENT: dict[str, tuple[str, str]] = {
    "publish_release": ("Custom::Release", "Release010"),
    "start_rollout": ("Custom::Rollout", "Rollout"),
    "api_proof": ("Custom::ApiProof", "Proof"),
}
"""The functions that a deployment of the control plane calls: the type of the resource, and what it is called."""
ADA = "arn:aws:sts::123456789012:assumed-role/operator/ada"

PROOF = "what only API Gateway knows"

Answer = tuple[int, dict[str, str], dict[str, Any]]
Lines = Callable[[], list[dict[str, Any]]]


@cache
def session() -> Session:
    """One session for all tests: what it has read of the SDK's models serves them all."""
    return Session()


def emitter() -> Any:
    """The event system of clients that are created from now on."""
    return session().get_component("event_emitter")


@dataclass
class Functions:
    """The functions, freshly loaded, and every request that they make to AWS."""

    table: WholeTable
    dynamodb: DynamoDBClient
    clock: FakeClock
    machines: dict[Operation, str]
    tenant_queue_machine: str
    rollout_machine: str
    requests: list[str] = field(default_factory=list)
    sent: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    """The same, each with what was sent."""
    hooks: list[tuple[str, Callable[..., object]]] = field(default_factory=list)
    shown: dict[str, Run] = field(default_factory=dict)
    """Runs whose executions Step Functions shows, though no machine has started them."""
    endpoint: Endpoint = field(default_factory=Endpoint)
    """Receives the responses to CloudFormation. It listens in tests that use the fixture of this name."""

    @property
    def rollouts(self) -> RolloutTable:
        return RolloutTable(self.dynamodb, TABLE)

    @property
    def reconciliations(self) -> ReconciliationTable:
        return ReconciliationTable(self.dynamodb, TABLE)

    def load(self, name: str) -> ModuleType:
        return importlib.import_module("lambdas.runtime" if name == "runtime" else module_of(name))

    @property
    def ports(self) -> Any:
        """The ports of the functions, to replace one."""
        return self.load("runtime").use_cases.ports

    def call(self, name: str, event: object, context: object = None) -> Any:
        return self.load(name).handler(event, context)

    def ask(self, name: str, event: object) -> Answer:
        """Call a function that answers over HTTP."""
        result = self.call(name, event)
        return result["statusCode"], result["headers"], json.loads(result["body"])

    def deploy(self, name: str, event: dict[str, Any], *, stack: str | None = None) -> FakeResources:
        """Let CloudFormation call a function for a resource of the control plane's own stack."""
        kind, logical_id = OF_A_DEPLOYMENT[name]
        event = {**event, "StackId": OWN_STACK, "LogicalResourceId": logical_id}
        resources = FakeResources()
        doing = f"{event['RequestType'].upper()}_IN_PROGRESS"
        resources.put(StackResource.parse(OWN_STACK, logical_id), doing, stack=stack or doing, kind=kind)
        self.show(resources)
        self.call(name, event)
        return resources

    def show(self, resources: FakeResources) -> None:
        """Let CloudFormation describe these resources of stacks from now on."""
        self.ports.stack_resources = resources

    def get_queue(self, event: object) -> Answer:
        return self.ask("get_queue", event)

    def operate(self, route: str, **more: Any) -> Answer:
        return self.ask("operators", operator_event(route, **more))

    # Arranging

    def serve(
        self,
        run: Run | None = None,
        *,
        queue: Queue = QUEUE,
        stack_id: str = stack_arn(number=99),
        deployed: str | None = None,
        resources: Mapping[str, str] | None = None,
    ) -> None:
        """Let a run succeed: its tenant has a queue then."""
        run = run or a_run()
        self.table.record_release(a_release(run.attempt.version))
        assert take(self.table, run) is None
        publication = Publication(stack_id, queue, run.attempt.version, deployed, resources=resources)
        self.table.publish(run, publication, at=run.started_at)

    def remove(self, run: Run) -> None:
        """Let a delete succeed."""
        assert take(self.table, run) is None
        self.table.remove(run, at=run.started_at)

    def use(self, stacks: FakeStacks) -> FakeStacks:
        """Replace CloudFormation and its queues by fakes, because moto's updates change no outputs and never fail."""
        self.ports.stacks = self.ports.observed_stacks = self.ports.writable_stacks = stacks
        self.ports.queues = FakeQueues()
        return stacks

    def throttle(self, operation: str) -> None:
        """Let AWS refuse this operation from now on."""

        def refuse(**_: object) -> None:
            raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "Rate exceeded"}}, operation)

        self.hook(f"before-call.*.{operation}", refuse)
        # Clients that were made before would not hear of it.
        forget_functions()

    def answer(self, operation: str, response: dict[str, Any]) -> None:
        """Let AWS return this response to an operation that moto does not implement."""
        self.hook(f"before-call.*.{operation}", lambda **_: (AWSResponse("", 200, {}, None), response))
        forget_functions()

    def show_execution(self, params: dict[str, Any], **_: object) -> tuple[AWSResponse, dict[str, Any]] | None:
        """Answer DescribeExecution about an execution that a test has made up."""
        run = self.shown.get(json.loads(params["body"])["executionArn"])
        if run is None:
            return None
        given = json.dumps(machine_input(run.attempt, run.request))
        return AWSResponse("", 200, {}, None), {"status": "RUNNING", "startDate": run.started_at, "input": given}

    def hook(self, event: str, call: Callable[..., object]) -> None:
        emitter().register(event, call)
        self.hooks.append((event, call))

    # Looking

    def note(self, model: Any, params: dict[str, Any], **_: object) -> None:
        name = f"{model.service_model.service_name}.{model.name}"
        self.requests.append(name)
        self.sent.append((name, dict(params)))

    def sent_to(self, name: str) -> list[dict[str, Any]]:
        return [params for sent, params in self.sent if sent == name]

    @property
    def rows(self) -> int:
        return self.dynamodb.scan(TableName=TABLE)["Count"]

    def executions(self, operation: Operation = Operation.CREATE) -> list[str]:
        return [execution.rpartition(":")[2] for execution in self._executions(self.machines[operation])]

    @property
    def all_executions(self) -> list[str]:
        machines = [*self.machines.values(), self.tenant_queue_machine, self.rollout_machine]
        return [execution for machine in machines for execution in self._executions(machine)]

    @property
    def rollout_executions(self) -> list[str]:
        return self._executions(self.rollout_machine)

    def input_of(self, execution: str) -> dict[str, Any]:
        return input_of(execution)

    def request_of(self, execution: str) -> Request:
        """The request in the input of the execution."""
        return request_from(input_of(execution)["request"])

    def _executions(self, machine: str) -> list[str]:
        listed = client("stepfunctions").list_executions(stateMachineArn=machine)["executions"]
        return [execution["executionArn"] for execution in listed]


def input_of(execution: str) -> dict[str, Any]:
    given: dict[str, Any] = json.loads(client("stepfunctions").describe_execution(executionArn=execution)["input"])
    return given


def step_event(run: Run | None = None, **more: object) -> dict[str, object]:
    """The event that a state of a machine sends. Each state sends one part of it."""
    run = run or a_run()
    execution = {
        "Id": run.execution,
        "StartTime": run.started_at.isoformat(),
        "Input": machine_input(run.attempt, run.request),
    }
    return {"execution": execution, "operation": run.attempt.operation, "taskToken": "token", **more}


def operator_event(
    route: str,
    *,
    tenant: str | None = "acme",
    rollout: str | None = None,
    reconciliation: str | None = None,
    version: str | None = None,
    query: dict[str, str] | None = None,
    body: object = None,
    by: str = ADA,
) -> dict[str, Any]:
    """The event that API Gateway sends for a request to the operators' API."""
    method, path = route.split(" ")
    ids = {
        "tenantId": tenant,
        "rolloutId": rollout,
        "reconciliationId": reconciliation,
        "version": version,
    }
    for name, value in ids.items():
        path = path.replace(f"{{{name}}}", value or "")
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": route,
        "rawPath": path,
        "headers": {"content-type": "application/json"},
        "requestContext": {"http": {"method": method, "path": path}, "authorizer": {"iam": {"userArn": by}}},
        "isBase64Encoded": False,
        "stageVariables": {"proof": PROOF},
    }
    # API Gateway omits empty parts.
    if given := {name: value for name, value in ids.items() if f"{{{name}}}" in route and value is not None}:
        event["pathParameters"] = given
    if query:
        event["queryStringParameters"] = query
    if body is not None:
        event["body"] = body if isinstance(body, str) else json.dumps(body)
    return event


def publish_template(functions: Functions, version: str, template: dict[str, Any]) -> None:
    """Publish it as that release, where moto's CloudFormation finds it."""
    url = f"https://s3.{REGION}.amazonaws.com/{RELEASES}/{version}.json"
    client("s3").put_object(Bucket=RELEASES, Key=f"{version}.json", Body=json.dumps(template))
    functions.table.record_release(Release(version, url, digest_of(template), NOON))


def plant_stack(tenant: TenantId, *, role: str | None = None, **changes: Any) -> str:
    """Make a stack under the tenant's name, as anybody may who may make stacks, unless it is with Berth's role."""
    template = {**TEMPLATE, **changes}
    given = {"TenantId": tenant.value, "MetadataServiceToken": SERVICE_TOKEN}
    created: str = client("cloudformation").create_stack(
        StackName=NAMES.stack_of(tenant),
        TemplateBody=json.dumps(template),
        Parameters=[{"ParameterKey": name, "ParameterValue": value} for name, value in given.items()],
        **({"RoleARN": role} if role else {}),
    )["StackId"]
    return created


CREATE = a_run()
UPDATE = a_run(operation=Operation.UPDATE, version=NEXT_VERSION, started_at=NOON + timedelta(minutes=1))
DELETE = a_run(operation=Operation.DELETE, started_at=NOON + timedelta(minutes=1))
TEMPLATE = {
    "Parameters": {"TenantId": {"Type": "String"}, "MetadataServiceToken": {"Type": "String"}},
    "Resources": {"InboundQueue": {"Type": "AWS::SQS::Queue"}},
    "Outputs": {
        "InboundQueueArn": {"Value": {"Fn::GetAtt": ["InboundQueue", "Arn"]}},
        "InboundQueueUrl": {"Value": {"Ref": "InboundQueue"}},
        "Version": {"Value": VERSION},
    },
}
DELAYING = {**TEMPLATE, "Resources": {"InboundQueue": {"Type": "AWS::SQS::Queue", "Properties": {"DelaySeconds": 1}}}}


def step(functions: Functions, name: str, run: Run, **more: object) -> dict[str, Any]:
    """Call the function of a state, from an execution that is running."""
    functions.shown = {run.execution: run}
    response: dict[str, Any] = functions.call(name, step_event(run, **more))
    functions.shown = {}
    return response


def served(functions: Functions) -> bool:
    return functions.get_queue({"tenantId": "acme"})[0] == 200


def queue_of(functions: Functions) -> Queue:
    metadata = present(functions.table.metadata(ACME))
    assert metadata.queue is not None
    return metadata.queue
