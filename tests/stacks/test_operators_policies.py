"""The managed policies that the operator names for tenants' stacks, and what they can never allow."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest

from tests.stacks.conftest import OPERATORS_POLICIES, Json, functions_in
from tests.stacks.policies import listed, spelled

OWN = "arn:<AWS::Partition>:{service}:<AWS::Region>:<AWS::AccountId>:{resource}"


@pytest.fixture
def boundary(with_stack_policies: Json) -> list[Json]:
    (role,) = _stack_roles(with_stack_policies)
    policy = with_stack_policies["Resources"][role["PermissionsBoundary"]["Ref"]]
    statements: list[Json] = policy["Properties"]["PolicyDocument"]["Statement"]
    return statements


def _stack_roles(template: Json) -> list[Json]:
    roles = (each["Properties"] for each in template["Resources"].values() if each["Type"] == "AWS::IAM::Role")
    return [role for role in roles if "PermissionsBoundary" in role]


def _matches(value: str, patterns: object) -> bool:
    return any(fnmatchcase(value, spelled(pattern).replace("[", "[[]")) for pattern in listed(patterns))


def _applies(statement: Json, action: str, resource: str, stack: str | None) -> bool:
    """As IAM evaluates a statement, for a resource that CloudFormation has tagged with the name of its stack."""
    acts = (
        _matches(action, statement["Action"]) if "Action" in statement else not _matches(action, statement["NotAction"])
    )
    if "Resource" in statement:
        names = _matches(resource, statement["Resource"])
    else:
        names = not _matches(resource, statement["NotResource"])
    tags = statement.get("Condition", {}).get("StringEquals", {}).get("aws:ResourceTag/aws:cloudformation:stack-name")
    return acts and names and (tags is None or stack in tags)


def allowed(boundary: list[Json], action: str, resource: str, stack: str | None = None) -> bool:
    """True if the boundary lets a policy allow the action."""
    found = {each["Effect"] for each in boundary if _applies(each, action, resource, stack)}
    return found == {"Allow"}


def arn(service: str, resource: str) -> str:
    return OWN.format(service=service, resource=resource)


BUCKET = "arn:<AWS::Partition>:s3:::"


@pytest.mark.parametrize(
    ("action", "resource"),
    [
        ("s3:CreateBucket", f"{BUCKET}berth-tenant-acme-822b33ad-files-1"),
        ("dynamodb:CreateTable", arn("dynamodb", "table/berth-tenant-acme-822b33ad-Orders-1")),
        ("sqs:CreateQueue", arn("sqs", "berth-tenant-acme-822b33ad-InboundQueue-1")),
        ("sns:CreateTopic", arn("sns", "berth-tenant-acme-822b33ad-Topic-1")),
        ("kms:CreateKey", "*"),
        ("lambda:InvokeFunction", arn("lambda", "function:berth-tenant-metadata")),
    ],
)
def test_the_boundary_leaves_room_for_resources_of_tenants(boundary: list[Json], action: str, resource: str) -> None:
    assert allowed(boundary, action, resource, "berth-tenant-acme-822b33ad")


@pytest.mark.parametrize(
    ("action", "resource"),
    [
        ("iam:CreateRole", "*"),
        ("iam:PassRole", "*"),
        ("sts:AssumeRole", "*"),
        ("cloudformation:CreateStack", "*"),
        ("organizations:LeaveOrganization", "*"),
        ("ram:CreateResourceShare", "*"),
        ("dynamodb:DeleteItem", "<TenantsTable97BAC775.Arn>"),
        ("dynamodb:DeleteTable", arn("dynamodb", "table/Berth-TenantsTable97BAC775-1")),
        ("dynamodb:DeleteTable", arn("dynamodb", "table/BerthEvents-Table-1")),
        ("s3:DeleteObject", f"{BUCKET}berth-releasesbucket-1/tenant-stack/0.1.0/d.json"),
        ("sqs:SetQueueAttributes", arn("sqs", "Berth-DeadLetters-1")),
        ("sqs:SetQueueAttributes", arn("sqs", "another-teams-queue")),
        ("lambda:UpdateFunctionCode", arn("lambda", "function:Berth-QueueApiGetQueue-1")),
        ("lambda:UpdateFunctionCode", arn("lambda", "function:berth-tenant-metadata")),
        ("lambda:AddPermission", arn("lambda", "function:berth-tenant-metadata")),
        ("lambda:InvokeFunction", arn("lambda", "function:berth-tenant-queue")),
        ("states:StopExecution", arn("states", "execution:Berth-Create:x")),
    ],
)
def test_no_policy_can_allow_more_than_resources_of_tenants(boundary: list[Json], action: str, resource: str) -> None:
    assert not allowed(boundary, action, resource)


@pytest.mark.parametrize("stack", ["Berth", "BerthEvents"])
def test_no_policy_can_reach_what_is_tagged_as_berths(boundary: list[Json], stack: str) -> None:
    assert allowed(boundary, "events:DeleteRule", "*", "another-stack")
    assert not allowed(boundary, "events:DeleteRule", "*", stack)


def test_the_policies_are_attached_to_the_service_role_of_tenants_stacks_only(with_stack_policies: Json) -> None:
    (stack_role,) = _stack_roles(with_stack_policies)
    assert stack_role["ManagedPolicyArns"] == OPERATORS_POLICIES.split(",")
    text = str([each for each in with_stack_policies["Resources"].values() if each["Type"] == "AWS::IAM::Role"])
    assert all(text.count(each) == 1 for each in OPERATORS_POLICIES.split(","))


def test_without_such_policies_the_boundary_is_as_narrow_as_the_role(control_plane: Json) -> None:
    (stack_role,) = _stack_roles(control_plane)
    assert "ManagedPolicyArns" not in stack_role
    statements = control_plane["Resources"][stack_role["PermissionsBoundary"]["Ref"]]["Properties"]["PolicyDocument"]
    assert not [each for each in statements["Statement"] if each["Effect"] == "Allow" and each["Action"] == "*"]


def test_the_function_that_checks_templates_reads_these_policies(with_stack_policies: Json) -> None:
    function = with_stack_policies["Resources"][functions_in(with_stack_policies)["operators"]]["Properties"]
    assert function["Environment"]["Variables"]["BERTH_STACK_POLICIES"] == OPERATORS_POLICIES
    role = function["Role"]["Fn::GetAtt"][0]
    read = [
        each
        for policy in with_stack_policies["Resources"].values()
        if policy["Type"] == "AWS::IAM::Policy" and {"Ref": role} in policy["Properties"]["Roles"]
        for each in policy["Properties"]["PolicyDocument"]["Statement"]
        if "iam:GetPolicyVersion" in listed(each["Action"])
    ]
    assert [each["Resource"] for each in read] == [OPERATORS_POLICIES.split(",")]
