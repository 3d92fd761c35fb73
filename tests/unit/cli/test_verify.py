"""`berth verify`: tests a deployment with one tenant, which it deletes at the end."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from orchestrator.api.responses import no_credentials
from orchestrator.api.route import Audience
from orchestrator.cli.errors import ExitCode
from orchestrator.client.transport import ApiAnswer
from orchestrator.common.tenant_ids import TenantId
from orchestrator.reconciling.records import Coverage, Finding, Kind, ReconciliationStatus, Remedy
from orchestrator.tenants.records import TenantState
from tests.fakes import NEXT_VERSION, QUEUE, a_release
from tests.unit.cli.conftest import FakeControlPlane, Result, Scene
from tests.unit.cli.fake_api import heard
from tests.unit.cli.test_json_output import check

DOCS = Path(__file__).parents[3] / "docs"
VERIFIED = TenantId("berth-verify-20261116-120000-0a1b")
ON_ITS_WAY = ApiAnswer(202, {"state": "PROVISIONING", "execution": "create-1"}, 1)
READY = ApiAnswer(200, {"state": "READY", "queueUrl": QUEUE.url, "queueArn": QUEUE.arn, "version": NEXT_VERSION})
GIVEN = {"access": "send", "accessKeyId": "ASIA", "secretAccessKey": "secret", "sessionToken": "token"}
WITH_CREDENTIALS = ApiAnswer(200, {**READY.body, "credentials": GIVEN})
DELETED = ApiAnswer(410, {"type": "urn:berth:problem:tenant-deleted", "detail": "It was deleted."})
UNKNOWN = ApiAnswer(404, {"type": "urn:berth:problem:unknown-tenant", "detail": "No such tenant."})
FAILED = ApiAnswer(424, {"type": "urn:berth:problem:provisioning-failed", "detail": "AccessDenied: sqs:CreateQueue"})
DENIED = ClientError({"Error": {"Code": "AccessDenied", "Message": "Not authorized: kms:Decrypt"}}, "SendMessage")
TOLD = {"status": ReconciliationStatus.DONE, "coverage": Coverage(tenants=1, stacks=1)}


@pytest.fixture(autouse=True)
def _named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "token_hex", lambda _bytes: "0a1b")


class Events:
    """An Events API that keeps what is sent, and checks keys."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.inbox: list[str] = []
        self.revoked = False
        self.lag = 0
        """How many reads of the inbox are behind."""
        self.forgets_revocation = False
        self.queue: list[str] | None = []
        """The tenant's queue. ``None``: nothing is delivered."""
        self.is_connected = False

    def send_request(self, route: Any, request: Any) -> ApiAnswer:
        self.asked.append(route.name)
        if self.revoked and route.audience is Audience.TENANT and not self.forgets_revocation:
            return ApiAnswer(401, {"type": "urn:berth:problem:unknown-key", "detail": "Not valid."})
        match route.name:
            case "createKeyOfTenant":
                return ApiAnswer(201, {"key": "bk_test_1", "key_id": f"key_{'0' * 24}"})
            case "sendEvent":
                self.inbox.append("an event")
                if self.is_connected and self.queue is not None:
                    self.queue.append(json.dumps({"event_id": "an event"}))
                return ApiAnswer(202, {"event_id": "an event", "status": "undelivered"})
            case "readInbox":
                self.lag -= 1
                return ApiAnswer(200, {"events": [{"event_id": each} for each in self.inbox if self.lag < 0]})
            case "acknowledgeEvents":
                self.inbox = [each for each in self.inbox if each not in request.event_ids]
            case "createConnectionOfTenant":
                self.is_connected = True
                return ApiAnswer(201, {"connection_id": f"conn_{'0' * 24}", "secret": None})
            case "revokeKeyOfTenant":
                self.revoked = True
        return ApiAnswer(200, {})


@pytest.fixture
def events() -> Events:
    return Events()


@pytest.fixture
def world(scene: Scene, events: Events) -> Scene:
    """getQueue creates the tenant, and every operation succeeds."""
    control_plane = FakeControlPlane(scene.api, events=events, events_status="UPDATE_COMPLETE")
    scene.control_plane, events.queue = control_plane, control_plane.messages
    scene.has(VERIFIED, version=NEXT_VERSION)
    scene.queue_answers(ON_ITS_WAY, READY, WITH_CREDENTIALS, WITH_CREDENTIALS, DELETED)
    ends = operation_ends(scene)
    scene.meanwhile = [ends, ends, reconciliation_ends(scene), ends]
    return scene


def operation_ends(scene: Scene) -> Callable[[], None]:
    def end() -> None:
        scene.api.begin()
        scene.api.succeed()

    return end


def reconciliation_ends(scene: Scene, *found: Finding) -> Callable[[], None]:
    counts = {each.kind: 1 for each in found}
    return lambda: scene.api.reconciliation_is_now(**TOLD, findings=found, counts=counts)


def results(result: Result) -> dict[str, str]:
    return {step["name"]: step["result"] for step in json.loads(result.stdout)["steps"]}


def advice(result: Result, name: str) -> str:
    (step,) = (step for step in json.loads(result.stdout)["steps"] if step["name"] == name)
    return f"{step['detail']} {step['advice']}"


def is_deleted(scene: Scene) -> bool:
    return [each.tenant for each in scene.api.table.tenants_in(TenantState.DELETED, limit=9)] == [VERIFIED]


def test_an_event_is_sent_read_acknowledged_and_delivered_and_the_key_is_revoked(world: Scene, events: Events) -> None:
    events.lag = 1
    world.meanwhile.insert(0, lambda: None)
    result = world.berth("verify", "--json")
    shown = results(result)
    assert (shown["events"], shown["delivery"], shown["revoked key"]) == ("proven", "proven", "proven"), result.stdout
    assert list(dict.fromkeys(events.asked)) == [
        *("putSettings", "createConnectionOfTenant", "createKeyOfTenant", "sendEvent"),
        *("readInbox", "acknowledgeEvents", "revokeKeyOfTenant"),
    ]
    assert (events.inbox, events.queue, events.revoked) == ([], [], True)


def test_an_event_that_does_not_reach_the_queue_is_a_failure(world: Scene, events: Events) -> None:
    events.queue = None
    result = world.berth("verify", "--json", exits=ExitCode.ATTENTION)
    assert results(result)["events"] == "proven"
    assert "did not reach the tenant's queue. Likely causes: a function that dispatches" in advice(result, "delivery")


def test_an_event_that_is_not_in_the_inbox_is_a_failure_and_the_tenant_is_deleted_with_it(
    world: Scene, events: Events
) -> None:
    events.lag = 1_000
    world.meanwhile = [*[lambda: None] * 20, *world.meanwhile]
    result = world.berth("verify", "--json", exits=ExitCode.ATTENTION)
    assert "is not in the inbox" in advice(result, "events")
    assert any(f"DELETE /tenants/{VERIFIED}?force=true" in asked for asked in world.api.asked)


def test_a_revoked_key_that_still_works_is_a_failure(world: Scene, events: Events) -> None:
    events.forgets_revocation = True
    world.meanwhile = [*[lambda: None] * 30, *world.meanwhile]
    result = world.berth("verify", "--json", exits=ExitCode.ATTENTION)
    assert "The revoked key still works" in advice(result, "revoked key")


def test_json_has_the_same_steps(world: Scene) -> None:
    result = world.berth("verify", "--json")
    shown = check("verify", result.stdout)
    assert (shown["tenantId"], shown["proven"]) == (VERIFIED.value, True)
    assert set(results(result).values()) == {"proven"}


def test_the_page_about_verifying_on_aws_describes_every_step(world: Scene) -> None:
    page = (DOCS / "verify.md").read_text(encoding="utf-8")
    table = page.split("|---|---|---|\n")[1].split("\n\n")[0]
    described = [row.split("|")[1].strip() for row in table.splitlines()]
    assert described == list(results(world.berth("verify", "--json")))


def test_a_failed_create_is_shown_with_its_error_and_likely_cause_and_the_tenant_is_deleted(
    scene: Scene,
) -> None:
    scene.control_plane = FakeControlPlane(scene.api)
    scene.has(VERIFIED)
    scene.queue_answers(ON_ITS_WAY, FAILED, DELETED)
    scene.meanwhile = [reconciliation_ends(scene), operation_ends(scene)]
    result = scene.berth("verify", "--json", exits=ExitCode.ATTENTION)
    shown = results(result)
    assert (shown["create"], shown["send"], shown["upgrade"], shown["delete"]) == (
        "failed",
        "left out",
        "left out",
        "proven",
    )
    assert "sqs:CreateQueue" in advice(result, "create")
    assert "the role of the tenants' stacks lacks a permission" in advice(result, "create")
    assert any(f"DELETE /tenants/{VERIFIED}?force=true" in asked for asked in scene.api.asked)
    assert is_deleted(scene)


def test_if_the_queue_cannot_be_used_the_other_steps_are_still_tried(world: Scene) -> None:
    world.control_plane = FakeControlPlane(world.api, trouble={"queue": DENIED})
    result = world.berth("verify", "--json", exits=ExitCode.ATTENTION)
    shown = results(result)
    assert (shown["send"], shown["receive"], shown["upgrade"], shown["delete"]) == (
        "failed",
        "failed",
        "proven",
        "proven",
    )
    assert "kms:Decrypt" in advice(result, "send")
    assert is_deleted(world)


def test_the_tenant_is_created_by_an_operators_request_if_get_queue_creates_none(world: Scene) -> None:
    world.api.world.table = type(world.api.table)()
    for version in ("0.1.0", NEXT_VERSION):
        world.api.table.record_release(a_release(version))
    world.queue_answers(UNKNOWN, ON_ITS_WAY, READY, WITH_CREDENTIALS, WITH_CREDENTIALS, DELETED)
    world.meanwhile.insert(0, operation_ends(world))
    result = world.berth("verify", "--json")
    assert set(results(result).values()) == {"proven"}, result.stdout
    assert "berth create created it" in result.stdout


def test_with_one_release_the_moves_between_releases_are_left_out(world: Scene) -> None:
    world.api.world.table = type(world.api.table)()
    world.api.table.record_release(a_release(NEXT_VERSION))
    world.has(VERIFIED, version=NEXT_VERSION)
    world.meanwhile = [reconciliation_ends(world), operation_ends(world)]
    result = world.berth("verify", "--json", exits=ExitCode.OK)
    left_out = {name for name, found in results(result).items() if found == "left out"}
    assert left_out == {"earlier release", "upgrade"}, result.stdout


def test_findings_about_other_tenants_are_shown_and_are_no_failure(world: Scene) -> None:
    other = Finding(Kind.ORPHAN_STACK, "globex", "a stack, and no such tenant", Remedy.NONE)
    world.meanwhile[2] = reconciliation_ends(world, other)
    result = world.berth("verify")
    assert result.exit_code == ExitCode.OK, result.output
    assert "berth reconcile --dry-run" in result.stdout


def test_a_finding_about_the_tenant_is_a_failure(world: Scene) -> None:
    own = Finding(Kind.METADATA_DIFFERS, VERIFIED.value, "the queue on record is another", Remedy.CORRECT)
    world.meanwhile[2] = reconciliation_ends(world, own)
    result = world.berth("verify", "--json")
    assert results(result)["reconcile"] == "failed"
    assert is_deleted(world)


def test_after_an_interrupt_the_tenant_is_deleted_once_the_running_operation_has_ended(world: Scene) -> None:
    def interrupt() -> None:
        world.api.begin()
        raise KeyboardInterrupt

    world.meanwhile = [interrupt, world.api.succeed]
    result = world.berth("verify", exits=ExitCode.INTERRUPTED)
    assert f"Deleting tenant {VERIFIED}" in result.stderr
    assert any(f"DELETE /tenants/{VERIFIED}?force=true" in asked for asked in world.api.asked)
    assert world.api.run.attempt.operation == "DELETE"


def test_nothing_is_deleted_if_no_tenant_was_requested(scene: Scene) -> None:
    scene.control_plane = FakeControlPlane(scene.api)
    scene.queue_answers(ApiAnswer(403, {"message": "Forbidden"}))
    result = scene.berth("verify", "--json")
    assert results(result) == {"control plane": "proven", "create": "failed"}
    assert "execute-api:Invoke" in advice(result, "create")
    assert not [asked for asked in scene.api.asked if asked.startswith("DELETE")]


def test_a_tenant_that_could_not_be_deleted_is_named_with_advice(world: Scene) -> None:
    def fails() -> None:
        world.api.begin()
        world.api.fail()

    world.meanwhile[-1] = fails
    result = world.berth("verify", exits=ExitCode.ATTENTION)
    assert f"berth delete {VERIFIED} --force --yes --wait" in result.stderr


def test_the_queue_is_not_used_if_credentials_are_switched_off(world: Scene, events: Events) -> None:
    world.queue_answers(ON_ITS_WAY, READY, heard(no_credentials()), heard(no_credentials()), DELETED)
    result = world.berth("verify", "--json", exits=ExitCode.OK)
    shown = results(result)
    assert (shown["send"], shown["receive"], shown["delete"]) == ("left out", "left out", "proven")
    # Nobody could receive the event, and it would keep the tenant from being deleted.
    assert (shown["events"], shown["delivery"], events.is_connected) == ("proven", "left out", False)
    assert "berth:credentialsSeconds" in advice(result, "send")


def test_after_a_server_error_the_tenant_is_still_deleted(scene: Scene) -> None:
    """After such an error it is unknown whether the create was started."""
    scene.control_plane = FakeControlPlane(scene.api)
    scene.has(VERIFIED)
    scene.queue_answers(ApiAnswer(500, {"message": "Internal Server Error"}), DELETED)
    scene.meanwhile = [reconciliation_ends(scene), operation_ends(scene)]
    shown = results(scene.berth("verify", "--json"))
    assert (shown["create"], shown["delete"]) == ("failed", "proven")
    assert is_deleted(scene)


def test_if_the_control_plane_cannot_be_reached_no_step_is_tried_and_the_tenant_is_named(world: Scene) -> None:
    def stop() -> None:
        raise EndpointConnectionError(endpoint_url="https://api.invalid")

    world.meanwhile = [stop]
    result = world.berth("verify", exits=ExitCode.NO_CONTROL_PLANE)
    assert result.stdout.count("Could not connect") == 1
    assert "cannot be reached, so the remaining steps are not tried" in result.stdout
    assert f"berth delete {VERIFIED} --force --yes --wait" in result.stderr


def test_a_step_beyond_its_timeout_fails_and_the_delete_waits_for_its_operation(world: Scene) -> None:
    ends = operation_ends(world)
    world.meanwhile = [world.api.begin, lambda: None, world.api.succeed, reconciliation_ends(world), ends]
    result = world.berth("verify", "--json", "--timeout", "3")
    assert results(result)["earlier release"] == "failed"
    assert "The operation is still running after" in advice(result, "earlier release")
    assert "--timeout" in advice(result, "earlier release")
    assert "Likely" not in advice(result, "earlier release")
    assert is_deleted(world)


def test_after_an_interrupt_json_has_the_steps_so_far(world: Scene) -> None:
    def interrupt() -> None:
        world.api.begin()
        raise KeyboardInterrupt

    world.meanwhile = [interrupt, world.api.succeed]
    result = world.berth("verify", "--json", exits=ExitCode.INTERRUPTED)
    assert (json.loads(result.stdout)["tenantId"], results(result)["receive"]) == (VERIFIED.value, "proven")
