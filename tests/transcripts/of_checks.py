"""What is run of the commands that look at the whole control plane, and of those for raw requests."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError, NoCredentialsError

from orchestrator.api.requesting import HttpRequest
from orchestrator.cli.errors import ControlPlaneNotFound
from orchestrator.client.transport import ApiAnswer
from orchestrator.common.tenant_ids import TenantId
from orchestrator.reconciling.records import (
    SETTLING,
    SURVEY,
    Coverage,
    Finding,
    Kind,
    Reconciliation,
    ReconciliationStatus,
    Remedy,
    Spec,
)
from orchestrator.tenants.messages import Messages
from orchestrator.tenants.records import Status
from tests.fakes import NEXT_VERSION, NOON, QUEUE, an_audit
from tests.fakes.reconciling import counted
from tests.transcripts.of_events import written
from tests.transcripts.of_rollouts import under_way
from tests.transcripts.of_tenants import fleet
from tests.transcripts.script import script
from tests.transcripts.shell import RecordingEventsApi, Shell
from tests.unit.cli.conftest import FakeControlPlane, Scene
from tests.unit.cli.fake_api import DEAD_LETTERS

VERIFIED = TenantId("berth-verify-20261116-120000-0a1b")
EXPIRED = ClientError({"Error": {"Code": "ExpiredToken", "Message": "Log in."}}, "GetCallerIdentity")
NO_TROUBLE = {"connections": [], "more": False}


def ran(scene: Scene, *findings: Finding) -> None:
    """Both scheduled reconciliations have just run, and the survey has found this."""
    for name in (SETTLING, SURVEY):
        scene.api.reconciliations.record_reconciliation(
            Reconciliation(
                *(name, "", Spec(repair=False), ReconciliationStatus.DONE, NOON, NOON, Coverage(all_stacks=10)),
                counts=counted(findings),
                findings=findings,
            )
        )


@script("status")
def _(shell: Shell) -> None:
    shell.events.changed["troubled"] = NO_TROUBLE
    shell.both("status", "There are no tenants.")
    fleet(shell)
    shell.both("status")
    scene = under_way(shell)
    ran(scene, Finding(Kind.MISSING_STACK, "t1", "its stack does not exist", Remedy.CREATE))
    shell.both("status", "A rollout is running, and the survey has found a difference.")
    shell.run("release withdraw 0.2.0 --yes")
    shell.run("status", "Tenants are at a release that was withdrawn.")
    shell.find_another(lambda it: setattr(it, "events", None))
    shell.run("status", "There is no event plane.")


@script("doctor")
def _(shell: Shell) -> None:
    ran(shell.scene)
    shell.events.changed["troubled"] = NO_TROUBLE
    shell.both("doctor")
    shell.find_another(lambda it: setattr(it, "events_status", "UPDATE_ROLLBACK_COMPLETE"))
    shell.run("doctor", "The last deployment of the event plane has failed.")
    shell.find_another(lambda it: setattr(it, "version", "0.0.1"))
    shell.run("doctor", "The control plane has another version.")
    scene = fleet(shell)
    ran(scene, Finding(Kind.MISSING_STACK, "acme", "its stack does not exist", Remedy.CREATE))
    scene.api.clock.advance(timedelta(minutes=16))
    scene.api.queues.gone.add(DEAD_LETTERS)
    shell.both("doctor", "Many things are wrong.")
    scene.api.queues.gone.clear()
    scene.api.queues.held[DEAD_LETTERS] = Messages(2, 0, 0)
    shell.run("doctor", "A queue has dead letters.")
    for name, error in {
        "caller": NoCredentialsError(),
        "stack": ControlPlaneNotFound("No control plane named Berth."),
        "api": ControlPlaneNotFound("The stack has no output ApiUrl."),
        "events_stack": EXPIRED,
    }.items():
        ran(shell.begin())
        shell.find_another(lambda it, name=name, error=error: it.trouble.update({name: error}))
        shell.both("doctor", f"The call {name} fails.")


class EventsOfVerify(RecordingEventsApi):
    """Keeps what is sent, and checks keys."""

    def __init__(self, requests: list[str], queue: list[str]) -> None:
        super().__init__(requests)
        self.queue, self.inbox, self.revoked = queue, 0, False

    def send(self, request: HttpRequest) -> ApiAnswer:
        answered = super().send(request)
        last = request.path.rpartition("/")[2]
        if request.path.startswith("/tenants/"):
            self.revoked = self.revoked or request.method == "DELETE"
            return answered
        if self.revoked:
            return ApiAnswer(401, {"type": "urn:berth:problem:unknown-key", "detail": "Not valid."})
        if request.method == "POST" and last == "events":
            self.inbox += 1
            self.queue.append(f'{{"event_id": "{answered.body["event_id"]}"}}')
            return answered
        if request.method == "GET" and last == "inbox":
            events = [{"event_id": "0193f1c0-4a00-7000-8000-00000000a1b0"}] * self.inbox
            return ApiAnswer(200, {"events": events, "cursor": None})
        self.inbox = 0
        return answered


def verified(shell: Shell) -> Scene:
    """getQueue creates the tenant, and every operation succeeds."""
    scene = shell.begin()
    control_plane = FakeControlPlane(scene.api, events_status="UPDATE_COMPLETE")
    control_plane.events = EventsOfVerify(shell.requests, control_plane.messages)
    scene.control_plane = control_plane
    scene.has(VERIFIED, version=NEXT_VERSION)
    ready = {"status": "READY", "queueUrl": QUEUE.url, "queueArn": QUEUE.arn, "version": NEXT_VERSION}
    credentials = {"access": "send", "accessKeyId": "ASIA", "secretAccessKey": "secret", "sessionToken": "token"}
    scene.queue_answers(
        ApiAnswer(202, {"status": "PROVISIONING", "execution": "create-1"}, 1),
        ApiAnswer(200, ready),
        *[ApiAnswer(200, {**ready, "credentials": credentials})] * 2,
        ApiAnswer(410, {"type": "urn:berth:problem:tenant-deleted", "detail": "It was deleted."}),
    )

    def operation_ends() -> None:
        scene.api.begin()
        scene.api.succeed()

    def reconciliation_ends() -> None:
        scene.api.reconciliation_is_now(status=ReconciliationStatus.DONE, coverage=Coverage(tenants=1, stacks=1))

    scene.meanwhile = [operation_ends, operation_ends, reconciliation_ends, operation_ends]
    return scene


@script("verify")
def _(shell: Shell) -> None:
    verified(shell)
    shell.run("verify")
    verified(shell)
    shell.run("verify --json --timeout 60")
    scene = verified(shell)
    scene.control_plane = FakeControlPlane(scene.api)
    shell.run("verify", "There is no event plane.")
    scene = verified(shell)
    kind = "urn:berth:problem:provisioning-failed"
    failed = {"type": kind, "detail": "AccessDenied: sqs:CreateQueue", "tenantId": VERIFIED.value}
    deleted = ApiAnswer(410, {"type": "urn:berth:problem:tenant-deleted", "detail": "It was deleted."})
    scene.queue_answers(ApiAnswer(424, failed), deleted)
    scene.meanwhile = scene.meanwhile[2:]
    shell.run("verify", "The create fails.")
    verified(shell)
    shell.scene.trouble = NoCredentialsError()
    shell.run("verify --json", "There are no credentials.")


DIFFERS = Finding(Kind.METADATA_DIFFERS, "acme", "the metadata differs from the stack", Remedy.CORRECT)
CORRECTED = Finding(
    *(Kind.METADATA_DIFFERS, "acme", "the metadata differs from the stack", Remedy.CORRECT),
    result="the metadata now matches the stack",
    repaired=True,
)
ORDERED = Finding(
    *(Kind.MISSING_STACK, "bob", "its stack does not exist", Remedy.CREATE), result="CREATE 0.2.0: arn", ordered=True
)
DRIFTED = Finding(
    *(Kind.DRIFTED, "globex", "its stack's resources do not match the template", Remedy.NONE),
    "aws cloudformation describe-stack-resource-drifts --stack-name tenant-globex",
)


def left(scene: Scene) -> None:
    """An earlier system has left two tenants: one can be adopted, and one was just created."""
    failed = an_audit(Status.FAILURE, version=None)
    began = an_audit(Status.STARTED, version=None, tenant=TenantId("globex"), at=NOON)
    for audit in (failed, began):
        scene.api.table.plant_audit(audit, numbered=False)


def comes_to(
    scene: Scene, *findings: Finding, status: ReconciliationStatus = ReconciliationStatus.DONE, **changes: Any
) -> Callable[[], None]:
    return lambda: scene.api.reconciliation_is_now(
        status=status,
        coverage=Coverage(operations=1, tenants=3, stacks=4, all_stacks=9),
        counts=counted(findings),
        findings=findings,
        repaired=sum(finding.repaired for finding in findings),
        ordered=sum(finding.ordered for finding in findings),
        **changes,
    )


@script("reconcile")
def _(shell: Shell) -> None:
    runs = [
        ("reconcile", [CORRECTED, ORDERED, DRIFTED], "Differences are found."),
        ("reconcile --json", [CORRECTED, ORDERED, DRIFTED], "Differences are found."),
        ("reconcile", [ORDERED], "Everything is repaired."),
        ("reconcile --dry-run", [DIFFERS, DRIFTED], "Differences are found."),
        ("reconcile --dry-run --json", [DIFFERS], "Differences are found."),
        ("reconcile", [], "Nothing is found."),
        ("reconcile --detect-drift --reason 'Ticket 4711'", [], "Nothing is found."),
    ]
    for line, findings, why in runs:
        scene = shell.begin()
        scene.meanwhile = [comes_to(scene, status=ReconciliationStatus.RUNNING), comes_to(scene, *findings)]
        shell.run(line, why)
    scene = shell.begin()
    scene.meanwhile = [comes_to(scene, CORRECTED, status=ReconciliationStatus.INCOMPLETE, reason="AWS throttled.")]
    shell.run("reconcile", "It is incomplete.")
    scene = shell.begin()
    shell.run("reconcile --timeout 5", "It takes too long.")
    shell.run("reconcile --no-wait --json")
    shell.begin()
    shell.run("reconcile --no-wait --dry-run")
    shell.run("reconcile --follow --only acme")
    shell.run("reconcile --only a/b")
    shell.scene.api.interjections = [ApiAnswer(403, {"message": "Forbidden"})]
    shell.run("reconcile")


@script("adopt")
def _(shell: Shell) -> None:
    shell.both("adopt", "There is no tenant to adopt.")
    left(shell.scene)
    shell.both("adopt --dry-run", "There is a tenant that can be adopted, and one that cannot.")
    shell.run("adopt", "There is no terminal.")
    shell.run("adopt", typed="no\n")
    shell.run("adopt --reason 'Ticket 4711'", typed="yes\n")
    shell.run("adopt --yes", "It was adopted before.")
    left(shell.begin())
    shell.run("adopt --yes --json", "There is a tenant that can be adopted, and one that cannot.")
    shell.run("adopt --yes --reason ''")
    shell.run(f"adopt --yes --reason {'x' * 501}")


@script("api")
def _(shell: Shell) -> None:
    shell.scene.has()
    written("body.json", {"set": {"plan": "gold"}})
    shell.run("api get '/tenants?state=READY&limit=5'")
    shell.run('api POST /tenants/acme/labels --body \'{"set": {"plan": "free"}}\'')
    shell.run("api POST /tenants/acme/labels --body @body.json")
    shell.run("api GET /tenants/acme/keys", "This is a route of the event plane.")
    shell.run("api GET /tenants/nobody")
    shell.run("api DELETE /tenants/acme", "There is no terminal.")
    shell.run("api DELETE /tenants/acme", typed="no\n")
    shell.run("api DELETE /tenants/acme --yes")
    shell.run("api GET /no/such/route")
    shell.run("api PATCH /tenants/acme")
    shell.run("api POST /tenants/acme/labels --body @missing.json")
    shell.run("api POST /tenants/acme/labels --body '{'")


@script("openapi")
def _(shell: Shell) -> None:
    shell.begin().trouble = ControlPlaneNotFound("There is no control plane.")
    shell.run("openapi", "There is no control plane, and none is looked for.", lines=10)
    shell.run("openapi --events", lines=10)


@script("console")
def _(shell: Shell) -> None:
    def served(console: Any, *, say: Callable[[str], None], **options: object) -> None:
        say(f"(The console is served here: {console.place}, read_only={console.read_only}, {options})")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("orchestrator.console.server.serve", served)
        shell.run("console")
        shell.run("console --read-only --port 8100 --no-open --profile prod")
    shell.run("console --port 99999")
    shell.scene.trouble = ControlPlaneNotFound("There is no control plane.")
    shell.run("console")
