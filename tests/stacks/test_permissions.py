"""What each role may do: exactly this, on exactly these resources."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

import pytest

from orchestrator.adapters.keys import UNFINISHED_OPERATIONS, history_pk, listed_tenants, release_key, tenant_pk
from orchestrator.records import TenantState
from orchestrator.tenants import TenantId
from stacks.releases import RELEASES
from stacks.table import HISTORY_ROWS, LISTED_TENANTS, RELEASE_ROWS, TENANT_ROWS
from stacks.tenant_machines import FUNCTIONS_OF
from tests.stacks.policies import Grants, grants, labels, listed, spelled, statements, trust

Json = dict[str, Any]

TENANT_TABLE_ROWS = f"the table, rows {TENANT_ROWS}"
HISTORY_TABLE_ROWS = f"the table, rows {HISTORY_ROWS}"
TENANT_AND_HISTORY_ROWS = f"the table, rows {TENANT_ROWS} and {HISTORY_ROWS}"
RELEASE_TABLE_ROWS = f"the table, rows {RELEASE_ROWS}"

TENANT_MACHINES = ("create_tenant", "update_tenant", "delete_tenant")

EVERY_FUNCTION: Grants = {
    "its own log group": {"logs:CreateLogStream", "logs:PutLogEvents"},
    "*": {"xray:PutTraceSegments", "xray:PutTelemetryRecords"},
}


def on_machines(action: str, *machines: str) -> Grants:
    return {f"the machine {machine}": {action} for machine in machines}


SEES_EXECUTIONS: Grants = {f"executions of {machine}": {"states:DescribeExecution"} for machine in TENANT_MACHINES}

READS_MESSAGES: Grants = {"tenant queues": {"sqs:GetQueueAttributes", "sqs:GetQueueUrl"}}

TAKES_ORDERS: Grants = {
    TENANT_TABLE_ROWS: {"dynamodb:GetItem", "dynamodb:Query", "dynamodb:UpdateItem"},
    **READS_MESSAGES,
    **SEES_EXECUTIONS,
}

ACTS_WITH_THE_STACK_ROLE: Grants = {
    TENANT_TABLE_ROWS: {"dynamodb:GetItem"},
    RELEASE_TABLE_ROWS: {"dynamodb:GetItem"},
    "the stack role, to CloudFormation": {"iam:PassRole"},
    "published templates": {"s3:GetObject"},
}

FUNCTIONS: dict[str, Grants] = {
    "get_queue": {
        TENANT_TABLE_ROWS: {"dynamodb:GetItem", "dynamodb:Query"},
        **on_machines("states:StartExecution", "create_tenant"),
        **SEES_EXECUTIONS,
    },
    "operators": {
        **TAKES_ORDERS,
        HISTORY_TABLE_ROWS: {"dynamodb:Query"},
        RELEASE_TABLE_ROWS: {"dynamodb:GetItem", "dynamodb:Query"},
        f"the index, rows {LISTED_TENANTS}": {"dynamodb:Query"},
        **on_machines("states:StartExecution", *TENANT_MACHINES),
    },
    "begin": {
        TENANT_TABLE_ROWS: {
            "dynamodb:GetItem",
            "dynamodb:Query",
            "dynamodb:UpdateItem",
            "dynamodb:ConditionCheckItem",
        },
        TENANT_AND_HISTORY_ROWS: {"dynamodb:PutItem"},
        RELEASE_TABLE_ROWS: {"dynamodb:GetItem"},
        **SEES_EXECUTIONS,
    },
    "review_changes": {
        **ACTS_WITH_THE_STACK_ROLE,
        "tenant stacks, with the stack role": {"cloudformation:CreateChangeSet"},
        "tenant stacks": {"cloudformation:DescribeStacks"},
    },
    "check_messages": {
        TENANT_TABLE_ROWS: {"dynamodb:GetItem"},
        "tenant stacks": {"cloudformation:DescribeStacks"},
        **READS_MESSAGES,
    },
    "start_stack": {
        **ACTS_WITH_THE_STACK_ROLE,
        "tenant stacks, with the stack role": {
            "cloudformation:CreateStack",
            "cloudformation:DeleteStack",
            "cloudformation:RollbackStack",
            "cloudformation:ContinueUpdateRollback",
        },
        "tenant stacks": {
            "cloudformation:DescribeStacks",
            "cloudformation:DescribeStackEvents",
            "cloudformation:DescribeChangeSet",
            "cloudformation:ExecuteChangeSet",
            "cloudformation:DeleteChangeSet",
        },
        "tenant queues": {"sqs:GetQueueAttributes"},
    },
    "await_stack": {
        TENANT_TABLE_ROWS: {"dynamodb:UpdateItem"},
        "tenant stacks": {"cloudformation:DescribeStacks"},
        **on_machines("states:SendTaskSuccess", *TENANT_MACHINES),
    },
    "inspect_stack": {
        "tenant stacks": {"cloudformation:DescribeStacks", "cloudformation:DescribeStackEvents"},
        "tenant queues": {"sqs:GetQueueAttributes"},
    },
    "finish": {
        TENANT_TABLE_ROWS: {"dynamodb:GetItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem"},
        TENANT_AND_HISTORY_ROWS: {"dynamodb:PutItem"},
    },
    "record_failure": {
        TENANT_TABLE_ROWS: {
            "dynamodb:GetItem",
            "dynamodb:Query",
            "dynamodb:UpdateItem",
            "dynamodb:DeleteItem",
            "dynamodb:ConditionCheckItem",
        },
        TENANT_AND_HISTORY_ROWS: {"dynamodb:PutItem"},
        "tenant stacks": {"cloudformation:DescribeStacks", "cloudformation:DescribeStackEvents"},
    },
    "stack_event": {
        TENANT_TABLE_ROWS: {"dynamodb:GetItem"},
        **on_machines("states:SendTaskSuccess", *TENANT_MACHINES),
    },
    "tenant_metadata": {
        TENANT_TABLE_ROWS: {"dynamodb:GetItem", "dynamodb:UpdateItem"},
        "tenant stacks": {"cloudformation:DescribeStacks"},
    },
    "tenant_queue": {
        **on_machines("states:StartExecution", "tenant_queue"),
        "executions of tenant_queue": {"states:DescribeExecution"},
    },
    "settle_tenant_queue": {
        **TAKES_ORDERS,
        RELEASE_TABLE_ROWS: {"dynamodb:GetItem"},
        **on_machines("states:StartExecution", "create_tenant", "delete_tenant"),
    },
    "publish_release": {
        RELEASE_TABLE_ROWS: {"dynamodb:GetItem", "dynamodb:PutItem"},
        **{f"the uploaded template {file.stem}": {"s3:GetObject"} for file in RELEASES.glob("*.json")},
        "published templates": {"s3:GetObject", "s3:PutObject"},
    },
}

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


def test_every_function_is_in_the_table(function_ids: dict[str, str]) -> None:
    assert set(function_ids) == set(FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_may_do_exactly_this(
    control_plane: Json, function_ids: dict[str, str], names: dict[str, str], name: str
) -> None:
    function = control_plane["Resources"][function_ids[name]]["Properties"]
    own_log_group = {f"<{function['LoggingConfig']['LogGroup']['Ref']}.Arn>": "its own log group"}
    role = function["Role"]["Fn::GetAtt"][0]
    assert grants(control_plane, role, names | own_log_group) == EVERY_FUNCTION | FUNCTIONS[name]


def test_functions_do_not_share_roles(control_plane: Json, function_ids: dict[str, str]) -> None:
    roles = {spelled(control_plane["Resources"][function]["Properties"]["Role"]) for function in function_ids.values()}
    assert len(roles) == len(function_ids)


def test_cloudformation_may_only_make_tenant_queues_and_tell_one_function(
    control_plane: Json, stack_role: str, names: dict[str, str]
) -> None:
    assert grants(control_plane, stack_role, names) == {
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
    trusted = trust(control_plane["Resources"][stack_role])
    assert trusted["Principal"] == {"Service": "cloudformation.amazonaws.com"}
    assert trusted["Condition"]["StringEquals"] == {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}
    assert names[spelled(trusted["Condition"]["ArnLike"]["aws:SourceArn"])] == "tenant stacks"


@pytest.mark.parametrize("stem", FUNCTIONS_OF)
def test_a_machine_may_only_call_the_functions_that_its_workflow_names(
    control_plane: Json, machine_ids: dict[str, str], names: dict[str, str], stem: str
) -> None:
    role = _role_of(control_plane, machine_ids[stem])
    allowed = grants(control_plane, role, names)
    assert allowed.pop("*") <= WITHOUT_RESOURCES
    assert allowed == {f"the function {name}": {"lambda:InvokeFunction"} for name in FUNCTIONS_OF[stem].values()}


def test_machines_do_not_share_roles(control_plane: Json, machine_ids: dict[str, str]) -> None:
    roles = {_role_of(control_plane, machine) for machine in machine_ids.values()}
    assert len(roles) == len(machine_ids)
    for role in roles:
        assert trust(control_plane["Resources"][role])["Principal"] == {"Service": "states.amazonaws.com"}


def test_only_the_stack_role_can_be_passed_and_only_to_cloudformation(
    control_plane: Json, names: dict[str, str]
) -> None:
    passing = [statement for _, statement in statements(control_plane) if "iam:PassRole" in listed(statement["Action"])]
    assert passing
    for statement in passing:
        assert list(labels(statement, names)) == ["the stack role, to CloudFormation"]


def test_no_action_is_a_wildcard(control_plane: Json) -> None:
    for role, statement in statements(control_plane):
        assert statement["Effect"] == "Allow"
        assert not [action for action in listed(statement["Action"]) if "*" in action], role


def test_only_what_has_no_resources_is_allowed_on_all_of_them(control_plane: Json) -> None:
    for role, statement in statements(control_plane):
        if "*" in listed(statement["Resource"]):
            assert set(listed(statement["Action"])) <= WITHOUT_RESOURCES, role


def test_roles_have_no_permissions_from_elsewhere(control_plane: Json) -> None:
    for logical_id, resource in control_plane["Resources"].items():
        if resource["Type"] == "AWS::IAM::Role":
            assert not {"ManagedPolicyArns", "Policies"} & set(resource["Properties"]), logical_id


def test_the_policies_rows_are_the_keys_that_the_table_uses() -> None:
    tenant = TenantId.parse("acme")
    partitions = {
        TENANT_ROWS: tenant_pk(tenant),
        HISTORY_ROWS: history_pk(tenant),
        RELEASE_ROWS: release_key("1.2.3")["pk"]["S"],
    }
    for rows, its_own in partitions.items():
        assert [pk for pk in partitions.values() if fnmatchcase(pk, rows)] == [its_own]


def test_the_policies_rows_of_the_index_are_the_tenants_in_every_state_and_nothing_else() -> None:
    assert all(fnmatchcase(listed_tenants(state), LISTED_TENANTS) for state in TenantState)
    assert not fnmatchcase(UNFINISHED_OPERATIONS, LISTED_TENANTS)


def _role_of(template: Json, machine: str) -> str:
    role: str = template["Resources"][machine]["Properties"]["RoleArn"]["Fn::GetAtt"][0]
    return role
