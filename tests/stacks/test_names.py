"""Several control planes in one account and region: their names differ, and their permissions do not overlap."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, Stack
from aws_cdk import aws_iam as iam
from aws_cdk.assertions import Template

from orchestrator.common.errors import InvalidName
from orchestrator.tenants.names import Names
from stacks.setting_values import SettingInvalid
from stacks.settings import Settings
from stacks.tenant_queue import TenantQueue
from tests.fakes import ACME, NAMES
from tests.stacks.policies import documents, listed, spelled
from tests.stacks.released import KEY
from tests.stacks.test_control_plane import EXPORTED_TO_THE_EVENT_PLANE

Json = dict[str, Any]

BESIDE = Names("Berth-dev")

NAMING = {
    "AWS::Lambda::Function": "FunctionName",
    "AWS::Logs::LogGroup": "LogGroupName",
    "AWS::ApiGatewayV2::Api": "Name",
    "AWS::CloudWatch::Dashboard": "DashboardName",
    "AWS::SQS::Queue": "QueueName",
    "AWS::S3::Bucket": "BucketName",
    "AWS::DynamoDB::Table": "TableName",
    "AWS::StepFunctions::StateMachine": "StateMachineName",
    "AWS::Events::Rule": "Name",
    "AWS::IAM::Role": "RoleName",
    "AWS::IAM::ManagedPolicy": "ManagedPolicyName",
    "AWS::CloudWatch::Alarm": "AlarmName",
    "AWS::SSM::Parameter": "Name",
}
"""The property with the name of a resource, for each type that can have a name."""


def chosen_names(template: Json) -> set[str]:
    """All names that are not chosen by CloudFormation, and could therefore conflict with another control plane."""
    found = {
        f"{each['Type']} {each['Properties'][NAMING[each['Type']]]}"
        for each in template["Resources"].values()
        if NAMING.get(each["Type"]) in each.get("Properties", {})
    }
    exported = [output["Export"]["Name"] for output in template["Outputs"].values() if "Export" in output]
    alarms = (each for each in template["Resources"].values() if each["Type"] == "AWS::CloudWatch::Alarm")
    namespaces = {each["Properties"].get("Namespace", "") for each in alarms}
    return (
        found
        | {f"export {name}" for name in exported}
        | {f"namespace {name}" for name in namespaces if not name.startswith("AWS/")}
    )


def test_a_deployment_under_the_default_name_keeps_the_previous_names(with_everything: Json) -> None:
    logs = "AWS::Logs::LogGroup /aws/vendedlogs/states/Berth"
    assert chosen_names(with_everything) == {
        "AWS::Lambda::Function berth-tenant-metadata",
        "AWS::Lambda::Function berth-tenant-queue",
        *(f"{logs}-{stem}" for stem in ("create-tenant", "update-tenant", "delete-tenant", "tenant-queue", "rollout")),
        "AWS::ApiGatewayV2::Api berth",
        "export BerthTenantQueueServiceToken",
        *(f"export Berth:{output}" for output in EXPORTED_TO_THE_EVENT_PLANE),
        "namespace Berth",
    }


def test_two_control_planes_share_no_name(with_everything: Json, beside: Json) -> None:
    others = chosen_names(beside)
    # Only the other control plane has a dashboard.
    assert len(others) == len(chosen_names(with_everything)) + 1
    assert not others & chosen_names(with_everything)
    assert others >= {
        "AWS::Lambda::Function berth-dev-tenant-metadata",
        "export Berth-devTenantQueueServiceToken",
        "namespace Berth-dev",
    }


def test_every_function_knows_which_control_plane_it_belongs_to(beside: Json) -> None:
    functions = [each for each in beside["Resources"].values() if each["Type"] == "AWS::Lambda::Function"]
    for function in functions:
        variables = function["Properties"]["Environment"]["Variables"]
        assert (variables["BERTH_NAME"], variables["BERTH_METRICS_NAMESPACE"]) == ("Berth-dev", "Berth-dev")


# Permissions by name


def patterns(template: Json) -> Iterator[tuple[list[str], str]]:
    """The allowed actions, with each resource that they are allowed on."""
    for _, statement in documents(template):
        if statement["Effect"] == "Allow":
            for resource in listed(statement.get("Resource", [])):
                yield listed(statement["Action"]), spelled(resource)


def resources_of(names: Names) -> list[str]:
    here = "<AWS::Region>:<AWS::AccountId>"
    return [
        f"arn:<AWS::Partition>:cloudformation:{here}:stack/{names.stack_of(ACME)}/8ee5d510",
        f"arn:<AWS::Partition>:cloudformation:{here}:stack/{names}/8ee5d510",
        f"arn:<AWS::Partition>:sqs:{here}:{names.stack_of(ACME)}-InboundQueue-44A1A992CA56E",
        f"arn:<AWS::Partition>:sqs:{here}:{names}-StackEventsUndelivered-44A1A992CA56E",
        f"arn:<AWS::Partition>:lambda:{here}:function:{names.tenant_metadata_function}",
        f"arn:<AWS::Partition>:lambda:{here}:function:{names.tenant_queue_function}",
    ]


ON_ALL_STACKS = {
    *("cloudformation:DescribeStacks", "cloudformation:ListStacks", "cloudformation:DescribeStackResource"),
    *("cloudformation:DescribeStackDriftDetectionStatus", "cloudformation:BatchDescribeTypeConfigurations"),
}
"""The read-only actions that a survey and a request of another team's stack need on all stacks."""


@pytest.mark.parametrize(("mine", "others"), [("with_everything", BESIDE), ("beside", NAMES)])
def test_no_policy_of_a_control_plane_allows_access_to_another(
    mine: str, others: Names, request: pytest.FixtureRequest
) -> None:
    reached = [
        (sorted(set(actions) - ON_ALL_STACKS), pattern, resource)
        for actions, pattern in patterns(request.getfixturevalue(mine))
        for resource in resources_of(others)
        if pattern != "*" and fnmatchcase(resource, pattern) and not set(actions) <= ON_ALL_STACKS
    ]
    assert not reached


@pytest.mark.parametrize(("template", "own"), [("with_everything", NAMES), ("beside", BESIDE)])
def test_the_policies_of_a_control_plane_allow_access_to_its_own_tenants(
    template: str, own: Names, request: pytest.FixtureRequest
) -> None:
    """Otherwise the previous test would prove nothing."""
    tenants_stack, _, tenants_queue, *_ = resources_of(own)
    found = list(patterns(request.getfixturevalue(template)))
    assert any("cloudformation:CreateStack" in actions and fnmatchcase(tenants_stack, each) for actions, each in found)
    assert any("sqs:CreateQueue" in actions and fnmatchcase(tenants_queue, each) for actions, each in found)


@pytest.mark.parametrize(("template", "own", "others"), [("with_everything", NAMES, BESIDE), ("beside", BESIDE, NAMES)])
def test_a_control_plane_receives_events_only_of_its_own_tenants_stacks(
    template: str, own: Names, others: Names, request: pytest.FixtureRequest
) -> None:
    rules = [
        each["Properties"]["EventPattern"]
        for each in request.getfixturevalue(template)["Resources"].values()
        if each["Type"] == "AWS::Events::Rule" and "EventPattern" in each["Properties"]
    ]
    (stacks,) = (rule["detail"]["stack-id"] for rule in rules if rule["source"] == ["aws.cloudformation"])
    (prefix,) = (spelled(each["prefix"]) for each in stacks)
    (mine, *_), (theirs, *_) = resources_of(own), resources_of(others)
    assert mine.startswith(prefix)
    assert not theirs.startswith(prefix)


def test_the_dashboard_shows_the_metrics_of_its_own_control_plane(beside: Json) -> None:
    (dashboard,) = (each for each in beside["Resources"].values() if each["Type"] == "AWS::CloudWatch::Dashboard")
    body = spelled(dashboard["Properties"]["DashboardBody"])
    assert body.count(json.dumps('SEARCH(\'{"Berth-dev",service}').strip('"')) == 1
    assert '"Berth"' not in body.replace("\\", "")


def test_the_setting_is_the_name_of_the_control_plane(tmp_path: Path) -> None:
    context = {"berth:dependencies": "host", "berth:name": "Platform-2"}
    assert Settings.from_context(App(context=context).node, tmp_path).names == Names("Platform-2")


@pytest.mark.parametrize("name", ["", "1", "a b", "berth-tenant", "x" * 25, 7, True])
def test_an_invalid_name_stops_the_deployment(name: object, tmp_path: Path) -> None:
    with pytest.raises(SettingInvalid, match="berth:name: "):
        Settings.from_context(App(context={"berth:name": name}).node, tmp_path)


# Other teams' stacks


def test_a_grant_on_a_queue_includes_the_use_of_its_key() -> None:
    for key in (None, KEY):
        stack = Stack(App(), "Team")
        producer = iam.Role(stack, "Producer", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        TenantQueue(stack, "Acme", tenant_id="acme", kms_key_arn=key).queue.grant_send_messages(producer)
        (policy,) = Template.from_stack(stack).find_resources("AWS::IAM::Policy").values()
        allowed = {
            action: spelled(statement["Resource"])
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]
            for action in listed(statement["Action"])
        }
        assert "sqs:SendMessage" in allowed
        assert {allowed.get("kms:Decrypt"), allowed.get("kms:GenerateDataKey*")} == {key}


def service_token(**chosen: str) -> Any:
    stack = Stack(App(), "Team")
    TenantQueue(stack, "Acme", tenant_id="acme", **chosen)
    found = Template.from_stack(stack).find_resources("Custom::TenantQueue")
    (resource,) = found.values()
    return resource["Properties"]["ServiceToken"]


def test_a_team_can_name_the_control_plane_of_its_tenant() -> None:
    assert service_token() == {"Fn::ImportValue": "BerthTenantQueueServiceToken"}
    assert service_token(control_plane="Berth-dev") == {"Fn::ImportValue": "Berth-devTenantQueueServiceToken"}
    with pytest.raises(InvalidName):
        service_token(control_plane="berth-tenant")


@pytest.mark.parametrize(("name", "neighbour"), [("BerthEvents", "Berth"), ("My-BerthEvents", "My-Berth")])
def test_a_control_plane_cannot_have_the_name_of_another_ones_event_plane(name: str, neighbour: str) -> None:
    """Otherwise the deployment of one would overwrite the stack of the other."""
    assert Names(neighbour).events == name
    app = App(context={"berth:name": name})
    with pytest.raises(SettingInvalid, match=f"berth:name: {name} .* control plane {neighbour} has"):
        Settings.from_context(app.node)


@pytest.mark.parametrize("name", ["Events", "Eventsource", "Berth-Events", "berthevents", "Berth-events"])
def test_other_names_with_that_word_are_free(name: str) -> None:
    assert Names.parse(name).is_event_plane_of is None
