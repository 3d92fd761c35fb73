"""What can be done with a tenant: for the console's buttons."""

from __future__ import annotations

import pytest

from orchestrator.cli.api import Document
from orchestrator.cli.tenant_next import tenant_steps
from tests.fakes import ACME, NEXT_VERSION, VERSION
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


def test_a_tenant_that_shares_a_queue_has_no_release_to_be_moved_to(scene: Scene) -> None:
    tenant = {**found(scene), "tier": "pooled", "version": None}
    assert refusals(tenant)["upgrade"] == "It shares a queue, so it has no release. Move it to another tier instead."
    assert refusals(tenant)["move"] is None
