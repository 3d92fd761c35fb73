"""Upgrades: successful, failed, and refused because they would lose messages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestrator.adapters.dynamodb import keys
from orchestrator.common.tenant_ids import TenantId
from orchestrator.local.releases import Template
from tests.e2e.deployed import Deployed, eventually
from tests.e2e.operators import EARLIER, a_release, a_tenant, audits_of, create, ended, retry, tenant_of, upgrade
from tests.fakes import NAMES

BROKEN = 999_999
"""A visibility timeout that SQS refuses."""


def visibility(template: Template, seconds: int) -> None:
    template["Resources"]["InboundQueue"]["Properties"]["VisibilityTimeout"] = seconds


def named_queue(template: Template) -> None:
    """Change the queue's name, which replaces the queue."""
    template["Resources"]["InboundQueue"]["Properties"]["QueueName"] = {"Fn::Sub": "${AWS::StackName}-renamed"}


def moved_queue(template: Template) -> None:
    """Change the queue's logical id: CloudFormation removes the queue and adds another."""
    moved = json.loads(json.dumps(template).replace('"InboundQueue"', '"IncomingQueue"'))
    template.clear()
    template.update(moved)


def send(berth: Deployed, url: str, body: str) -> None:
    berth.client("sqs").send_message(QueueUrl=url, MessageBody=body)


def receive(berth: Deployed, url: str) -> list[str]:
    received = berth.client("sqs").receive_message(QueueUrl=url, WaitTimeSeconds=1, MaxNumberOfMessages=10)
    return [message["Body"] for message in received.get("Messages", [])]


def updates_in(berth: Deployed, tenant: TenantId) -> list[str]:
    """The events of the stack itself since its creation, oldest first."""
    events = berth.client("cloudformation").describe_stack_events(StackName=NAMES.stack_of(tenant))["StackEvents"]
    statuses = [event["ResourceStatus"] for event in events if event["PhysicalResourceId"] == event["StackId"]]
    return [status for status in reversed(statuses) if not status.startswith("CREATE_")]


def test_an_upgrade_keeps_the_queue_and_its_messages_and_the_tenant_stays_in_service(berth: Deployed) -> None:
    tenant = a_tenant(berth, "upgraded", EARLIER)
    before = berth.ask(tenant).body
    assert before["version"] == EARLIER
    send(berth, before["queueUrl"], "sent before")

    accepted = upgrade(berth, tenant, berth.release)
    assert berth.ask(tenant).status == 200
    assert ended(berth, accepted) == "SUCCEEDED"

    after = berth.ask(tenant).body
    assert after == {**before, "version": berth.release}
    assert receive(berth, after["queueUrl"]) == ["sent before"]
    assert audits_of(berth, tenant)[f"AUDIT#UPDATE#{berth.release}"] == ("Success", 1)
    assert tenant_of(berth, tenant)["state"] == "READY"


def test_an_upgrade_to_the_stacks_present_release_succeeds_and_records_the_version(berth: Deployed) -> None:
    tenant = a_tenant(berth, "no-updates", EARLIER)
    berth.update_stack_by_hand(tenant, berth.release)

    assert ended(berth, upgrade(berth, tenant, berth.release)) == "SUCCEEDED"

    assert berth.ask(tenant).body["version"] == berth.release
    # Only the change by hand has events: the run itself changed nothing.
    assert updates_in(berth, tenant).count("UPDATE_IN_PROGRESS") == 1


def test_a_failed_upgrade_is_rolled_back_and_reported_and_the_tenant_stays_in_service_at_its_old_version(
    berth: Deployed,
) -> None:
    tenant = a_tenant(berth, "rolled-back")
    before = berth.ask(tenant).body
    broken = a_release(berth, "1.0.1", lambda template: visibility(template, BROKEN))

    assert ended(berth, upgrade(berth, tenant, broken)) == "FAILED"

    assert berth.ask(tenant).body == before
    assert berth.stack(tenant)["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    shown = tenant_of(berth, tenant)
    assert shown["state"] == "UPDATE_FAILED"
    assert shown["rootCause"]["resource"] == "InboundQueue"
    assert "VisibilityTimeout" in shown["rootCause"]["reason"]

    assert ended(berth, retry(berth, tenant)) == "FAILED"
    assert audits_of(berth, tenant)[f"AUDIT#UPDATE#{broken}"] == ("Failure", 2)

    assert ended(berth, upgrade(berth, tenant, before["version"])) == "SUCCEEDED"
    assert tenant_of(berth, tenant)["state"] == "READY"


@pytest.mark.parametrize(("change", "version"), [(named_queue, "1.1.1"), (moved_queue, "1.1.2")])
def test_an_upgrade_that_would_replace_or_remove_the_inbound_queue_changes_nothing(
    berth: Deployed, change: Any, version: str
) -> None:
    tenant = a_tenant(berth, f"keeps-its-queue-{version.replace('.', '-')}")
    before = berth.ask(tenant).body
    send(berth, before["queueUrl"], "still there")
    a_release(berth, version, change)

    assert ended(berth, upgrade(berth, tenant, version)) == "FAILED"

    assert updates_in(berth, tenant) == []
    assert berth.ask(tenant).body == before
    assert receive(berth, before["queueUrl"]) == ["still there"]
    assert "would replace or remove the inbound queue" in tenant_of(berth, tenant)["rootCause"]["reason"]


def test_a_queue_is_replaced_if_that_is_explicitly_allowed(berth: Deployed) -> None:
    tenant = a_tenant(berth, "replaced")
    before = berth.ask(tenant).body
    version = a_release(berth, "1.1.3", named_queue)

    assert ended(berth, upgrade(berth, tenant, version, allowReplacement=True)) == "SUCCEEDED"

    after = berth.ask(tenant).body
    assert after["version"] == version
    assert after["queueUrl"] != before["queueUrl"]
    send(berth, after["queueUrl"], "hello")
    assert receive(berth, after["queueUrl"]) == ["hello"]


def test_a_downgrade_has_to_be_allowed_explicitly(berth: Deployed) -> None:
    tenant = a_tenant(berth, "goes-back")

    refused = upgrade(berth, tenant, EARLIER)
    assert (refused.status, refused.body["type"]) == (409, "urn:berth:problem:downgrade")

    assert ended(berth, upgrade(berth, tenant, EARLIER, allowDowngrade=True)) == "SUCCEEDED"
    assert berth.ask(tenant).body["version"] == EARLIER


def test_a_release_that_was_never_published_is_refused(berth: Deployed) -> None:
    tenant = a_tenant(berth, "wants-more")
    refused = upgrade(berth, tenant, "99.0.0")
    assert (refused.status, refused.body["type"]) == (422, "urn:berth:problem:unknown-release")
    assert create(berth, TenantId("wants-more-2"), version="99.0.0").status == 422


def test_a_rollback_that_fails_is_continued_and_the_tenant_is_served_at_its_old_version(berth: Deployed) -> None:
    """The stack's custom resource fails in the update and in the rollback while its row belongs to another stack."""
    tenant = a_tenant(berth, "rollback-failed", EARLIER)
    before = berth.ask(tenant).body
    own = berth.rows_of(tenant)["METADATA"]["StackId"]["S"]
    _claim(berth, tenant, "arn:aws:cloudformation:us-east-1:000000000000:stack/berth-tenant-elsewhere-0a1b2c3d/1")

    accepted = upgrade(berth, tenant, berth.release)
    eventually(
        lambda: True if "UPDATE_ROLLBACK_FAILED" in updates_in(berth, tenant) else None, what="the rollback fails"
    )
    _claim(berth, tenant, own)

    assert ended(berth, accepted) == "FAILED"
    assert berth.stack(tenant)["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert berth.ask(tenant).body == before
    assert tenant_of(berth, tenant)["rootCause"]["resource"] == "TenantMetadata"


def _claim(berth: Deployed, tenant: TenantId, stack_id: str) -> None:
    berth.client("dynamodb").update_item(
        TableName=berth.outputs["TableName"],
        Key=keys.metadata_key(tenant),
        UpdateExpression="SET StackId = :stack",
        ExpressionAttributeValues={":stack": {"S": stack_id}},
    )


def test_a_failed_update_by_hand_is_rolled_back_before_the_next_update(berth: Deployed) -> None:
    tenant = a_tenant(berth, "left-failed", EARLIER)
    broken = a_release(berth, "1.0.2", lambda template: visibility(template, BROKEN))
    berth.update_stack_by_hand(tenant, broken, DisableRollback=True)
    assert berth.stack(tenant)["StackStatus"] == "UPDATE_FAILED"

    assert ended(berth, upgrade(berth, tenant, berth.release)) == "SUCCEEDED"

    assert berth.ask(tenant).body["version"] == berth.release
    assert updates_in(berth, tenant)[-1] == "UPDATE_COMPLETE"
    assert "UPDATE_ROLLBACK_COMPLETE" in updates_in(berth, tenant)
