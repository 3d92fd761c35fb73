"""The workflows that bring a tenant's stack about, and the functions that are their states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from stacks.functions import BerthFunction, FunctionKit
from stacks.log_groups import log_group
from stacks.permissions import (
    TENANT_QUEUES_ARE_MANY,
    TENANT_STACKS_ARE_MANY,
    acknowledge_wildcard,
    allow,
    statement,
    tenant_queue_arns,
    tenant_stack_arns,
)
from stacks.project import ROOT
from stacks.release_publisher import PUBLISHED_FOR_EVER
from stacks.settings import Settings
from stacks.stack_role import TenantStackRole
from stacks.table import RELEASE_ROWS, TENANT_ROWS

CREATE_TENANT = ROOT / "statemachines" / "create_tenant.asl.json"

CREATE_TENANT_FUNCTIONS: Final[Mapping[str, str]] = {
    "BeginFunctionArn": "begin",
    "StartStackFunctionArn": "start_stack",
    "AwaitStackFunctionArn": "await_stack",
    "InspectStackFunctionArn": "inspect_stack",
    "FinishFunctionArn": "finish",
    "RecordFailureFunctionArn": "record_failure",
}
"""Each placeholder in the workflow's file that stands for a function's ARN, and that function's name."""

EXECUTIONS_ARE_MANY = "Every operation is an execution of its own, of this one machine."


def create_tenant_definition(settings: Settings) -> str:
    """The workflow's file with its numbers in place; the functions' ARNs are left to CloudFormation.

    CloudFormation puts in text, and a placeholder has to be quoted for the file to be JSON: a number put in
    by CloudFormation would come out as a string.
    """
    definition = CREATE_TENANT.read_text(encoding="utf-8")
    return definition.replace('"${AwaitStackSeconds}"', str(settings.await_stack_seconds))


class TenantMachines(Construct):
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        kit: FunctionKit,
        settings: Settings,
        stack_role: TenantStackRole,
        releases: s3.Bucket,
    ) -> None:
        super().__init__(scope, construct_id)
        begin = BerthFunction(self, "Begin", kit=kit, name="begin")
        kit.table.allow(begin.role, "GetItem", "PutItem", rows=TENANT_ROWS)

        start_stack = self._start_stack(kit, settings, stack_role, releases)

        await_stack = BerthFunction(self, "AwaitStack", kit=kit, name="await_stack")
        kit.table.allow(await_stack.role, "UpdateItem", rows=TENANT_ROWS)
        self._allow_on_tenant_stacks(await_stack, "DescribeStacks")

        inspect_stack = BerthFunction(self, "InspectStack", kit=kit, name="inspect_stack")
        self._allow_on_tenant_stacks(inspect_stack, "DescribeStacks")

        finish = BerthFunction(self, "Finish", kit=kit, name="finish")
        kit.table.allow(finish.role, "GetItem", "PutItem", "UpdateItem", "DeleteItem", rows=TENANT_ROWS)
        allow(
            finish.role,
            ["sqs:GetQueueAttributes"],
            tenant_queue_arns(self),
            wildcard_because=TENANT_QUEUES_ARE_MANY,
        )

        record_failure = BerthFunction(self, "RecordFailure", kit=kit, name="record_failure")
        kit.table.allow(record_failure.role, "GetItem", "PutItem", "DeleteItem", rows=TENANT_ROWS)
        self._allow_on_tenant_stacks(record_failure, "DescribeStackEvents")

        self.functions = (begin, start_stack, await_stack, inspect_stack, finish, record_failure)
        self.create = self._create_tenant(kit, settings)

        # The machine names these functions, so permissions on the machine cannot be part of what the functions
        # depend on: each is a policy of its own, attached once both are there.
        self._allow_on_executions(begin, "DescribeExecution")
        self._allow_on_machine(await_stack, "SendTaskSuccess")

    @property
    def create_executions(self) -> str:
        return Stack.of(self).format_arn(
            service="states",
            resource=f"execution:{self.create.state_machine_name}:*",
        )

    def _start_stack(
        self, kit: FunctionKit, settings: Settings, stack_role: TenantStackRole, releases: s3.Bucket
    ) -> BerthFunction:
        start_stack = BerthFunction(
            self,
            "StartStack",
            kit=kit,
            name="start_stack",
            timeout_seconds=30,
            environment={
                "BERTH_STACK_ROLE": stack_role.role.role_arn,
                "BERTH_METADATA_SERVICE_TOKEN": stack_role.tenant_metadata.arn,
                "BERTH_DEPLOYMENT_MODE": settings.deployment_mode.value,
            },
        )
        kit.table.allow(start_stack.role, "GetItem", rows=TENANT_ROWS)
        kit.table.allow(start_stack.role, "GetItem", rows=RELEASE_ROWS)
        # Without the condition the function's caller could have CloudFormation act with other rights than the role's.
        allow(
            start_stack.role,
            ["cloudformation:CreateStack", "cloudformation:DeleteStack"],
            tenant_stack_arns(self),
            conditions={"StringEquals": {"cloudformation:RoleArn": stack_role.role.role_arn}},
            wildcard_because=TENANT_STACKS_ARE_MANY,
        )
        self._allow_on_tenant_stacks(start_stack, "DescribeStacks")
        allow(
            start_stack.role,
            ["iam:PassRole"],
            stack_role.role.role_arn,
            conditions={"StringEquals": {"iam:PassedToService": "cloudformation.amazonaws.com"}},
        )
        # CloudFormation reads the template with the rights of whoever asks for the stack.
        allow(
            start_stack.role,
            ["s3:GetObject"],
            releases.arn_for_objects("*"),
            wildcard_because=PUBLISHED_FOR_EVER,
        )
        return start_stack

    def _create_tenant(self, kit: FunctionKit, settings: Settings) -> sfn.StateMachine:
        by_name = {function.name: function.arn for function in self.functions}
        role = iam.Role(self, "CreateRole", assumed_by=iam.ServicePrincipal("states.amazonaws.com"))
        role.add_to_policy(statement(["lambda:InvokeFunction"], list(by_name.values())))
        acknowledge_wildcard(
            role, "*", "Log delivery and X-Ray, which the CDK lets a machine write to, have no resources to name."
        )
        return sfn.StateMachine(
            self,
            "Create",
            definition_body=sfn.DefinitionBody.from_string(create_tenant_definition(settings)),
            definition_substitutions={
                placeholder: by_name[name] for placeholder, name in CREATE_TENANT_FUNCTIONS.items()
            },
            role=role,
            tracing_enabled=True,
            logs=sfn.LogOptions(
                # Log delivery lists every group in one policy of limited size, except those under this prefix.
                destination=log_group(
                    self,
                    "CreateLogs",
                    days=kit.log_retention_days,
                    name=f"/aws/vendedlogs/states/{Stack.of(self).stack_name}-create-tenant",
                ),
                level=sfn.LogLevel.ALL,
                # The data includes task tokens: whoever reads one can answer in CloudFormation's place.
                include_execution_data=False,
            ),
        )

    def _allow_on_tenant_stacks(self, function: BerthFunction, operation: str) -> None:
        allow(
            function.role,
            [f"cloudformation:{operation}"],
            tenant_stack_arns(self),
            wildcard_because=TENANT_STACKS_ARE_MANY,
        )

    def _allow_on_machine(self, function: BerthFunction, operation: str) -> None:
        self._attach(function, statement([f"states:{operation}"], [self.create.state_machine_arn]))

    def _allow_on_executions(self, function: BerthFunction, operation: str) -> None:
        policy = self._attach(function, statement([f"states:{operation}"], [self.create_executions]))
        acknowledge_wildcard(policy, self.create_executions, EXECUTIONS_ARE_MANY)

    def _attach(self, function: BerthFunction, permission: iam.PolicyStatement) -> iam.Policy:
        return iam.Policy(self, f"{function.node.id}OnMachine", statements=[permission], roles=[function.role])
