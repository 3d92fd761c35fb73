"""The template that every tenant's stack is made from."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, Validations
from aws_cdk.assertions import Match, Template
from cdk_nag import AwsSolutionsChecks

from orchestrator.tenants import TENANT_ID_MAX_LENGTH, TENANT_ID_PATTERN
from stacks.project import read_version
from stacks.releases import RELEASES, ReleaseChanged, ReleaseMissing, canonical, release_file, write_release
from stacks.tenant_stack import TenantStack, tenant_template

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
def test_every_release_says_its_own_version(file: Path) -> None:
    template = json.loads(file.read_bytes())
    assert template["Outputs"]["Version"]["Value"] == file.stem
    assert template["Resources"]["TenantMetadata"]["Properties"]["Version"] == file.stem
    assert file.read_bytes() == canonical(template)


def test_it_needs_nothing_but_itself(tenant: Json) -> None:
    assert set(tenant) == {"Description", "Parameters", "Resources", "Outputs"}
    assert set(tenant["Parameters"]) == {"TenantId", "MetadataServiceToken"}
    text = json.dumps(tenant)
    for trace_of_the_cdk in ("aws:cdk", "cdk-", "AWS::CDK::Metadata", "BootstrapVersion", "S3Key", "Fn::Import"):
        assert trace_of_the_cdk not in text


def test_it_would_even_fit_inline(tenant: Json) -> None:
    assert len(canonical(tenant)) < 51_200


def test_its_logical_ids_are_written_down_because_changing_one_replaces_a_live_queue(tenant: Json) -> None:
    assert {logical_id: resource["Type"] for logical_id, resource in tenant["Resources"].items()} == {
        "InboundQueue": "AWS::SQS::Queue",
        "InboundQueuePolicy": "AWS::SQS::QueuePolicy",
        "DeadLetterQueue": "AWS::SQS::Queue",
        "DeadLetterQueuePolicy": "AWS::SQS::QueuePolicy",
        "TenantMetadata": "Custom::TenantMetadata",
    }


def test_a_tenant_id_is_checked_by_cloudformation_too(tenant: Json) -> None:
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
def test_only_a_function_can_be_told_about_the_queue(tenant: Json, token: str, allowed: bool) -> None:
    pattern = tenant["Parameters"]["MetadataServiceToken"]["AllowedPattern"]
    assert bool(re.fullmatch(pattern, token)) is allowed


def test_a_message_does_not_expire_soon_after_it_became_a_dead_letter(tenant: Json) -> None:
    kept = {queue: tenant["Resources"][queue]["Properties"]["MessageRetentionPeriod"] for queue in QUEUES}
    assert kept == {"InboundQueue": 4 * 24 * 3600, "DeadLetterQueue": 14 * 24 * 3600}


@pytest.mark.parametrize("queue", QUEUES)
def test_queues_are_encrypted_tagged_and_named_by_cloudformation(tenant: Json, queue: str) -> None:
    properties = tenant["Resources"][queue]["Properties"]
    assert properties["SqsManagedSseEnabled"] is True
    assert "QueueName" not in properties
    assert properties["Tags"] == [
        {"Key": "berth:tenant-id", "Value": {"Ref": "TenantId"}},
        {"Key": "berth:version", "Value": read_version()},
    ]


@pytest.mark.parametrize("queue", QUEUES)
def test_queues_are_reached_by_tls_only(tenant: Json, queue: str) -> None:
    Template.from_json(tenant).has_resource_properties(
        "AWS::SQS::QueuePolicy",
        {
            "Queues": [{"Ref": queue}],
            "PolicyDocument": {
                "Statement": [
                    Match.object_like(
                        {
                            "Effect": "Deny",
                            "Action": "sqs:*",
                            "Principal": {"AWS": "*"},
                            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
                            "Resource": {"Fn::GetAtt": [queue, "Arn"]},
                        }
                    )
                ]
            },
        },
    )


def test_a_message_that_fails_five_times_is_set_aside(tenant: Json) -> None:
    properties = tenant["Resources"]["InboundQueue"]["Properties"]
    assert properties["VisibilityTimeout"] == 30
    assert properties["RedrivePolicy"] == {
        "deadLetterTargetArn": {"Fn::GetAtt": ["DeadLetterQueue", "Arn"]},
        "maxReceiveCount": 5,
    }


def test_the_stack_keeps_the_metadata_true(tenant: Json) -> None:
    assert tenant["Resources"]["TenantMetadata"]["Properties"] == {
        "ServiceToken": {"Ref": "MetadataServiceToken"},
        "ServiceTimeout": "60",
        "TenantId": {"Ref": "TenantId"},
        "InboundQueueArn": {"Fn::GetAtt": ["InboundQueue", "Arn"]},
        "InboundQueueUrl": {"Ref": "InboundQueue"},
        "Version": read_version(),
    }


def test_it_says_what_it_made(tenant: Json) -> None:
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
    TenantStack(app, "Tenant", version="1.2.3")
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


def test_a_version_without_a_release_cannot_be_deployed(tmp_path: Path) -> None:
    with pytest.raises(ReleaseMissing, match="run `make release`"):
        release_file("9.9.9", tmp_path)


@pytest.mark.parametrize("content", ["", "1.2", "v1.2.3", "1.2.3-beta", "../1.2.3"])
def test_a_version_is_three_numbers(tmp_path: Path, content: str) -> None:
    file = tmp_path / "version.txt"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=r"a version looks like 1\.2\.3"):
        read_version(file)
