"""`--wait`: a command watches its operation until it has ended."""

from __future__ import annotations

import json

import pytest

from orchestrator.api.responses import try_again_later
from orchestrator.cli.errors import ExitCode
from orchestrator.cli.progress import REMIND_SECONDS
from orchestrator.client.transport import ApiAnswer
from tests.fakes import QUEUE
from tests.unit.cli.conftest import TERMINAL, Scene
from tests.unit.cli.fake_api import heard


def test_a_create_is_watched_until_the_queue_is_ready_also_before_it_is_recorded(scene: Scene) -> None:
    scene.meanwhile = [lambda: None, scene.api.begin, lambda: None, scene.api.succeed]
    result = scene.berth("create", "acme", "--wait", exits=ExitCode.OK)
    assert result.stdout.splitlines() == [
        "tenant:     acme",
        "state:      READY",
        "version:    0.2.0",
        "tier:       standard",
        "updated:    2026-11-16 12:00:10 UTC",
        f"queue url:  {QUEUE.url}",
        f"queue arn:  {QUEUE.arn}",
    ]
    execution, _ = scene.api.executions.inputs.popitem()
    assert result.stderr == f"CREATE 0.2.0 of tenant acme is running: {execution}\n"
    assert scene.api.asked == ["PUT /tenants/acme", *["GET /tenants/acme"] * 5]
    assert scene.pauses == [2, 2, 2, 2]


def test_a_retry_waits_for_its_own_attempt(scene: Scene) -> None:
    scene.berth("create", "acme")
    scene.api.begin()
    scene.api.fail()
    scene.meanwhile = [scene.api.begin, scene.api.succeed]
    # The record of the first attempt's failure is not the one that is waited for.
    assert scene.berth("retry", "acme", "--wait").exit_code == ExitCode.OK


def test_an_unchanged_tenant_is_not_waited_for(scene: Scene) -> None:
    scene.has()
    result = scene.berth("create", "acme", "--wait")
    assert (result.exit_code, scene.pauses) == (ExitCode.OK, [])


def test_the_advice_after_a_failed_delete_of_a_tenant_in_service_is_another_delete(scene: Scene) -> None:
    scene.has()
    scene.meanwhile = [scene.api.begin, scene.api.fail]
    result = scene.berth("delete", "acme", "--drain", "3", "--wait", exits=ExitCode.FAILED)
    assert result.stderr.splitlines()[-3:] == [
        "The tenant is still in service. Delete it once its messages have been received: "
        "berth delete acme --drain SECONDS",
        "Or delete it with its messages: berth delete acme --force",
        "Full history: berth tenant acme",
    ]
    assert scene.berth("retry", "acme").exit_code == ExitCode.REFUSED


def test_the_advice_after_a_failed_delete_of_a_tenant_out_of_service_is_a_retry(scene: Scene) -> None:
    scene.has()
    scene.meanwhile = [scene.api.begin, scene.api.fail_half_way]
    result = scene.berth("delete", "acme", "--wait", exits=ExitCode.FAILED)
    assert result.stderr.splitlines()[-2:] == ["Retry: berth retry acme", "Full history: berth tenant acme"]
    assert scene.berth("retry", "acme").exit_code == ExitCode.OK


def test_the_started_attempt_is_waited_for_even_if_another_follows_at_once(scene: Scene) -> None:
    scene.berth("create", "acme")
    scene.api.begin()
    scene.api.fail()

    def fail_and_try_again() -> None:
        scene.api.fail()
        scene.api.retry(scene.api.run.tenant)
        scene.api.begin()
        scene.api.succeed()

    scene.meanwhile = [scene.api.begin, fail_and_try_again]
    result = scene.berth("retry", "acme", "--wait", "--json", exits=ExitCode.FAILED)
    assert json.loads(result.stdout)["record"]["attempt"] == 2


class TestBusy:
    @pytest.fixture(autouse=True)
    def _busy(self, scene: Scene) -> None:
        scene.has()
        scene.api.upgrade(scene.api.run.tenant, "0.2.0")
        scene.api.begin()

    def test_another_operation_is_waited_for_first(self, scene: Scene) -> None:
        scene.api.asked.clear()
        scene.meanwhile = [lambda: None, scene.api.succeed, scene.api.begin, scene.api.succeed]
        result = scene.berth("delete", "acme", "--wait", exits=ExitCode.OK)
        assert "state:      DELETED\n" in result.stdout
        assert scene.api.asked == [*["DELETE /tenants/acme"] * 3, *["GET /tenants/acme"] * 3]
        assert "Tenant acme is busy: UPDATE 0.2.0 is running." in result.stderr

    def test_a_busy_tenant_until_the_timeout(self, scene: Scene) -> None:
        result = scene.berth("delete", "acme", "--wait", "--timeout", "5", exits=ExitCode.REFUSED)
        assert scene.pauses == [2, 2]
        assert "Error: Tenant acme is busy: UPDATE 0.2.0 is running." in result.stderr
        assert result.stderr.endswith("The tenant is still busy after 4 s. Wait longer: --timeout SECONDS\n")

    def test_the_same_operation_is_joined(self, scene: Scene) -> None:
        scene.meanwhile = [scene.api.succeed]
        assert scene.berth("upgrade", "acme", "--wait").exit_code == ExitCode.OK
        assert len(scene.api.executions.started) == 2

    def test_an_interrupt_while_the_tenant_is_busy(self, scene: Scene) -> None:
        scene.trouble_asleep = KeyboardInterrupt()
        result = scene.berth("delete", "acme", "--wait", exits=ExitCode.INTERRUPTED)
        assert result.stderr.endswith(
            "Interrupted. If the operation was started, it continues. See: berth tenant acme\n"
        )


def test_an_interrupted_wait_says_that_the_operation_continues(scene: Scene) -> None:
    scene.trouble_asleep = KeyboardInterrupt()
    result = scene.berth("create", "acme", "--wait", exits=ExitCode.INTERRUPTED)
    assert result.stdout == ""
    assert result.stderr.endswith("Stopped waiting. The operation continues. See: berth tenant acme\n")


@pytest.mark.parametrize("begun", [True, False])
def test_waiting_ends_at_the_timeout_and_shows_the_running_operation(scene: Scene, begun: bool) -> None:
    scene.meanwhile = [scene.api.begin] if begun else []
    result = scene.berth("create", "acme", "--wait", "--timeout", "7", "--json", exits=ExitCode.NOT_READY)
    assert scene.pauses == [2, 2, 2]
    assert json.loads(result.stdout)["execution"] == scene.api.run.execution
    assert result.stderr.endswith("The operation is still running after 6 s. See its result: berth tenant acme\n")


@pytest.mark.parametrize("seconds", ["0", "-1", "604801", "9" * 400, "1e3", "soon", ""])
@pytest.mark.parametrize(
    "command", [["create", "acme", "--wait"], ["get-queue", "acme", "--wait"], ["reconcile"]], ids=str
)
def test_an_invalid_timeout(scene: Scene, command: list[str], seconds: str) -> None:
    result = scene.berth(*command, "--timeout", seconds)
    assert (result.exit_code, scene.connected_to) == (ExitCode.BAD_USAGE, [])


def test_waiting_continues_while_the_api_throttles_and_respects_retry_after(scene: Scene) -> None:
    busy = ApiAnswer(429, {"message": "Too Many Requests"}, retry_after=7)
    at_once = ApiAnswer(503, {}, retry_after=0.5)

    def begin() -> None:
        scene.api.begin()
        scene.api.interjections = [busy, heard(try_again_later("Rate exceeded")), at_once]

    scene.meanwhile = [begin, lambda: None, lambda: None, scene.api.succeed]
    result = scene.berth("create", "acme", "--wait", exits=ExitCode.OK)
    assert scene.pauses == [2, 7, 2, 1]
    assert "The API asks to try again later (429): Too Many Requests\n" in result.stderr


def test_waiting_ends_when_the_api_denies_access(scene: Scene) -> None:
    def revoke() -> None:
        scene.api.interjections = [ApiAnswer(403, {"message": "Forbidden"})]

    scene.meanwhile = [revoke]
    result = scene.berth("create", "acme", "--wait", exits=ExitCode.NO_CONTROL_PLANE)
    assert "Error: The API answered 403" in result.stderr


def test_without_a_terminal_the_wait_is_repeated_in_the_log(scene: Scene) -> None:
    scene.meanwhile = [*[lambda: None] * 20, scene.api.begin, scene.api.succeed]
    lines = scene.berth("create", "acme", "--wait").stderr.splitlines()
    assert [line.rpartition(" (")[2] for line in lines[1:]] == [f"{REMIND_SECONDS} s)"]


def test_a_terminal_shows_the_seconds(scene: Scene) -> None:
    scene.environment |= TERMINAL
    scene.meanwhile = [*[lambda: None] * 20, scene.api.begin, scene.api.succeed]
    result = scene.berth("create", "acme", "--wait", exits=ExitCode.OK)
    assert result.stderr.count("is running") == 1
    assert "waiting, 0 s" in result.stderr
