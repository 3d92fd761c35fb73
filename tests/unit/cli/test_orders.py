"""`berth create`, `upgrade`, `pin`, `retry` and `delete` without --wait."""

from __future__ import annotations

import json

import pytest

from orchestrator.cli.errors import ExitCode
from orchestrator.tenants.records import Operation, Request
from tests.unit.cli.conftest import Scene
from tests.unit.cli.fake_api import ADA


def started(scene: Scene) -> tuple[Operation, str, int, Request]:
    attempt, request = scene.api.executions.started[-1]
    return attempt.operation, attempt.version, attempt.number, request


class TestCreate:
    def test_pinned_and_labelled(self, scene: Scene) -> None:
        arguments = ["--version", "0.1.0", "--label", "team=blue", "--label", "note=a=b c", "--label", "empty="]
        result = scene.berth("create", "acme", *arguments, "--json", exits=ExitCode.OK)
        labels = {"team": "blue", "note": "a=b c", "empty": ""}
        assert started(scene) == (
            Operation.CREATE,
            "0.1.0",
            1,
            Request(by=ADA, explicit=True, labels=labels, pin="0.1.0"),
        )
        assert json.loads(result.stdout) == {
            "tenantId": "acme",
            "state": "PROVISIONING",
            "operation": "CREATE",
            "version": "0.1.0",
            "attempt": 1,
            "execution": scene.api.run.execution,
            "retryAfterSeconds": 2,
        }

    @pytest.mark.parametrize(
        "arguments",
        [
            ["--version", "0.1.0", "--unpin"],
            ["--label", "team"],
            ["--label", "=blue"],
            ["--label", "team=blue", "--label", "team=red"],
            ["--timeout", "0"],
        ],
        ids=" ".join,
    )
    def test_invalid_options_are_bad_usage_before_any_request(self, scene: Scene, arguments: list[str]) -> None:
        assert scene.berth("create", "acme", *arguments).exit_code == ExitCode.BAD_USAGE
        assert scene.connected_to == []


class TestUpgrade:
    @pytest.mark.parametrize(("typed", "code"), [("acme\n", ExitCode.OK), ("yes\n", ExitCode.REFUSED)])
    def test_a_replacement_is_confirmed_by_the_tenants_id(self, scene: Scene, typed: str, code: ExitCode) -> None:
        scene.has(version="0.1.0")
        scene.typed = typed
        result = scene.berth("upgrade", "acme", "--allow-replacement", exits=code)
        assert "Control plane Berth in eu-west-1, account 111122223333. This may replace" in result.stderr

    def test_a_busy_tenant(self, scene: Scene) -> None:
        scene.has()
        scene.berth("delete", "acme")
        scene.api.begin()
        result = scene.berth("upgrade", "acme", exits=ExitCode.REFUSED)
        assert result.stderr.startswith("Error: Tenant acme is busy: DELETE")
        assert result.stderr.endswith("\nWait until the tenant is free: --wait\n")
        assert scene.pauses == []


class TestPin:
    @pytest.mark.parametrize("command", [["pin", "acme", "0.1.0"], ["unpin", "acme"]], ids=" ".join)
    def test_a_tenant_that_is_being_deleted(self, scene: Scene, command: list[str]) -> None:
        scene.has()
        scene.berth("delete", "acme")
        scene.api.begin()
        result = scene.berth(*command, exits=ExitCode.REFUSED)
        assert "is busy: DELETE" in result.stderr
        # Nothing has to be waited for.
        assert "--wait" not in result.stderr


class TestDelete:
    @pytest.mark.parametrize("seconds", ["1201", "9999", "999999", "9" * 30])
    def test_a_drain_longer_than_the_maximum_is_refused(self, scene: Scene, seconds: str) -> None:
        result = scene.berth("delete", "acme", "--drain", seconds, exits=ExitCode.BAD_USAGE)
        assert "1200" in result.stderr
        assert scene.connected_to == []

    @pytest.mark.parametrize("typed", ["y\n", "Acme\n", "\n", ""])
    def test_without_confirmation_of_force_nothing_is_changed(self, scene: Scene, typed: str) -> None:
        scene.typed = typed
        result = scene.berth("delete", "acme", "--force", "--json", exits=ExitCode.REFUSED)
        assert result.stderr.endswith("Error: That is not the tenant's id, so nothing was done.\n")
        assert json.loads(result.stdout)["exitCode"] == ExitCode.REFUSED
        assert scene.api.asked == []

    @pytest.mark.parametrize("arguments", [["--drain", "0"], ["--drain", "10", "--force"]], ids=" ".join)
    def test_options_that_exclude_each_other_are_bad_usage_before_any_request(
        self, scene: Scene, arguments: list[str]
    ) -> None:
        assert scene.berth("delete", "acme", *arguments).exit_code == ExitCode.BAD_USAGE
        assert scene.connected_to == []
