"""`berth get-queue`: every response of the API as an operator sees it."""

from __future__ import annotations

import pytest

from orchestrator.api.answers import answer
from orchestrator.api.responses import refuse, try_again_later
from orchestrator.cli.errors import ExitCode
from orchestrator.cli.progress import REMIND_SECONDS
from orchestrator.client.transport import ApiAnswer
from orchestrator.common.errors import InvalidRequest
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.credentials import Access, Credentials
from orchestrator.tenants.decisions import (
    Failed,
    NotProvisioned,
    TooManyCreates,
    Unknown,
)
from orchestrator.tenants.provisioning import Provisioning
from orchestrator.tenants.ready import Ready
from orchestrator.tenants.records import Status
from tests.fakes import ACME, NOON, QUEUE, QUEUE_TABOO, VERSION, an_audit, execution_arn
from tests.unit.cli.conftest import TERMINAL, Scene

READY = Ready(QUEUE, VERSION)
EXECUTION = execution_arn("create-acme-0.1.0-1-with-a-name-that-is-longer-than-a-terminal-is-wide-today")
PROVISIONING = Provisioning(EXECUTION)
FAILED = Failed(an_audit(Status.FAILURE, root_cause=QUEUE_TABOO))


def test_waiting_polls_as_often_as_the_api_asks_and_shows_once_what_it_waits_for(scene: Scene) -> None:
    scene.queue_answers(PROVISIONING, PROVISIONING, READY)
    result = scene.berth("get-queue", "acme", "--wait", exits=ExitCode.OK)
    assert QUEUE.url in result.stdout
    assert scene.pauses == [2, 2]
    assert result.stderr == f"Tenant acme is being provisioned by {EXECUTION}\n"


def test_waiting_for_a_ready_queue_prints_nothing(scene: Scene) -> None:
    scene.queue_answers(READY)
    assert scene.berth("get-queue", "acme", "--wait").stderr == ""


def test_without_a_terminal_the_wait_is_repeated_in_the_log(scene: Scene) -> None:
    scene.queue_answers(*[PROVISIONING] * 40, READY)
    lines = scene.berth("get-queue", "acme", "--wait").stderr.splitlines()
    assert [line.rpartition(" (")[2] for line in lines[1:]] == [f"{REMIND_SECONDS} s)", f"{2 * REMIND_SECONDS} s)"]


def test_a_terminal_shows_the_seconds(scene: Scene) -> None:
    scene.environment |= TERMINAL
    scene.queue_answers(*[PROVISIONING] * 40, READY)
    result = scene.berth("get-queue", "acme", "--wait", exits=ExitCode.OK)
    assert result.stderr.count("is being provisioned by") == 1
    assert "waiting, 0 s" in result.stderr


def test_waiting_continues_while_the_api_throttles_and_respects_retry_after(scene: Scene) -> None:
    busy = ApiAnswer(429, {"message": "Too Many Requests"}, retry_after=7)
    silent = ApiAnswer(503, {})
    at_once = ApiAnswer(503, {}, retry_after=0.5)
    scene.queue_answers(PROVISIONING, busy, try_again_later("Rate exceeded"), silent, at_once, READY)
    result = scene.berth("get-queue", "acme", "--wait", exits=ExitCode.OK)
    assert scene.pauses == [2, 7, 2, 2, 1]
    assert "The API asks to try again later (429): Too Many Requests" in result.stderr
    assert "The API asks to try again later (503): Rate exceeded" in result.stderr


def test_the_id_of_a_stack_that_is_kept_ready_is_said_to_be_reserved(scene: Scene) -> None:
    scene.queue_answers(answer(TenantId.parse("berth-warm-1"), Unknown()))
    result = scene.berth("get-queue", "berth-warm-1", exits=ExitCode.GONE)
    assert result.stderr == (
        "Error: There is no tenant berth-warm-1, and there cannot be one: ids that begin with berth-warm- are reserved "
        "for stacks that are kept ready for new tenants. Use another id.\n"
    )


def test_waiting_includes_the_time_until_a_create_is_allowed(scene: Scene) -> None:
    scene.queue_answers(TooManyCreates(60, 37), PROVISIONING, READY)
    scene.berth("get-queue", "acme", "--wait", exits=ExitCode.OK)
    assert scene.pauses == [37, 2]


def test_waiting_ends_when_provisioning_fails(scene: Scene) -> None:
    scene.queue_answers(PROVISIONING, FAILED)
    scene.berth("get-queue", "acme", "--wait", exits=ExitCode.FAILED)
    assert scene.pauses == [2]


def test_an_interrupted_wait_says_that_provisioning_continues(scene: Scene) -> None:
    scene.queue_answers(PROVISIONING)
    scene.trouble_asleep = KeyboardInterrupt()
    result = scene.berth("get-queue", "acme", "--wait", exits=ExitCode.INTERRUPTED)
    assert result.stderr.endswith("Stopped waiting. Provisioning of tenant acme continues.\n")


def test_a_request_that_the_api_refuses_is_bad_usage(scene: Scene) -> None:
    scene.queue_answers(refuse(InvalidRequest("Name a tenant.")))
    assert scene.berth("get-queue", "acme").exit_code == ExitCode.BAD_USAGE


@pytest.mark.parametrize("timeout", ["0", "soon"])
def test_a_timeout_is_a_number_of_seconds(scene: Scene, timeout: str) -> None:
    assert scene.berth("get-queue", "acme", "--wait", "--timeout", timeout).exit_code == ExitCode.BAD_USAGE


class TestCredentials:
    READY = answer(ACME, READY, Credentials(Access.SEND, "AKIDSESSION", "s3cr+t/=", "t0k=n; rm -r", NOON))

    def test_are_printed_as_shell_commands(self, scene: Scene) -> None:
        scene.queue_answers(PROVISIONING, self.READY)
        result = scene.berth("get-queue", "acme", "--wait", "--credentials", "send", exits=ExitCode.OK)
        assert result.stdout.splitlines()[5:] == [
            "access:     send, until 2026-11-16 12:00:00 UTC",
            "",
            "export AWS_ACCESS_KEY_ID=AKIDSESSION",
            "export AWS_SECRET_ACCESS_KEY=s3cr+t/=",
            "export AWS_SESSION_TOKEN='t0k=n; rm -r'",
        ]
        assert scene.api.asked == ["POST /tenants/acme/queue/credentials/send"] * 2

    def test_are_not_printed_to_stderr(self, scene: Scene) -> None:
        scene.queue_answers(PROVISIONING, self.READY)
        result = scene.berth("--debug", "get-queue", "acme", "--wait", "--credentials", "send")
        assert "s3cr" not in result.stderr
        assert "s3cr" not in repr(scene.api.queue_answers)

    def test_are_refused_for_a_tenant_without_a_queue_which_is_not_provisioned(self, scene: Scene) -> None:
        scene.queue_answers(NotProvisioned(asking_provisions=True))
        result = scene.berth("get-queue", "acme", "--wait", "--credentials", "receive", exits=ExitCode.REFUSED)
        assert result.stderr.startswith("Error: Tenant acme has no queue yet. To provision it")
        assert scene.api.asked == ["POST /tenants/acme/queue/credentials/receive"]
