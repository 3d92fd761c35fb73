"""`berth connections`, against the functions of the Events API."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.cli.errors import ExitCode
from tests.adapters.events.functions import EventFunctions
from tests.adapters.events.test_configuration_commands import Commands, lines

URL = "https://shop.example/hooks"
UNKNOWN = f"conn_{'0' * 24}"


@pytest.fixture
def commands(event_functions: EventFunctions) -> Commands:
    """The tenant acme has event settings."""
    event_functions.serve()
    commands = Commands(event_functions)
    assert commands.berth("events", "settings", "acme", "--plan", "free").exit_code == ExitCode.OK
    commands.api.asked.clear()
    return commands


def shown(text: str) -> dict[str, str]:
    return {name: value.strip() for name, value in (line.split(":", 1) for line in lines(text))}


def test_the_secret_of_a_webhook_is_printed_once(commands: Commands) -> None:
    result = commands.berth("connections", "create", "acme", "--name", "Shop", "--webhook", URL)
    pairs = shown(result.stdout)
    assert pairs["secret"].startswith("whsec_")
    assert "shown only now" in result.stderr
    for command in ("list", "show"):
        ids = [pairs["id"]] if command == "show" else []
        output = commands.berth("connections", command, "acme", *ids).output
        assert pairs["secret"] not in output
        assert pairs["id"] in output


def test_filters_come_from_types_or_from_a_file(commands: Commands, tmp_path: Path) -> None:
    create = ("connections", "create", "acme", "--name", "Shop", "--webhook", URL)
    assert commands.json(*create, "--type", "a")["filter"] == {"event_type": "a"}
    assert commands.json(*create, "--type", "a", "--type", "b")["filter"] == {"event_type": {"$in": ["a", "b"]}}
    file = tmp_path / "filter.json"
    file.write_text('{"payload": {"total": {"$gte": 1}}}', encoding="utf-8")
    transform = tmp_path / "transform.json"
    transform.write_text('{"wrap": "order"}', encoding="utf-8")
    options = ("--filter-file", str(file), "--transform-file", str(transform), "--retry", "5", "--retry", "60")
    created = commands.json(*create, *options)
    assert created["filter"] == {"payload": {"total": {"$gte": 1}}}
    assert (created["transform"], created["retry_seconds"]) == ({"wrap": "order"}, [5, 60])
    both = commands.berth(*create, "--type", "a", "--filter-file", str(file))
    assert both.exit_code == ExitCode.BAD_USAGE


@pytest.mark.parametrize(("content", "expected"), [(None, "No such file"), ("[", "is not JSON"), ("[]", "JSON object")])
def test_a_file_without_a_filter(commands: Commands, tmp_path: Path, content: str | None, expected: str) -> None:
    file = tmp_path / "filter.json"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    result = commands.berth("connections", "create", "acme", "--name", "x", "--filter-file", str(file))
    assert result.exit_code == ExitCode.BAD_USAGE
    assert expected in " ".join(result.stderr.split())
    assert commands.api.asked == []


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            ("--webhook", "https://127.0.0.1/"),
            "--webhook: a webhook cannot be sent there, because the address is not allowed",
        ),
        (("--zapier", URL), "--zapier: "),
        (("--email", "ada@example.com"), "berth:eventsMailFrom"),
        (("--from", "elsewhere"), "'elsewhere' is not valid. Examples: api, src_"),
    ],
)
def test_a_destination_that_is_not_allowed(commands: Commands, options: tuple[str, ...], expected: str) -> None:
    result = commands.berth("connections", "create", "acme", "--name", "x", *options)
    assert result.exit_code == ExitCode.BAD_USAGE
    assert expected in " ".join(result.stderr.split())


def test_a_connection_is_changed(commands: Commands) -> None:
    create = ("connections", "create", "acme", "--name", "Shop", "--webhook", URL, "--type", "a", "--retry", "9")
    connection_id = commands.json(*create)["connection_id"]
    update = ("connections", "update", "acme", connection_id)
    changed = commands.json(*update, "--name", "Other", "--address", "https://other.example/")
    assert (changed["name"], changed["address"]) == ("Other", "https://other.example/")
    assert (changed["filter"], changed["retry_seconds"]) == ({"event_type": "a"}, [9])
    changed = commands.json(*update, "--no-filter", "--no-transform", "--usual-retries")
    assert (changed["filter"], len(changed["retry_seconds"])) == (None, 7)
    assert commands.berth(*update, "--type", "a", "--no-filter").exit_code == ExitCode.BAD_USAGE


@pytest.mark.parametrize(
    "command",
    [
        ("connections", "create", "acme", "--name", "Shop", "--type", "order.created"),
        ("connections", "update", "acme", UNKNOWN, "--type", "order.created"),
        ("events", "list", "acme"),
        ("events", "tail", "acme"),
        ("events", "send"),
        ("inbox", "list", "acme"),
        ("listen", "acme"),
    ],
    ids=lambda command: " ".join(command[:2]),
)
@pytest.mark.parametrize("event_type", ["a b", "", "order#1", "-x", "x" * 129, "é", "a\n"])
def test_a_type_that_no_event_can_have_is_refused(
    commands: Commands, command: tuple[str, ...], event_type: str
) -> None:
    result = commands.berth(*command, f"--type={event_type}")
    assert result.exit_code == ExitCode.BAD_USAGE
    assert commands.api.asked == []
    told = " ".join(result.stderr.replace("│", " ").split())
    assert "A type has letters, digits and . _ : / -" in told
    assert "such as order.created" in told


def test_pause_resume_rotate_and_test(commands: Commands) -> None:
    created = commands.json("connections", "create", "acme", "--name", "Shop", "--webhook", URL)
    connection_id = created["connection_id"]
    paused = commands.berth("connections", "pause", "acme", connection_id)
    assert paused.stdout == f"Connection {connection_id} of tenant acme is paused.\n"
    resume = f"berth connections resume acme {connection_id}"
    assert resume in commands.berth("connections", "show", "acme", connection_id).stderr
    commands.scene.environment["COLUMNS"] = "200"
    assert "paused" in commands.berth("connections", "list", "acme").stdout
    assert commands.json("connections", "resume", "acme", connection_id)["status"] == "active"
    rotated = commands.berth("connections", "rotate", "acme", connection_id)
    assert shown(rotated.stdout)["secret"] not in ("", created["secret"])
    for output in (rotated.stdout, commands.berth("connections", "show", "acme", connection_id).stdout):
        assert shown(output)["rotated"] == "the former secret is used, too, until 2026-11-17 12:00:00 UTC"
    tested = commands.berth("connections", "test", "acme", connection_id)
    assert tested.exit_code == ExitCode.OK
    assert "berth attempts acme" in tested.stderr


def test_a_source_with_connections_is_not_deleted_and_the_answer_says_which(commands: Commands) -> None:
    source = commands.json("sources", "create", "acme", "--name", "GitHub", "--provider", "github")["source_id"]
    created = commands.json("connections", "create", "acme", "--name", "Queue", "--from", source)
    result = commands.berth("sources", "delete", "acme", source, "--yes")
    assert result.exit_code == ExitCode.REFUSED
    assert created["connection_id"] in result.stderr
    assert "berth connections list acme" in result.stderr
