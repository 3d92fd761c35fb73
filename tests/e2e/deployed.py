"""The deployed control plane, used as a platform, as an operator and as CloudFormation."""

from __future__ import annotations

import io
import json
import os
import signal
import threading
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import boto3

from orchestrator.adapters.dynamodb import keys
from orchestrator.adapters.dynamodb.tenants import DynamoTable
from orchestrator.adapters.sessions import session_without_profile
from orchestrator.adapters.stepfunctions import StepFunctionsExecutions
from orchestrator.client.transport import ApiAnswer, SignedHttp
from orchestrator.common.tenant_ids import TenantId
from orchestrator.local.emulator import Emulator
from orchestrator.tenants.names import Names
from orchestrator.tenants.records import Attempt, Operation, Request
from stacks.common.function_code import handler_of
from tests.by_hand import ClientByHand
from tests.fakes import NAMES
from tests.present import present

Seen = TypeVar("Seen")

_STUBBORN = """
import json, os, urllib.request

def handler(event, _context):
    request, tenant = event["RequestType"], event["ResourceProperties"]["TenantId"]
    refuses = {f"{request} {tenant}", f"{request} *"} & set(os.environ["REFUSES"].split(","))
    answer = {name: event[name] for name in ("StackId", "RequestId", "LogicalResourceId")}
    answer |= {"Status": "FAILED" if refuses else "SUCCESS", "Reason": "I will not.", "PhysicalResourceId": "stubborn"}
    request = urllib.request.Request(event["ResponseURL"], data=json.dumps(answer).encode(), method="PUT")
    urllib.request.urlopen(request, timeout=10).close()
"""

WITHIN_SECONDS = 300.0
ASK_AGAIN = frozenset({429, 500, 502, 503})
"""The responses of API Gateway when the function is throttled. A platform's client retries."""


def eventually(look: Callable[[], Seen | None], *, what: str, pause: float = 0.1) -> Seen:
    """Poll until there is a result. The test waits for the condition; the time is only a limit."""
    deadline = time.monotonic() + WITHIN_SECONDS
    while time.monotonic() < deadline:
        if (seen := look()) is not None:
            return seen
        # Poll less and less often, because the emulator shares the machine's cores, but notice the end within a second.
        threading.Event().wait(pause)
        pause = min(pause * 1.5, 1.0)
    raise AssertionError(f"Not seen within {WITHIN_SECONDS:.0f} s: {what}")


@dataclass(frozen=True)
class Deployed:
    emulator: Emulator
    outputs: dict[str, str]
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The credentials of the caller, by boto3's names; empty for the account's root."""
    names: Names = NAMES

    @cached_property
    def _session(self) -> boto3.Session:
        return session_without_profile({**self.emulator.session_settings(), **self.credentials})

    def acting_as(self, role_arn: str, session: str) -> Deployed:
        """The same control plane, used with a session of this role."""
        given = self.client("sts").assume_role(RoleArn=role_arn, RoleSessionName=session)["Credentials"]
        return replace(
            self,
            credentials={
                "aws_access_key_id": given["AccessKeyId"],
                "aws_secret_access_key": given["SecretAccessKey"],
                "aws_session_token": given["SessionToken"],
            },
        )

    def client(self, service: str) -> Any:
        """One client per service, because creating a client costs more than using it."""
        if service not in self._clients:
            self._clients[service] = self._session.client(service, endpoint_url=self.emulator.endpoint)
        return self._clients[service]

    @cached_property
    def _clients(self) -> dict[str, Any]:
        return {}

    @cached_property
    def table(self) -> DynamoTable:
        return DynamoTable(self.client("dynamodb"), self.outputs["TableName"])

    @property
    def release(self) -> str:
        """The release that the deployment has published."""
        return self.outputs["TemplateVersion"]

    @cached_property
    def machine(self) -> str:
        return self.outputs["CreateTenantMachineArn"]

    # As a platform

    def api(self) -> ClientByHand:
        credentials = present(self._session.get_credentials())
        url = self.emulator.api_url(self.outputs["ApiUrl"])
        return ClientByHand(
            transport=SignedHttp(url, credentials, self._session.region_name, connect_to=self.emulator.endpoint)
        )

    def ask(self, tenant: TenantId, api: ClientByHand | None = None) -> ApiAnswer:
        """One response. A throttled request is retried."""
        api = api or self.api()

        def answer() -> ApiAnswer | None:
            given = api.queue(tenant)
            return None if given.status in ASK_AGAIN else given

        return eventually(answer, what=f"an answer about {tenant}", pause=0.5)

    def settled(self, tenant: TenantId) -> ApiAnswer:
        """The first response that is not 202."""

        def answer() -> ApiAnswer | None:
            given = self.ask(tenant)
            return None if given.status == 202 else given

        return eventually(answer, what=f"{tenant} settled")

    def invoke(self, function: str, event: Any) -> Any:
        response = self.client("lambda").invoke(FunctionName=function, Payload=json.dumps(event))
        assert "FunctionError" not in response, response["Payload"].read()
        return json.loads(response["Payload"].read())

    def fault(self, function: str, event: Any) -> Any:
        """The error that the function raises."""
        response = self.client("lambda").invoke(FunctionName=function, Payload=json.dumps(event))
        assert "FunctionError" in response, response["Payload"].read()
        return json.loads(response["Payload"].read())

    def functions(self) -> list[str]:
        pages = self.client("lambda").get_paginator("list_functions").paginate()
        return [function["FunctionName"] for page in pages for function in page["Functions"]]

    def function(self, name: str) -> str:
        """The name of the function whose handler is in this file of ``lambdas/``."""
        pages = self.client("lambda").get_paginator("list_functions").paginate()
        functions = [function for page in pages for function in page["Functions"]]
        (found,) = [
            each["FunctionName"]
            for each in functions
            if each["Handler"] in (handler_of(name), f"lambdas.{name}.handler")
            # Both stacks have a function that makes the proof of their API.
            and not (name == "api_proof" and each["FunctionName"].startswith(f"{self.names.events}-"))
        ]
        return str(found)

    @contextmanager
    def held_up(self, name: str) -> Iterator[None]:
        """Within this block the function is throttled, so executions wait at its state."""
        function, functions = self.function(name), self.client("lambda")
        bound = functions.get_function_concurrency(FunctionName=function).get("ReservedConcurrentExecutions")
        functions.put_function_concurrency(FunctionName=function, ReservedConcurrentExecutions=0)
        try:
            yield
        finally:
            if bound is None:
                functions.delete_function_concurrency(FunctionName=function)
            else:
                functions.put_function_concurrency(FunctionName=function, ReservedConcurrentExecutions=bound)

    def kill_processes_of(self, chosen: Callable[[str], bool]) -> int:
        """Kill the processes of the functions whose names are chosen, and return their number.

        A process works in the folder into which the emulator has unpacked the function's code.
        """
        killed = 0
        for process in Path("/proc").glob("[0-9]*"):
            try:
                folder = (process / "cwd").readlink().parent
                name = folder.name.removeprefix("ministack-lambda-").rpartition("-")[0]
                if folder.parent == self.emulator.home / "tmp" and chosen(name):
                    os.kill(int(process.name), signal.SIGKILL)
                    killed += 1
            except OSError:
                continue  # It has ended, or belongs to somebody else.
        return killed

    # As an operator

    def start_create(self, tenant: TenantId, attempt: int) -> str:
        chosen = Attempt(tenant, Operation.CREATE, self.release, attempt)
        return self.start(chosen, Request(by="a test", explicit=True))

    def start(self, attempt: Attempt, request: Request) -> str:
        """Start the machine for this attempt, without the checks of the API."""
        execution = self.executions_of_machines.start(attempt, request)
        assert execution is not None, f"{attempt.name} has ended before"
        return execution

    @cached_property
    def executions_of_machines(self) -> StepFunctionsExecutions:
        return StepFunctionsExecutions(
            lambda: self.client("stepfunctions"),
            lambda operation: self.outputs[f"{operation.value.capitalize()}TenantMachineArn"],
        )

    def ended(self, execution: str) -> dict[str, Any]:
        def look() -> dict[str, Any] | None:
            described = self.client("stepfunctions").describe_execution(executionArn=execution)
            return described if described["status"] != "RUNNING" else None

        return eventually(look, what=f"{execution} ended")

    def executions(self, tenant: TenantId) -> list[str]:
        pages = self.client("stepfunctions").get_paginator("list_executions").paginate(stateMachineArn=self.machine)
        names = [execution["name"] for page in pages for execution in page["executions"]]
        return [name for name in names if f"-{tenant.slug}-" in name]

    def rows(self) -> list[dict[str, Any]]:
        pages = self.client("dynamodb").get_paginator("scan").paginate(TableName=self.outputs["TableName"])
        items = [item for page in pages for item in page["Items"]]
        return sorted(items, key=lambda item: (item["pk"]["S"], item["sk"]["S"]))

    def rows_of_tenants(self) -> list[dict[str, Any]]:
        """The rows of all tenants. Functions that run by a schedule write other rows at any time."""
        return [row for row in self.rows() if row["pk"]["S"].startswith(keys.TENANT_PREFIX)]

    def rows_of(self, tenant: TenantId) -> dict[str, dict[str, Any]]:
        return {row["sk"]["S"]: row for row in self.rows() if row["pk"]["S"] == f"TENANT_ID#{tenant}"}

    # As CloudFormation

    def stack(self, tenant: TenantId) -> dict[str, Any]:
        (stack,) = self.client("cloudformation").describe_stacks(StackName=self.names.stack_of(tenant))["Stacks"]
        return dict(stack)

    @property
    def stack_role(self) -> str:
        described = self.client("lambda").get_function_configuration(FunctionName=self.names.tenant_metadata_function)
        return str(described["Environment"]["Variables"]["BERTH_STACK_ROLE"])

    def create_stack_by_hand(self, tenant: TenantId, *, role: str | None = None) -> str:
        """Create the tenant's stack as a run leaves it that died before it could publish.

        The stack has the role that Berth uses for tenants' stacks, unless another is given.
        """
        release = present(self.table.release(self.release))
        cloudformation = self.client("cloudformation")
        stack_id = cloudformation.create_stack(
            StackName=self.names.stack_of(tenant),
            TemplateURL=release.template_url,
            Parameters=[
                {"ParameterKey": "TenantId", "ParameterValue": tenant.value},
                {"ParameterKey": "MetadataServiceToken", "ParameterValue": self.metadata_function},
            ],
            RoleARN=role or self.stack_role,
        )["StackId"]
        eventually(
            lambda: True if self.stack(tenant)["StackStatus"] == "CREATE_COMPLETE" else None, what="the stack is there"
        )
        return str(stack_id)

    def update_stack_by_hand(self, tenant: TenantId, version: str, **more: Any) -> None:
        """Update the stack without Berth, to another template, and wait until the update has ended."""
        release = present(self.table.release(version))
        self.client("cloudformation").update_stack(
            StackName=self.names.stack_of(tenant),
            TemplateURL=release.template_url,
            Parameters=[
                {"ParameterKey": name, "UsePreviousValue": True} for name in ("TenantId", "MetadataServiceToken")
            ],
            **more,
        )
        eventually(
            lambda: True if not self.stack(tenant)["StackStatus"].endswith("_IN_PROGRESS") else None,
            what=f"the stack of {tenant} is updated",
        )

    def a_stubborn_resource(self, name: str, *refuses: str) -> dict[str, Any]:
        """A custom resource for tenants' templates that can be set to refuse: ``Create acme``, ``Delete *``."""
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as code:
            code.writestr("stubborn.py", _STUBBORN)
        function = self.client("lambda").create_function(
            FunctionName=name,
            Runtime="python3.13",
            Role=f"arn:aws:iam::000000000000:role/{name}",
            Handler="stubborn.handler",
            Code={"ZipFile": archive.getvalue()},
            Environment={"Variables": {"REFUSES": ",".join(refuses)}},
        )["FunctionArn"]
        properties = {"ServiceToken": function, "ServiceTimeout": "30", "TenantId": {"Ref": "TenantId"}}
        return {"Type": "Custom::Stubborn", "Properties": properties}

    def talk_to(self, stubborn: str, *refuses: str) -> None:
        """Let the custom resource refuse this from now on, and nothing else."""
        self.client("lambda").update_function_configuration(
            FunctionName=stubborn, Environment={"Variables": {"REFUSES": ",".join(refuses)}}
        )

    def delete_stack_by_hand(self, tenant: TenantId, stack_id: str) -> None:
        cloudformation = self.client("cloudformation")
        cloudformation.delete_stack(StackName=stack_id)
        eventually(
            lambda: (
                True
                if cloudformation.describe_stacks(StackName=stack_id)["Stacks"][0]["StackStatus"] == "DELETE_COMPLETE"
                else None
            ),
            what=f"the stack of {tenant} is gone",
        )

    @property
    def metadata_function(self) -> str:
        described = self.client("lambda").get_function(FunctionName=self.names.tenant_metadata_function)
        return str(described["Configuration"]["FunctionArn"])
