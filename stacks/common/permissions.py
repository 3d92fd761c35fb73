"""Grant permissions, and acknowledge security findings.

Every statement names its actions. A resource that must end in a wildcard needs a reason, which acknowledges exactly
that finding of cdk-nag and no other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import Acknowledgment, ArnFormat, Stack, Validations
from aws_cdk import aws_iam as iam
from constructs import Construct

from orchestrator.tenants.names import Names


def acknowledge(construct: Construct, finding: str, reason: str) -> None:
    Validations.of(construct).acknowledge(Acknowledgment(id=finding, reason=reason))


def statement(
    actions: Sequence[str], resources: Sequence[str], conditions: Mapping[str, Mapping[str, Any]] | None = None
) -> iam.PolicyStatement:
    return iam.PolicyStatement(actions=list(actions), resources=list(resources), conditions=conditions)


def allow(
    role: iam.Role,
    actions: Sequence[str],
    *resources: str,
    conditions: Mapping[str, Mapping[str, Any]] | None = None,
    wildcard_because: str | None = None,
) -> None:
    role.add_to_policy(statement(actions, resources, conditions))
    if wildcard_because is not None:
        for resource in resources:
            acknowledge_wildcard(role, resource, wildcard_because)


def allow_on_tenant_stacks(
    role: iam.Role, *operations: str, conditions: Mapping[str, Mapping[str, Any]] | None = None
) -> None:
    allow(
        role,
        [f"cloudformation:{operation}" for operation in operations],
        *tenant_stack_arns(role),
        conditions=conditions,
        wildcard_because=_TENANT_STACKS_ARE_MANY,
    )


def allow_asking_for_unfinished_work(role: iam.Role) -> None:
    """Let a role ask the function that knows tenants' unfinished work. There may be no such function."""
    function = Stack.of(role).format_arn(
        service="lambda",
        resource="function",
        resource_name=names_of(role).unfinished_work_function,
        arn_format=ArnFormat.COLON_RESOURCE_NAME,
    )
    allow(role, ["lambda:InvokeFunction"], function)


def allow_consuming_stream(role: iam.Role, stream_arn: str) -> None:
    """Let Lambda read a table's stream with the role of the function that consumes it."""
    allow(role, ["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"], stream_arn)
    allow(role, ["dynamodb:ListStreams"], "*", wildcard_because=_NO_STREAM_IS_NAMED)


def allow_finding_its_stack(policy: iam.ManagedPolicy) -> None:
    """Let holders of a policy describe the policy's own stack by its name, as the command line does.

    AWS then has `*` in place of the stack's id, also if the stack exists.
    """
    stack = Stack.of(policy)
    resource = stack.format_arn(service="cloudformation", resource="stack", resource_name=f"{stack.stack_name}/*")
    policy.add_statements(statement(["cloudformation:DescribeStacks"], [resource]))
    acknowledge_wildcard(policy, resource, _ONE_STACK_AT_A_TIME)


def allow_reading_tenant_stacks(role: iam.Role, *operations: str) -> None:
    """Let a role see tenants' stacks and their resources, and use the further ``operations``."""
    allow_on_tenant_stacks(role, "DescribeStacks", "DescribeStackResources", *operations)


def allow_on_tenant_queues(
    role: iam.Role, *operations: str, conditions: Mapping[str, Mapping[str, Any]] | None = None
) -> None:
    allow(
        role,
        [f"sqs:{operation}" for operation in operations],
        *tenant_queue_arns(role),
        conditions=conditions,
        wildcard_because=TENANT_QUEUES_ARE_MANY,
    )


def acknowledge_wildcard(construct: Construct, resource: str, reason: str) -> None:
    spelled = _spelled_by_cdk_nag(Stack.of(construct).resolve(resource))
    acknowledge(construct, f"AwsSolutions-IAM5[Resource::{spelled}]", reason)


def names_of(scope: Construct) -> Names:
    """The names of the control plane that the construct is part of.

    Berth's own stacks have the attribute ``names``. For any other stack, the stack's name is the control plane's name.
    """
    stack = Stack.of(scope)
    names = getattr(stack, "names", None)
    return names if isinstance(names, Names) else Names.parse(stack.stack_name)


def tenant_stack_arns(scope: Construct) -> list[str]:
    return [
        Stack.of(scope).format_arn(service="cloudformation", resource="stack", resource_name=f"{prefix}*/*")
        for prefix in names_of(scope).prefixes
    ]


def tenant_queue_arns(scope: Construct) -> list[str]:
    return [Stack.of(scope).format_arn(service="sqs", resource=f"{prefix}*") for prefix in names_of(scope).prefixes]


_NO_STREAM_IS_NAMED = "Lambda lists the streams of all tables to find the table's stream: the action takes no resource."
_ONE_STACK_AT_A_TIME = "The wildcard is for the id of the stack. There is one stack of a name at a time."
_TENANT_STACKS_ARE_MANY = "There are many tenants' stacks, created at run time; their names share a prefix."
TENANT_QUEUES_ARE_MANY = (
    "CloudFormation names a tenant's queues after its stack, so their names share the stacks' prefix."
)


def _spelled_by_cdk_nag(value: Any) -> str:
    match value:
        case str():
            return value
        case {"Fn::Join": [delimiter, parts]}:
            return str(delimiter).join(_spelled_by_cdk_nag(part) for part in parts)
        case {"Fn::GetAtt": [resource, attribute]}:
            return f"<{resource}.{attribute}>"
        case {"Ref": name}:
            return f"<{name}>"
    raise TypeError(f"It is not known how cdk-nag spells {value!r}.")
