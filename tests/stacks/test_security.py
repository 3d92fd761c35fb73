"""Rules for all policies of both stacks, with the default settings and with everything switched on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes import NAMES
from tests.stacks.allowed_wildcards import MANY, WITHOUT_CONDITION, WITHOUT_RESOURCES
from tests.stacks.policies import documents, grants, listed, spelled, trust

Json = dict[str, Any]

DEPLOYMENTS = ("control_plane", "with_everything", "event_plane")

TYPES_WITH_POLICIES = {
    "AWS::IAM::Role",
    "AWS::IAM::Policy",
    "AWS::IAM::ManagedPolicy",
    "AWS::SQS::QueuePolicy",
    "AWS::S3::BucketPolicy",
    "AWS::DynamoDB::Table",
    "AWS::Lambda::Permission",
}
"""The resource types in which policies are found. A test that found none would prove nothing."""


@pytest.fixture(params=DEPLOYMENTS)
def deployment(request: pytest.FixtureRequest) -> Json:
    template: Json = request.getfixturevalue(request.param)
    return template


@pytest.fixture
def policies(deployment: Json, event_plane: Json) -> list[tuple[str, Json]]:
    found = list(documents(deployment))
    # The table of events has no policy of its own, and the event plane has a key.
    events = TYPES_WITH_POLICIES - {"AWS::DynamoDB::Table"} | {"AWS::KMS::Key"}
    expected = events if deployment is event_plane else TYPES_WITH_POLICIES
    assert {deployment["Resources"][where]["Type"] for where, _ in found} == expected
    return [each for each in found if deployment["Resources"][each[0]]["Type"] != "AWS::KMS::Key"]


@pytest.fixture
def all_names(names: dict[str, str], event_names: dict[str, str]) -> dict[str, str]:
    return names | event_names


def _allowing(policies: list[tuple[str, Json]]) -> list[tuple[str, Json]]:
    return [(where, statement) for where, statement in policies if statement["Effect"] == "Allow"]


# Wildcards


def test_no_statement_allows_actions_by_a_wildcard_or_by_exclusion(
    policies: list[tuple[str, Json]],
) -> None:
    for where, statement in _allowing(policies):
        assert not {"NotAction", "NotResource", "NotPrincipal"} & set(statement), where
        assert not [action for action in listed(statement["Action"]) if "*" in action], where


def test_no_statement_allows_everybody(policies: list[tuple[str, Json]]) -> None:
    for where, statement in _allowing(policies):
        assert "*" not in str(statement.get("Principal", "")), where


def test_every_wildcard_in_a_resource_is_listed_with_a_reason(
    policies: list[tuple[str, Json]], all_names: dict[str, str]
) -> None:
    without_resources = frozenset().union(*WITHOUT_RESOURCES.values())
    for where, statement in _allowing(policies):
        for resource in map(spelled, listed(statement.get("Resource", []))):
            if resource == "*":
                assert set(listed(statement["Action"])) <= without_resources, where
            elif "*" in resource:
                assert _kind(resource, all_names) in MANY, f"{where}: {resource}"


def test_every_listed_wildcard_is_still_used(
    with_everything: Json, event_plane: Json, all_names: dict[str, str]
) -> None:
    used: set[str] = set()
    on_all: set[str] = set()
    of_roles = [
        (where, statement)
        for template in (with_everything, event_plane)
        for where, statement in documents(template)
        if template["Resources"][where]["Type"] != "AWS::KMS::Key"
    ]
    for _, statement in _allowing(of_roles):
        for resource in map(spelled, listed(statement.get("Resource", []))):
            if resource == "*":
                on_all |= set(listed(statement["Action"]))
            elif "*" in resource:
                used.add(_kind(resource, all_names))
    assert used == set(MANY)
    assert on_all == frozenset().union(*WITHOUT_RESOURCES.values())


def _kind(resource: str, names: dict[str, str]) -> str:
    return "routes with ids" if ":execute-api:" in resource else names.get(resource, resource)


def test_a_tenants_stack_allows_nothing(tenant: Json) -> None:
    """A tenant's stack only denies. The users of a queue are allowed by their own policies."""
    found = list(documents(tenant))
    assert found
    assert _allowing(found) == []


# Services that act on somebody's behalf


def test_services_act_only_on_behalf_of_this_account(policies: list[tuple[str, Json]]) -> None:
    asked = [
        (where, statement, service)
        for where, statement in _allowing(policies)
        for service in listed(statement.get("Principal", {}).get("Service", []))
    ]
    services = {service for _, _, service in asked}
    assert services >= {"lambda.amazonaws.com", "events.amazonaws.com", "apigateway.amazonaws.com"}
    assert services <= {
        "lambda.amazonaws.com",
        "states.amazonaws.com",
        "cloudformation.amazonaws.com",
        "events.amazonaws.com",
        "apigateway.amazonaws.com",
    }
    for where, statement, service in asked:
        conditions = {key: value for each in statement.get("Condition", {}).values() for key, value in each.items()}
        if service in WITHOUT_CONDITION:
            assert not conditions, f"{where}: {WITHOUT_CONDITION[service]}"
        else:
            assert _of_this_account(conditions), where


def _of_this_account(conditions: Json) -> bool:
    if conditions.get("aws:SourceAccount") == {"Ref": "AWS::AccountId"}:
        return True
    source = spelled(conditions.get("aws:SourceArn", ""))
    # A resource of this stack, or an ARN that contains the account.
    return source.endswith(".Arn>") or ":<AWS::AccountId>:" in source


def test_step_functions_assumes_a_machines_role_only_for_machines_of_this_account_and_region(
    control_plane: Json, machine_ids: dict[str, str]
) -> None:
    for machine in machine_ids.values():
        role = control_plane["Resources"][machine]["Properties"]["RoleArn"]["Fn::GetAtt"][0]
        condition = trust(control_plane["Resources"][role])["Condition"]
        assert condition["StringEquals"] == {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}
        machines = "arn:<AWS::Partition>:states:<AWS::Region>:<AWS::AccountId>:stateMachine:*"
        assert spelled(condition["ArnLike"]["aws:SourceArn"]) == machines


# The role that CloudFormation acts with in tenants' stacks


@pytest.fixture
def boundary(control_plane: Json, stack_role: str) -> list[Json]:
    policy = control_plane["Resources"][stack_role]["Properties"]["PermissionsBoundary"]["Ref"]
    assert control_plane["Resources"][policy]["Type"] == "AWS::IAM::ManagedPolicy"
    statements: list[Json] = control_plane["Resources"][policy]["Properties"]["PolicyDocument"]["Statement"]
    return statements


def test_the_boundary_of_the_stack_role_allows_exactly_its_current_permissions(
    control_plane: Json, stack_role: str, names: dict[str, str], boundary: list[Json]
) -> None:
    limits: dict[str, set[str]] = {}
    for statement in boundary:
        if statement["Effect"] == "Allow":
            limits.setdefault(names[spelled(statement["Resource"])], set()).update(listed(statement["Action"]))
    assert limits == grants(control_plane, stack_role, names)
    assert not [statement for statement in boundary if statement["Effect"] == "Allow" and "Condition" in statement]


def test_the_stack_role_can_neither_change_iam_nor_assume_roles(boundary: list[Json]) -> None:
    (denied,) = (statement for statement in boundary if statement["Effect"] == "Deny")
    assert set(denied["Action"]) == {"iam:*", "sts:*"}
    assert denied["Resource"] == "*"
    assert "Condition" not in denied


def test_the_stack_role_has_only_actions_of_sqs_and_lambda(
    control_plane: Json, stack_role: str, names: dict[str, str]
) -> None:
    actions = set().union(*grants(control_plane, stack_role, names).values())
    assert actions
    assert {action.split(":")[0] for action in actions} == {"sqs", "lambda"}


def test_the_stack_role_may_only_access_queues_of_tenants(control_plane: Json, boundary: list[Json]) -> None:
    queues = [spelled(each["Resource"]) for each in boundary if "sqs:CreateQueue" in listed(each["Action"])]
    assert queues == [f"arn:<AWS::Partition>:sqs:<AWS::Region>:<AWS::AccountId>:{NAMES.tenant_prefix}*"]
    own = [name for name, each in control_plane["Resources"].items() if each["Type"] == "AWS::SQS::Queue"]
    assert not [name for name in own if f"Berth-{name}".startswith(NAMES.tenant_prefix)]
