"""Unexpected responses, and an API that throttles."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from orchestrator.api.responses import try_again_later
from orchestrator.cli.control_plane import DeployedStack
from orchestrator.cli.errors import ExitCode
from orchestrator.client.retrying import BUSY_RETRY_SECONDS
from orchestrator.client.transport import ApiAnswer
from orchestrator.common.own_versions import berth_version
from orchestrator.tenants.ready import Ready
from tests.fakes import QUEUE, VERSION
from tests.unit.cli.conftest import FakeControlPlane, Scene
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
NO_SUCH_ROUTE = ApiAnswer(404, {"message": "Not Found"})


@dataclass
class HalfDeployed(FakeControlPlane):
    """A control plane of this version, beside an event plane of the version before."""

    @property
    def events_stack(self) -> DeployedStack:
        return replace(super().events_stack, outputs={"Version": "0.8.0"})


def other_version_of(stack: str) -> str:
    ours = berth_version()
    return (
        f"The stack {stack} has version 0.8.0. This command line has version {ours}: install the other version, or "
        "deploy this one."
    )


class EventsApiOfThen:
    """Implements :class:`orchestrator.cli.api.Api`, and has no routes that are new."""

    def send_request(self, _route: Any, _request: Any) -> ApiAnswer:
        return NO_SUCH_ROUTE


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


@pytest.mark.parametrize(
    "given",
    [
        NO_SUCH_ROUTE,
        ApiAnswer(400, {"type": "urn:berth:problem:invalid-request", "detail": "the query: 'open' was unexpected"}),
        ApiAnswer(200, {"rollouts": [{"rolloutId": "from another version"}], "cursor": None}),
    ],
    ids=["no such route", "unknown field in the request", "missing field in the answer"],
)
def test_an_error_that_may_come_of_another_version_names_both_versions(scene: Scene, given: ApiAnswer) -> None:
    scene.api.interjections = [given]
    scene.control_plane = FakeControlPlane(scene.api, version="0.8.0")
    result = scene.berth("rollout", "list")
    assert result.exit_code != ExitCode.OK
    assert result.stderr.splitlines()[1:] == [other_version_of("Berth")]


def test_the_document_of_such_an_error_names_both_versions_too(scene: Scene) -> None:
    scene.api.interjections = [NO_SUCH_ROUTE]
    scene.control_plane = FakeControlPlane(scene.api, version="0.8.0")
    assert json.loads(scene.berth("status", "--json").stdout)["advice"] == [other_version_of("Berth")]


def test_an_error_names_the_event_plane_that_has_another_version(scene: Scene) -> None:
    """So it is for a minute of each deployment, and afterwards if the deployment of the event plane has failed."""
    scene.control_plane = HalfDeployed(scene.api, events=EventsApiOfThen(), events_status="UPDATE_ROLLBACK_COMPLETE")
    result = scene.berth("connections", "list", "acme", exits=ExitCode.NO_CONTROL_PLANE)
    assert result.stderr.splitlines()[1:] == [other_version_of("BerthEvents")]


@pytest.mark.parametrize("trouble", ["stack", "events_stack"])
def test_an_error_is_reported_also_if_the_versions_cannot_be_read(scene: Scene, trouble: str) -> None:
    scene.api.interjections = [NO_SUCH_ROUTE]
    scene.control_plane = FakeControlPlane(scene.api, trouble={trouble: EndpointConnectionError(endpoint_url="there")})
    result = scene.berth("tenants", exits=ExitCode.NO_CONTROL_PLANE)
    assert result.stderr.startswith("Error: The API answered 404: Not Found.")


@pytest.mark.parametrize("kind", ["unknown-release", "busy"])
def test_a_refusal_for_another_reason_says_nothing_about_versions(scene: Scene, kind: str) -> None:
    scene.api.interjections = [ApiAnswer(409, {"type": f"urn:berth:problem:{kind}", "detail": "It is refused."})]
    scene.control_plane = FakeControlPlane(scene.api, version="0.8.0")
    assert "version" not in scene.berth("rollout", "list").stderr
