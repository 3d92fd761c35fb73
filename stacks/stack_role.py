"""What CloudFormation may do in a tenant's stack, whoever asks it to."""

from __future__ import annotations

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from stacks.functions import BerthFunction, FunctionKit
from stacks.permissions import allow, allow_on_tenant_queues, allow_on_tenant_stacks, tenant_stack_arns
from stacks.table import TENANT_ROWS

# The function's ARN is the ServiceToken inside every tenant's stack, and a ServiceToken must never change:
# so this one name is not left to CloudFormation.
TENANT_METADATA_FUNCTION_NAME = "berth-tenant-metadata"


class TenantStackRole(Construct):
    """The service role of tenant stacks, and the custom resource in them that keeps the metadata true."""

    def __init__(self, scope: Construct, construct_id: str, *, kit: FunctionKit) -> None:
        super().__init__(scope, construct_id)
        self.tenant_metadata = BerthFunction(
            self,
            "TenantMetadata",
            kit=kit,
            name="tenant_metadata",
            function_name=TENANT_METADATA_FUNCTION_NAME,
            timeout_seconds=30,
        )
        kit.table.allow(self.tenant_metadata.role, "GetItem", "UpdateItem", rows=TENANT_ROWS)
        kit.table.allow_noting_throttles(self.tenant_metadata.role)
        allow_on_tenant_stacks(self.tenant_metadata.role, "DescribeStacks")

        # The conditions keep CloudFormation from using the role for a stack that is no tenant's.
        cloudformation = iam.ServicePrincipal(
            "cloudformation.amazonaws.com",
            conditions={
                "StringEquals": {"aws:SourceAccount": Stack.of(self).account},
                "ArnLike": {"aws:SourceArn": tenant_stack_arns(self)},
            },
        )
        self.role = iam.Role(self, "Role", assumed_by=cloudformation)
        allow_on_tenant_queues(
            self.role,
            "CreateQueue",
            "DeleteQueue",
            "GetQueueAttributes",
            "SetQueueAttributes",
            "TagQueue",
            "UntagQueue",
            "ListQueueTags",
        )
        allow(self.role, ["lambda:InvokeFunction"], self.tenant_metadata.arn)
