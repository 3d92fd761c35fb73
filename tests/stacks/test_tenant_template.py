"""The template of tenants' stacks."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, Validations
from cdk_nag import AwsSolutionsChecks

from orchestrator.common.own_versions import berth_version, template_version
from orchestrator.common.tenant_ids import TENANT_ID_MAX_LENGTH, TENANT_ID_PATTERN
from orchestrator.releases.published import canonical
from orchestrator.releases.template_contract import KMS_KEY_PARAMETER
from stacks.tenants.template import OwnTenantStack, tenant_template

Json = dict[str, Any]

QUEUES = ("InboundQueue", "DeadLetterQueue")


def test_the_same_version_always_gives_the_same_template(tenant: Json) -> None:
    assert canonical(tenant_template(template_version())) == canonical(tenant)


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
        {"Key": "berth:release", "Value": template_version()},
        {"Key": "berth:tenant-id", "Value": {"Ref": "TenantId"}},
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
        "Version": template_version(),
    }


def test_the_outputs_are_the_queues_and_the_version(tenant: Json) -> None:
    assert {name: output["Value"] for name, output in tenant["Outputs"].items()} == {
        "InboundQueueArn": {"Fn::GetAtt": ["InboundQueue", "Arn"]},
        "InboundQueueUrl": {"Ref": "InboundQueue"},
        "DeadLetterQueueArn": {"Fn::GetAtt": ["DeadLetterQueue", "Arn"]},
        "DeadLetterQueueUrl": {"Ref": "DeadLetterQueue"},
        "Version": template_version(),
    }


def test_the_template_names_its_own_version_and_not_that_of_berth(tenant: Json) -> None:
    assert berth_version() not in json.dumps(tenant)
    assert "Berth" not in tenant["Description"]


def test_cdk_nag_finds_nothing(tmp_path: Path) -> None:
    app = App(outdir=str(tmp_path), analytics_reporting=False)
    OwnTenantStack(app, "Tenant", version="1.2.3")
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    app.synth()


def _statements(template: Json, queue: str) -> dict[str, Json]:
    """The statements of a queue's policy by their Sid. Every statement must have a Sid."""
    policy = template["Resources"][f"{queue}Policy"]["Properties"]
    assert policy["Queues"] == [{"Ref": queue}]
    statements = [dict(statement) for statement in policy["PolicyDocument"]["Statement"]]
    by_sid = {statement.pop("Sid"): statement for statement in statements}
    assert len(by_sid) == len(statements)
    return by_sid
