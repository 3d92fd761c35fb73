"""A tenant with a template from before Berth, which has an outbound queue, too."""

from __future__ import annotations

from orchestrator.common.tenant_ids import TenantId
from tests.e2e.deployed import Deployed
from tests.e2e.legacy import VERSION, WHEN, a_legacy_tenant
from tests.e2e.operators import a_release, delete, ended, tenant_of, upgrade
from tests.fakes import NAMES


def queue_names(berth: Deployed, tenant: TenantId) -> list[str]:
    found = berth.client("sqs").list_queues(QueueNamePrefix=NAMES.stack_of(tenant)).get("QueueUrls", [])
    return sorted(url.rpartition("/")[2].removeprefix(f"{NAMES.stack_of(tenant)}-").partition("-")[0] for url in found)


def test_an_older_tenant_is_served_and_its_upgrade_removes_the_outbound_queue(berth: Deployed) -> None:
    tenant = a_legacy_tenant(berth, "legacy")
    before = berth.ask(tenant)
    assert (before.status, before.body["version"]) == (200, VERSION)
    assert [audit["operation"] for audit in tenant_of(berth, tenant)["audits"]] == ["CREATE"]
    assert queue_names(berth, tenant) == ["InboundQueue", "OutboundQueue"]
    berth.client("sqs").send_message(QueueUrl=before.body["queueUrl"], MessageBody="from before")

    assert ended(berth, upgrade(berth, tenant, berth.release)) == "SUCCEEDED"

    after = berth.ask(tenant).body
    assert after == {**before.body, "version": berth.release, "resources": after["resources"]}
    assert set(after["resources"]) == {"DeadLetterQueueArn", "DeadLetterQueueUrl"}
    received = berth.client("sqs").receive_message(QueueUrl=after["queueUrl"], WaitTimeSeconds=1)["Messages"]
    assert [message["Body"] for message in received] == ["from before"]
    assert queue_names(berth, tenant) == ["DeadLetterQueue", "InboundQueue"]
    row = berth.rows_of(tenant)["METADATA"]
    assert not {"OutboundQueueArn", "OutboundQueueUrl"} & set(row)
    assert row["CreatedAt"]["S"] == WHEN
    assert row["StackId"]["S"] == berth.stack(tenant)["StackId"]


def test_an_outbound_queue_with_messages_is_not_removed(berth: Deployed) -> None:
    tenant = a_legacy_tenant(berth, "legacy-outbound")
    row = berth.rows_of(tenant)["METADATA"]
    berth.client("sqs").send_message(QueueUrl=row["OutboundQueueUrl"]["S"], MessageBody="not fetched yet")

    assert ended(berth, upgrade(berth, tenant, berth.release)) == "FAILED"
    assert "OutboundQueue, which holds messages" in tenant_of(berth, tenant)["rootCause"]["reason"]
    assert queue_names(berth, tenant) == ["InboundQueue", "OutboundQueue"]

    refused = delete(berth, tenant)
    assert refused.status == 409
    assert refused.body["messages"] == {"outbound queue": {"visible": 1, "inFlight": 0, "delayed": 0}}


def test_an_older_tenant_stays_in_service_when_its_upgrade_fails(berth: Deployed) -> None:
    """The rollback deletes the custom resource that the update had added. That must not delete the row."""
    tenant = a_legacy_tenant(berth, "legacy-rolled-back")
    before = berth.ask(tenant).body

    def fails_last(template: dict[str, object]) -> None:
        resources = template["Resources"]
        assert isinstance(resources, dict)
        resources["TooLate"] = {
            "Type": "AWS::SQS::Queue",
            "DependsOn": "TenantMetadata",
            "Properties": {"VisibilityTimeout": 999_999},
        }

    version = a_release(berth, "1.3.1", fails_last)
    assert ended(berth, upgrade(berth, tenant, version)) == "FAILED"

    assert berth.ask(tenant).body == before
    assert queue_names(berth, tenant) == ["InboundQueue", "OutboundQueue"]
