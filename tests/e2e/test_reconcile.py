"""Changes that somebody made without Berth are found, and repaired where an operation can do that."""

from __future__ import annotations

import json
from typing import Any

from orchestrator.adapters.dynamodb import keys
from orchestrator.common.tenant_ids import TenantId
from tests.e2e.deployed import Deployed, eventually
from tests.e2e.operators import EARLIER, a_release, a_tenant, delete, ended, run, tenant_of

UNPUBLISHED = "0.9.5"


def reconcile(berth: Deployed, *arguments: str) -> tuple[int, dict[str, Any], dict[str, dict[str, Any]]]:
    """The exit code, the whole document, and the first finding about each of this module's tenants."""
    done = run(berth, "reconcile", "--json", *arguments)
    shown = json.loads(done.stdout)
    found = {finding["subject"]: finding for finding in reversed(shown["findings"]) if finding["subject"][:4] == "odd-"}
    return done.returncode, shown, found


def test_differences_are_found_and_repaired_and_a_second_run_finds_nothing_to_repair(berth: Deployed) -> None:
    arranged = [
        ("odd-orphan", _an_orphan, "orphan-stack", "create"),
        ("odd-remains", _remains_of_a_deleted_tenant, "orphan-stack", "delete"),
        ("odd-gone", _a_tenant_whose_stack_is_gone, "missing-stack", "create"),
        ("odd-row", _a_row_that_differs, "metadata-differs", "correct"),
        ("odd-version", _a_version_that_was_never_published, "unknown-version", "upgrade"),
        ("odd-queue", _a_queue_that_was_deleted, "vanished-queue", "none"),
        ("odd-drift", _a_queue_that_was_changed, "stack-drifted", "none"),
    ]
    for name, arrange, _, _ in arranged:
        arrange(berth, TenantId(name))
    before = berth.rows_of_tenants()

    code, shown, found = reconcile(berth, "--dry-run", "--detect-drift")

    assert (code, shown["status"], shown["repaired"], shown["ordered"]) == (8, "DONE", 0, 0)
    assert {name: (each["kind"], each["remedy"]) for name, each in found.items()} == {
        name: (kind, remedy) for name, _, kind, remedy in arranged
    }
    assert berth.rows_of_tenants() == before

    code, shown, found = reconcile(berth)

    assert (code, shown["status"]) == (8, "DONE")  # One finding has to be repaired by hand.
    assert [name for name, each in found.items() if each["repaired"]] == ["odd-row"]
    assert [name for name, each in found.items() if not (each["repaired"] or each["ordered"])] == ["odd-queue"]
    assert "berth delete odd-queue" in found["odd-queue"]["advice"]
    for name in ("odd-orphan", "odd-gone", "odd-row", "odd-version"):
        _is_in(berth, name, "READY")
        assert berth.ask(TenantId(name)).status == 200
    _is_in(berth, "odd-remains", "DELETED")
    assert berth.ask(TenantId("odd-remains")).status == 410
    assert tenant_of(berth, TenantId("odd-version"))["version"] == berth.release
    assert tenant_of(berth, TenantId("odd-gone"))["version"] == EARLIER, "it comes back as it was"
    assert berth.ask(TenantId("odd-row")).body["queueUrl"].endswith(_output(berth, "odd-row").rpartition("/")[2])

    _, _, found = reconcile(berth, "--dry-run")
    assert list(found) == ["odd-queue"]
    assert ended(berth, delete(berth, TenantId("odd-queue"))) == "SUCCEEDED"


def test_the_doctor_finds_no_problems(berth: Deployed) -> None:
    run(berth, "reconcile", "--dry-run")
    done = run(berth, "doctor", "--json")
    shown = json.loads(done.stdout)
    checks = {check["name"]: check["verdict"] for check in shown["checks"]}
    assert checks["credentials"] == checks["control plane"] == checks["operations"] == "ok"
    assert checks["stacks"] == "unknown", "the emulator has no limit to tell"
    assert (done.returncode, shown["verdict"]) == (0, "warning") or shown["verdict"] == "unknown"


# Changes without Berth


def _an_orphan(berth: Deployed, tenant: TenantId) -> None:
    berth.create_stack_by_hand(tenant)


def _remains_of_a_deleted_tenant(berth: Deployed, tenant: TenantId) -> None:
    assert ended(berth, delete(berth, a_tenant(berth, tenant.value))) == "SUCCEEDED"
    berth.create_stack_by_hand(tenant)


def _a_tenant_whose_stack_is_gone(berth: Deployed, tenant: TenantId) -> None:
    a_tenant(berth, tenant.value, EARLIER)
    berth.delete_stack_by_hand(tenant, str(tenant_of(berth, tenant)["stackId"]))


def _a_row_that_differs(berth: Deployed, tenant: TenantId) -> None:
    a_tenant(berth, tenant.value)
    _change_metadata(berth, tenant, "InboundQueueUrl", "http://127.0.0.1/000000000000/another")


def _a_version_that_was_never_published(berth: Deployed, tenant: TenantId) -> None:
    a_release(berth, UNPUBLISHED, lambda template: template.update(Description="Never published."))
    a_tenant(berth, tenant.value, UNPUBLISHED)
    berth.client("dynamodb").delete_item(TableName=berth.outputs["TableName"], Key=keys.release_key(UNPUBLISHED))


def _a_queue_that_was_deleted(berth: Deployed, tenant: TenantId) -> None:
    a_tenant(berth, tenant.value)
    berth.client("sqs").delete_queue(QueueUrl=berth.ask(tenant).body["queueUrl"])


def _a_queue_that_was_changed(berth: Deployed, tenant: TenantId) -> None:
    a_tenant(berth, tenant.value)
    berth.client("sqs").set_queue_attributes(
        QueueUrl=berth.ask(tenant).body["queueUrl"], Attributes={"VisibilityTimeout": "77"}
    )


def _change_metadata(berth: Deployed, tenant: TenantId, attribute: str, value: str) -> None:
    berth.client("dynamodb").update_item(
        TableName=berth.outputs["TableName"],
        Key=keys.metadata_key(tenant),
        UpdateExpression="SET #attribute = :value",
        ExpressionAttributeNames={"#attribute": attribute},
        ExpressionAttributeValues={":value": {"S": value}},
    )


def _output(berth: Deployed, name: str) -> str:
    outputs = {each["OutputKey"]: each["OutputValue"] for each in berth.stack(TenantId(name))["Outputs"]}
    return str(outputs["InboundQueueUrl"])


def _is_in(berth: Deployed, name: str, state: str) -> None:
    eventually(lambda: True if tenant_of(berth, TenantId(name))["state"] == state else None, what=f"{name} is {state}")
