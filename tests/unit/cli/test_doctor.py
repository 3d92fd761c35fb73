"""`berth doctor`: one check after the other, each with advice."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, ProfileNotFound

from orchestrator.cli.errors import ControlPlaneNotFound, ExitCode
from orchestrator.client.transport import ApiAnswer
from orchestrator.common.own_versions import berth_version
from orchestrator.reconciling.records import SETTLING, SURVEY, Coverage, Reconciliation, ReconciliationStatus, Spec
from tests.fakes import NEXT_VERSION, NOON
from tests.unit.cli.conftest import TERMINAL, FakeControlPlane, Scene
from tests.unit.cli.fake_api import DEAD_LETTERS

OURS = berth_version()
NO_WAY = EndpointConnectionError(endpoint_url="https://x.invalid")
EXPIRED = ClientError({"Error": {"Code": "ExpiredToken", "Message": "Log in."}}, "GetCallerIdentity")


@pytest.fixture(autouse=True)
def _runs_by_itself(scene: Scene) -> None:
    """A healthy control plane: both scheduled reconciliations have just run."""
    for name in (SETTLING, SURVEY):
        ran = Reconciliation(name, "", Spec(), ReconciliationStatus.DONE, NOON, NOON, Coverage(all_stacks=10))
        scene.api.reconciliations.record_reconciliation(ran)


def checks(scene: Scene) -> dict[str, tuple[str, str, str | None]]:
    """The verdict, the detail and the advice of each check, by name."""
    shown = json.loads(scene.berth("doctor", "--json").stdout)
    return {check["name"]: (check["verdict"], check["detail"], check["advice"]) for check in shown["checks"]}


def test_warnings_and_unknown_checks_are_not_problems(scene: Scene) -> None:
    scene.api.world.max_stacks = None
    scene.control_plane = FakeControlPlane(scene.api, version="0.0.1")
    result = scene.berth("doctor", exits=ExitCode.OK)
    assert result.stdout.splitlines()[-1] == "1 warning, 1 unknown."


def test_a_terminal_shows_verdicts_in_colours(scene: Scene) -> None:
    scene.environment |= TERMINAL
    scene.api.queues.gone.add(DEAD_LETTERS)
    out = scene.berth("doctor").stdout
    assert "\x1b[32mok" in out
    assert "\x1b[1;31mproblem" in out


class TestCredentials:
    def test_a_profile_that_does_not_exist(self, scene: Scene) -> None:
        scene.trouble = ProfileNotFound(profile="prod")
        result = scene.berth("doctor", "--json", exits=ExitCode.NO_CONTROL_PLANE)
        [check] = json.loads(result.stdout)["checks"]
        assert (check["name"], check["verdict"]) == ("credentials", "problem")
        assert "(prod) could not be found" in check["detail"]

    def test_the_other_checks_are_made_if_sts_cannot_be_reached(self, scene: Scene) -> None:
        scene.control_plane = FakeControlPlane(scene.api, trouble={"caller": NO_WAY})
        shown = checks(scene)
        assert shown["credentials"][0] == "unknown"
        assert (shown["control plane"][0], shown["api"][0]) == ("ok", "ok")
        assert scene.berth("doctor").exit_code == ExitCode.OK


class TestControlPlane:
    def test_the_local_control_plane_is_not_running(self, scene: Scene) -> None:
        scene.trouble = ControlPlaneNotFound("The local control plane is not running: start it with make up.")
        result = scene.berth("doctor", "--local", exits=ExitCode.NO_CONTROL_PLANE)
        assert result.stdout.splitlines() == [
            "problem control plane The local control plane is not running: start it with make up.",
            "",
            "1 problem.",
        ]

    @pytest.mark.parametrize(
        ("status", "verdict", "advice"),
        [
            ("CREATE_COMPLETE", "ok", None),
            ("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "warning", "A deployment is in progress"),
            ("UPDATE_ROLLBACK_COMPLETE", "warning", "Its last deployment failed"),
            ("UPDATE_ROLLBACK_FAILED", "warning", "Its last deployment failed"),
            ("DELETE_FAILED", "warning", "Its last deployment failed"),
        ],
    )
    def test_the_verdict_depends_on_the_stacks_status(
        self, scene: Scene, status: str, verdict: str, advice: str | None
    ) -> None:
        scene.control_plane = FakeControlPlane(scene.api, status=status)
        shown = checks(scene)
        assert shown["control plane"][0] == verdict
        assert (shown["control plane"][2] or "").startswith(advice or "")
        # The API is checked whatever the stack's status.
        assert shown["api"][0] == "ok"

    @pytest.mark.parametrize(("version", "expected"), [("0.0.1", "0.0.1"), (None, "of an unknown version")])
    def test_another_version_than_the_command_lines_is_a_warning(
        self, scene: Scene, version: str | None, expected: str
    ) -> None:
        scene.control_plane = FakeControlPlane(scene.api, version=version)
        verdict, detail, advice = checks(scene)["control plane"]
        assert (verdict, detail) == (
            "warning",
            f"Berth in eu-west-1 is UPDATE_COMPLETE: Berth {expected}, release {NEXT_VERSION}",
        )
        assert advice == f"This command line has version {OURS}: install the other version, or deploy this one."

    def test_after_a_bump_and_its_deployment_the_versions_agree(
        self, scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bumped = tmp_path / "pyproject.toml"
        bumped.write_text('[project]\nversion = "9.8.7"\n')
        monkeypatch.setattr("orchestrator.common.own_versions.PROJECT", bumped)
        scene.control_plane = FakeControlPlane(scene.api, version="9.8.7")
        assert checks(scene)["control plane"] == (
            "ok",
            f"Berth in eu-west-1 is UPDATE_COMPLETE: Berth 9.8.7, release {NEXT_VERSION}",
            None,
        )


class TestEventPlane:
    @pytest.mark.parametrize(
        ("status", "verdict"), [("CREATE_COMPLETE", "ok"), ("UPDATE_ROLLBACK_COMPLETE", "warning")]
    )
    def test_the_verdict_depends_on_the_stacks_status(self, scene: Scene, status: str, verdict: str) -> None:
        scene.control_plane = FakeControlPlane(scene.api, events_status=status)
        assert checks(scene)["event plane"][:2] == (verdict, f"BerthEvents in eu-west-1 is {status}: Berth {OURS}")

    def test_a_control_plane_without_an_event_plane_has_no_problem(self, scene: Scene) -> None:
        assert "event plane" not in checks(scene)

    def test_an_operator_who_may_not_see_the_stack_is_told_which_policy_allows_it(self, scene: Scene) -> None:
        scene.control_plane = FakeControlPlane(scene.api, trouble={"events_stack": NO_WAY})
        verdict, detail, advice = checks(scene)["event plane"]
        assert verdict == "unknown"
        assert "could not be read" in detail
        assert "EventOperatorPolicyArn" in (advice or "")
        assert scene.berth("doctor").exit_code == ExitCode.OK


class TestApi:
    def test_the_credentials_may_not_call_the_api(self, scene: Scene) -> None:
        scene.api.interjections = [ApiAnswer(403, {"message": "Forbidden"})]
        result = scene.berth("doctor", exits=ExitCode.NO_CONTROL_PLANE)
        assert "problem api           The API answered 403: Forbidden. These credentials may not" in result.stdout

    def test_the_api_is_too_old_for_health_checks(self, scene: Scene) -> None:
        scene.api.interjections = [ApiAnswer(404, {"message": "Not Found"})]
        result = scene.berth("doctor", exits=ExitCode.ATTENTION)
        assert "problem api           it has no route for the health of the control plane" in result.stdout
        assert "It is older than this command line: deploy Berth again." in result.stdout

    def test_the_api_fails(self, scene: Scene) -> None:
        scene.api.interjections = [ApiAnswer(500, {"message": "Internal Server Error"})]
        result = scene.berth("doctor", exits=ExitCode.ATTENTION)
        assert "problem api           The API answered 500: Internal Server Error." in result.stdout

    def test_the_api_is_throttled_for_a_moment(self, scene: Scene) -> None:
        scene.api.interjections = [ApiAnswer(503, {}, retry_after=3)]
        assert (scene.berth("doctor").exit_code, scene.pauses) == (ExitCode.OK, [3])


def test_a_bug_of_the_command_is_reported_like_any_other_error(scene: Scene) -> None:
    scene.control_plane = FakeControlPlane(scene.api, trouble={"caller": ZeroDivisionError("division by zero")})
    result = scene.berth("doctor")
    assert (result.exit_code, result.stdout) == (ExitCode.UNEXPECTED, "")
    assert result.stderr == "Error: ZeroDivisionError: division by zero (--debug shows where)\n"


def test_a_reconciler_that_stopped_running_is_a_problem(scene: Scene) -> None:
    scene.api.clock.advance(timedelta(minutes=16))
    assert checks(scene)["reconciler"][0] == "problem"
    assert scene.berth("doctor").exit_code == ExitCode.ATTENTION
