"""Planted bugs in permissions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.planted.bugs import Json, PlantedBug, in_stack, resources, statement_of
from tests.simulation.planting import Bug
from tests.stacks.policies import listed, statements

EXACT = "stacks/test_permissions.py::test_a_function_has_exactly_these_permissions"
EXACT_EVENTS = "stacks/test_event_permissions.py"
SECURITY = "stacks/test_security.py"


def forbid(function: str, action: str, stack: str = "Berth") -> Bug:
    def change(template: Json) -> None:
        statement = statement_of(template, function, action)
        statement["Action"] = [each for each in listed(statement["Action"]) if each != action]

    return in_stack(change, stack)


def allow(function: str, beside: str, action: str, stack: str = "Berth") -> Bug:
    """Allow an action where the function may do another one."""

    def change(template: Json) -> None:
        statement = statement_of(template, function, beside)
        statement["Action"] = [*listed(statement["Action"]), action]

    return in_stack(change, stack)


def widen(function: str, action: str, **fields: Any) -> Bug:
    """Give the statement that allows the action other fields; ``None`` takes one away."""

    def change(template: Json) -> None:
        statement = statement_of(template, function, action)
        for name, value in fields.items():
            if value is None:
                del statement[name]
            else:
                statement[name] = value

    return in_stack(change)


def without(kind: str, wanted: Callable[[Json], bool], stack: str = "Berth") -> Bug:
    """Take a statement away from all resources of a type."""

    def change(template: Json) -> None:
        for each in resources(template, kind).values():
            document = (
                each["Properties"].get("PolicyDocument") or each["Properties"]["ResourcePolicy"]["PolicyDocument"]
            )
            document["Statement"] = [statement for statement in document["Statement"] if not wanted(statement)]

    return in_stack(change, stack)


def _everybody_may_send(template: Json) -> None:
    for policy in resources(template, "AWS::SQS::QueuePolicy").values():
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
            if statement["Effect"] == "Allow":
                statement["Principal"] = {"AWS": "*"}


def _pass_the_role_to_any_service(template: Json) -> None:
    for _, statement in statements(template):
        if "iam:PassRole" in listed(statement["Action"]):
            del statement["Condition"]


def _invoke_for_any_account(template: Json) -> None:
    for permission in resources(template, "AWS::Lambda::Permission").values():
        permission["Properties"].pop("SourceArn", None)


def _platforms_may_delete(template: Json) -> None:
    policy = template["Resources"][template["Outputs"]["PlatformPolicyArn"]["Value"]["Ref"]]["Properties"]
    (statement,) = policy["PolicyDocument"]["Statement"]
    statement["Resource"] = "*"


def _machines_may_be_assumed_for_anybody(template: Json) -> None:
    for role in resources(template, "AWS::IAM::Role").values():
        for statement in role["Properties"]["AssumeRolePolicyDocument"]["Statement"]:
            if statement["Principal"] == {"Service": "states.amazonaws.com"}:
                statement.pop("Condition", None)


def _denies(part: str) -> Callable[[Json], bool]:
    return lambda statement: statement["Effect"] == "Deny" and part in str(statement)


BUGS = {
    "start_stack may not delete stacks": PlantedBug(
        "No tenant can be deleted, because the function may not delete its stack.",
        forbid("start_stack", "cloudformation:DeleteStack"),
        f"{EXACT}[start_stack]",
    ),
    "get_queue may not start a create": PlantedBug(
        "A new tenant never gets a queue.", forbid("get_queue", "states:StartExecution"), f"{EXACT}[get_queue]"
    ),
    "a rollout may change tenants' rows": PlantedBug(
        "A function of rollouts can write a tenant's record outside of an operation.",
        allow("record_outcome", "dynamodb:GetItem", "dynamodb:DeleteItem"),
        f"{EXACT}[record_outcome]",
    ),
    "finish may do anything with the table": PlantedBug(
        "One function can delete the whole table.",
        allow("finish", "dynamodb:GetItem", "dynamodb:*"),
        f"{SECURITY}::test_no_statement_allows_actions_by_a_wildcard_or_by_exclusion",
    ),
    "await_stack may describe all stacks": PlantedBug(
        "A function reads stacks of the account that are not tenants'.",
        widen("await_stack", "cloudformation:DescribeStacks", Resource="*"),
        f"{EXACT}[await_stack]",
    ),
    "begin may reach all rows": PlantedBug(
        "A statement on the table has lost its condition on the rows.",
        widen("begin", "dynamodb:Query", Condition=None),
        f"{EXACT}[begin]",
    ),
    "the stack role can be passed to any service": PlantedBug(
        "A function can hand the stack role to a service other than CloudFormation.",
        in_stack(_pass_the_role_to_any_service),
        "stacks/test_permissions.py::test_only_the_stack_role_can_be_passed_and_only_to_cloudformation",
    ),
    "everybody may send to dead-letter queues": PlantedBug(
        "Any account can fill a queue of the control plane.",
        in_stack(_everybody_may_send),
        f"{SECURITY}::test_no_statement_allows_everybody",
    ),
    "services call functions for any account": PlantedBug(
        "An API or a rule of another account can call a function of Berth.",
        in_stack(_invoke_for_any_account),
        f"{SECURITY}::test_services_act_only_on_behalf_of_this_account",
    ),
    "step functions acts for any account": PlantedBug(
        "A machine of another account can act with the role of one of Berth's.",
        in_stack(_machines_may_be_assumed_for_anybody),
        f"{SECURITY}::test_step_functions_assumes_a_machines_role_only_for_machines_of_this_account_and_region",
    ),
    "platforms may call every route": PlantedBug(
        "A platform, which only asks for queues, can delete tenants.",
        in_stack(_platforms_may_delete),
        "stacks/test_access_policies.py::test_platforms_senders_and_receivers_may_call_no_other_route",
    ),
    "the boundary denies nothing": PlantedBug(
        "A policy that operators attach lets tenants' stacks change permissions.",
        without("AWS::IAM::ManagedPolicy", _denies("iam:*")),
        f"{SECURITY}::test_the_stack_role_can_neither_change_iam_nor_assume_roles",
    ),
    "history can be rewritten": PlantedBug(
        "Functions that put history rows can change and delete them, too.",
        without("AWS::DynamoDB::Table", _denies("'dynamodb:UpdateItem', 'dynamodb:DeleteItem'")),
        "stacks/test_history.py::test_an_administrator_can_neither_append_to_history_nor_change_nor_delete_it",
    ),
    "queues of the control plane take plain HTTP": PlantedBug(
        "Messages about tenants can be read on the network.",
        without("AWS::SQS::QueuePolicy", _denies("SecureTransport")),
        "stacks/test_control_plane.py::test_every_queue_is_encrypted_and_accepts_only_tls[control_plane]",
    ),
    "published templates can be read without TLS": PlantedBug(
        "The bucket of releases takes requests over plain HTTP.",
        without("AWS::S3::BucketPolicy", _denies("SecureTransport")),
        "stacks/test_control_plane.py::test_published_templates_are_kept_and_private",
    ),
    "contents of events can be read without TLS": PlantedBug(
        "The bucket of large payloads takes requests over plain HTTP.",
        without("AWS::S3::BucketPolicy", _denies("SecureTransport"), "BerthEvents"),
        "stacks/test_event_plane.py::test_the_bucket_is_private_and_expires_contents_two_days_after_their_rows",
    ),
    "ingest may read connections": PlantedBug(
        "The function that strangers can reach reads where events go, with their secrets.",
        allow("ingest", "dynamodb:GetItem", "dynamodb:Scan", "BerthEvents"),
        f"{EXACT_EVENTS}::test_a_function_has_exactly_these_permissions",
    ),
}
