"""`berth releases`: what was published, newest first."""

from __future__ import annotations

import json

from orchestrator.adapters.berth_api import ApiAnswer
from orchestrator.cli.errors import ExitCode
from tests.fakes import a_release
from tests.unit.cli.conftest import Scene


def test_newest_first_and_which_is_current(scene: Scene) -> None:
    scene.api.table.record_release(a_release("0.10.0", digest="0123456789abcdef"))
    result = scene.berth("releases")
    assert result.exit_code == ExitCode.OK
    assert [line.rstrip() for line in result.stdout.splitlines()] == [
        "Version Published (UTC)     Digest",
        "0.10.0  2026-11-16 12:00:00 0123456789ab",
        "0.2.0   2026-11-16 12:00:00 dddddddddddd current",
        "0.1.0   2026-11-16 12:00:00 dddddddddddd",
    ]
    assert result.stderr == ""


def test_as_json_it_is_the_answer_itself(scene: Scene) -> None:
    told = json.loads(scene.berth("releases", "--json").stdout)
    assert told["current"] == "0.2.0"
    assert [release["version"] for release in told["releases"]] == ["0.2.0", "0.1.0"]
    assert told["releases"][0] == {
        "version": "0.2.0",
        "digest": "d" * 64,
        "templateUrl": a_release("0.2.0").template_url,
        "publishedAt": "2026-11-16T12:00:00.000Z",
    }


def test_the_current_one_is_not_published_yet(scene: Scene) -> None:
    scene.api.interjections = [ApiAnswer(200, {"current": "0.3.0", "releases": []})]
    result = scene.berth("releases")
    assert (result.exit_code, result.stdout) == (ExitCode.OK, "")
    assert result.stderr == "The current version, 0.3.0, is not published: wait until it is deployed.\n"
