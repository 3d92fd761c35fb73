"""Unexpected responses, and an API that throttles."""

from __future__ import annotations

import json

import pytest

from orchestrator.api.responses import try_again_later
from orchestrator.cli.errors import ExitCode
from orchestrator.client.retrying import BUSY_RETRY_SECONDS
from orchestrator.client.transport import ApiAnswer
from orchestrator.tenants.ready import Ready
from tests.fakes import QUEUE, VERSION
from tests.unit.cli.conftest import Scene
from tests.unit.cli.fake_api import heard

COMMANDS = pytest.mark.parametrize(
    "command",
    [
        ["get-queue", "acme"],
        ["create", "acme"],
        ["upgrade", "acme"],
        ["retry", "acme"],
        ["delete", "acme"],
        ["tenant", "acme"],
        ["tenants"],
        ["releases"],
        ["pin", "acme", "0.1.0"],
        ["unpin", "acme"],
        ["rollout", "plan", "--no-wait"],
        ["rollout", "start"],
        ["rollout", "status"],
        ["rollout", "watch"],
        ["rollout", "pause"],
        ["rollout", "resume"],
        ["rollout", "abort", "--yes"],
        ["rollout", "approve"],
        ["rollout", "promote"],
        ["rollout", "change", "--bake", "60"],
        ["rollout", "retry"],
        ["rollout", "list"],
    ],
    ids=" ".join,
)
TOO_MANY = ApiAnswer(429, {"message": "Too Many Requests"})


@COMMANDS
@pytest.mark.parametrize(
    ("given", "code", "expected"),
    [
        (ApiAnswer(403, {"message": "Forbidden"}), ExitCode.NO_CONTROL_PLANE, "403: Forbidden. These credentials"),
        (
            ApiAnswer(404, {"message": "Not Found"}),
            ExitCode.NO_CONTROL_PLANE,
            "404: Not Found. This is not Berth's API",
        ),
        (ApiAnswer(500, {"message": "Internal Server Error"}), ExitCode.UNEXPECTED, "500: Internal Server Error."),
        (ApiAnswer(301, {}), ExitCode.UNEXPECTED, "301: no reason was given."),
    ],
    ids=["403", "404", "500", "301"],
)
def test_responses_that_are_not_berths_own(
    scene: Scene, command: list[str], given: ApiAnswer, code: ExitCode, expected: str
) -> None:
    scene.api.interjections = [given]
    result = scene.berth(*command, "--json")
    assert result.exit_code == code
    assert result.stderr.startswith(f"Error: The API answered {expected}")
    assert json.loads(result.stdout) == {
        "type": f"urn:berth:cli:{code.name.lower().replace('_', '-')}",
        "title": code.meaning,
        "detail": result.stderr.removeprefix("Error: ").rstrip(),
        "exitCode": code,
        "advice": [],
    }
    assert scene.pauses == []


@COMMANDS
def test_a_throttled_request_is_retried(scene: Scene, command: list[str]) -> None:
    scene.has()
    scene.queue_answers(Ready(QUEUE, VERSION))
    scene.api.interjections = [TOO_MANY, heard(try_again_later("Rate exceeded")), ApiAnswer(504, {}, retry_after=3)]
    result = scene.berth(*command)
    assert "Too Many Requests" in result.stderr
    assert "Rate exceeded" in result.stderr
    assert scene.pauses == [2, 2, 3]
    assert len(set(scene.api.asked[:4])) == 1
    # There is nothing to retry, and no rollout; all else is answered.
    needs_a_rollout = command[0] == "rollout" and command[1] not in ("plan", "start", "list")
    otherwise = ExitCode.GONE if needs_a_rollout else ExitCode.OK
    assert result.exit_code == (ExitCode.REFUSED if command == ["retry", "acme"] else otherwise)


@COMMANDS
@pytest.mark.parametrize("given", [TOO_MANY, heard(try_again_later("Rate exceeded"))], ids=["429", "503"])
def test_an_api_that_keeps_throttling_is_given_up(scene: Scene, command: list[str], given: ApiAnswer) -> None:
    scene.api.interjections = [given] * 100
    result = scene.berth(*command, exits=ExitCode.NOT_READY)
    assert BUSY_RETRY_SECONDS - 2 <= scene.now <= BUSY_RETRY_SECONDS
    assert str(given.body.get("detail") or given.body.get("message")) in result.stderr.splitlines()[-1]
