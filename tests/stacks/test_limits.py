"""Both stacks keep CloudFormation's, IAM's and Lambda's limits, with the settings that make them largest.

An emulator has no such limits, and AWS refuses the deployment.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from aws_cdk import App

from stacks.app import build
from tests.stacks.policies import listed
from tests.stacks.released import EVERYTHING, KEY

Json = dict[str, Any]

ROLE = "AWS::IAM::Role"
NAME = "B" * 24
LARGEST = {
    **EVERYTHING,
    "name": NAME,
    "dashboard": "true",
    "tracing": "active",
    "adopterArn": f"arn:aws:iam::123456789012:role/{'r' * 64}",
    "alarmTopicArn": "arn:aws:sns:eu-west-1:123456789012:on-call",
    "stackPolicyArns": ",".join(f"arn:aws:iam::123456789012:policy/{'p' * 60}-{number}" for number in range(5)),
    "formerKmsKeyArns": ",".join(f"{KEY[:-1]}{number}" for number in range(1, 6)),
    "legacyStackPrefixes": ",".join(f"{'legacy-stacks-' * 2}{number}-" for number in range(5)),
    "warmPool": "standard=50,gold=50",
    "eventsMailFrom": "events@example.com",
}
PSEUDO_PARAMETERS = {
    "AWS::Partition": "aws-us-gov",
    "AWS::Region": "ap-southeast-2",
    "AWS::AccountId": "1" * 12,
    "AWS::URLSuffix": "amazonaws.com",
    "AWS::StackName": f"{NAME}Events",
}
ID_OF_AN_API = "a" * 10
MAX_NAME = 64
"""The maximum length of the name that CloudFormation gives a function, a role or a queue."""
LONGEST_ARN = f"arn:aws-us-gov:elasticfilesystem:ap-southeast-2:{'1' * 12}:{'n' * MAX_NAME}"


@pytest.fixture(scope="module", params=[NAME, f"{NAME}Events"], ids=["control plane", "event plane"])
def template(request: pytest.FixtureRequest, assembly_of_the_largest: dict[str, Json]) -> Json:
    return assembly_of_the_largest[request.param]


@pytest.fixture(scope="module")
def assembly_of_the_largest(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Json]:
    directory = tmp_path_factory.mktemp("assembly")
    context = {"berth:dependencies": "host", **{f"berth:{name}": value for name, value in LARGEST.items()}}
    app = App(outdir=str(directory), analytics_reporting=False, context=context)
    build(app)
    app.synth()
    return {file.name.partition(".")[0]: json.loads(file.read_text()) for file in directory.glob("*.template.json")}


def resources(template: Json, kind: str) -> Iterator[tuple[str, Json]]:
    for name, resource in template["Resources"].items():
        if resource["Type"] == kind:
            yield name, resource.get("Properties", {})


def deployed(template: Json, value: Any) -> Any:
    """The value with the longest texts that its references can have."""
    match value:
        case {"Ref": str(name)}:
            is_api = template["Resources"].get(name, {}).get("Type") == "AWS::ApiGatewayV2::Api"
            return ID_OF_AN_API if is_api else PSEUDO_PARAMETERS.get(name, "n" * MAX_NAME)
        case {"Fn::Join": [str(separator), list(parts)]}:
            return separator.join(str(deployed(template, part)) for part in parts)
        case dict() if len(value) == 1 and next(iter(value)).startswith("Fn::"):
            return LONGEST_ARN
        case dict():
            return {name: deployed(template, each) for name, each in value.items()}
        case list():
            return [deployed(template, each) for each in value]
    return value


def length(template: Json, document: Json) -> int:
    """The number of characters, without blanks."""
    return len(json.dumps(deployed(template, document), separators=(",", ":")).replace(" ", ""))


def test_a_stack_keeps_cloudformations_limits(template: Json) -> None:
    assert len(template["Resources"]) <= 500
    assert len(template["Outputs"]) <= 200
    assert len(json.dumps(template)) <= 1_000_000


def test_managed_policies_have_at_most_6144_characters(template: Json) -> None:
    policies = dict(resources(template, "AWS::IAM::ManagedPolicy"))
    assert policies
    assert {name for name, each in policies.items() if length(template, each["PolicyDocument"]) > 6_144} == set()


def test_the_inline_policies_of_a_role_have_at_most_10240_characters(template: Json) -> None:
    lengths: Counter[str] = Counter()
    for _, policy in resources(template, "AWS::IAM::Policy"):
        for role in policy["Roles"]:
            lengths[role["Ref"]] += length(template, policy["PolicyDocument"])
    assert lengths
    assert {role: found for role, found in lengths.items() if found > 10_240} == {}


def test_a_role_has_at_most_10_managed_policies(template: Json) -> None:
    attached = Counter({name: len(each.get("ManagedPolicyArns", [])) for name, each in resources(template, ROLE)})
    for _, policy in resources(template, "AWS::IAM::ManagedPolicy"):
        attached.update(role["Ref"] for role in policy.get("Roles", []))
    assert max(attached.values()) <= 10


def test_the_trust_policy_of_a_role_has_at_most_2048_characters(template: Json) -> None:
    roles = dict(resources(template, ROLE))
    assert {name for name, each in roles.items() if length(template, each["AssumeRolePolicyDocument"]) > 2_048} == set()


def test_the_variables_of_a_function_have_at_most_4096_bytes(template: Json) -> None:
    for name, function in resources(template, "AWS::Lambda::Function"):
        variables = deployed(template, function.get("Environment", {}).get("Variables", {}))
        assert len(json.dumps(variables, separators=(",", ":")).encode()) <= 4_096, name


def test_the_policy_of_a_function_has_at_most_20480_characters(template: Json) -> None:
    """Lambda adds a statement for every permission to call the function."""
    around = '"Sid":"","Effect":"Allow","Condition":{"ArnLike":{}}'
    longest_sid = 100
    lengths: Counter[str] = Counter()
    for _, permission in resources(template, "AWS::Lambda::Permission"):
        lengths[json.dumps(permission["FunctionName"])] += length(template, permission) + len(around) + longest_sid
    assert lengths
    assert {function: found for function, found in lengths.items() if found > 20_480} == {}


def test_an_event_pattern_has_at_most_4096_characters(template: Json) -> None:
    for name, rule in resources(template, "AWS::Events::Rule"):
        assert length(template, rule.get("EventPattern", {})) <= 4_096, name


def test_a_function_has_at_most_5_layers_and_an_http_api_at_most_300_routes(template: Json) -> None:
    for name, function in resources(template, "AWS::Lambda::Function"):
        assert len(listed(function.get("Layers", []))) <= 5, name
    assert 0 < len(list(resources(template, "AWS::ApiGatewayV2::Route"))) <= 300
