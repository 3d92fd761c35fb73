"""What holds for every policy of the deployment, of whatever kind, with and without what can be switched on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes import NAMES
from tests.stacks.allowed_wildcards import MANY, NOT_ASKED_FOR, WITHOUT_RESOURCES
from tests.stacks.policies import documents, grants, listed, spelled, trust

Json = dict[str, Any]

DEPLOYMENTS = ("control_plane", "with_everything")

POLICIES_ARE_IN = {
    "AWS::IAM::Role",
    "AWS::IAM::Policy",
    "AWS::IAM::ManagedPolicy",
    "AWS::SQS::QueuePolicy",
    "AWS::S3::BucketPolicy",
    "AWS::DynamoDB::Table",
    "AWS::Lambda::Permission",
}
"""Where the look at all policies has to find some."""


@pytest.fixture(params=DEPLOYMENTS)
def deployment(request: pytest.FixtureRequest) -> Json:
    template: Json = request.getfixturevalue(request.param)
    return template


@pytest.fixture
def policies(deployment: Json) -> list[tuple[str, Json]]:
    found = list(documents(deployment))
    assert {deployment["Resources"][where]["Type"] for where, _ in found} == POLICIES_ARE_IN
    return found


def _allowing(policies: list[tuple[str, Json]]) -> list[tuple[str, Json]]:
    return [(where, statement) for where, statement in policies if statement["Effect"] == "Allow"]


# Wildcards


def test_nothing_allows_actions_by_a_wildcard_or_by_naming_those_that_it_does_not(
    policies: list[tuple[str, Json]],
) -> None:
    for where, statement in _allowing(policies):
        assert not {"NotAction", "NotResource", "NotPrincipal"} & set(statement), where
        assert not [action for action in listed(statement["Action"]) if "*" in action], where


def test_nobody_is_allowed_something_whoever_it_is(policies: list[tuple[str, Json]]) -> None:
    for where, statement in _allowing(policies):
        assert "*" not in str(statement.get("Principal", "")), where


def test_resources_are_named_or_of_a_kind_that_is_listed_with_a_reason(
    policies: list[tuple[str, Json]], names: dict[str, str]
) -> None:
    without_resources = frozenset().union(*WITHOUT_RESOURCES.values())
    for where, statement in _allowing(policies):
        for resource in map(spelled, listed(statement.get("Resource", []))):
            if resource == "*":
                assert set(listed(statement["Action"])) <= without_resources, where
            elif "*" in resource:
                assert _kind(resource, names) in MANY, f"{where}: {resource}"


def test_every_reason_on_the_list_is_still_needed(with_everything: Json, names: dict[str, str]) -> None:
    used: set[str] = set()
    on_all: set[str] = set()
    for _, statement in _allowing(list(documents(with_everything))):
        for resource in map(spelled, listed(statement.get("Resource", []))):
            if resource == "*":
                on_all |= set(listed(statement["Action"]))
            elif "*" in resource:
                used.add(_kind(resource, names))
    assert used == set(MANY)
    assert on_all == frozenset().union(*WITHOUT_RESOURCES.values())


def _kind(resource: str, names: dict[str, str]) -> str:
    return "routes with ids" if ":execute-api:" in resource else names.get(resource, resource)


def test_a_tenants_own_stack_allows_nobody_anything(tenant: Json) -> None:
    """It only refuses: whoever may use a queue is allowed so by their own policies."""
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
    assert {service for _, _, service in asked} == {
        "lambda.amazonaws.com",
        "states.amazonaws.com",
        "cloudformation.amazonaws.com",
        "events.amazonaws.com",
        "apigateway.amazonaws.com",
    }
    for where, statement, service in asked:
        conditions = {key: value for each in statement.get("Condition", {}).values() for key, value in each.items()}
        if service in NOT_ASKED_FOR:
            assert not conditions, f"{where}: {NOT_ASKED_FOR[service]}"
        else:
            assert _of_this_account(conditions), where


def _of_this_account(conditions: Json) -> bool:
    if conditions.get("aws:SourceAccount") == {"Ref": "AWS::AccountId"}:
        return True
    source = spelled(conditions.get("aws:SourceArn", ""))
    # A resource of this very stack, or an ARN with the account in it.
    return source.endswith(".Arn>") or ":<AWS::AccountId>:" in source


def test_step_functions_takes_on_a_machines_role_only_for_a_machine_of_this_account_and_region(
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


def test_the_stack_role_can_never_do_more_than_it_may_now(
    control_plane: Json, stack_role: str, names: dict[str, str], boundary: list[Json]
) -> None:
    at_most: dict[str, set[str]] = {}
    for statement in boundary:
        if statement["Effect"] == "Allow":
            at_most.setdefault(names[spelled(statement["Resource"])], set()).update(listed(statement["Action"]))
    assert at_most == grants(control_plane, stack_role, names)
    assert not [statement for statement in boundary if statement["Effect"] == "Allow" and "Condition" in statement]


def test_the_stack_role_can_give_nobody_rights_and_take_on_no_other_role(boundary: list[Json]) -> None:
    (refused,) = (statement for statement in boundary if statement["Effect"] == "Deny")
    assert set(refused["Action"]) == {"iam:*", "sts:*"}
    assert refused["Resource"] == "*"
    assert "Condition" not in refused


def test_the_stack_role_has_no_action_on_identities(
    control_plane: Json, stack_role: str, names: dict[str, str]
) -> None:
    actions = set().union(*grants(control_plane, stack_role, names).values())
    assert actions
    assert {action.split(":")[0] for action in actions} == {"sqs", "lambda"}


def test_the_stack_role_reaches_only_queues_of_tenants(control_plane: Json, boundary: list[Json]) -> None:
    queues = [spelled(each["Resource"]) for each in boundary if "sqs:CreateQueue" in listed(each["Action"])]
    assert queues == [f"arn:<AWS::Partition>:sqs:<AWS::Region>:<AWS::AccountId>:{NAMES.tenant_prefix}*"]
    own = [name for name, each in control_plane["Resources"].items() if each["Type"] == "AWS::SQS::Queue"]
    assert not [name for name in own if f"Berth-{name}".startswith(NAMES.tenant_prefix)]
