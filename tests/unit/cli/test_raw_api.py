"""`berth api`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.cli.errors import ExitCode
from tests.unit.cli.conftest import Scene
from tests.unit.cli.fake_api import ScriptedEventsApi


def test_a_body_comes_from_the_option_a_file_or_standard_input(scene: Scene, tmp_path: Path) -> None:
    scene.has()
    body = '{"set": {"plan": "gold"}}'
    file = tmp_path / "body.json"
    file.write_text(body)
    scene.typed, scene.is_a_terminal = body, False
    for given in (body, f"@{file}", "@-"):
        scene.berth("api", "POST", "/tenants/acme/labels", "--body", given, exits=ExitCode.OK)
        assert scene.api.sent[-1] == {"set": {"plan": "gold"}}


ROLLOUT = "20261116-120000-0a1b"
CONNECTION = "conn_" + "1" * 24


@pytest.mark.parametrize(
    ("path", "body", "warning"),
    [
        (f"/rollouts/{ROLLOUT}/abort", {}, f"This ends rollout {ROLLOUT} for good."),
        (
            "/releases/0.2.0/withdraw",
            {},
            "Nothing can be created at, upgraded to or rolled out to 0.2.0 any more, and rollouts to it halt.",
        ),
        ("/rollouts", {"version": "1.2.3", "allowReplacement": True}, "This may replace or remove tenants' queues"),
        (
            "/tenants/acme/replays",
            {"connection_id": CONNECTION, "since": "2026-11-16T12:00:00Z", "include_delivered": True},
            "This sends events again that were delivered already.",
        ),
    ],
)
def test_api_requests_that_commands_would_confirm_are_confirmed(
    scene: Scene, path: str, body: dict[str, object], warning: str
) -> None:
    given = ("api", "POST", path, "--body", json.dumps(body))
    result = scene.berth(*given, exits=ExitCode.BAD_USAGE)
    assert f"This sends POST {path}. {warning}" in result.stderr
    assert scene.connected_to == []
    scene.events = events = ScriptedEventsApi()
    scene.berth(*given, "--yes")
    assert [*scene.api.asked, *events.asked] == [f"POST {path}"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (f"/rollouts/{ROLLOUT}/pause", {}),
        ("/rollouts", {"version": "1.2.3"}),
        ("/rollouts", {"version": "1.2.3", "allowReplacement": True, "dryRun": True}),
        ("/tenants/acme/replays", {"connection_id": CONNECTION, "since": "2026-11-16T12:00:00Z"}),
    ],
)
def test_a_request_that_destroys_nothing_is_sent_at_once(scene: Scene, path: str, body: dict[str, object]) -> None:
    scene.events = events = ScriptedEventsApi()
    scene.berth("api", "POST", path, "--body", json.dumps(body))
    assert [*scene.api.asked, *events.asked] == [f"POST {path}"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["GET", "/tenant"], "There is no route GET '/tenant'. Paths, among others: "),
        (["PATCH", "/tenants/acme"], "There is no route PATCH /tenants/acme. Methods of this path: DELETE, GET, PUT."),
        (["GET", "/tenants?limit=0"], "limit: '0' is not a whole number from 1 to 500"),
        (
            ["GET", "/tenants?limit=5&limit=500"],
            "PATH: it has the parameter 'limit' twice. Write it once, with one value.",
        ),
        (["GET", "/tenants?limit=&limit=5"], "PATH: it has the parameter 'limit' twice."),
        (["GET", "tenants"], "PATH: 'tenants' is not a path. Write only what follows the host, such as /tenants/acme."),
        (["GET", "//["], "PATH: '//[' is not a path."),
        (["GET", "/tenants/a%2Fb"], "The tenant id 'a/b' is not valid"),
        (["POST", "/tenants/acme/labels", "--body", "{"], "--body: this is not JSON."),
        (["POST", "/tenants/acme/labels", "--body", "@missing"], "--body: 'missing' cannot be read as text."),
        (["POST", "/events", "--body", "{}"], "There is no route POST '/events'."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_an_invalid_request_is_explained_before_it_is_sent(scene: Scene, arguments: list[str], message: str) -> None:
    result = scene.berth("api", *arguments, exits=ExitCode.BAD_USAGE)
    assert result.stderr.startswith(f"Error: {message}")
    assert scene.connected_to == []


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("https://staging.example/tenants/acme", "berth --help"),
        ("//staging.example/tenants/acme", "berth --help"),
        ("https:/tenants/acme", "berth --help"),
        ("/tenants/acme#later", "Leave out the # and what follows it."),
        ("/tenants/acme?force=true#", "Leave out the # and what follows it."),
        ("/tenants/ac\nme", "The tenant id"),
        ("\t/tenants/acme", "berth --help"),
    ],
)
def test_no_part_of_a_url_is_ignored(scene: Scene, path: str, message: str) -> None:
    scene.has()
    result = scene.berth("api", "DELETE", path, "--yes", exits=ExitCode.BAD_USAGE)
    assert message in result.stderr
    assert scene.connected_to == []
