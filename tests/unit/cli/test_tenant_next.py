"""The next steps with a tenant, for the console's buttons."""

from __future__ import annotations

import pytest

from orchestrator.cli.api import Document
from orchestrator.cli.tenant_next import next_steps, tenant_steps
from orchestrator.tenants.records import Operation, Status
from orchestrator.tenants.stack_ports import Change, Effect, Stack
from orchestrator.tenants.updating import losses
from tests.fakes import ACME, NEXT_VERSION, VERSION, stack_arn
from tests.fakes.others import FakeQueues
from tests.unit.cli.conftest import Scene


def refusals(tenant: Document, **more: set[str]) -> dict[str, str | None]:
    return {step.verb: step.refusal for step in tenant_steps(tenant, **more)}


def found(scene: Scene) -> Document:
    return scene.api.request("GET", "/tenants/acme").body


@pytest.fixture
def scene() -> Scene:
    scene = Scene()
    scene.has()
    return scene


def test_a_ready_tenant_can_be_moved_pinned_labelled_and_deleted(scene: Scene) -> None:
    valid = {verb for verb, refusal in refusals(found(scene)).items() if refusal is None}
    assert valid == {"upgrade", "move", "pin", "label", "delete"}


def test_pins_and_labels_can_be_changed_during_an_update_and_the_server_agrees(scene: Scene) -> None:
    scene.api.upgrade(ACME, NEXT_VERSION)
    scene.api.begin()
    valid = {verb for verb, refusal in refusals(found(scene)).items() if refusal is None}
    assert valid == {"pin", "label"}
    assert scene.api.pin(ACME, VERSION).status == 200
    assert scene.api.label(ACME, {"plan": "gold"}).status == 200


def test_nothing_can_be_done_during_a_delete_and_the_server_agrees(scene: Scene) -> None:
    scene.api.delete(ACME)
    scene.api.begin()
    assert None not in refusals(found(scene)).values()
    assert scene.api.pin(ACME, VERSION).status == scene.api.label(ACME, {"plan": "gold"}).status == 409


def test_a_delete_that_stopped_half_way_can_be_retried_but_nothing_is_pinned(scene: Scene) -> None:
    scene.api.delete(ACME)
    scene.api.begin()
    scene.api.fail_half_way()
    steps = refusals(found(scene))
    assert (steps["retry"], steps["pin"]) == (None, "The tenant is being deleted.")
    assert scene.api.pin(ACME, VERSION).status == 409


def test_a_pinned_tenant_has_to_be_unpinned_before_it_is_moved_to_another_tier(scene: Scene) -> None:
    scene.api.pin(ACME, VERSION)
    assert refusals(found(scene))["move"] == f"It is pinned to {VERSION}. Remove its pin first."


def test_an_update_to_a_release_that_was_withdrawn_is_not_retried_and_the_server_agrees(scene: Scene) -> None:
    scene.api.upgrade(ACME, NEXT_VERSION)
    scene.api.begin()
    scene.api.fail()
    tenant = found(scene)
    assert refusals(tenant)["retry"] is None
    refused = refusals(tenant, withdrawn={NEXT_VERSION})["retry"]
    assert refused == f"Release {NEXT_VERSION} was withdrawn. Move the tenant to another one."
    scene.api.request("POST", f"/releases/{NEXT_VERSION}/withdraw")
    assert scene.api.request("POST", "/tenants/acme/retry").status == 409


def failed_update(reason: str) -> Document:
    cause = {"resource": None, "type": None, "reason": reason}
    audit = {"operation": Operation.UPDATE, "status": Status.FAILURE, "version": NEXT_VERSION, "rootCause": cause}
    return {
        "tenantId": "acme",
        "state": "UPDATE_FAILED",
        "version": VERSION,
        "pinnedVersion": None,
        "queueUrl": "https://sqs/acme",
        "audits": [audit],
    }


def test_a_retry_is_not_the_first_advice_after_an_update_that_would_lose_data() -> None:
    stack = Stack(stack_arn(ACME), "CREATE_COMPLETE", "", "acme", None, VERSION, ours=True)
    table = Change("Orders", "AWS::DynamoDB::Table", "orders-1", Effect.REPLACE)
    reason = losses(stack, [table], FakeQueues(), served=None)
    assert reason is not None
    assert next_steps(failed_update(reason)) == [
        f"Leave it at {VERSION}: berth upgrade acme --to {VERSION}",
        "Retry, once its cause is removed: berth retry acme",
    ]
    assert next_steps(failed_update("Rate exceeded")) == [
        "Retry: berth retry acme",
        f"Or leave it at {VERSION}: berth upgrade acme --to {VERSION}",
    ]
