"""The limits of the managed policies that operators name for tenants' stacks (`berth:stackPolicyArns`).

A permissions boundary is one policy, so it cannot contain the operator's. With such policies the boundary allows
everything, and denies what no template may do, whatever the policies allow: change permissions, make other stacks, and
reach anything in the account that CloudFormation has not named after a tenant's stack, such as Berth's own table.
"""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from stacks.common.permissions import names_of, statement, tenant_queue_arns

OPERATORS_CHOICE = (
    "The operator has named the managed policies that say what tenants' stacks may have. The boundary denies Berth's "
    "own resources and all permissions, whatever those policies allow."
)
_NEVER = (
    "account:*",
    "cloudformation:*",
    "iam:*",
    "organizations:*",
    "ram:*",
    "sso:*",
    "sts:*",
)
_OF_TENANTS = ("dynamodb:*", "lambda:*", "s3:*", "sqs:*", "states:*")
"""Services with resources of Berth, in which a tenant's stack reaches only what is named after it."""
_USING_A_KEY = (
    "kms:CreateGrant",
    "kms:Decrypt",
    "kms:DescribeKey",
    "kms:Encrypt",
    "kms:GenerateDataKey*",
    "kms:ReEncrypt*",
)


def boundary_of_operators_policies(scope: Construct, key_arn: str | None) -> Sequence[iam.PolicyStatement]:
    names = names_of(scope)
    own_stacks = [names.control_plane, names.events]
    found = [
        statement(["*"], ["*"]),
        _deny("NoPermissions", actions=list(_NEVER), resources=["*"]),
        _deny("OnlyWhatIsNamedAfterTenants", actions=list(_OF_TENANTS), not_resources=_named_after_tenants(scope)),
        # These functions are named like a tenant's resources.
        _deny("NotItsFunction", not_actions=["lambda:InvokeFunction"], resources=[_function(scope, metadata=True)]),
        _deny("NotTheFunctionOfTeams", actions=["*"], resources=[_function(scope, metadata=False)]),
        # CloudFormation tags whatever a stack has with the name of the stack.
        iam.PolicyStatement(
            sid="NothingOfBerth",
            effect=iam.Effect.DENY,
            actions=["*"],
            resources=["*"],
            conditions={"StringEquals": {"aws:ResourceTag/aws:cloudformation:stack-name": own_stacks}},
        ),
    ]
    if key_arn:
        found.append(_deny("OnlyUseTheKey", not_actions=list(_USING_A_KEY), resources=[key_arn]))
    return found


def _deny(
    sid: str,
    *,
    actions: Sequence[str] | None = None,
    not_actions: Sequence[str] | None = None,
    resources: Sequence[str] | None = None,
    not_resources: Sequence[str] | None = None,
) -> iam.PolicyStatement:
    return iam.PolicyStatement(
        sid=sid,
        effect=iam.Effect.DENY,
        actions=actions,
        not_actions=not_actions,
        resources=resources,
        not_resources=not_resources,
    )


def _named_after_tenants(scope: Construct) -> list[str]:
    stack = Stack.of(scope)
    found = tenant_queue_arns(scope)
    for prefix in names_of(scope).prefixes:
        found += [
            stack.format_arn(service="dynamodb", resource="table", resource_name=f"{prefix}*"),
            # CloudFormation writes the names of buckets in lower case.
            stack.format_arn(service="s3", resource=f"{prefix.lower()}*", region="", account=""),
            *(
                stack.format_arn(
                    service=service,
                    resource=resource,
                    resource_name=f"{prefix}*",
                    arn_format=ArnFormat.COLON_RESOURCE_NAME,
                )
                for service, resource in (("lambda", "function"), ("states", "stateMachine"))
            ),
        ]
    return found


def _function(scope: Construct, *, metadata: bool) -> str:
    names = names_of(scope)
    return Stack.of(scope).format_arn(
        service="lambda",
        resource="function",
        resource_name=f"{names.tenant_metadata_function if metadata else names.tenant_queue_function}*",
        arn_format=ArnFormat.COLON_RESOURCE_NAME,
    )
