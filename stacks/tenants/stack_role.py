"""The permissions of CloudFormation in tenants' stacks."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from stacks.common.capability import Capability
from stacks.common.functions import BerthFunction, FunctionKit
from stacks.common.permissions import (
    TENANT_QUEUES_ARE_MANY,
    acknowledge,
    acknowledge_wildcard,
    allow,
    allow_on_tenant_queues,
    allow_reading_tenant_stacks,
    names_of,
    statement,
    tenant_queue_arns,
    tenant_stack_arns,
)
from stacks.common.table import TENANT_ROWS
from stacks.settings import Settings
from stacks.tenants.operators_policies import OPERATORS_CHOICE, boundary_of_operators_policies

_QUEUE_OPERATIONS = (
    "CreateQueue",
    "DeleteQueue",
    "GetQueueAttributes",
    # After creating a queue, CloudFormation's handler looks it up by its name.
    "GetQueueUrl",
    "SetQueueAttributes",
    "TagQueue",
    "UntagQueue",
    "ListQueueTags",
)


class TenantStackRole(Capability):
    """The service role of tenants' stacks, and the function of the custom resource that writes their metadata."""

    def __init__(self, scope: Construct, construct_id: str, *, kit: FunctionKit, settings: Settings) -> None:
        super().__init__(scope, construct_id)
        self._encryption = kit.encryption
        self.policy_arns = settings.stack_policy_arns
        self.tenant_metadata = BerthFunction(
            self,
            "TenantMetadata",
            kit=kit,
            name="tenant_metadata",
            function_name=names_of(self).tenant_metadata_function,
            timeout_seconds=30,
            reserved_concurrency=settings.tenant_metadata_concurrency,
        )
        kit.table.allow(self.tenant_metadata.role, "GetItem", "UpdateItem", rows=TENANT_ROWS)
        kit.table.allow_appending(self.tenant_metadata.role)
        kit.table.allow_noting_throttles(self.tenant_metadata.role)
        allow_reading_tenant_stacks(self.tenant_metadata.role)

        cloudformation = iam.ServicePrincipal(
            "cloudformation.amazonaws.com", conditions=self._only_for_tenants() if settings.stack_role_source else None
        )
        self.role = iam.Role(self, "Role", assumed_by=cloudformation, permissions_boundary=self._boundary())
        self.add_to_environment_of(self.tenant_metadata)
        allow_on_tenant_queues(self.role, *_QUEUE_OPERATIONS)
        allow(self.role, ["lambda:InvokeFunction"], self.tenant_metadata.arn)
        for number, arn in enumerate(self.policy_arns, start=1):
            self.role.add_managed_policy(iam.ManagedPolicy.from_managed_policy_arn(self, f"Policy{number}", arn))
            if ":iam::aws:" in arn:
                acknowledge(self.role, f"AwsSolutions-IAM4[Policy::{arn}]", OPERATORS_CHOICE)

    @property
    def functions(self) -> Sequence[BerthFunction]:
        return (self.tenant_metadata,)

    @property
    def environment(self) -> dict[str, str]:
        """With these variables, a function can tell Berth's stacks from others: they have this service role."""
        return {"BERTH_STACK_ROLE": self.role.role_arn}

    @property
    def parameters(self) -> dict[str, str]:
        """With these variables and a release, a function knows the parameters of a tenant's stack."""
        return {"BERTH_METADATA_SERVICE_TOKEN": self.tenant_metadata.arn, **self._encryption.environment}

    def allow_checking_templates(self, function: BerthFunction) -> None:
        """Let a function find out what the operator's policies allow, so that it can check a template for it."""
        if self.policy_arns:
            function.function.add_environment("BERTH_STACK_POLICIES", ",".join(self.policy_arns))
            allow(function.role, ["iam:GetPolicy", "iam:GetPolicyVersion"], *self.policy_arns)

    def add_to_environment_of(self, *functions: BerthFunction) -> None:
        for function in functions:
            for name, value in self.environment.items():
                function.function.add_environment(name, value)

    def _only_for_tenants(self) -> dict[str, dict[str, str | list[str]]]:
        """Keep CloudFormation from using the role for a stack that is not a tenant's.

        AWS documents these conditions for StackSets, not for the service role of a stack. If CloudFormation could not
        assume the role, every tenant would fail, so the conditions are a setting.
        """
        return {
            "StringEquals": {"aws:SourceAccount": Stack.of(self).account},
            "ArnLike": {"aws:SourceArn": tenant_stack_arns(self)},
        }

    def _boundary(self) -> iam.ManagedPolicy:
        """The permissions boundary: policies attached to the role later cannot allow more, such as changing IAM."""
        # The function is named by its name, not its reference, because it depends on the role itself.
        tenant_metadata = Stack.of(self).format_arn(
            service="lambda",
            resource="function",
            resource_name=names_of(self).tenant_metadata_function,
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        boundary = iam.ManagedPolicy(
            self,
            "Boundary",
            description="What CloudFormation may at most do in the stacks of Berth's tenants.",
            statements=[
                statement([f"sqs:{operation}" for operation in _QUEUE_OPERATIONS], tenant_queue_arns(self)),
                statement(["lambda:InvokeFunction"], [tenant_metadata]),
                iam.PolicyStatement(effect=iam.Effect.DENY, actions=["iam:*", "sts:*"], resources=["*"]),
                *(boundary_of_operators_policies(self, self._encryption.key_arn) if self.policy_arns else ()),
            ],
        )
        for queues in tenant_queue_arns(self):
            acknowledge_wildcard(boundary, queues, TENANT_QUEUES_ARE_MANY)
        if self.policy_arns:
            acknowledge(boundary, "AwsSolutions-IAM5[Action::*]", OPERATORS_CHOICE)
            acknowledge(boundary, "AwsSolutions-IAM5[Resource::*]", OPERATORS_CHOICE)
        return boundary
