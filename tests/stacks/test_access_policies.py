"""The managed policies for platforms, senders, receivers, operators and teams."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any

import pytest

from orchestrator.api.route import Audience
from orchestrator.api.routes import ROUTES
from tests.stacks.policies import listed, spelled

Json = dict[str, Any]

POLICIES = ("PlatformPolicyArn", "SenderPolicyArn", "ReceiverPolicyArn", "OperatorPolicyArn")
OPERATOR_ROUTES = [route.key for route in ROUTES if route.audience is Audience.OPERATOR]
ONE_ROUTE = {
    "PlatformPolicyArn": "GET /tenants/{tenantId}/queue",
    "SenderPolicyArn": "POST /tenants/{tenantId}/queue/credentials/send",
    "ReceiverPolicyArn": "POST /tenants/{tenantId}/queue/credentials/receive",
}
"""The policies that allow one route each."""
TEAM = "TeamPolicyArn"
NOT_ROUTES = (
    "DELETE /tenants/{tenantId}/queue",
    "POST /tenants/{tenantId}/queue",
    "GET /tenants/{tenantId}/queue/credentials/send",
    "GET /tenants/{tenantId}/queue/credentials/receive",
    "POST /tenants/{tenantId}/queue/credentials",
    "POST /tenants/{tenantId}/queue/credentials/all",
    "POST /tenants",
    "GET /tenants-of-others",
    "DELETE /releases",
    "DELETE /rollouts/{rolloutId}",
    "GET /reconciliations",
    "DELETE /reconciliations/{reconciliationId}",
    "POST /diagnosis",
)


@pytest.fixture
def allows(control_plane: Json, the_only: Callable[[str], str]) -> Callable[[str, str], bool]:
    """Whether a policy, named by its output, allows a route."""
    api = f"<{the_only('AWS::ApiGatewayV2::Api')}>"

    def answer(output: str, route: str) -> bool:
        an_id = "20261116-083000-1a2b"
        ids = {"tenantId": "acme", "version": "0.2.0"} | dict.fromkeys(("rolloutId", "reconciliationId"), an_id)
        method, path = route.format(**ids).split(" ")
        requested = f"arn:<AWS::Partition>:execute-api:<AWS::Region>:<AWS::AccountId>:{api}/$default/{method}{path}"
        return any(fnmatchcase(requested, resource) for resource in _resources(control_plane, output))

    return answer


@pytest.mark.parametrize(("output", "route"), ONE_ROUTE.items(), ids=ONE_ROUTE)
def test_platforms_may_ask_for_queues_and_senders_and_receivers_for_their_credentials(
    allows: Callable[[str, str], bool], output: str, route: str
) -> None:
    assert allows(output, route)


@pytest.mark.parametrize("output", ONE_ROUTE)
@pytest.mark.parametrize("route", [*ONE_ROUTE.values(), *OPERATOR_ROUTES, *NOT_ROUTES])
def test_platforms_senders_and_receivers_may_call_no_other_route(
    allows: Callable[[str, str], bool], output: str, route: str
) -> None:
    assert allows(output, route) == (route == ONE_ROUTE[output])


@pytest.mark.parametrize("route", [*OPERATOR_ROUTES, *ONE_ROUTE.values()])
def test_an_operator_may_call_every_route(allows: Callable[[str, str], bool], route: str) -> None:
    assert allows("OperatorPolicyArn", route)


@pytest.mark.parametrize("output", POLICIES)
def test_policies_allow_only_the_stage_of_this_api(
    control_plane: Json, the_only: Callable[[str], str], output: str
) -> None:
    this = f"arn:<AWS::Partition>:execute-api:<AWS::Region>:<AWS::AccountId>:<{the_only('AWS::ApiGatewayV2::Api')}>"
    for resource in _resources(control_plane, output):
        assert resource.startswith(f"{this}/$default/")


def test_logical_ids_and_descriptions_of_policies_do_not_change(control_plane: Json) -> None:
    """CloudFormation replaces a policy whose id or description changes, and the new policy is attached to nobody."""
    kept = {
        control_plane["Outputs"][output]["Value"]["Ref"]: _policy(control_plane, output)["Description"]
        for output in (*POLICIES, TEAM)
    }
    assert kept == {
        "AccessTeamA046C7FB": "Have tenants' queues in stacks, by Custom::TenantQueue, and nothing else.",
        "AccessPlatformD7036C2A": "Ask Berth for tenants' queues, and nothing else.",
        "AccessSenderC1B3BFE6": "Get temporary credentials to send to tenants' queues, and nothing else.",
        "AccessReceiverCBF026A7": "Get temporary credentials to receive from tenants' queues, and nothing else.",
        "AccessOperator9D7E479F": "Create, upgrade, retry, delete and look at Berth's tenants, ask for their queues, "
        "and roll releases out.",
    }


@pytest.mark.parametrize("output", [*POLICIES, TEAM])
def test_the_deployment_attaches_the_policies_to_nobody(control_plane: Json, output: str) -> None:
    assert not {"Roles", "Users", "Groups"} & set(_policy(control_plane, output))


def test_an_operator_may_describe_only_the_control_planes_stack_by_its_name(control_plane: Json) -> None:
    """AWS evaluates a request that names a stack with `*` in place of the stack's id."""
    (look_up,) = (
        statement
        for statement in _policy(control_plane, "OperatorPolicyArn")["PolicyDocument"]["Statement"]
        if statement["Action"] != "execute-api:Invoke"
    )
    assert (look_up["Effect"], look_up["Action"]) == ("Allow", "cloudformation:DescribeStacks")
    here = "arn:<AWS::Partition>:cloudformation:<AWS::Region>:<AWS::AccountId>"
    assert spelled(look_up["Resource"]) == f"{here}:stack/Berth/*"


def test_a_team_may_invoke_one_function_only_through_cloudformation(
    control_plane: Json, function_ids: dict[str, str]
) -> None:
    assert _policy(control_plane, TEAM)["PolicyDocument"]["Statement"] == [
        {
            "Effect": "Allow",
            "Action": "lambda:InvokeFunction",
            "Resource": {"Fn::GetAtt": [function_ids["tenant_queue"], "Arn"]},
            "Condition": {"ForAnyValue:StringEquals": {"aws:CalledVia": ["cloudformation.amazonaws.com"]}},
        }
    ]


def _resources(template: Json, output: str) -> list[str]:
    """The routes that the policy allows, as ARNs."""
    (statement,) = (
        statement
        for statement in _policy(template, output)["PolicyDocument"]["Statement"]
        if statement["Action"] == "execute-api:Invoke"
    )
    assert statement["Effect"] == "Allow"
    return [spelled(resource) for resource in listed(statement["Resource"])]


def _policy(template: Json, output: str) -> Json:
    resource = template["Resources"][template["Outputs"][output]["Value"]["Ref"]]
    assert resource["Type"] == "AWS::IAM::ManagedPolicy"
    properties: Json = resource["Properties"]
    return properties
