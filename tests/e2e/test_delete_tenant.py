"""Deletes: refused while there are messages, and final until the tenant is created again."""

from __future__ import annotations

import pytest

from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.records import Attempt, Operation, Request
from tests.e2e.deployed import Deployed, eventually
from tests.e2e.operators import a_release, a_tenant, audits_of, create, delete, ended, retry, tenant_of
from tests.fakes import NAMES


def send(berth: Deployed, url: str, **more: object) -> None:
    berth.client("sqs").send_message(QueueUrl=url, MessageBody="hello", **more)


def dead_letter_queue(berth: Deployed, tenant: TenantId) -> str:
    outputs = {output["OutputKey"]: output["OutputValue"] for output in berth.stack(tenant)["Outputs"]}
    return str(outputs["DeadLetterQueueUrl"])


def stack_is_gone(berth: Deployed, tenant: TenantId) -> bool:
    cloudformation = berth.client("cloudformation")
    try:
        cloudformation.describe_stacks(StackName=NAMES.stack_of(tenant))
    except cloudformation.exceptions.ClientError as error:
        return "does not exist" in str(error)
    return False


def test_a_deleted_tenant_stays_deleted_until_an_explicit_create_which_works_at_once(berth: Deployed) -> None:
    tenant = a_tenant(berth, "comes-back")

    assert ended(berth, delete(berth, tenant)) == "SUCCEEDED"
    assert stack_is_gone(berth, tenant)
    assert "METADATA" not in berth.rows_of(tenant)
    assert tenant_of(berth, tenant)["state"] == "DELETED"
    for _ in range(2):
        gone = berth.ask(tenant)
        assert (gone.status, gone.body["type"]) == (410, "urn:berth:problem:tenant-deleted")

    assert ended(berth, create(berth, tenant)) == "SUCCEEDED"
    assert berth.ask(tenant).status == 200
    version = berth.release
    # The number in between is left for a create that getQueue may have started before the delete.
    assert audits_of(berth, tenant)[f"AUDIT#CREATE#{version}"] == ("Success", 3)
    assert tenant_of(berth, tenant)["state"] == "READY"


@pytest.mark.parametrize("asked_by", ["an operator", "a platform"])
def test_a_delete_right_after_a_create_is_not_lost(berth: Deployed, asked_by: str) -> None:
    tenant = TenantId(f"short-lived-{asked_by.rpartition(' ')[2]}")
    created = create(berth, tenant) if asked_by == "an operator" else berth.ask(tenant)
    assert created.status == 202

    shown = delete(berth, tenant)
    assert shown.status in (202, 409), shown.body
    # Once the create has begun, the tenant is busy, and requests are refused.
    accepted = (
        eventually(
            lambda: answer if (answer := delete(berth, tenant)).status == 202 else None, what="the delete is accepted"
        )
        if shown.status == 409
        else shown
    )

    berth.ended(str(created.body["execution"]))
    assert ended(berth, accepted) == "SUCCEEDED"
    assert berth.ask(tenant).status == 410
    assert stack_is_gone(berth, tenant)


def test_a_draining_delete_is_visible_from_its_first_moment(berth: Deployed) -> None:
    tenant = a_tenant(berth, "drains")
    url = berth.ask(tenant).body["queueUrl"]
    send(berth, url)

    accepted = delete(berth, tenant, drainSeconds="600")
    eventually(lambda: True if berth.ask(tenant).status != 200 else None, what="the delete begins")
    shown = berth.ask(tenant)
    assert (shown.status, shown.body["type"]) == (409, "urn:berth:problem:tenant-being-deleted")

    (message,) = berth.client("sqs").receive_message(QueueUrl=url, WaitTimeSeconds=1)["Messages"]
    berth.client("sqs").delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    assert ended(berth, accepted) == "SUCCEEDED"
    assert berth.ask(tenant).status == 410


def test_a_delete_is_refused_with_the_counts_of_messages_of_any_kind(berth: Deployed) -> None:
    tenant = a_tenant(berth, "has-messages")
    url = berth.ask(tenant).body["queueUrl"]
    send(berth, url)
    berth.client("sqs").receive_message(QueueUrl=url, VisibilityTimeout=3600)
    send(berth, url)
    send(berth, url, DelaySeconds=900)
    send(berth, dead_letter_queue(berth, tenant))

    refused = delete(berth, tenant)

    assert (refused.status, refused.body["type"]) == (409, "urn:berth:problem:queue-not-empty")
    assert refused.body["messages"] == {
        "inbound queue": {"visible": 1, "inFlight": 1, "delayed": 1},
        "dead-letter queue": {"visible": 1, "inFlight": 0, "delayed": 0},
    }
    assert berth.ask(tenant).status == 200
    assert "AUDIT#DELETE" not in berth.rows_of(tenant)

    assert ended(berth, delete(berth, tenant, force="true")) == "SUCCEEDED"
    assert berth.ask(tenant).status == 410


def test_messages_that_arrive_after_the_request_stop_the_delete_and_the_tenant_is_served_again(
    berth: Deployed,
) -> None:
    tenant = a_tenant(berth, "late-message")
    before = berth.ask(tenant).body
    send(berth, before["queueUrl"])

    execution = berth.start(Attempt(tenant, Operation.DELETE, berth.release, 1), Request(by="a test"))
    assert berth.ended(execution)["status"] == "FAILED"

    assert berth.ask(tenant).body == before
    assert audits_of(berth, tenant)["AUDIT#DELETE"] == ("Failure", 1)
    assert "1 visible" in str(berth.table.history(tenant)[-1].root_cause)
    assert tenant_of(berth, tenant)["state"] == "READY"


@pytest.mark.parametrize("name", ["never-heard-of"])
def test_deleting_an_unknown_tenant_changes_nothing_and_says_so(berth: Deployed, name: str) -> None:
    tenant = TenantId(name)
    shown = delete(berth, tenant)
    assert (shown.status, shown.body["status"]) == (200, "UNCHANGED")
    assert "nothing was deleted" in str(shown.body["detail"])
    assert berth.rows_of(tenant) == {}


def test_a_resource_that_blocks_the_deletion_is_retried_and_named_and_a_retry_deletes_the_tenant(
    berth: Deployed,
) -> None:
    blocker = berth.a_stubborn_resource("blocker", "Delete *")
    version = a_release(berth, "1.2.1", lambda template: template["Resources"].update({"Blocker": blocker}))
    tenant = a_tenant(berth, "blocked", version)

    assert ended(berth, delete(berth, tenant)) == "FAILED"

    assert berth.stack(tenant)["StackStatus"] == "DELETE_FAILED"
    events = berth.client("cloudformation").describe_stack_events(StackName=NAMES.stack_of(tenant))["StackEvents"]
    blocked = [event for event in events if event["LogicalResourceId"] == "Blocker"]
    assert [event["ResourceStatus"] for event in blocked].count("DELETE_FAILED") == 3
    shown = berth.ask(tenant)
    assert shown.status == 424
    assert shown.body["rootCause"] == {"resource": "Blocker", "type": "Custom::Stubborn", "reason": "I will not."}

    berth.talk_to("blocker")
    assert ended(berth, retry(berth, tenant)) == "SUCCEEDED"
    assert berth.ask(tenant).status == 410
