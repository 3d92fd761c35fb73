"""The contract of tenants' templates: which templates keep it, and what is found in those that do not."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.common.own_versions import template_version
from orchestrator.local.releases import released_template
from orchestrator.releases import template_contract as contract
from orchestrator.releases import template_texts
from orchestrator.releases.checking import (
    MAX_FINDINGS,
    Surroundings,
    check_template,
    declared_version,
)
from orchestrator.releases.findings import Finding, Rule
from orchestrator.releases.service_permissions import Permissions
from orchestrator.releases.template_names import ReservedNames
from orchestrator.releases.template_queues import EarlierRelease
from orchestrator.releases.template_values import text_of
from orchestrator.tenants import credentials
from tests.fakes.templates import example_template

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = example_template()
S3_AND_DYNAMODB = Permissions(frozenset({"s3:*", "dynamodb:*"}))

Template = dict[str, Any]


def example(change: Callable[[Template], object] = lambda _: None) -> Template:
    template: Template = copy.deepcopy(EXAMPLE)
    change(template)
    return template


def with_resource(resource_type: str, **properties: Any) -> Template:
    """The example with one more resource."""
    return example(lambda it: it["Resources"].update(More={"Type": resource_type, "Properties": properties}))


def found_in(template: object, **surroundings: Any) -> list[Finding]:
    return check_template(template, Surroundings(**surroundings))


def rules_of(template: object, **surroundings: Any) -> set[Rule]:
    return {each.rule for each in found_in(template, **surroundings)}


def test_the_example_of_the_documentation_keeps_the_contract() -> None:
    assert found_in(EXAMPLE, version="2.1.0", permissions=S3_AND_DYNAMODB) == []


def test_berths_own_release_keeps_the_contract() -> None:
    own = released_template(template_version())
    assert found_in(own, version=template_version(), permissions=Permissions()) == []


def test_releases_of_berth_and_of_operators_are_apart() -> None:
    assert not contract.is_operators(template_version())
    assert contract.is_operators("2.0.0")
    assert contract.is_operators("10.1.0")


@pytest.mark.parametrize("value", [None, [], "template", 7, {}, {"Resources": []}, {"Resources": {"A": 1}}])
def test_anything_else_than_a_template_is_a_finding_and_no_error(value: object) -> None:
    assert Rule.FORMAT in rules_of(value)


@pytest.mark.parametrize("make", [lambda inner: {"a": inner}, lambda inner: [inner], lambda inner: {"Fn::If": [inner]}])
def test_a_template_that_is_nested_too_deeply_is_a_finding_and_no_error(make: Callable[[object], object]) -> None:
    value: object = "a"
    for _ in range(5_000):
        value = make(value)
    (finding,) = found_in(with_resource("AWS::SNS::Subscription") | {"Metadata": {"Deep": value}})
    assert finding.rule is Rule.FORMAT
    assert "nested too deeply" in finding.problem


def test_half_of_a_character_is_a_finding_and_no_error() -> None:
    (finding,) = found_in(with_resource("AWS::SNS::Subscription", TopicArn="\ud800"))
    assert finding.rule is Rule.FORMAT


def test_a_template_of_nonsense_has_a_bounded_number_of_findings() -> None:
    nonsense = {"Resources": {f"R{number}": {"Type": "X"} for number in range(5_000)}}
    assert len(found_in(nonsense)) == MAX_FINDINGS


def test_a_finding_is_short_whatever_the_template_names() -> None:
    (finding,) = (each for each in found_in(example(lambda it: it.update({"x" * 9_000: 1}))) if "xxx" in each.place)
    assert max(map(len, (finding.place, finding.problem, finding.advice))) <= 300


# Every change below breaks one rule.

BROKEN: dict[str, tuple[Rule, Callable[[Template], object]]] = {
    "transform": (Rule.FORMAT, lambda it: it.update(Transform="AWS::Serverless-2016-10-31")),
    "hooks": (Rule.FORMAT, lambda it: it.update(Hooks={})),
    "include as properties": (
        Rule.FORMAT,
        lambda it: it["Resources"]["Files"].update(Properties={"Fn::Transform": {"Name": "AWS::Include"}}),
    ),
    "resource with an unknown field": (Rule.FORMAT, lambda it: it["Resources"]["Files"].update(Transform={})),
    "too many resources": (
        Rule.FORMAT,
        lambda it: it["Resources"].update({f"Q{n}": {"Type": contract.QUEUE_TYPE} for n in range(500)}),
    ),
    "too many outputs": (
        Rule.FORMAT,
        lambda it: it["Outputs"].update({f"O{number}": {"Value": "x"} for number in range(60)}),
    ),
    "too long": (Rule.FORMAT, lambda it: it.update(Description="x" * 1_000_000)),
    "no tenant": (Rule.PARAMETERS, lambda it: it["Parameters"].pop("TenantId")),
    "another parameter": (Rule.PARAMETERS, lambda it: it["Parameters"].update(Size={"Type": "String", "Default": "s"})),
    "a parameter from SSM": (
        Rule.PARAMETERS,
        lambda it: it["Parameters"].update(TenantId={"Type": "AWS::SSM::Parameter::Value<String>"}),
    ),
    "a hidden parameter": (Rule.PARAMETERS, lambda it: it["Parameters"]["TenantId"].update(NoEcho=True)),
    "a tenant by default": (Rule.PARAMETERS, lambda it: it["Parameters"]["TenantId"].update(Default="acme")),
    "some tenants only": (Rule.PARAMETERS, lambda it: it["Parameters"]["TenantId"].update(AllowedValues=["acme"])),
    "tenants with short ids": (Rule.PARAMETERS, lambda it: it["Parameters"]["TenantId"].update(MaxLength=12)),
    "tenants with long ids": (Rule.PARAMETERS, lambda it: it["Parameters"]["TenantId"].update(MinLength=3)),
    "tenants in lower case": (
        Rule.PARAMETERS,
        lambda it: it["Parameters"]["TenantId"].update(AllowedPattern="^[a-z-]+$"),
    ),
    "a function of another region": (
        Rule.PARAMETERS,
        lambda it: it["Parameters"]["MetadataServiceToken"].update(AllowedPattern=".*:eu-west-1:.*"),
    ),
    "a key is required": (Rule.PARAMETERS, lambda it: it["Parameters"]["KmsKeyArn"].update(MinLength=1)),
    "rules that refuse tenants": (
        Rule.FORMAT,
        lambda it: it.update(
            Rules={"OnlyAcme": {"Assertions": [{"Assert": {"Fn::Equals": [{"Ref": "TenantId"}, "acme"]}}]}}
        ),
    ),
    "no metadata resource": (Rule.METADATA, lambda it: it["Resources"].pop("TenantMetadata")),
    "two metadata resources": (
        Rule.METADATA,
        lambda it: it["Resources"].update(Again=it["Resources"]["TenantMetadata"]),
    ),
    "metadata that stays": (
        Rule.METADATA,
        lambda it: it["Resources"]["TenantMetadata"].update(DeletionPolicy="Retain"),
    ),
    "another tenant's metadata": (
        Rule.METADATA,
        lambda it: it["Resources"]["TenantMetadata"]["Properties"].update(TenantId="globex"),
    ),
    "another function": (
        Rule.METADATA,
        lambda it: it["Resources"]["TenantMetadata"]["Properties"].update(
            ServiceToken="arn:aws:lambda:eu-west-1:111122223333:function:mine"
        ),
    ),
    "another queue reported": (
        Rule.METADATA,
        lambda it: it["Resources"]["TenantMetadata"]["Properties"].update(InboundQueueUrl={"Ref": "DeadLetterQueue"}),
    ),
    "no timeout": (
        Rule.METADATA,
        lambda it: it["Resources"]["TenantMetadata"]["Properties"].pop("ServiceTimeout"),
    ),
    "another version reported": (
        Rule.METADATA,
        lambda it: it["Resources"]["TenantMetadata"]["Properties"].update(Version="2.0.0"),
    ),
    "no queue": (Rule.QUEUES, lambda it: it["Resources"].pop("InboundQueue")),
    "a queue for some": (Rule.QUEUES, lambda it: it["Resources"]["InboundQueue"].update(Condition="HasKey")),
    "a FIFO queue": (Rule.QUEUES, lambda it: it["Resources"]["InboundQueue"]["Properties"].update(FifoQueue=True)),
    "a queue that temporary credentials do not reach": (
        Rule.QUEUES,
        lambda it: it["Resources"]["InboundQueue"]["Properties"].pop("Tags"),
    ),
    "a queue with the tag of another tenant": (
        Rule.QUEUES,
        lambda it: it["Resources"]["InboundQueue"]["Properties"]["Tags"][0].update(Value="globex"),
    ),
    "dead letters to a queue outside of the stack": (
        Rule.QUEUES,
        lambda it: it["Resources"]["InboundQueue"]["Properties"]["RedrivePolicy"].update(
            deadLetterTargetArn={"Fn::Sub": "arn:aws:sqs:${AWS::Region}:${AWS::AccountId}:berth-tenant-globex-x"}
        ),
    ),
    "dead letters by a text": (
        Rule.QUEUES,
        lambda it: it["Resources"]["InboundQueue"]["Properties"].update(
            RedrivePolicy='{"deadLetterTargetArn": "arn:aws:sqs:eu-west-1:111122223333:other", "maxReceiveCount": 1}'
        ),
    ),
    "dead letters by a condition": (
        Rule.QUEUES,
        lambda it: it["Resources"]["InboundQueue"]["Properties"].update(
            RedrivePolicy={"Fn::If": ["HasKey", {"deadLetterTargetArn": "arn:aws:sqs:a:b:c"}, {"Ref": "AWS::NoValue"}]}
        ),
    ),
    "dead letters of queues outside": (
        Rule.QUEUES,
        lambda it: it["Resources"]["DeadLetterQueue"]["Properties"].update(
            RedriveAllowPolicy={"redrivePermission": "byQueue", "sourceQueueArns": ["arn:aws:sqs:a:b:c"]}
        ),
    ),
    "no output of the queue": (Rule.OUTPUTS, lambda it: it["Outputs"].pop("InboundQueueUrl")),
    "another queue as output": (
        Rule.OUTPUTS,
        lambda it: it["Outputs"]["InboundQueueUrl"].update(Value="https://sqs/1/other"),
    ),
    "another version as output": (Rule.OUTPUTS, lambda it: it["Outputs"]["Version"].update(Value="2.0.0")),
    "an export": (Rule.OUTPUTS, lambda it: it["Outputs"]["FilesBucket"].update(Export={"Name": "files"})),
    "a long output": (Rule.OUTPUTS, lambda it: it["Outputs"]["FilesBucket"].update(Value="x" * 1_025)),
    "a long output of short parts": (
        Rule.OUTPUTS,
        lambda it: it["Outputs"]["FilesBucket"].update(Value={"Fn::Join": ["", ["x" * 500, "y" * 500, "z" * 25]]}),
    ),
    "a long output that is selected": (
        Rule.OUTPUTS,
        lambda it: it["Outputs"]["FilesBucket"].update(Value={"Fn::Select": [1, ["short", "x" * 1_025]]}),
    ),
    "a long output that is cut out": (
        Rule.OUTPUTS,
        lambda it: it["Outputs"]["FilesBucket"].update(
            Value={"Fn::Join": ["", {"Fn::Split": [",", "x" * 600 + "," + "y" * 600]}]}
        ),
    ),
    "a long output for some": (
        Rule.OUTPUTS,
        lambda it: it["Outputs"]["FilesBucket"].update(Value={"Fn::If": ["HasKey", "x" * 1_025, ""]}),
    ),
    "an output of many bytes": (Rule.OUTPUTS, lambda it: it["Outputs"]["FilesBucket"].update(Value="é" * 600)),
    "an output that is a list": (
        Rule.OUTPUTS,
        lambda it: it["Outputs"]["FilesBucket"].update(Value={"Fn::Split": [",", "a,b"]}),
    ),
    "an output that is an object": (Rule.OUTPUTS, lambda it: it["Outputs"]["FilesBucket"].update(Value={"a": "b"})),
    "the queue by a text that is put together": (
        Rule.OUTPUTS,
        lambda it: it["Outputs"]["InboundQueueUrl"].update(
            Value={"Fn::Select": [0, {"Fn::Split": ["|", {"Fn::Join": ["|", [{"Ref": "Files"}, "x"]]}]}]}
        ),
    ),
    "another queue, chosen by a condition": (
        Rule.OUTPUTS,
        lambda it: it["Outputs"]["InboundQueueArn"].update(
            Value={"Fn::If": ["HasKey", {"Fn::GetAtt": ["InboundQueue", "Arn"]}, "arn:aws:sqs:a:b:c"]}
        ),
    ),
    "another queue's address as a further output": (
        Rule.OTHERS,
        lambda it: it["Outputs"].update(Other={"Value": "https://sqs.eu-west-1.amazonaws.com/1/berth-tenant-globex-1"}),
    ),
    "an asset": (
        Rule.ASSETS,
        lambda it: it["Resources"]["Files"].update(Metadata={"aws:asset:path": "asset.1"}),
    ),
    "a bucket of assets": (
        Rule.ASSETS,
        lambda it: it["Outputs"]["FilesBucket"].update(Value={"Fn::Sub": "cdk-hnb659fds-assets-${AWS::AccountId}"}),
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_every_broken_rule_is_found_with_advice(name: str) -> None:
    rule, change = BROKEN[name]
    found = found_in(example(change), version="2.1.0", permissions=S3_AND_DYNAMODB)
    assert rule in {each.rule for each in found}
    assert all(each.problem and each.advice for each in found)


FOREIGN_TYPES = [
    "Custom::Anything",
    "AWS::CloudFormation::CustomResource",
    "AWS::CloudFormation::Stack",
    "AWS::CloudFormation::Macro",
    "AWS::CloudFormation::StackSet",
    "AWS::IAM::Role",
    "AWS::RAM::ResourceShare",
    "Datadog::Monitors::Monitor",
    "Acme::Queue::Thing::MODULE",
    "AWS::S3::Bucket::MODULE",
    "AWSX::S3::Bucket",
    "",
]


@pytest.mark.parametrize("resource_type", FOREIGN_TYPES)
def test_types_that_run_code_of_others_or_change_permissions_are_refused(resource_type: str) -> None:
    template = with_resource(resource_type, ServiceToken="arn:aws:lambda:eu-west-1:111122223333:function:mine")
    assert Rule.TYPES in rules_of(template, permissions=Permissions(frozenset({"*"})))


def test_a_resource_needs_a_policy_that_lets_the_service_role_create_it() -> None:
    (finding,) = found_in(EXAMPLE, permissions=Permissions(frozenset({"dynamodb:create*"})))
    assert (finding.rule, finding.place) == (Rule.TYPES, "Resources.Files")
    assert "s3:CreateBucket" in finding.problem
    assert "berth:stackPolicyArns" in finding.advice


def test_the_tag_of_the_tenants_queue_is_that_of_sessions_for_it() -> None:
    assert contract.TENANT_TAG == credentials.TENANT_TAG


PASSED_ROLE = "arn:aws:iam::111122223333:role/tenants"


@pytest.mark.parametrize(
    ("resource_type", "properties", "place"),
    [
        ("AWS::Lambda::Function", {"Role": PASSED_ROLE}, "Role"),
        ("AWS::StepFunctions::StateMachine", {"RoleArn": PASSED_ROLE}, "RoleArn"),
        ("AWS::S3::Bucket", {"ReplicationConfiguration": {"Role": PASSED_ROLE}}, "ReplicationConfiguration.Role"),
        ("AWS::SNS::Subscription", {"SubscriptionRoleArn": PASSED_ROLE}, "SubscriptionRoleArn"),
        ("AWS::Events::Rule", {"Targets": [{"Arn": "a", "RoleArn": PASSED_ROLE}]}, "Targets[0].RoleArn"),
        ("AWS::RDS::DBInstance", {"MonitoringRoleArn": {"Ref": "TenantId"}}, "MonitoringRoleArn"),
        ("AWS::RDS::DBInstance", {"Role": "Role"}, "Role"),
    ],
)
def test_a_resource_that_passes_a_role_is_refused_because_the_service_role_may_pass_none(
    resource_type: str, properties: Template, place: str
) -> None:
    found = found_in(with_resource(resource_type, **properties), permissions=Permissions(frozenset({"*"})))
    (finding,) = (each for each in found if each.rule is Rule.TYPES)
    assert finding.place == f"Resources.More.Properties.{place}"
    assert "iam:PassRole" in finding.problem


def test_a_tag_or_a_text_that_is_named_like_a_role_passes_none() -> None:
    tags = [{"Key": "Role", "Value": "RoleArn"}]
    template = with_resource("AWS::SNS::Topic", Tags=tags, DisplayName="Role", RoleOfTopic="orders")
    assert Rule.TYPES not in rules_of(template, permissions=Permissions(frozenset({"*"})))


@pytest.mark.parametrize(
    ("statement", "allowed"),
    [
        ({"Effect": "Allow", "Action": "s3:*", "Resource": "*"}, True),
        ({"Effect": "Allow", "Action": ["S3:Create*"], "Resource": "*"}, True),
        ({"Effect": "Allow", "Action": "*", "Resource": "*"}, True),
        ({"Effect": "Allow", "NotAction": "iam:*", "Resource": "*"}, True),
        ({"Effect": "Allow", "Action": "s3:Get*", "Resource": "*"}, False),
        ({"Effect": "Deny", "Action": "s3:*", "Resource": "*"}, False),
        ({"Effect": "Allow", "Action": 7}, False),
        ("nonsense", False),
    ],
)
def test_permissions_are_read_from_policies(statement: object, allowed: bool) -> None:
    permissions = Permissions.of_policies([{"Statement": [statement]}, {"Statement": statement}, {}])
    assert permissions.allow_creating("AWS::S3::Bucket") is allowed
    assert permissions.allow_creating(contract.QUEUE_TYPE)


def test_a_type_without_a_known_action_needs_any_action_of_its_service() -> None:
    assert Permissions(frozenset({"states:createstatemachine"})).allow_creating("AWS::StepFunctions::StateMachine")
    assert not Permissions(frozenset({"s3:*"})).allow_creating("AWS::StepFunctions::StateMachine")


OWN_ACCOUNT = {"AWS": {"Fn::Sub": "arn:${AWS::Partition}:iam::${AWS::AccountId}:root"}}
SOURCE = {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}


def queue_policy(*, queues: object = None, **statement: Any) -> Template:
    document = {"Statement": [{"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": "*", **statement}]}
    named = [{"Ref": "InboundQueue"}] if queues is None else queues
    return with_resource(contract.QUEUE_POLICY_TYPE, Queues=named, PolicyDocument=document)


@pytest.mark.parametrize(
    "statement",
    [
        {"Principal": OWN_ACCOUNT},
        {"Principal": {"AWS": {"Ref": "AWS::AccountId"}}},
        {"Principal": {"AWS": [{"Fn::Join": ["", ["arn:aws:iam::", {"Ref": "AWS::AccountId"}, ":role/sender"]]}]}},
        {"Principal": {"Service": "sns.amazonaws.com"}, "Condition": SOURCE},
        {
            "Principal": {"Service": "s3.amazonaws.com"},
            "Condition": {"ArnEquals": {"aws:SourceArn": {"Fn::GetAtt": ["Files", "Arn"]}}},
        },
        {"Effect": "Deny", "Principal": "*", "Condition": {"Bool": {"aws:SecureTransport": "false"}}},
    ],
)
def test_a_policy_may_admit_the_account_and_services_that_act_for_it(statement: Template) -> None:
    assert found_in(queue_policy(**statement), version="2.1.0") == []


@pytest.mark.parametrize(
    "statement",
    [
        {"Principal": "*"},
        {"Principal": {"AWS": "*"}},
        {"Principal": {"AWS": "111122223333"}},
        {"Principal": {"AWS": "arn:aws:iam::111122223333:root"}},
        {"Principal": {"AWS": {"Fn::Sub": "arn:aws:iam::111122223333:role/${AWS::AccountId}"}}},
        {"Principal": {"AWS": {"Fn::If": ["HasKey", "111122223333", {"Ref": "AWS::AccountId"}]}}},
        {"Principal": {"Fn::If": ["HasKey", "*", OWN_ACCOUNT]}},
        {"Principal": {"AWS": ["${AWS::AccountId}"]}},
        {"Principal": {"CanonicalUser": "abc"}},
        {"Principal": {"Federated": "accounts.google.com"}},
        {"NotPrincipal": OWN_ACCOUNT},
        {"Effect": {"Fn::If": ["HasKey", "Allow", "Deny"]}, "Principal": "*"},
        {"Principal": "*", "Condition": {"StringEquals": {"aws:PrincipalOrgID": "o-1"}}},
        {"principal": "*"},
        {"PRINCIPAL": {"AWS": "*"}},
        {"Effect": "Deny", "effect": "Allow", "Principal": "*"},
        {"Principal": {"AWS": {"Fn::Join": ["", ["$", "{AWS::AccountId}"]]}}},
        {"Principal": {"AWS": {"Fn::Join": ["${AWS::AccountId}", ["", ""]]}}},
        {"Principal": {"AWS": {"Fn::Sub": ["${AWS::AccountId}", {"AWS::AccountId": "111122223333"}]}}},
        {"Principal": {"Service": "sns.amazonaws.com"}, "SourceAccount": {"Ref": "AWS::AccountId"}},
        {"Principal": {"Service": "sns.amazonaws.com"}},
        {"Principal": {"Service": "sns.amazonaws.com"}, "Condition": {"StringEqualsIfExists": SOURCE["StringEquals"]}},
        {
            "Principal": {"Service": "sns.amazonaws.com"},
            "Condition": {"ArnLike": {"aws:SourceArn": "arn:aws:sns:*:111122223333:*"}},
        },
        {
            "Principal": {"Service": "sns.amazonaws.com"},
            "Condition": {"StringEquals": {"aws:SourceAccount": [{"Ref": "AWS::AccountId"}, "111122223333"]}},
        },
    ],
)
def test_a_policy_that_admits_others_is_refused(statement: Template) -> None:
    assert Rule.POLICIES in rules_of(queue_policy(**statement))


@pytest.mark.parametrize(
    "queues",
    [
        ["https://sqs.eu-west-1.amazonaws.com/111122223333/berth-tenant-globex-InboundQueue-1"],
        [{"Ref": "InboundQueue"}, {"Fn::Sub": "https://sqs.${AWS::Region}.amazonaws.com/1/berth-tenant-globex"}],
        {"Fn::Split": [",", "a,b"]},
        {"Fn::If": ["HasKey", [{"Ref": "InboundQueue"}], ["https://other"]]},
        [],
        "x",
        [{"Ref": "TenantId"}],
        [{"Ref": "Files"}],
        [{"Fn::GetAtt": ["TenantMetadata", "Queue"]}],
    ],
)
def test_a_policy_for_queues_outside_of_the_template_is_refused(queues: object) -> None:
    assert Rule.POLICIES in rules_of(queue_policy(queues=queues, Principal=OWN_ACCOUNT))


@pytest.mark.parametrize(
    ("resource_type", "properties"),
    [
        ("AWS::S3::BucketPolicy", {"Bucket": "berth-releases", "PolicyDocument": {"Statement": []}}),
        ("AWS::S3::BucketPolicy", {"Bucket": {"Ref": "Files"}, "PolicyDocument": '{"Statement": []}'}),
        ("AWS::S3::BucketPolicy", {"Bucket": {"Ref": "Files"}, "PolicyDocument": {"Fn::Sub": "x"}}),
        ("AWS::S3::AccessPoint", {"Bucket": {"Ref": "Files"}}),
        ("AWS::S3::Bucket", {"AccessControl": "PublicRead"}),
        ("AWS::S3::Bucket", {"AccessControl": {"Fn::If": ["HasKey", "PublicRead", "Private"]}}),
        ("AWS::Lambda::Permission", {"FunctionName": "berth-tenant-metadata", "Principal": "*"}),
        (
            "AWS::Events::EventBusPolicy",
            {"Principal": "111122223333", "Action": "events:PutEvents"},
        ),
        ("AWS::KMS::Key", {"KeyPolicy": {"Statement": [{"Effect": "Allow", "Principal": {"AWS": "*"}}]}}),
        ("AWS::DynamoDB::Table", {"ResourcePolicy": {"PolicyDocument": {"Statement": {"Principal": "*"}}}}),
        ("AWS::SQS::QueueInlinePolicy", {"Queue": "https://other", "PolicyDocument": {}}),
        ("AWS::ECR::Repository", {"RepositoryPolicyText": '{"Statement": []}'}),
        ("AWS::Glue::Something", {"Principals": ["111122223333"]}),
    ],
)
def test_other_ways_to_open_resources_are_refused(resource_type: str, properties: Template) -> None:
    assert Rule.POLICIES in rules_of(with_resource(resource_type, **properties))


def test_a_text_that_a_resource_gives_back_is_no_resource_of_the_template() -> None:
    """It may be the address of another tenant's queue, or the ARN of a source in another account."""
    stored = {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": "https://sqs/1/globex"}}
    for value in ({"Fn::GetAtt": ["Text", "Value"]}, {"Fn::GetAtt": "Text.Value"}, {"Fn::Sub": "${Text.Value}"}):
        template = queue_policy(queues=[value], Principal=OWN_ACCOUNT)
        template["Resources"]["Text"] = stored
        assert {Rule.POLICIES, Rule.REFERENCES} <= rules_of(template)


def test_a_text_that_grows_tenfold_with_every_level_is_read_as_far_as_a_text_can_be_long() -> None:
    """Twelve such levels would be a text of a terabyte."""
    text: object = "a"
    for _ in range(12):
        text = {"Fn::Sub": ["${a}" * 10, {"a": text}]}
    assert len(text_of(text) or "") < 6_000
    assert Rule.NAMES in rules_of(with_resource("AWS::S3::Bucket", BucketName=text))


SECRET = "{{resolve:secretsmanager:berth:SecretString}}"


@pytest.mark.parametrize(
    "value",
    [
        SECRET,
        "a" + SECRET,
        {"Fn::Sub": SECRET},
        {"Fn::Sub": ["{{resolve:${Service}:x}}", {"Service": "ssm"}]},
        {"Fn::Join": ["", ["{{res", "olve:ssm:x}}"]]},
        {"Fn::Join": ["", ["{", "{resolve:ssm:x}}"]]},
        {"Fn::Join": ["{", ["", "", "resolve:ssm:x}}"]]},
        {"Fn::Join": ["", ["{", {"Ref": "AWS::NoValue"}, "{resolve:ssm:x}}"]]},
        {"Fn::Sub": ["{${Rest}", {"Rest": "{resolve:ssm:x}}"}]},
        {"Fn::Sub": ["${A}${B}", {"A": "{", "B": "{resolve:ssm:x}}"}]},
        {"Fn::Join": ["", {"Fn::Split": [",", "{,{resolve:ssm:x}}"]}]},
        {"Fn::Select": [0, {"Fn::Split": ["|", "{|x"]}]},
        {"Fn::Sub": "${!{resolve:ssm:x}}"},
        {"Fn::Sub": ["${!{resolve:${Service}:x}}", {"Service": "ssm"}]},
        {"Fn::Join": ["", [{"Fn::Sub": "${!"}, "{resolve:ssm:x}}"]]},
        {"Fn::If": ["HasKey", SECRET, ""]},
        {"Fn::ImportValue": "OtherStack"},
        {"Fn::Transform": {"Name": "AWS::Include", "Parameters": {"Location": "s3://x"}}},
        {"Fn::ForEach::Loop": ["X", ["1"], {}]},
        {"Fn::GetAtt": ["Other", "Arn"]},
        {"Ref": "Other"},
        {"Fn::Sub": "${Other.Arn}"},
        {"Fn::Sub": {"Ref": "TenantId"}},
        {"Ref": "TenantId", "Other": "a"},
        {"Fn::Sub": "${MetadataServiceToken}", "Fn::Join": ["", []]},
    ],
)
def test_values_from_outside_of_the_template_are_refused_wherever_they_are(value: object) -> None:
    places: list[Callable[[Template], object]] = [
        lambda it: it["Outputs"]["FilesBucket"].update(Value=value),
        lambda it: it["Resources"]["Files"]["Properties"].update(Tags=[{"Key": "k", "Value": value}]),
        lambda it: it["Resources"]["Files"].update(Metadata={"a": [value]}),
    ]
    for change in places:
        assert Rule.REFERENCES in rules_of(example(change))


def test_dynamic_references_in_keys_and_mappings_are_refused() -> None:
    assert Rule.REFERENCES in rules_of(example(lambda it: it.update(Metadata={SECRET: 1})))
    in_two = {"Parts": {"One": {"open": "{"}, "Two": {"rest": "{resolve:ssm:x}}"}}}
    assert Rule.REFERENCES in rules_of(example(lambda it: it.update(Mappings=in_two)))
    cut = {"Fn::Join": ["", {"Fn::Split": ["|", {"Fn::FindInMap": ["Parts", "One", "all"]}]}]}
    template = with_resource("AWS::SNS::Topic", DisplayName=cut)
    template["Mappings"] = {"Parts": {"One": {"all": "{|{resolve:ssm:x}}"}}}
    assert Rule.REFERENCES in rules_of(template)
    template["Mappings"] = {"Parts": {"One": {"all": "a|b"}}}
    assert found_in(template) == []


def test_braces_of_json_and_of_variables_are_no_dynamic_reference() -> None:
    body = {"Fn::Join": ["", ['{"widgets": [{"text": {"a": "', {"Ref": "InboundQueue"}, '"}}]}']]}
    assert found_in(with_resource("AWS::CloudWatch::Dashboard", DashboardBody=body)) == []
    assert found_in(example(lambda it: it["Outputs"]["FilesBucket"].update(Value={"Fn::Sub": "${Files}"}))) == []


@pytest.mark.parametrize(
    ("resource_type", "properties"),
    [
        ("AWS::S3::Bucket", {"BucketName": "files"}),
        ("AWS::S3::Bucket", {"BucketName": "${AWS::StackName}"}),
        ("AWS::S3::Bucket", {"BucketName": {"Fn::Sub": "${TenantId}-files"}}),
        ("AWS::S3::Bucket", {"BucketName": {"Fn::Join": ["", ["$", "{AWS::StackName}"]]}}),
        ("AWS::DynamoDB::GlobalTable", {"TableName": "orders"}),
        ("AWS::SSM::Parameter", {"Name": "/orders", "Value": "x"}),
        ("AWS::KMS::Alias", {"AliasName": "alias/orders"}),
        ("AWS::SQS::Queue", {"QueueName": {"Fn::Sub": "${AWS::StackName}-orders"}}),
    ],
)
def test_a_name_that_another_tenant_could_have_is_refused(resource_type: str, properties: Template) -> None:
    assert Rule.NAMES in rules_of(with_resource(resource_type, **properties))


def test_a_name_that_has_the_stacks_name_is_allowed() -> None:
    assert found_in(with_resource("AWS::SSM::Parameter", Name={"Fn::Sub": "/${AWS::StackName}/x"}, Value="x")) == []
    assert found_in(with_resource("AWS::Logs::MetricFilter", LogGroupName={"Ref": "Files"})) == []


@pytest.mark.parametrize(
    ("resource_type", "properties"),
    [
        ("AWS::SNS::Topic", {"TopicName": "orders"}),
        ("AWS::Logs::LogGroup", {"LogGroupName": "/shop/orders"}),
        ("AWS::Kinesis::Stream", {"Name": "orders"}),
        ("AWS::CloudWatch::CompositeAlarm", {"AlarmName": "orders", "AlarmRule": "TRUE"}),
        ("AWS::Cognito::UserPoolDomain", {"Domain": "orders", "UserPoolId": {"Ref": "Files"}}),
        ("AWS::ElastiCache::SubnetGroup", {"CacheSubnetGroupName": "orders"}),
        ("AWS::Redshift::Cluster", {"ClusterIdentifier": "orders"}),
        ("AWS::StepFunctions::StateMachine", {"StateMachineName": "orders"}),
    ],
)
def test_a_fixed_name_is_refused_before_a_second_tenant_meets_it(resource_type: str, properties: Template) -> None:
    (finding,) = (each for each in found_in(with_resource(resource_type, **properties)) if each.rule is Rule.NAMES)
    assert "a second tenant could not have it" in finding.problem
    assert "AWS::StackName" in finding.advice


@pytest.mark.parametrize(
    ("resource_type", "properties"),
    [
        ("AWS::Lambda::Alias", {"Name": "live", "FunctionName": {"Ref": "Files"}}),
        ("AWS::ApiGatewayV2::Stage", {"StageName": "$default", "ApiId": {"Ref": "Files"}}),
        ("AWS::Cognito::UserPool", {"UserPoolName": "customers"}),
    ],
)
def test_a_name_that_any_number_of_tenants_can_have_is_allowed(resource_type: str, properties: Template) -> None:
    assert Rule.NAMES not in rules_of(with_resource(resource_type, **properties))


TOPIC_OF_GLOBEX = "arn:aws:sns:eu-west-1:111122223333:berth-tenant-globex-2bd0b5c2-Alerts-1ABC"


@pytest.mark.parametrize(
    ("resource_type", "properties"),
    [
        ("AWS::SNS::Subscription", {"TopicArn": TOPIC_OF_GLOBEX, "Protocol": "sqs"}),
        ("AWS::Logs::SubscriptionFilter", {"LogGroupName": "/aws/lambda/Berth-QueueApiGetQueue-1"}),
        ("AWS::Logs::SubscriptionFilter", {"LogGroupName": "berth-tenant-metadata"}),
        ("AWS::Logs::MetricFilter", {"LogGroupName": "BerthEvents-Receive-1"}),
        ("AWS::Lambda::EventSourceMapping", {"EventSourceArn": "arn:aws:sqs:eu-west-1:111122223333:berth-first"}),
        ("AWS::ApplicationAutoScaling::ScalableTarget", {"ResourceId": "table/berth-tenant-globex-2bd0b5c2-Orders-1"}),
        ("AWS::Events::Rule", {"EventBusName": "Berth"}),
        ("AWS::Events::Rule", {"EventPattern": {"detail": {"stack": [{"prefix": "berth-tenant-"}]}}}),
        ("AWS::CloudWatch::Alarm", {"Dimensions": [{"Name": "QueueName", "Value": "berth-tenant-globex-2bd0b5c2-Q"}]}),
        ("AWS::Glue::Table", {"Location": "s3://berth-tenant-globex-2bd0b5c2-files-1/"}),
        ("AWS::Pipes::Pipe", {"Source": "arn:aws:sqs:eu-west-1:1:shop-dev-tenant-globex-2bd0b5c2-InboundQueue-1"}),
        ("AWS::KMS::Alias", {"TargetKeyId": "alias/berth"}),
    ],
)
def test_names_of_berth_and_of_other_tenants_are_refused(resource_type: str, properties: Template) -> None:
    found = [each for each in found_in(with_resource(resource_type, **properties)) if each.rule is Rule.OTHERS]
    assert [each.place.startswith("Resources.More.Properties.") for each in found] == [True]
    assert "AWS::StackName" in found[0].advice


@pytest.mark.parametrize(
    "value",
    [
        {"Fn::Sub": "arn:${AWS::Partition}:sns:${AWS::Region}:${AWS::AccountId}:berth-tenant-globex-2bd0b5c2-Alerts"},
        {"Fn::Join": ["", ["ber", "th-ten", "ant-globex"]]},
        {"Fn::Join": ["-", ["arn:aws:sns:a:b:berth", "tenant", "globex"]]},
        {"Fn::Join": ["", ["ber", {"Ref": "AWS::NoValue"}, "th-tenant-globex"]]},
        {"Fn::Sub": "ber${KmsKeyArn}th-tenant-globex"},
        {"Fn::Sub": ["${A}-tenant-globex", {"A": "berth"}]},
        {"Fn::Sub": ["${A}-tenant-globex", {"A": {"Fn::If": ["HasKey", "x", "berth"]}}]},
        {"Fn::If": ["HasKey", TOPIC_OF_GLOBEX, {"Ref": "Files"}]},
        {"Fn::If": ["HasKey", {"Fn::If": ["HasKey", "x", [TOPIC_OF_GLOBEX]]}, {"Ref": "Files"}]},
        {"Fn::Select": [1, ["x", TOPIC_OF_GLOBEX]]},
        {"Fn::Select": [1, [{"a": "b"}, {"a": TOPIC_OF_GLOBEX}]]},
        {"Fn::Select": [0, {"Fn::Split": ["|", "berth-tenant-globex|x"]}]},
        {"Fn::Join": ["", {"Fn::Split": ["|", "ber|th-tenant-globex"]}]},
        {"Fn::Join": ["", [{"Fn::FindInMap": ["Names", "One", "first"]}, "-tenant-globex"]]},
        {"Fn::Join": ["", {"Fn::FindInMap": ["Names", "One", "parts"]}]},
        {"Fn::FindInMap": [{"Ref": "TenantId"}, "One", "whole"]},
        {"Fn::FindInMap": ["Names", "Two", "no", {"DefaultValue": TOPIC_OF_GLOBEX}]},
        # The first part of the stack's own name, and the rest of another's.
        {
            "Fn::Sub": [
                "${A}globex-2bd0b5c2",
                {"A": {"Fn::Select": [0, {"Fn::Split": ["z", {"Ref": "AWS::StackName"}]}]}},
            ]
        },
        {"Fn::Join": ["globex", {"Fn::Split": ["acme", {"Fn::GetAtt": ["InboundQueue", "QueueName"]}]}]},
        {"Fn::Select": [0, {"Fn::Split": [{"Ref": "TenantId"}, {"Ref": "AWS::StackName"}]}]},
        # Too many texts to look at.
        {"Fn::Join": ["", [{"Fn::If": ["HasKey", str(number), "x"]} for number in range(10)]]},
    ],
)
def test_names_of_others_are_found_however_they_are_put_together(value: object) -> None:
    template = with_resource("AWS::SNS::Subscription", TopicArn=value)
    template["Mappings"] = {
        "Names": {"One": {"first": "berth", "parts": ["ber", "th-tenant-globex"]}},
        "Others": {"One": {"whole": TOPIC_OF_GLOBEX}},
    }
    assert Rule.OTHERS in rules_of(template)


def selected(number: int, delimiter: str, source: object) -> object:
    return {"Fn::Select": [number, {"Fn::Split": [delimiter, source]}]}


def with_names(value: object, **names: object) -> Template:
    """The example with log streams of these names, which references return, and a subscription to the topic."""
    template = with_resource("AWS::SNS::Subscription", TopicArn=value)
    for logical_id, name in names.items():
        properties = {"LogGroupName": {"Ref": "Group"}, "LogStreamName": name}
        template["Resources"][logical_id] = {"Type": "AWS::Logs::LogStream", "Properties": properties}
    template["Resources"]["Group"] = {"Type": "AWS::Logs::LogGroup"}
    return template


@pytest.mark.parametrize(
    "value",
    [
        {"Fn::Join": ["", [{"Ref": "One"}, {"Ref": "Two"}, "-2bd0b5c2-Alerts"]]},
        {"Fn::Sub": "arn:aws:sns:a:b:${One}${Two}-2bd0b5c2-Alerts"},
        {"Fn::Sub": ["${A}${Two}-2bd0b5c2", {"A": {"Ref": "One"}}]},
        {"Fn::Join": ["", [{"Fn::GetAtt": ["One", "LogStreamName"]}, "h-Alarms"]]},
        {"Fn::Join": ["", [{"Ref": "Again"}, "h-Alarms"]]},
        selected(1, "_", {"Ref": "Cut"}),
        selected(1, "/", {"Fn::Sub": "${Slashes}"}),
    ],
)
def test_a_name_that_a_resource_returns_is_a_text_of_the_template(value: object) -> None:
    template = with_names(
        value,
        One="bert",
        Two="h-tenant-globex",
        Again={"Ref": "One"},
        Cut="_berth-tenant-globex-2bd0b5c2",
        Slashes={"Fn::Sub": "${AWS::StackName}/${One}h-Alarms"},
    )
    of_topic = [each for each in found_in(template) if each.place.startswith("Resources.More.Properties.TopicArn")]
    assert Rule.OTHERS in {each.rule for each in of_topic}


def test_names_that_the_template_chooses_may_be_referred_to() -> None:
    value = {"Fn::Sub": "${One}-${Two}"}
    assert found_in(with_names(value, One={"Fn::Sub": "${AWS::StackName}-a"}, Two="alarms")) == []


def test_names_that_are_made_of_one_another_are_read_in_bounded_time() -> None:
    twice = {f"N{number}": {"Fn::Join": ["", [{"Ref": f"N{number + 1}"}] * 2]} for number in range(400)}
    assert Rule.OTHERS in rules_of(with_names({"Ref": "N0"}, **twice, N400=""))
    in_a_circle = {"One": {"Fn::Sub": "a${Two}"}, "Two": {"Fn::Sub": "b${One}"}}
    assert found_in(with_names({"Ref": "One"}, **in_a_circle)) == []


def test_a_dynamic_reference_cannot_be_cut_out_of_a_name() -> None:
    value = {"Fn::Join": ["", [selected(0, "_", {"Ref": "One"}), "{resolve:ssm:/secret}}"]]}
    assert Rule.REFERENCES in rules_of(with_names(value, One="{_"))
    assert Rule.REFERENCES in rules_of(with_names(value, One="a{_b"))


@pytest.mark.parametrize(
    ("resource_type", "properties"),
    [
        ("AWS::Lambda::EventInvokeConfig", {"FunctionName": {"Ref": "MetadataServiceToken"}, "Qualifier": "$LATEST"}),
        ("AWS::Events::Rule", {"Targets": [{"Id": "a", "Arn": {"Fn::Sub": "${MetadataServiceToken}"}}]}),
        (
            "AWS::Logs::SubscriptionFilter",
            {"LogGroupName": {"Fn::Join": ["", ["/aws/lambda/", selected(6, ":", {"Ref": "MetadataServiceToken"})]]}},
        ),
    ],
)
def test_the_function_of_berth_is_only_for_the_metadata_resource(resource_type: str, properties: Template) -> None:
    found = found_in(with_resource(resource_type, **properties))
    assert [each.rule for each in found] == [Rule.REFERENCES]
    assert "a function of Berth" in found[0].problem


@pytest.mark.parametrize(
    "value",
    [
        "arn:aws:sns:eu-west-1:111122223333:shop-alarms",
        {"Fn::Sub": "${AWS::StackName}-alarms"},
        {"Fn::Sub": "arn:${AWS::Partition}:sns:${AWS::Region}:${AWS::AccountId}:${AWS::StackName}-alarms"},
        {"Fn::GetAtt": ["InboundQueue", "QueueName"]},
        {"Fn::Select": [2, {"Fn::Split": ["/", {"Ref": "AWS::StackId"}]}]},
        {"Fn::Select": [4, {"Fn::Split": ["-", {"Fn::Select": [2, {"Fn::Split": ["/", {"Ref": "AWS::StackId"}]}]}]}]},
        {"Fn::Select": [5, {"Fn::Split": [":", {"Fn::GetAtt": ["InboundQueue", "Arn"]}]}]},
        {"Fn::Select": [0, {"Fn::Split": ["-", "eu-west-1"]}]},
        "berthold-topic",
        "shop-berth-topic",
        "queues.berth.example.com",
        {"Fn::If": ["HasKey", {"Ref": "KmsKeyArn"}, {"Ref": "AWS::NoValue"}]},
        {"Fn::FindInMap": ["Sizes", {"Ref": "AWS::Region"}, "size"]},
        '{"source": ["shop"]}',
        7,
    ],
)
def test_other_names_and_those_of_the_own_stack_are_allowed(value: object) -> None:
    template = with_resource(
        "AWS::SNS::Subscription", TopicArn=value, Tags=[{"Key": "berth:tenant-id", "Value": "Berth"}]
    )
    template["Resources"]["More"]["Properties"]["Description"] = "A topic beside berth-tenant stacks."
    template["Mappings"] = {"Sizes": {"eu-west-1": {"size": "large"}}}
    assert found_in(template) == []


def test_the_names_of_the_control_plane_that_checks_the_template_are_refused() -> None:
    reserved = ReservedNames("Shop-dev", ["crm"])
    for name in ("Shop-dev-Alarms-1", "shop-dev-first", "crmqueues-globex", "Shop-devEvents-Table-1"):
        template = with_resource("AWS::SNS::Subscription", TopicArn=f"arn:aws:sns:a:b:{name}")
        assert Rule.OTHERS in rules_of(template, reserved=reserved), name
    template = with_resource("AWS::SNS::Subscription", TopicArn="arn:aws:sns:a:b:shop-alarms")
    assert found_in(template, reserved=reserved) == []


def test_a_template_that_would_be_put_together_for_hours_is_refused_at_once() -> None:
    text: object = "a"
    for _ in range(12):
        text = {"Fn::Sub": ["${a}" * 10, {"a": text}]}
    template = with_resource("AWS::SNS::Subscription", **{f"P{number}": text for number in range(50)})
    assert Rule.OTHERS in rules_of(template)


def test_a_long_name_that_is_referred_to_very_often_is_read_in_bounded_time() -> None:
    long = with_names([{"Ref": "One"}] * 200, One={"Fn::Sub": "${AWS::StackName}" + "a" * 100_000})
    assert {each.rule for each in found_in(long)} == {Rule.OTHERS}
    short = with_names([{"Ref": "One"}] * 200, One={"Fn::Sub": "${AWS::StackName}" + "a" * 100})
    assert found_in(short) == []


def test_a_mapping_is_read_once_however_often_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    texts_in, read = template_texts._texts_in, list[object]()

    def noting(value: object) -> Iterator[str]:
        read.append(value)
        return texts_in(value)

    found = {"Fn::FindInMap": ["Sizes", {"Ref": "AWS::Region"}, "size"]}
    template = with_resource("AWS::SNS::Subscription", Texts=[found] * 100)
    template["Mappings"] = {"Sizes": {"eu-west-1": {"size": "large"}}}
    monkeypatch.setattr(template_texts, "_texts_in", noting)
    assert found_in(template) == []
    in_both_readings = 2
    assert read.count(template["Mappings"]["Sizes"]) == in_both_readings


def test_an_output_of_many_references_is_not_too_long_by_their_names() -> None:
    many = {"Fn::Join": [",", [{"Fn::GetAtt": ["InboundQueue", "Arn"]}] * 100]}
    assert found_in(example(lambda it: it["Outputs"]["FilesBucket"].update(Value=many))) == []


def test_the_constraints_of_berths_own_parameters_are_allowed() -> None:
    def constrained(template: Template) -> None:
        for name, constraints in contract.CONSTRAINTS.items():
            template["Parameters"][name].update(constraints, ConstraintDescription="as Berth checks it")

    assert found_in(example(constrained)) == []


def test_a_queue_of_an_earlier_release_must_be_kept_under_its_logical_id() -> None:
    def renamed(template: Template) -> None:
        template["Resources"]["Letters"] = template["Resources"].pop("DeadLetterQueue")
        text = json.dumps(template).replace('"DeadLetterQueue"', '"Letters"')
        template.update(json.loads(text))

    own = released_template(template_version())
    (finding,) = found_in(example(renamed), earlier=[EarlierRelease(template_version(), own)])
    assert (finding.rule, finding.place) == (Rule.QUEUES_KEPT, "Resources.DeadLetterQueue")
    assert template_version() in finding.problem
    assert found_in(EXAMPLE, earlier=[EarlierRelease(template_version(), own)]) == []


def test_the_policy_of_a_queue_must_keep_its_logical_id() -> None:
    """CloudFormation deletes the former policy after it has made the new one, and leaves the queue without any."""

    def renamed(template: Template) -> None:
        template["Resources"]["Guard"] = template["Resources"].pop("InboundQueuePolicy")

    own = EarlierRelease("0.8.0", released_template(template_version()))
    (finding,) = found_in(example(renamed), earlier=[own])
    assert (finding.rule, finding.place) == (Rule.QUEUES_KEPT, "Resources.Guard")
    assert "Call it InboundQueuePolicy." in finding.advice
    dropped = example(lambda it: it["Resources"].pop("InboundQueuePolicy"))
    assert found_in(dropped, earlier=[own]) == [], "a policy may be dropped on purpose"


def test_a_queue_that_becomes_fifo_would_be_replaced() -> None:
    later = example(lambda it: it["Resources"]["DeadLetterQueue"]["Properties"].update(FifoQueue=True))
    assert rules_of(later, earlier=[EarlierRelease("2.0.0", EXAMPLE)]) == {Rule.QUEUES_KEPT}


def test_the_version_that_a_template_declares() -> None:
    assert declared_version(EXAMPLE) == "2.1.0"
    for nonsense in (None, {}, {"Outputs": {"Version": {"Value": {"Ref": "TenantId"}}}}, {"Outputs": []}):
        assert declared_version(nonsense) is None
