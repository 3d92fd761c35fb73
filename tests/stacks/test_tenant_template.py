"""The template of tenants' stacks, and the committed releases of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, Validations
from cdk_nag import AwsSolutionsChecks

from orchestrator.common.tenant_ids import TENANT_ID_MAX_LENGTH, TENANT_ID_PATTERN
from orchestrator.common.versions import order
from orchestrator.releases import template_contract as contract
from orchestrator.releases.template_contract import KMS_KEY_PARAMETER
from stacks.project import read_version
from stacks.releases.committed import (
    RELEASES,
    ReleaseChanged,
    ReleaseMissing,
    ReleaseUnexpected,
    canonical,
    release_file,
    releases_up_to,
    write_release,
)
from stacks.tenants.template import OwnTenantStack, tenant_template

Json = dict[str, Any]

QUEUES = ("InboundQueue", "DeadLetterQueue")


def test_the_template_is_the_one_released_under_this_version(tenant: Json) -> None:
    version = read_version()
    assert release_file(version).read_bytes() == canonical(tenant), (
        f"The tenant template differs from the released stacks/releases/{version}.json, and a released template "
        "never changes. Bump version.txt, then run `make release`."
    )


def test_the_same_version_always_gives_the_same_template(tenant: Json) -> None:
    assert canonical(tenant_template(read_version())) == canonical(tenant)


@pytest.mark.parametrize("file", sorted(RELEASES.glob("*.json")), ids=lambda file: file.name)
def test_every_release_contains_its_own_version(file: Path) -> None:
    template = json.loads(file.read_bytes())
    assert template["Outputs"]["Version"]["Value"] == file.stem
    assert template["Resources"]["TenantMetadata"]["Properties"]["Version"] == file.stem
    assert file.read_bytes() == canonical(template)


@pytest.mark.parametrize("file", sorted(RELEASES.glob("*.json")), ids=lambda file: file.name)
def test_every_release_has_what_the_code_expects_of_a_template(file: Path) -> None:
    template = json.loads(file.read_bytes())
    assert template["Parameters"].keys() >= contract.ALWAYS_GIVEN
    types = {name: resource["Type"] for name, resource in template["Resources"].items()}
    assert (
        types.items()
        >= {
            contract.INBOUND_QUEUE: contract.QUEUE_TYPE,
            contract.DEAD_LETTER_QUEUE: contract.QUEUE_TYPE,
            contract.METADATA_RESOURCE: contract.METADATA_TYPE,
        }.items()
    )
    assert template["Outputs"].keys() >= {contract.QUEUE_ARN, contract.QUEUE_URL, contract.VERSION}
    recorded = template["Resources"][contract.METADATA_RESOURCE]["Properties"]
    assert recorded.keys() >= {contract.TENANT_PARAMETER, contract.QUEUE_ARN, contract.QUEUE_URL, contract.VERSION}


def test_all_releases_have_the_same_queues_and_parameters() -> None:
    releases = [json.loads(file.read_bytes()) for file in releases_up_to(read_version())]
    assert len(releases) >= 2
    queues = [
        {logical_id for logical_id, resource in release["Resources"].items() if resource["Type"] == "AWS::SQS::Queue"}
        for release in releases
    ]
    assert all(found == set(QUEUES) for found in queues)
    parameters = [set(release["Parameters"]) - {KMS_KEY_PARAMETER} for release in releases]
    assert all(found == {"TenantId", "MetadataServiceToken"} for found in parameters)


def test_the_template_depends_on_nothing_else(tenant: Json) -> None:
    assert set(tenant) == {"Description", "Parameters", "Conditions", "Resources", "Outputs"}
    assert set(tenant["Parameters"]) == {"TenantId", "MetadataServiceToken", KMS_KEY_PARAMETER}
    text = json.dumps(tenant)
    for cdk_text in ("aws:cdk", "cdk-", "AWS::CDK::Metadata", "BootstrapVersion", "S3Key", "Fn::Import"):
        assert cdk_text not in text


def test_the_template_is_small_enough_for_inline_use(tenant: Json) -> None:
    assert len(canonical(tenant)) < 51_200


def test_logical_ids_do_not_change_because_a_change_would_replace_a_queue_in_use(tenant: Json) -> None:
    assert {logical_id: resource["Type"] for logical_id, resource in tenant["Resources"].items()} == {
        "InboundQueue": "AWS::SQS::Queue",
        "InboundQueuePolicy": "AWS::SQS::QueuePolicy",
        "DeadLetterQueue": "AWS::SQS::Queue",
        "DeadLetterQueuePolicy": "AWS::SQS::QueuePolicy",
        "TenantMetadata": "Custom::TenantMetadata",
    }


def test_cloudformation_validates_the_tenant_id_too(tenant: Json) -> None:
    parameter = tenant["Parameters"]["TenantId"]
    assert parameter["AllowedPattern"] == TENANT_ID_PATTERN
    assert parameter["MaxLength"] == TENANT_ID_MAX_LENGTH
    assert parameter["ConstraintDescription"]


@pytest.mark.parametrize(
    ("token", "allowed"),
    [
        ("arn:aws:lambda:eu-west-1:123456789012:function:berth-tenant-metadata", True),
        ("arn:aws-cn:lambda:cn-north-1:123456789012:function:berth-tenant-metadata", True),
        ("arn:aws:sns:eu-west-1:123456789012:a-topic", False),
        ("arn:aws:lambda:eu-west-1:123456789012:function:berth-tenant-metadata:1", False),
        ("", False),
    ],
)
def test_the_service_token_must_be_the_arn_of_a_function(tenant: Json, token: str, allowed: bool) -> None:
    pattern = tenant["Parameters"]["MetadataServiceToken"]["AllowedPattern"]
    assert bool(re.fullmatch(pattern, token)) is allowed


@pytest.mark.parametrize(
    ("key", "allowed"),
    [
        ("", True),
        ("arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab", True),
        ("arn:aws:kms:eu-west-1:123456789012:key/mrk-1234abcd12ab34cd56ef1234567890ab", True),
        ("arn:aws:kms:eu-west-1:123456789012:alias/mine", False),
        ("1234abcd-12ab-34cd-56ef-1234567890ab", False),
    ],
)
def test_the_key_must_be_empty_or_the_arn_of_a_key(tenant: Json, key: str, allowed: bool) -> None:
    parameter = tenant["Parameters"][KMS_KEY_PARAMETER]
    assert parameter["Default"] == "", "a release must be deployable without a key"
    assert bool(re.fullmatch(parameter["AllowedPattern"], key)) is allowed


def test_dead_letters_are_kept_longer_than_messages(tenant: Json) -> None:
    retention = {queue: tenant["Resources"][queue]["Properties"]["MessageRetentionPeriod"] for queue in QUEUES}
    assert retention == {"InboundQueue": 4 * 24 * 3600, "DeadLetterQueue": 14 * 24 * 3600}


@pytest.mark.parametrize("queue", QUEUES)
def test_queues_are_encrypted_tagged_and_named_by_cloudformation(tenant: Json, queue: str) -> None:
    properties = tenant["Resources"][queue]["Properties"]
    has_key = tenant["Conditions"]["HasKey"]
    assert has_key == {"Fn::Not": [{"Fn::Equals": [{"Ref": KMS_KEY_PARAMETER}, ""]}]}
    assert properties["KmsMasterKeyId"] == {"Fn::If": ["HasKey", {"Ref": KMS_KEY_PARAMETER}, {"Ref": "AWS::NoValue"}]}
    assert properties["SqsManagedSseEnabled"] == {"Fn::If": ["HasKey", False, True]}
    assert "QueueName" not in properties
    assert properties["Tags"] == [
        {"Key": "berth:tenant-id", "Value": {"Ref": "TenantId"}},
        {"Key": "berth:version", "Value": read_version()},
    ]


@pytest.mark.parametrize("queue", QUEUES)
def test_queues_accept_only_tls(tenant: Json, queue: str) -> None:
    assert _statements(tenant, queue)["DenyWithoutTls"] == {
        "Effect": "Deny",
        "Action": "sqs:*",
        "Principal": {"AWS": "*"},
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
        "Resource": {"Fn::GetAtt": [queue, "Arn"]},
    }


@pytest.mark.parametrize("queue", QUEUES)
def test_queues_are_closed_to_other_accounts_but_not_to_aws_services_that_deliver(tenant: Json, queue: str) -> None:
    assert _statements(tenant, queue)["DenyOtherAccounts"] == {
        "Effect": "Deny",
        "Action": "sqs:*",
        "Principal": {"AWS": "*"},
        # Both conditions must be true. An AWS service that calls as itself has no account, so the first alone would
        # deny it.
        "Condition": {
            "StringNotEquals": {"aws:PrincipalAccount": {"Ref": "AWS::AccountId"}},
            "BoolIfExists": {"aws:PrincipalIsAWSService": "false"},
        },
        "Resource": {"Fn::GetAtt": [queue, "Arn"]},
    }


@pytest.mark.parametrize("queue", QUEUES)
def test_the_policy_of_a_queue_only_denies(tenant: Json, queue: str) -> None:
    assert {sid: statement["Effect"] for sid, statement in _statements(tenant, queue).items()} == {
        "DenyWithoutTls": "Deny",
        "DenyOtherAccounts": "Deny",
    }


def test_a_message_moves_to_the_dead_letter_queue_after_five_receives(tenant: Json) -> None:
    properties = tenant["Resources"]["InboundQueue"]["Properties"]
    assert properties["VisibilityTimeout"] == 30
    assert properties["RedrivePolicy"] == {
        "deadLetterTargetArn": {"Fn::GetAtt": ["DeadLetterQueue", "Arn"]},
        "maxReceiveCount": 5,
    }


def test_the_custom_resource_has_what_the_metadata_needs(tenant: Json) -> None:
    assert tenant["Resources"]["TenantMetadata"]["Properties"] == {
        "ServiceToken": {"Ref": "MetadataServiceToken"},
        "ServiceTimeout": "300",
        "TenantId": {"Ref": "TenantId"},
        "InboundQueueArn": {"Fn::GetAtt": ["InboundQueue", "Arn"]},
        "InboundQueueUrl": {"Ref": "InboundQueue"},
        "Version": read_version(),
    }


def test_the_outputs_are_the_queues_and_the_version(tenant: Json) -> None:
    assert {name: output["Value"] for name, output in tenant["Outputs"].items()} == {
        "InboundQueueArn": {"Fn::GetAtt": ["InboundQueue", "Arn"]},
        "InboundQueueUrl": {"Ref": "InboundQueue"},
        "DeadLetterQueueArn": {"Fn::GetAtt": ["DeadLetterQueue", "Arn"]},
        "DeadLetterQueueUrl": {"Ref": "DeadLetterQueue"},
        "Version": read_version(),
    }
    assert "Berth" in tenant["Description"]
    assert read_version() in tenant["Description"]


def test_cdk_nag_finds_nothing(tmp_path: Path) -> None:
    app = App(outdir=str(tmp_path), analytics_reporting=False)
    OwnTenantStack(app, "Tenant", version="1.2.3")
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    app.synth()


def test_a_release_is_written_once(tmp_path: Path) -> None:
    file = write_release("1.2.3", {"b": 1, "a": 2}, tmp_path)
    assert file.read_text(encoding="utf-8") == '{\n  "a": 2,\n  "b": 1\n}\n'
    assert write_release("1.2.3", {"a": 2, "b": 1}, tmp_path) == file


def test_a_release_is_never_changed(tmp_path: Path) -> None:
    file = write_release("1.2.3", {"a": 1}, tmp_path)
    with pytest.raises(ReleaseChanged, match=r"Bump version\.txt, then run `make release`"):
        write_release("1.2.3", {"a": 2}, tmp_path)
    assert json.loads(file.read_bytes()) == {"a": 1}


def test_a_release_that_was_never_published_can_be_written_again(tmp_path: Path) -> None:
    file = write_release("1.2.3", {"a": 1}, tmp_path)
    with pytest.raises(ReleaseChanged, match=r"no control plane has published 1\.2\.3 yet: .*RELEASE_ARGS=--redo"):
        write_release("1.2.3", {"a": 2}, tmp_path)
    assert write_release("1.2.3", {"a": 2}, tmp_path, redo=True) == file
    assert json.loads(file.read_bytes()) == {"a": 2}


def test_a_version_without_a_release_cannot_be_deployed(tmp_path: Path) -> None:
    with pytest.raises(ReleaseMissing, match="Run `make release`"):
        release_file("9.9.9", tmp_path)
    write_release("1.2.3", {}, tmp_path)
    with pytest.raises(ReleaseMissing, match=r"Version 9\.9\.9 has no release\. Run `make release`"):
        releases_up_to("9.9.9", tmp_path)


def test_releases_up_to_a_version_are_listed_oldest_first(tmp_path: Path) -> None:
    for version in ("0.2.0", "0.9.1", "0.10.0", "1.0.0"):
        write_release(version, {}, tmp_path)
    (tmp_path / "__init__.py").touch()
    assert [file.stem for file in releases_up_to("1.0.0", tmp_path)] == ["0.2.0", "0.9.1", "0.10.0", "1.0.0"]


def test_going_back_to_an_older_version_deploys_without_the_later_releases(tmp_path: Path) -> None:
    for version in ("0.9.0", "0.10.0", "0.11.0"):
        write_release(version, {}, tmp_path)
    assert [file.stem for file in releases_up_to("0.10.0", tmp_path)] == ["0.9.0", "0.10.0"]


def test_a_release_is_not_written_before_one_that_is_committed(tmp_path: Path) -> None:
    for version in ("0.9.0", "0.10.0", "0.11.0"):
        write_release(version, {}, tmp_path)
    with pytest.raises(ReleaseUnexpected, match=r"after version 0\.9\.5 .*: 0\.10\.0\.json, 0\.11\.0\.json\. Bump"):
        write_release("0.9.5", {}, tmp_path)


def test_the_version_of_this_checkout_is_the_newest_release() -> None:
    assert releases_up_to(read_version())[-1] == sorted(RELEASES.glob("*.json"), key=lambda file: order(file.stem))[-1]


@pytest.mark.parametrize("name", ["draft", "1.2", "v1.2.3", "1.2.3-beta", "12345.0.0"])
def test_a_release_file_whose_name_is_not_a_version_stops_the_deployment(tmp_path: Path, name: str) -> None:
    write_release("1.2.3", {}, tmp_path)
    (tmp_path / f"{name}.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ReleaseUnexpected, match=rf"{name}\.json is among the releases"):
        releases_up_to("1.2.3", tmp_path)


@pytest.mark.parametrize("content", ["", "1.2", "v1.2.3", "1.2.3-beta", "../1.2.3"])
def test_a_version_is_three_numbers(tmp_path: Path, content: str) -> None:
    file = tmp_path / "version.txt"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=r"which is not a version like 1\.2\.3"):
        read_version(file)


def _statements(template: Json, queue: str) -> dict[str, Json]:
    """The statements of a queue's policy by their Sid. Every statement must have a Sid."""
    policy = template["Resources"][f"{queue}Policy"]["Properties"]
    assert policy["Queues"] == [{"Ref": queue}]
    statements = [dict(statement) for statement in policy["PolicyDocument"]["Statement"]]
    by_sid = {statement.pop("Sid"): statement for statement in statements}
    assert len(by_sid) == len(statements)
    return by_sid
