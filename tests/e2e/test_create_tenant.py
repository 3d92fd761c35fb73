"""Creates under unusual conditions: failed, foreign, existing and deleted stacks, concurrent attempts."""

from __future__ import annotations

import json
from typing import Any

from orchestrator.adapters.dynamodb import keys
from orchestrator.common.tenant_ids import TenantId
from orchestrator.local.deployment import deploy, response_url_prefix
from orchestrator.tenants.records import Status
from tests.e2e.deployed import Deployed


def claim_for_another_stack(berth: Deployed, tenant: TenantId) -> None:
    """Publish a row that belongs to another stack, so that the tenant's own stack fails to record its queue."""
    berth.client("dynamodb").put_item(
        TableName=berth.outputs["TableName"],
        Item=keys.metadata_key(tenant)
        | {
            "StackId": {"S": "arn:aws:cloudformation:us-east-1:000000000000:stack/berth-tenant-elsewhere-0a1b2c3d/1"},
            "Version": {"S": "0.0.1"},
            "InboundQueueArn": {"S": "arn:elsewhere"},
            "InboundQueueUrl": {"S": "https://elsewhere"},
        },
    )


def release_claim(berth: Deployed, tenant: TenantId) -> None:
    berth.client("dynamodb").delete_item(TableName=berth.outputs["TableName"], Key=keys.metadata_key(tenant))


def test_a_failed_stack_is_reported_with_its_first_failed_resource_and_the_execution_fails(berth: Deployed) -> None:
    tenant = TenantId("unlucky")
    claim_for_another_stack(berth, tenant)

    ended = berth.ended(berth.start_create(tenant, attempt=1))
    release_claim(berth, tenant)

    assert ended["status"] == "FAILED"
    assert "TenantMetadata (Custom::TenantMetadata)" in ended["cause"]
    answer = berth.ask(tenant)
    assert answer.status == 424
    assert answer.body["type"] == "urn:berth:problem:provisioning-failed"
    cause: Any = answer.body["rootCause"]
    assert cause["resource"] == "TenantMetadata"
    assert cause["type"] == "Custom::TenantMetadata"
    assert "belongs to another stack" in cause["reason"]
    assert "LOCK" not in berth.rows_of(tenant)


def test_a_stack_that_failed_to_be_created_is_deleted_and_created_again_by_the_next_attempt(berth: Deployed) -> None:
    tenant = TenantId("second-try")
    claim_for_another_stack(berth, tenant)
    berth.ended(berth.start_create(tenant, attempt=1))
    release_claim(berth, tenant)
    failed = berth.stack(tenant)
    assert failed["StackStatus"] == "ROLLBACK_COMPLETE"

    assert berth.ended(berth.start_create(tenant, attempt=2))["status"] == "SUCCEEDED"

    assert berth.ask(tenant).status == 200
    assert berth.stack(tenant)["StackId"] != failed["StackId"]
    assert [(entry.attempt, entry.status) for entry in berth.table.history(tenant)] == [
        (1, Status.STARTED),
        (1, Status.FAILURE),
        (2, Status.STARTED),
        (2, Status.SUCCESS),
    ]


def test_an_existing_stack_is_adopted(berth: Deployed) -> None:
    tenant = TenantId("adopted")
    stack_id = berth.create_stack_by_hand(tenant)

    assert berth.settled(tenant).status == 200

    assert berth.stack(tenant)["StackId"] == stack_id
    assert berth.rows_of(tenant)["METADATA"]["StackId"]["S"] == stack_id


def test_a_queue_that_a_stack_recorded_is_not_served_before_an_operation_has_published_it(berth: Deployed) -> None:
    tenant = TenantId("unpublished")
    berth.create_stack_by_hand(tenant)
    assert "InboundQueueUrl" in berth.rows_of(tenant)["METADATA"]

    assert berth.ask(tenant).status == 202


def test_a_stack_deleted_by_hand_removes_its_metadata_and_get_queue_creates_it_again(
    berth: Deployed,
) -> None:
    tenant = TenantId("vanished")
    berth.settled(tenant)
    first = berth.stack(tenant)["StackId"]
    berth.delete_stack_by_hand(tenant, first)
    assert "InboundQueueUrl" not in berth.rows_of(tenant)["METADATA"]

    assert berth.ask(tenant).status == 202
    assert berth.settled(tenant).status == 200
    assert berth.stack(tenant)["StackId"] != first


def test_the_late_delete_of_an_older_stack_does_not_remove_the_metadata_of_the_current_one(
    berth: Deployed,
) -> None:
    tenant = TenantId("late-delete")
    berth.settled(tenant)
    before = berth.rows_of(tenant)["METADATA"]
    event = {
        "RequestType": "Delete",
        "StackId": "arn:aws:cloudformation:us-east-1:000000000000:stack/an-older-one/1",
        "RequestId": "1",
        "LogicalResourceId": "TenantMetadata",
        "PhysicalResourceId": "tenant-metadata",
        "ResponseURL": f"{response_url_prefix(berth.emulator)}nobody-waits",
        "ResourceProperties": {"TenantId": tenant.value, "InboundQueueArn": "arn:x", "InboundQueueUrl": "https://x"},
    }

    berth.client("lambda").invoke(FunctionName="berth-tenant-metadata", Payload=json.dumps(event))

    assert berth.rows_of(tenant)["METADATA"] == before


def test_an_attempt_that_was_stopped_before_it_recorded_anything_does_not_block_the_tenant(berth: Deployed) -> None:
    tenant = TenantId("stopped-early")
    # Only the name is used up: the first step and RecordFailure refuse the run's input.
    name = f"create-{tenant.slug}-{berth.release}-1"
    stepfunctions = berth.client("stepfunctions")
    execution = stepfunctions.start_execution(stateMachineArn=berth.machine, name=name, input="{}")["executionArn"]
    stepfunctions.stop_execution(executionArn=execution)
    berth.ended(execution)

    assert berth.settled(tenant).status == 200
    assert sorted(berth.executions(tenant)) == [name, f"{name.removesuffix('1')}2"]


def test_two_attempts_at_once_never_interleave(berth: Deployed) -> None:
    tenant = TenantId("two-at-once")
    first, second = berth.start_create(tenant, attempt=1), berth.start_create(tenant, attempt=2)

    outcomes = {berth.ended(first)["status"], berth.ended(second)["status"]}

    # The first to begin ended before the other began; an attempt that a later one overtook fails.
    assert "SUCCEEDED" in outcomes
    assert berth.settled(tenant).status == 200
    statuses = [(entry.attempt, entry.status) for entry in berth.table.history(tenant)]
    assert statuses in (
        [(1, Status.STARTED), (1, Status.SUCCESS), (2, Status.STARTED), (2, Status.SUCCESS)],
        [(2, Status.STARTED), (2, Status.SUCCESS)],
    )


def test_the_event_of_a_settled_stack_is_handled_even_if_no_operation_waits(berth: Deployed) -> None:
    tenant = TenantId("nobody-waits")
    berth.settled(tenant)
    (function,) = (name for name in berth.functions() if "StackEvent" in name)
    detail = {"stack-id": berth.stack(tenant)["StackId"], "status-details": {"status": "CREATE_COMPLETE"}}
    before = berth.rows_of(tenant)

    assert berth.invoke(function, {"source": "aws.cloudformation", "detail": detail}) is None

    assert berth.rows_of(tenant) == before


def test_deploying_again_changes_nothing_and_keeps_the_release(
    berth: Deployed, shared_settings: dict[str, str]
) -> None:
    before = berth.table.release(berth.release)
    assert deploy(berth.emulator, lambda _step: None, **shared_settings) == berth.outputs
    assert berth.table.release(berth.release) == before
