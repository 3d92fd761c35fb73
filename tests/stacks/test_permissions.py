"""What each role may do: exactly this, on exactly these resources."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from typing import Any

import pytest

from orchestrator.adapters.keys import release_key, tenant_pk
from orchestrator.tenants import STACK_NAME_PREFIX, TenantId
from stacks.table import RELEASE_ROWS, TENANT_ROWS

Json = dict[str, Any]
Grants = dict[str, set[str]]

TENANT_TABLE_ROWS = f"the table, rows {TENANT_ROWS}"
RELEASE_TABLE_ROWS = f"the table, rows {RELEASE_ROWS}"

EVERY_FUNCTION: Grants = {
    "its own log group": {"logs:CreateLogStream", "logs:PutLogEvents"},
    "*": {"xray:PutTraceSegments", "xray:PutTelemetryRecords"},
}

FUNCTIONS: dict[str, Grants] = {
    "get_queue": {
        TENANT_TABLE_ROWS: {"dynamodb:GetItem", "dynamodb:Query"},
        "the machine": {"states:StartExecution"},
        "the machine's executions": {"states:DescribeExecution"},
    },
    "begin": {
        TENANT_TABLE_ROWS: {"dynamodb:GetItem", "dynamodb:PutItem"},
        "the machine's executions": {"states:DescribeExecution"},
    },
    "start_stack": {
        TENANT_TABLE_ROWS: {"dynamodb:GetItem"},
        RELEASE_TABLE_ROWS: {"dynamodb:GetItem"},
        "tenant stacks, with the stack role": {"cloudformation:CreateStack", "cloudformation:DeleteStack"},
        "tenant stacks": {"cloudformation:DescribeStacks"},
        "the stack role, to CloudFormation": {"iam:PassRole"},
        "published templates": {"s3:GetObject"},
    },
    "await_stack": {
        TENANT_TABLE_ROWS: {"dynamodb:UpdateItem"},
        "tenant stacks": {"cloudformation:DescribeStacks"},
        "the machine": {"states:SendTaskSuccess"},
    },
    "inspect_stack": {
        "tenant stacks": {"cloudformation:DescribeStacks"},
    },
    "finish": {
        TENANT_TABLE_ROWS: {"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem"},
        "tenant queues": {"sqs:GetQueueAttributes"},
    },
    "record_failure": {
        TENANT_TABLE_ROWS: {"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:DeleteItem"},
        "tenant stacks": {"cloudformation:DescribeStackEvents"},
    },
    "stack_event": {
        TENANT_TABLE_ROWS: {"dynamodb:GetItem"},
        "the machine": {"states:SendTaskSuccess"},
    },
    "tenant_metadata": {
        TENANT_TABLE_ROWS: {"dynamodb:UpdateItem", "dynamodb:DeleteItem"},
    },
    "publish_release": {
        RELEASE_TABLE_ROWS: {"dynamodb:GetItem", "dynamodb:PutItem"},
        "the uploaded template": {"s3:GetObject"},
        "published templates": {"s3:GetObject", "s3:PutObject"},
    },
}

STATES = ("begin", "start_stack", "await_stack", "inspect_stack", "finish", "record_failure")

# Log delivery and X-Ray: neither has resources that a policy could name.
WITHOUT_RESOURCES = {
    "xray:PutTraceSegments",
    "xray:PutTelemetryRecords",
    "xray:GetSamplingRules",
    "xray:GetSamplingTargets",
    "logs:CreateLogDelivery",
    "logs:GetLogDelivery",
    "logs:UpdateLogDelivery",
    "logs:DeleteLogDelivery",
    "logs:ListLogDeliveries",
    "logs:PutResourcePolicy",
    "logs:DescribeResourcePolicies",
    "logs:DescribeLogGroups",
}


@pytest.fixture(scope="session")
def stack_role(control_plane: Json) -> str:
    (role,) = (
        logical_id
        for logical_id, resource in control_plane["Resources"].items()
        if resource["Type"] == "AWS::IAM::Role" and _principal(resource) == "cloudformation.amazonaws.com"
    )
    return role


@pytest.fixture(scope="session")
def machine_role(control_plane: Json) -> str:
    (role,) = (
        logical_id
        for logical_id, resource in control_plane["Resources"].items()
        if resource["Type"] == "AWS::IAM::Role" and _principal(resource) == "states.amazonaws.com"
    )
    return role


@pytest.fixture(scope="session")
def names(
    control_plane: Json, the_only: Callable[[str], str], function_ids: dict[str, str], stack_role: str
) -> dict[str, str]:
    """ARNs as the template spells them, in the product's words."""
    here = "<AWS::Region>:<AWS::AccountId>"
    machine = the_only("AWS::StepFunctions::StateMachine")
    release = control_plane["Resources"][the_only("Custom::Release")]["Properties"]
    source = f"{_spelled(release['SourceBucket'])}/{release['SourceKey']}"
    return {
        f"<{the_only('AWS::DynamoDB::Table')}.Arn>": "the table",
        f"<{machine}>": "the machine",
        f"arn:<AWS::Partition>:states:{here}:execution:<{machine}.Name>:*": "the machine's executions",
        f"arn:<AWS::Partition>:cloudformation:{here}:stack/{STACK_NAME_PREFIX}*/*": "tenant stacks",
        f"arn:<AWS::Partition>:sqs:{here}:{STACK_NAME_PREFIX}*": "tenant queues",
        f"<{stack_role}.Arn>": "the stack role",
        f"<{the_only('AWS::S3::Bucket')}.Arn>/*": "published templates",
        f"arn:<AWS::Partition>:s3:::{source}": "the uploaded template",
        **{f"<{logical_id}.Arn>": f"the function {name}" for name, logical_id in function_ids.items()},
    }


def test_every_function_is_in_the_table(function_ids: dict[str, str]) -> None:
    assert set(function_ids) == set(FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_may_do_exactly_this(
    control_plane: Json, function_ids: dict[str, str], names: dict[str, str], name: str
) -> None:
    function = control_plane["Resources"][function_ids[name]]["Properties"]
    own_log_group = {f"<{function['LoggingConfig']['LogGroup']['Ref']}.Arn>": "its own log group"}
    role = function["Role"]["Fn::GetAtt"][0]
    assert _grants(control_plane, role, names | own_log_group) == EVERY_FUNCTION | FUNCTIONS[name]


def test_functions_do_not_share_roles(control_plane: Json, function_ids: dict[str, str]) -> None:
    roles = {_spelled(control_plane["Resources"][function]["Properties"]["Role"]) for function in function_ids.values()}
    assert len(roles) == len(function_ids)


def test_cloudformation_may_only_make_tenant_queues_and_tell_one_function(
    control_plane: Json, stack_role: str, names: dict[str, str]
) -> None:
    assert _grants(control_plane, stack_role, names) == {
        "tenant queues": {
            "sqs:CreateQueue",
            "sqs:DeleteQueue",
            "sqs:GetQueueAttributes",
            "sqs:SetQueueAttributes",
            "sqs:TagQueue",
            "sqs:UntagQueue",
            "sqs:ListQueueTags",
        },
        "the function tenant_metadata": {"lambda:InvokeFunction"},
    }


def test_the_stack_role_serves_tenant_stacks_of_this_account_only(
    control_plane: Json, stack_role: str, names: dict[str, str]
) -> None:
    (trust,) = control_plane["Resources"][stack_role]["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "cloudformation.amazonaws.com"}
    assert trust["Condition"]["StringEquals"] == {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}
    assert names[_spelled(trust["Condition"]["ArnLike"]["aws:SourceArn"])] == "tenant stacks"


def test_the_machine_may_only_call_its_own_functions(
    control_plane: Json, machine_role: str, names: dict[str, str]
) -> None:
    grants = _grants(control_plane, machine_role, names)
    assert grants.pop("*") <= WITHOUT_RESOURCES
    assert grants == {f"the function {name}": {"lambda:InvokeFunction"} for name in STATES}


def test_only_the_stack_role_can_be_passed_and_only_to_cloudformation(
    control_plane: Json, names: dict[str, str]
) -> None:
    passing = [statement for _, statement in _statements(control_plane) if "iam:PassRole" in _list(statement["Action"])]
    assert [list(_labels(statement, names)) for statement in passing] == [["the stack role, to CloudFormation"]]


def test_no_action_is_a_wildcard(control_plane: Json) -> None:
    for role, statement in _statements(control_plane):
        assert statement["Effect"] == "Allow"
        assert not [action for action in _list(statement["Action"]) if "*" in action], role


def test_only_what_has_no_resources_is_allowed_on_all_of_them(control_plane: Json) -> None:
    for role, statement in _statements(control_plane):
        if "*" in _list(statement["Resource"]):
            assert set(_list(statement["Action"])) <= WITHOUT_RESOURCES, role


def test_roles_have_no_permissions_from_elsewhere(control_plane: Json) -> None:
    for logical_id, resource in control_plane["Resources"].items():
        if resource["Type"] == "AWS::IAM::Role":
            assert not {"ManagedPolicyArns", "Policies"} & set(resource["Properties"]), logical_id


def test_the_policies_rows_are_the_keys_that_the_table_uses() -> None:
    assert fnmatchcase(tenant_pk(TenantId.parse("acme")), TENANT_ROWS)
    release_pk = release_key("1.2.3")["pk"]["S"]
    assert release_pk == RELEASE_ROWS
    assert not fnmatchcase(release_pk, TENANT_ROWS)


def _principal(role: Json) -> str:
    (trust,) = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    principal: str = trust["Principal"]["Service"]
    return principal


def _statements(template: Json) -> Iterator[tuple[str, Json]]:
    """Every statement of every policy, with the role that it is attached to."""
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::IAM::Policy":
            (role,) = resource["Properties"]["Roles"]
            for statement in resource["Properties"]["PolicyDocument"]["Statement"]:
                yield role["Ref"], statement


def _grants(template: Json, role: str, names: dict[str, str]) -> Grants:
    grants: Grants = defaultdict(set)
    for holder, statement in _statements(template):
        if holder == role:
            for label in _labels(statement, names):
                grants[label] |= set(_list(statement["Action"]))
    return dict(grants)


def _labels(statement: Json, names: dict[str, str]) -> Iterator[str]:
    for resource in _list(statement["Resource"]):
        spelled = _spelled(resource)
        yield names.get(spelled, spelled) + _condition(statement.get("Condition"), names)


def _condition(condition: Json | None, names: dict[str, str]) -> str:
    match condition:
        case None:
            return ""
        case {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": [rows]}}:
            return f", rows {rows}"
        case {"StringEquals": {"cloudformation:RoleArn": role}}:
            return f", with {names[_spelled(role)]}"
        case {"StringEquals": {"iam:PassedToService": "cloudformation.amazonaws.com"}}:
            return ", to CloudFormation"
    return f", if {condition}"


def _spelled(value: Any) -> str:
    match value:
        case {"Fn::Join": [delimiter, parts]}:
            return str(delimiter).join(map(_spelled, parts))
        case {"Fn::GetAtt": [resource, attribute]}:
            return f"<{resource}.{attribute}>"
        case {"Fn::Sub": text}:
            return str(text).replace("${", "<").replace("}", ">")
        case {"Ref": name}:
            return f"<{name}>"
    return str(value)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
