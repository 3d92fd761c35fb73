"""The exact permissions of each role: these actions, on these resources."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from aws_cdk.assertions import Template

from orchestrator.adapters.dynamodb.keys import (
    LISTED_ROLLOUTS,
    UNFINISHED_OPERATIONS,
    creates_key,
    history_pk,
    listed_failures,
    listed_tenants,
    pace_key,
    reconciliation_key,
    registry_key,
    release_key,
    release_state_key,
    relisting_key,
    rollout_pk,
    tenant_count_key,
    tenant_pk,
)
from orchestrator.adapters.s3 import S3Manifests, S3Templates
from orchestrator.common.own_versions import template_version
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.records import TenantState
from stacks.common.table import (
    CREATE_TURN_ROWS,
    CREATES_ROWS,
    HISTORY_ROWS,
    LISTED_IN_ROLLOUTS,
    LISTED_TENANTS,
    PACE_ROWS,
    RECONCILIATION_ROWS,
    REGISTRY_ROWS,
    RELEASE_ROWS,
    RELEASE_STATE_ROWS,
    RELISTING_ROWS,
    ROLLOUT_ROWS,
    TENANT_COUNT_ROWS,
    TENANT_ROWS,
)
from stacks.tenants.machines import FUNCTIONS_OF
from tests.stacks.allowed_wildcards import WITHOUT_RESOURCES
from tests.stacks.policies import Grants, documents, grants, labels, listed, spelled, statements, trust

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

Json = dict[str, Any]

TENANT_TABLE_ROWS = f"the table, rows {TENANT_ROWS}"
HISTORY_TABLE_ROWS = f"the table, rows {HISTORY_ROWS}"
OPERATION_ROWS = f"the table, rows {TENANT_ROWS} and {RELISTING_ROWS} and {HISTORY_ROWS}"
"""The rows that the beginning and the end of an operation put."""
ROLLOUT_AND_HISTORY_ROWS = f"the table, rows {ROLLOUT_ROWS} and {HISTORY_ROWS}"
RELEASE_TABLE_ROWS = f"the table, rows {RELEASE_ROWS}"
RELEASE_STATE_TABLE_ROWS = f"the table, rows {RELEASE_STATE_ROWS}"
RELEASE_STATE_AND_HISTORY_ROWS = f"the table, rows {RELEASE_STATE_ROWS} and {HISTORY_ROWS}"
ROLLOUT_TABLE_ROWS = f"the table, rows {ROLLOUT_ROWS}"
REGISTRY_TABLE_ROWS = f"the table, rows {REGISTRY_ROWS}"
PACE_TABLE_ROWS = f"the table, rows {PACE_ROWS}"

CREATE_TURN_TABLE_ROWS = f"the table, rows {CREATE_TURN_ROWS}"
RECONCILIATION_TABLE_ROWS = f"the table, rows {RECONCILIATION_ROWS}"

DEAD_LETTERS = ("events about tenants' stacks", "executions that ended", "reconciliations")

LISTS_STACKS = {
    "cloudformation:DescribeStacks",
    "cloudformation:ListStacks",
    "cloudformation:DescribeStackDriftDetectionStatus",
    "cloudformation:BatchDescribeTypeConfigurations",
}

TENANT_MACHINES = ("create_tenant", "update_tenant", "delete_tenant")

EVERY_FUNCTION: Grants = {
    "its own log group": {"logs:CreateLogStream", "logs:PutLogEvents"},
    "*": {"xray:PutTraceSegments", "xray:PutTelemetryRecords"},
}


def on_machines(action: str, *machines: str) -> Grants:
    return {f"the machine {machine}": {action} for machine in machines}


GIVES_TURNS: Grants = {
    CREATE_TURN_TABLE_ROWS: {"dynamodb:GetItem", "dynamodb:Query", "dynamodb:PutItem", "dynamodb:DeleteItem"},
    PACE_TABLE_ROWS: {"dynamodb:GetItem", "dynamodb:UpdateItem"},
    **on_machines("states:SendTaskSuccess", "create_tenant"),
}
"""Gives creates their turns. The pace follows the throttles, which these functions also count."""

SEES_EXECUTIONS: Grants = {f"executions of {machine}": {"states:DescribeExecution"} for machine in TENANT_MACHINES}

ASKS_FOR_UNFINISHED_WORK: Grants = {"the function for unfinished work": {"lambda:InvokeFunction"}}

READS_MESSAGES: Grants = {"tenant queues": {"sqs:GetQueueAttributes", "sqs:GetQueueUrl"}}

SEES_WITHDRAWALS: Grants = {RELEASE_STATE_TABLE_ROWS: {"dynamodb:GetItem"}}

CHOOSES_RELEASES: Grants = {**SEES_WITHDRAWALS, RELEASE_TABLE_ROWS: {"dynamodb:GetItem", "dynamodb:Query"}}

REQUESTS_OPERATIONS: Grants = {
    **CHOOSES_RELEASES,
    TENANT_TABLE_ROWS: {"dynamodb:GetItem", "dynamodb:Query", "dynamodb:UpdateItem"},
    HISTORY_TABLE_ROWS: {"dynamodb:PutItem"},
    **READS_MESSAGES,
    **SEES_EXECUTIONS,
}

LIMITS_TENANTS: Grants = {f"the table, rows {TENANT_COUNT_ROWS}": {"dynamodb:UpdateItem"}}

LIMITS_CREATES: Grants = {
    **LIMITS_TENANTS,
    f"the index, rows {LISTED_TENANTS}, to count them": {"dynamodb:Query"},
    f"the table, rows {CREATES_ROWS}": {"dynamodb:GetItem", "dynamodb:UpdateItem"},
}

READS_STACKS = {"cloudformation:DescribeStacks", "cloudformation:DescribeStackResources"}
READS_ALL_QUEUES_OF_STACKS = READS_STACKS | {"cloudformation:ListStackResources"}

NOTES_THROTTLES: Grants = {PACE_TABLE_ROWS: {"dynamodb:UpdateItem"}}

READS_ITS_OWN_STACK: Grants = {"the control plane's own stack": {"cloudformation:DescribeStackResource"}}

LISTS = "rollouts' lists"
READS_AND_WRITES_LISTS: Grants = {LISTS: {"s3:GetObject", "s3:PutObject"}}

SEES_ALARMS: Grants = {"*": EVERY_FUNCTION["*"] | {"cloudwatch:DescribeAlarms"}}
UNFINISHED_ROWS = f"the index, rows {UNFINISHED_OPERATIONS}"

READS_TENANTS: Grants = {
    TENANT_TABLE_ROWS: {"dynamodb:GetItem", "dynamodb:Query"},
    PACE_TABLE_ROWS: {"dynamodb:GetItem"},
}

STARTS_ROLLOUTS: Grants = {
    f"the table, rows {ROLLOUT_ROWS} and {RELISTING_ROWS}": {"dynamodb:Query"},
    ROLLOUT_AND_HISTORY_ROWS: {"dynamodb:PutItem"},
    REGISTRY_TABLE_ROWS: {"dynamodb:GetItem", "dynamodb:UpdateItem"},
    **CHOOSES_RELEASES,
    f"the index, rows {LISTED_TENANTS}": {"dynamodb:Query"},
    LISTS: READS_AND_WRITES_LISTS[LISTS] | {"s3:DeleteObject"},
    "the machine rollout": {"states:StartExecution"},
    "executions of rollout": {"states:DescribeExecution"},
}

CLOSES_OPERATIONS: Grants = {
    TENANT_TABLE_ROWS: {
        "dynamodb:GetItem",
        "dynamodb:Query",
        "dynamodb:UpdateItem",
        "dynamodb:DeleteItem",
        "dynamodb:ConditionCheckItem",
    },
    OPERATION_ROWS: {"dynamodb:PutItem"},
    RELEASE_TABLE_ROWS: {"dynamodb:GetItem"},
    **GIVES_TURNS,
    "tenant stacks": READS_STACKS | {"cloudformation:DescribeStackEvents"},
    "tenant queues": {"sqs:GetQueueAttributes"},
    **SEES_EXECUTIONS,
}

ACTS_WITH_THE_STACK_ROLE: Grants = {
    **NOTES_THROTTLES,
    TENANT_TABLE_ROWS: {"dynamodb:GetItem"},
    RELEASE_TABLE_ROWS: {"dynamodb:GetItem"},
    "the stack role, to CloudFormation": {"iam:PassRole"},
    "published templates": {"s3:GetObject"},
}

FUNCTIONS: dict[str, Grants] = {
    "get_queue": {
        TENANT_TABLE_ROWS: {"dynamodb:GetItem", "dynamodb:Query"},
        **CHOOSES_RELEASES,
        **LIMITS_CREATES,
        **on_machines("states:StartExecution", "create_tenant"),
        **SEES_EXECUTIONS,
    },
    "operators": {
        **REQUESTS_OPERATIONS,
        **ASKS_FOR_UNFINISHED_WORK,
        **STARTS_ROLLOUTS,
        **LIMITS_TENANTS,
        HISTORY_TABLE_ROWS: {"dynamodb:Query", "dynamodb:PutItem"},
        RELEASE_STATE_AND_HISTORY_ROWS: {"dynamodb:PutItem"},
        ROLLOUT_TABLE_ROWS: {"dynamodb:GetItem"},
        "the table, rows POOL": {"dynamodb:GetItem"},
        "the table, rows REVIEW": {"dynamodb:GetItem"},
        RELEASE_TABLE_ROWS: {"dynamodb:GetItem", "dynamodb:Query", "dynamodb:PutItem"},
        "published templates": {"s3:GetObject", "s3:PutObject"},
        f"the index, rows {' and '.join(LISTED_IN_ROLLOUTS)}": {"dynamodb:Query"},
        "*": SEES_ALARMS["*"]
        | {"cloudformation:DescribeAccountLimits", "lambda:GetAccountSettings", "cloudwatch:GetMetricStatistics"},
        **{f"the machine {name}": {"states:StartExecution", "states:ListExecutions"} for name in TENANT_MACHINES},
        "the machine rollout": {"states:StartExecution", "states:SendTaskSuccess"},
        RECONCILIATION_TABLE_ROWS: {"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query"},
        "the function reconcile": {"lambda:InvokeFunction"},
        UNFINISHED_ROWS: {"dynamodb:Query"},
        **{f"dead letters: {holds}": {"sqs:GetQueueAttributes"} for holds in DEAD_LETTERS},
        "tenant stacks": READS_ALL_QUEUES_OF_STACKS,
    },
    "close_execution": {
        **CLOSES_OPERATIONS,
        "executions that ended": {
            "sqs:ReceiveMessage",
            "sqs:DeleteMessage",
            "sqs:ChangeMessageVisibility",
            "sqs:GetQueueAttributes",
            "sqs:GetQueueUrl",
        },
    },
    "reconcile": {
        **CLOSES_OPERATIONS,
        HISTORY_TABLE_ROWS: {"dynamodb:PutItem"},
        **on_machines("states:StartExecution", "update_tenant", "delete_tenant"),
        "the machine create_tenant": {"states:StartExecution", "states:SendTaskSuccess"},
        **CHOOSES_RELEASES,
        ROLLOUT_TABLE_ROWS: {"dynamodb:GetItem"},
        REGISTRY_TABLE_ROWS: {"dynamodb:GetItem"},
        RECONCILIATION_TABLE_ROWS: {"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"},
        "the table, rows POOL": {"dynamodb:GetItem", "dynamodb:PutItem"},
        **LIMITS_TENANTS,
        "executions of rollout": {"states:DescribeExecution"},
        f"the index, rows {LISTED_TENANTS}": {"dynamodb:Query"},
        UNFINISHED_ROWS: {"dynamodb:Query"},
        "tenant stacks": READS_ALL_QUEUES_OF_STACKS
        | {
            "cloudformation:DescribeStackEvents",
            "cloudformation:DetectStackDrift",
            "cloudformation:DetectStackResourceDrift",
        },
        "tenant queues": {"sqs:GetQueueAttributes", "sqs:GetQueueUrl", "sqs:ListQueueTags"},
        "*": EVERY_FUNCTION["*"] | LISTS_STACKS,
        "dead letters: reconciliations": {"sqs:SendMessage"},
    },
    "begin": {
        TENANT_TABLE_ROWS: {
            "dynamodb:GetItem",
            "dynamodb:Query",
            "dynamodb:UpdateItem",
            "dynamodb:ConditionCheckItem",
        },
        OPERATION_ROWS: {"dynamodb:PutItem"},
        RELEASE_TABLE_ROWS: {"dynamodb:GetItem"},
        **SEES_WITHDRAWALS,
        "tenant stacks": READS_STACKS,
        **GIVES_TURNS,
        **SEES_EXECUTIONS,
    },
    "await_admission": {
        **GIVES_TURNS,
        TENANT_TABLE_ROWS: {
            "dynamodb:GetItem",
            "dynamodb:Query",
            "dynamodb:UpdateItem",
            "dynamodb:ConditionCheckItem",
        },
        f"the table, rows {TENANT_ROWS} and {RELISTING_ROWS}": {"dynamodb:PutItem"},
        CREATE_TURN_TABLE_ROWS: GIVES_TURNS[CREATE_TURN_TABLE_ROWS] | {"dynamodb:UpdateItem"},
        "the machine create_tenant": {"states:SendTaskSuccess", "states:SendTaskHeartbeat"},
    },
    "start_stack": {
        **ACTS_WITH_THE_STACK_ROLE,
        TENANT_TABLE_ROWS: {"dynamodb:GetItem", "dynamodb:UpdateItem"},
        "the table, rows REVIEW": {"dynamodb:GetItem", "dynamodb:PutItem"},
        "tenant stacks, with the stack role": {
            "cloudformation:CreateStack",
            "cloudformation:UpdateStack",
            "cloudformation:DeleteStack",
            "cloudformation:RollbackStack",
            "cloudformation:CreateChangeSet",
            "cloudformation:ContinueUpdateRollback",
        },
        "tenant stacks": READS_ALL_QUEUES_OF_STACKS
        | {
            "cloudformation:DescribeStackEvents",
            "cloudformation:DescribeChangeSet",
            "cloudformation:GetTemplate",
            "cloudformation:ExecuteChangeSet",
            "cloudformation:DeleteChangeSet",
        },
        **ASKS_FOR_UNFINISHED_WORK,
        **READS_MESSAGES,
        **on_machines("states:SendTaskSuccess", *TENANT_MACHINES),
    },
    "await_stack": {
        TENANT_TABLE_ROWS: {"dynamodb:GetItem", "dynamodb:UpdateItem"},
        **NOTES_THROTTLES,
        "tenant stacks": {"cloudformation:DescribeStacks"},
        **on_machines("states:SendTaskSuccess", *TENANT_MACHINES),
    },
    "inspect_stack": {
        TENANT_TABLE_ROWS: {"dynamodb:GetItem"},
        **NOTES_THROTTLES,
        "tenant stacks": READS_STACKS | {"cloudformation:DescribeStackEvents"},
        "tenant queues": {"sqs:GetQueueAttributes"},
    },
    "finish": {
        TENANT_TABLE_ROWS: {"dynamodb:GetItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem"},
        OPERATION_ROWS: {"dynamodb:PutItem"},
        RELEASE_TABLE_ROWS: {"dynamodb:GetItem"},
        "tenant stacks": READS_STACKS,
        **GIVES_TURNS,
    },
    "record_failure": {
        TENANT_TABLE_ROWS: {
            "dynamodb:GetItem",
            "dynamodb:Query",
            "dynamodb:UpdateItem",
            "dynamodb:DeleteItem",
            "dynamodb:ConditionCheckItem",
        },
        OPERATION_ROWS: {"dynamodb:PutItem"},
        **GIVES_TURNS,
        **SEES_EXECUTIONS,
        "tenant stacks": READS_STACKS | {"cloudformation:DescribeStackEvents"},
    },
    "advance_rollout": {
        **READS_TENANTS,
        **SEES_WITHDRAWALS,
        ROLLOUT_TABLE_ROWS: {"dynamodb:GetItem", "dynamodb:Query", "dynamodb:PutItem", "dynamodb:UpdateItem"},
        REGISTRY_TABLE_ROWS: {"dynamodb:UpdateItem"},
        **READS_AND_WRITES_LISTS,
        "*": SEES_ALARMS["*"] | {"cloudwatch:DescribeAlarmHistory"},
    },
    "await_operator": {
        **SEES_WITHDRAWALS,
        ROLLOUT_TABLE_ROWS: {"dynamodb:GetItem", "dynamodb:Query", "dynamodb:PutItem"},
        **on_machines("states:SendTaskSuccess", "rollout"),
    },
    "admit_tenant": {
        **READS_TENANTS,
        **SEES_WITHDRAWALS,
        ROLLOUT_TABLE_ROWS: {
            "dynamodb:GetItem",
            "dynamodb:PutItem",
            "dynamodb:UpdateItem",
            "dynamodb:ConditionCheckItem",
        },
    },
    "record_outcome": {
        **READS_TENANTS,
        ROLLOUT_TABLE_ROWS: {"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"},
    },
    "review_tenant": {
        **ACTS_WITH_THE_STACK_ROLE,
        ROLLOUT_TABLE_ROWS: {"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"},
        "tenant stacks, with the stack role": {"cloudformation:CreateChangeSet"},
        "tenant stacks": READS_STACKS
        | {"cloudformation:DescribeChangeSet", "cloudformation:GetTemplate", "cloudformation:DeleteChangeSet"},
        "tenant queues": {"sqs:GetQueueAttributes"},
    },
    "stack_event": {
        TENANT_TABLE_ROWS: {"dynamodb:GetItem"},
        **NOTES_THROTTLES,
        "tenant stacks": READS_STACKS | {"cloudformation:DescribeStackEvents"},
        "tenant queues": {"sqs:GetQueueAttributes"},
        **on_machines("states:SendTaskSuccess", *TENANT_MACHINES),
    },
    "tenant_metadata": {
        TENANT_TABLE_ROWS: {"dynamodb:GetItem", "dynamodb:UpdateItem"},
        HISTORY_TABLE_ROWS: {"dynamodb:PutItem"},
        **NOTES_THROTTLES,
        "tenant stacks": READS_STACKS,
    },
    "tenant_queue": {
        **on_machines("states:StartExecution", "tenant_queue"),
        "executions of tenant_queue": {"states:DescribeExecution"},
    },
    "settle_tenant_queue": {
        **REQUESTS_OPERATIONS,
        **LIMITS_CREATES,
        "all stacks": {"cloudformation:DescribeStackResource", "cloudformation:DescribeStacks"},
        **on_machines("states:StartExecution", "create_tenant", "delete_tenant"),
    },
    "api_proof": {
        "the control plane's own stack": {"cloudformation:DescribeStackResource", "cloudformation:DescribeStacks"},
        "the API's stage": {"apigateway:GET"},
    },
    "publish_release": {
        **READS_ITS_OWN_STACK,
        RELEASE_TABLE_ROWS: {"dynamodb:GetItem", "dynamodb:PutItem"},
        f"the uploaded template {template_version()}": {"s3:GetObject"},
        "published templates": {"s3:GetObject", "s3:PutObject"},
    },
}

# The permissions of machines besides calling the functions that their workflows name.
OF_MACHINES: dict[str, Grants] = {
    "rollout": {
        **on_machines("states:StartExecution", "update_tenant", "rollout"),
        **{
            executions: {"states:DescribeExecution", "states:StopExecution"}
            for executions in ("executions of update_tenant", "executions of rollout", "turns in rollouts")
        },
        "the rule about ends of executions": {"events:PutTargets", "events:PutRule", "events:DescribeRule"},
        LISTS: {"s3:GetObject"},
        "rollouts' results": {"s3:PutObject", "s3:ListMultipartUploadParts", "s3:AbortMultipartUpload"},
    }
}


def test_every_function_is_in_the_table(function_ids: dict[str, str]) -> None:
    assert set(function_ids) == set(FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_has_exactly_these_permissions(
    control_plane: Json, function_ids: dict[str, str], names: dict[str, str], name: str
) -> None:
    function = control_plane["Resources"][function_ids[name]]["Properties"]
    own_log_group = {f"<{function['LoggingConfig']['LogGroup']['Ref']}.Arn>": "its own log group"}
    role = function["Role"]["Fn::GetAtt"][0]
    assert grants(control_plane, role, names | own_log_group) == EVERY_FUNCTION | FUNCTIONS[name]


def test_without_creates_get_queue_may_only_read_tenants(
    without_creates: Json, function_ids: dict[str, str], names: dict[str, str]
) -> None:
    function = without_creates["Resources"][function_ids["get_queue"]]["Properties"]
    own_log_group = {f"<{function['LoggingConfig']['LogGroup']['Ref']}.Arn>": "its own log group"}
    allowed = grants(without_creates, function["Role"]["Fn::GetAtt"][0], names | own_log_group)
    assert allowed == EVERY_FUNCTION | {TENANT_TABLE_ROWS: {"dynamodb:GetItem", "dynamodb:Query"}}


def test_with_a_warm_pool_get_queue_may_put_tenants_rows_but_neither_update_nor_delete_them(
    with_warm_pool: Json, function_ids: dict[str, str], names: dict[str, str]
) -> None:
    """It replaces whole rows, in one transaction with the history, under conditions."""
    function = with_warm_pool["Resources"][function_ids["get_queue"]]["Properties"]
    own_log_group = {f"<{function['LoggingConfig']['LogGroup']['Ref']}.Arn>": "its own log group"}
    allowed = grants(with_warm_pool, function["Role"]["Fn::GetAtt"][0], names | own_log_group)
    reads = {"dynamodb:GetItem", "dynamodb:Query", "dynamodb:BatchGetItem", "dynamodb:ConditionCheckItem"}
    assert allowed == EVERY_FUNCTION | FUNCTIONS["get_queue"] | {
        TENANT_TABLE_ROWS: reads,
        OPERATION_ROWS: {"dynamodb:PutItem"},
        "the table, rows POOL": {"dynamodb:GetItem"},
    }


def test_without_a_rate_limit_no_role_may_count_creates(without_rate_limit: Json) -> None:
    counting = [statement for _, statement in statements(without_rate_limit) if CREATES_ROWS in json.dumps(statement)]
    assert counting == []


def test_functions_do_not_share_roles(control_plane: Json, function_ids: dict[str, str]) -> None:
    roles = {spelled(control_plane["Resources"][function]["Properties"]["Role"]) for function in function_ids.values()}
    assert len(roles) == len(function_ids)


def test_the_stack_role_may_only_manage_tenant_queues_and_invoke_tenant_metadata(
    control_plane: Json, stack_role: str, names: dict[str, str]
) -> None:
    assert grants(control_plane, stack_role, names) == {
        "tenant queues": {
            "sqs:CreateQueue",
            "sqs:DeleteQueue",
            "sqs:GetQueueAttributes",
            "sqs:GetQueueUrl",
            "sqs:SetQueueAttributes",
            "sqs:TagQueue",
            "sqs:UntagQueue",
            "sqs:ListQueueTags",
        },
        "the function tenant_metadata": {"lambda:InvokeFunction"},
    }


def test_by_default_the_stack_role_has_no_condition_on_the_stack(control_plane: Json, stack_role: str) -> None:
    """AWS documents the condition keys only for StackSets. A condition that is never met would fail every tenant."""
    trusted = trust(control_plane["Resources"][stack_role])
    assert trusted["Principal"] == {"Service": "cloudformation.amazonaws.com"}
    assert "Condition" not in trusted


def test_the_stack_role_can_be_limited_to_tenant_stacks_of_this_account(
    other_settings: Template, stack_role: str, names: dict[str, str]
) -> None:
    trusted = trust(other_settings.to_json()["Resources"][stack_role])
    assert trusted["Condition"]["StringEquals"] == {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}
    assert [names[spelled(arn)] for arn in trusted["Condition"]["ArnLike"]["aws:SourceArn"]] == ["tenant stacks"]


@pytest.mark.parametrize("stem", sorted(set(FUNCTIONS_OF) - {"purge_events"}))
def test_a_machine_may_only_call_the_functions_and_start_the_machines_that_its_workflow_names(
    control_plane: Json, machine_ids: dict[str, str], names: dict[str, str], stem: str
) -> None:
    role = _role_of(control_plane, machine_ids[stem])
    allowed = grants(control_plane, role, names)
    assert allowed.pop("*") <= WITHOUT_RESOURCES["X-Ray"] | WITHOUT_RESOURCES["log delivery"]
    assert allowed == {
        **{f"the function {name}": {"lambda:InvokeFunction"} for name in FUNCTIONS_OF[stem].values()},
        **OF_MACHINES.get(stem, {}),
    }


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


def test_roles_have_no_managed_or_inline_policies(control_plane: Json) -> None:
    for logical_id, resource in control_plane["Resources"].items():
        if resource["Type"] == "AWS::IAM::Role":
            assert not {"ManagedPolicyArns", "Policies"} & set(resource["Properties"]), logical_id


def test_each_pattern_of_rows_matches_exactly_the_keys_of_its_rows() -> None:
    tenant = TenantId.parse("acme")
    partitions = {
        TENANT_ROWS: tenant_pk(tenant),
        HISTORY_ROWS: history_pk(tenant),
        RELEASE_ROWS: release_key("1.2.3")["pk"]["S"],
        RELEASE_STATE_ROWS: release_state_key()["pk"]["S"],
        ROLLOUT_ROWS: rollout_pk("20261116-083000-1a2b"),
        REGISTRY_ROWS: registry_key()["pk"]["S"],
        PACE_ROWS: pace_key()["pk"]["S"],
        RECONCILIATION_ROWS: reconciliation_key("survey")["pk"]["S"],
        CREATES_ROWS: creates_key("a caller")["pk"]["S"],
        TENANT_COUNT_ROWS: tenant_count_key()["pk"]["S"],
        RELISTING_ROWS: relisting_key(tenant, datetime.now(UTC))["pk"]["S"],
    }
    for rows, own in partitions.items():
        assert [pk for pk in partitions.values() if fnmatchcase(pk, rows)] == [own]


def test_the_pattern_of_listed_tenants_matches_every_state_and_nothing_else() -> None:
    assert all(fnmatchcase(listed_tenants(state), LISTED_TENANTS) for state in TenantState)
    assert not fnmatchcase(UNFINISHED_OPERATIONS, LISTED_TENANTS)


def test_the_patterns_of_listed_rollouts_match_rollouts_and_their_failures_and_nothing_else() -> None:
    def reached(partition: str) -> bool:
        return any(fnmatchcase(partition, rows) for rows in LISTED_IN_ROLLOUTS)

    assert reached(LISTED_ROLLOUTS)
    assert reached(listed_failures("20261116-083000-1a2b"))
    assert not any(map(reached, [UNFINISHED_OPERATIONS, *map(listed_tenants, TenantState)]))


def test_the_function_that_starts_automatic_rollouts_has_exactly_these_permissions(
    with_everything: Json, names: dict[str, str]
) -> None:
    (function,) = (
        resource["Properties"]
        for resource in with_everything["Resources"].values()
        if resource["Type"] == "AWS::Lambda::Function"
        and resource["Properties"]["Handler"] == "lambdas.rollouts.start_rollout.handler"
    )
    own_log_group = {f"<{function['LoggingConfig']['LogGroup']['Ref']}.Arn>": "its own log group"}
    role = function["Role"]["Fn::GetAtt"][0]
    assert grants(with_everything, role, names | own_log_group) == (
        EVERY_FUNCTION
        | STARTS_ROLLOUTS
        | READS_ITS_OWN_STACK
        | {TENANT_TABLE_ROWS: {"dynamodb:GetItem", "dynamodb:Query"}}
    )


def test_no_function_may_scan_the_table(with_everything: Json) -> None:
    assert not [each for _, each in documents(with_everything) if "dynamodb:Scan" in listed(each["Action"])]


@pytest.mark.parametrize("function", ["review_tenant", "advance_rollout", "admit_tenant", "record_outcome"])
def test_functions_of_rollouts_may_change_neither_stacks_nor_rows_of_tenants(function: str) -> None:
    """Only a tenant's own operations change the tenant."""
    allowed = FUNCTIONS[function]
    assert allowed[TENANT_TABLE_ROWS] <= {"dynamodb:GetItem", "dynamodb:Query"}
    assert "cloudformation:ExecuteChangeSet" not in set().union(*allowed.values())


def test_templates_and_lists_of_tenants_are_stored_under_the_prefixes_of_the_policies(names: dict[str, str]) -> None:
    stored = _PutRecorder()
    S3Templates(cast("S3Client", stored), "releases", source="assets").publish("1.2.3", "d1", b"{}")
    S3Manifests(cast("S3Client", stored), "releases").write("20261116-083000-1a2b/stage-1", [])
    template, manifest = stored.keys
    objects = {name: arn.partition("/")[2] for arn, name in names.items() if name in ("published templates", LISTS)}
    assert [name for name, pattern in objects.items() if fnmatchcase(template, pattern)] == ["published templates"]
    assert [name for name, pattern in objects.items() if fnmatchcase(manifest, pattern)] == [LISTS]


class _PutRecorder:
    """A fake of S3 that remembers the keys of stored objects."""

    meta = SimpleNamespace(endpoint_url="https://s3.example")

    def __init__(self) -> None:
        self.keys: list[str] = []

    def put_object(self, *, Key: str, **_rest: object) -> None:  # noqa: N803 - the name in boto3
        self.keys.append(Key)


def _role_of(template: Json, machine: str) -> str:
    role: str = template["Resources"][machine]["Properties"]["RoleArn"]["Fn::GetAtt"][0]
    return role
