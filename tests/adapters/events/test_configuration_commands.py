"""`berth events settings`, `berth keys`, `berth sources` and `berth forms`, against the functions of the Events API."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from orchestrator.api.event_plane_routes import EVENT_ROUTES
from orchestrator.api.requesting import HttpRequest
from orchestrator.cli.errors import ExitCode
from orchestrator.client.transport import ApiAnswer
from tests.adapters.events.functions import ADA, EventFunctions, http_event
from tests.by_hand import ClientByHand
from tests.unit.cli.conftest import EVENTS_API_URL, FakeControlPlane, Result, Scene

SECRET = "correct horse battery"


class EventsApi(ClientByHand):
    """The operators' part of the Events API, in place of HTTP."""

    def __init__(self, functions: EventFunctions) -> None:
        super().__init__(transport=self)
        self.functions = functions
        self.asked: list[str] = []
        self.interjections: list[ApiAnswer] = []

    def send(self, request: HttpRequest) -> ApiAnswer:
        self.asked.append(f"{request.method} {request.path}")
        if self.interjections:
            return self.interjections.pop(0)
        for route in EVENT_ROUTES:
            pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", route.path)
            found = re.fullmatch(pattern, request.path)
            if found and route.method == request.method:
                body = None if request.body is None else dict(request.body)
                event = http_event(route.key, ids=found.groupdict(), query=dict(request.query), body=body, by=ADA)
                answer = self.functions.call("event_operators", event)
                return ApiAnswer(answer.status, answer.body)
        raise AssertionError(f"There is no route for {request.method} {request.path}.")


class Commands:
    def __init__(self, functions: EventFunctions) -> None:
        self.functions = functions
        self.api = EventsApi(functions)
        self.scene = Scene()
        self.scene.control_plane = FakeControlPlane(self.scene.api, events=self.api)
        # The functions are in the same process, and need the credentials that moto has set.
        del self.scene.environment["AWS_ACCESS_KEY_ID"]

    def berth(self, *args: str) -> Result:
        return self.scene.berth(*args)

    def json(self, *args: str) -> dict[str, Any]:
        result = self.berth(*args, "--json")
        assert result.exit_code == ExitCode.OK, result.output
        document: dict[str, Any] = json.loads(result.stdout)
        return document


@pytest.fixture
def commands(event_functions: EventFunctions) -> Commands:
    """The tenant acme has event settings."""
    event_functions.serve()
    commands = Commands(event_functions)
    assert commands.berth("events", "settings", "acme", "--plan", "free").exit_code == ExitCode.OK
    commands.api.asked.clear()
    return commands


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


class TestSettings:
    def test_options_change_them(self, commands: Commands) -> None:
        options = ("--plan", "PRO", "--no-inbox", "--no-type-index", "--name", "Acme Ltd")
        shown = commands.json("events", "settings", "acme", *options)
        assert (shown["plan"], shown["inbox"], shown["type_index"]) == ("pro", False, False)
        assert "retention:  30 days\n" in commands.berth("events", "settings", "acme").stdout
        assert commands.json("events", "settings", "acme", "--inbox")["inbox"] is True
        assert "name:       Acme Ltd" in commands.berth("events", "settings", "acme").stdout


class TestKeys:
    def test_a_new_key_is_printed_once_with_what_to_do_next(self, commands: Commands) -> None:
        result = commands.berth("keys", "create", "acme", "--name", "Shop", "--scope", "write")
        assert result.exit_code == ExitCode.OK
        shown = dict(line.split(":", 1) for line in lines(result.stdout))
        key = shown["key"].strip()
        assert key.startswith("bk_test_")
        assert key not in result.stderr
        assert "shown only now" in result.stderr
        assert f"{EVENTS_API_URL}events" in result.stderr
        assert 'Authorization: Bearer $BERTH_KEY"' in result.stderr
        assert commands.functions.ask("GET /settings", key).status == 403
        assert key not in commands.berth("keys", "list", "acme").output

    def test_ids_stay_in_one_line_on_a_terminal_of_80_characters(self, commands: Commands) -> None:
        created = commands.json("keys", "create", "acme", "--name", "Shop, production", "--scope", "admin")
        assert commands.scene.environment["COLUMNS"] == "80"
        assert created["key_id"] in commands.berth("keys", "list", "acme").stdout

    def test_a_name_that_is_empty_or_too_long(self, commands: Commands) -> None:
        too_long = "(300 characters) is too long: at most 100 characters"
        for name, expected in (("", "--name: is empty"), ("x" * 300, too_long)):
            result = commands.berth("keys", "create", "acme", "--name", name, "--scope", "read")
            assert result.exit_code == ExitCode.BAD_USAGE
            assert result.stderr.endswith(f"{expected}\n")

    def test_a_rotated_key_works_for_another_day(self, commands: Commands) -> None:
        created = commands.json("keys", "create", "acme", "--name", "Shop", "--scope", "admin")
        result = commands.berth("keys", "rotate", "acme", created["key_id"])
        assert f"The old key {created['key_id']} works until 2026-11-17 12:00:00 UTC." in result.stderr
        assert commands.json("keys", "rotate", "acme", created["key_id"], "--overlap", "0")["replaced"]["status"] == (
            "expired"
        )

    def test_a_revoked_key_stops(self, commands: Commands) -> None:
        created = commands.json("keys", "create", "acme", "--name", "Shop", "--scope", "admin")
        result = commands.berth("keys", "revoke", "--yes", "acme", created["key_id"])
        assert result.stdout == f"The API key {created['key_id']} (Shop) of tenant acme is revoked.\n"
        assert commands.functions.ask("GET /keys", created["key"]).status == 401

    def test_a_key_is_not_created_twice_when_the_answer_was_lost(self, commands: Commands) -> None:
        commands.api.interjections = [ApiAnswer(504, {"message": "Endpoint request timed out"})]
        result = commands.berth("keys", "create", "acme", "--name", "Shop", "--scope", "write")
        assert result.exit_code == ExitCode.NOT_READY
        assert commands.api.asked == ["POST /tenants/acme/keys"]

    def test_a_request_that_did_nothing_is_repeated(self, commands: Commands) -> None:
        busy = {"type": "urn:berth:problem:try-again", "detail": "Try again."}
        commands.api.interjections = [ApiAnswer(503, busy), ApiAnswer(429, {"message": "Too Many Requests"})]
        result = commands.berth("keys", "create", "acme", "--name", "Shop", "--scope", "write")
        assert result.exit_code == ExitCode.OK
        assert len(commands.api.asked) == 3


class TestSources:
    def test_a_made_secret_is_printed_once(self, commands: Commands) -> None:
        result = commands.berth("sources", "create", "acme", "--name", "GitHub", "--provider", "github")
        shown = {name: value.strip() for name, value in (line.split(":", 1) for line in lines(result.stdout))}
        assert len(shown["secret"]) == 64
        assert shown["url"] == f"{EVENTS_API_URL}hooks/{shown['source id']}"
        assert "shown only now" in result.stderr
        assert shown["secret"] not in commands.berth("sources", "list", "acme").output

    def test_a_secret_comes_from_a_file_or_from_standard_input(self, commands: Commands, tmp_path: Path) -> None:
        file = tmp_path / "secret.txt"
        file.write_text(f"{SECRET}\n", encoding="utf-8")
        options = ("sources", "create", "acme", "--name", "Stripe", "--provider", "stripe", "--secret-file")
        commands.scene.typed, commands.scene.is_a_terminal = f"{SECRET}\n", False
        for given in (str(file), "-"):
            result = commands.berth(*options, given)
            assert result.exit_code == ExitCode.OK, result.output
            assert SECRET not in result.output
        assert len(commands.json("sources", "list", "acme")["sources"]) == 2

    @pytest.mark.parametrize("provider", ["stripe", "shopify", "slack"])
    def test_a_provider_that_makes_the_secret_itself_needs_the_file(self, commands: Commands, provider: str) -> None:
        result = commands.berth("sources", "create", "acme", "--name", "Shop", "--provider", provider)
        assert result.exit_code == ExitCode.BAD_USAGE
        assert f"'--secret-file': is required, because {provider} makes" in " ".join(result.stderr.split())
        assert commands.api.asked == []

    @pytest.mark.parametrize("content", [None, "", "\n"])
    def test_a_file_without_a_secret(self, commands: Commands, tmp_path: Path, content: str | None) -> None:
        file = tmp_path / "secret.txt"
        if content is not None:
            file.write_text(content, encoding="utf-8")
        options = ("--name", "Stripe", "--provider", "stripe", "--secret-file", str(file))
        result = commands.berth("sources", "create", "acme", *options)
        assert result.exit_code == ExitCode.BAD_USAGE
        assert "secret" in result.stderr
        assert commands.api.asked == []

    def test_a_source_that_checks_nothing_comes_with_a_warning(self, commands: Commands) -> None:
        result = commands.berth("sources", "create", "acme", "--name", "Test", "--provider", "none")
        assert "anyone who knows the URL can send events" in result.stderr
        assert "secret" not in result.stdout


class TestForms:
    ORIGIN = ("--allow-origin", "https://www.example.com")

    def test_a_form_is_changed(self, commands: Commands) -> None:
        created = commands.json("forms", "create", "acme", "--name", "Contact", *self.ORIGIN, "--honeypot", "website")
        changed = commands.json(
            "forms", "update", "acme", created["form_id"], "--allow-origin", "https://a.example", "--no-honeypot"
        )
        assert (changed["origins"], changed["honeypot"], changed["name"]) == (["https://a.example"], None, "Contact")
        assert commands.json("forms", "update", "acme", created["form_id"], "--any-origin")["origins"] == []
        listed = commands.berth("forms", "list", "acme").stdout
        assert "any" in listed


@pytest.mark.parametrize(
    "command",
    [
        ("events", "settings", "a/b"),
        ("keys", "list", "a#b"),
        ("keys", "create", "a b", "--name", "x", "--scope", "read"),
        ("sources", "pause", "-", "src_1"),
        ("forms", "delete", "a\nb", "form_1"),
    ],
)
def test_an_invalid_tenant_id_is_refused_before_any_request(commands: Commands, command: tuple[str, ...]) -> None:
    result = commands.berth(*command)
    assert result.exit_code == ExitCode.BAD_USAGE
    assert commands.api.asked == []


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("forms create acme --name A --allow-origin here", "--allow-origin: 'here' is not valid."),
        ("forms create acme --name A --redirect here", "--redirect: 'here' is not valid."),
        (
            "forms create acme --name A --allow-origin https://a.example --redirect https://b.example/x",
            "--redirect: the page is not at one of the form's origins.",
        ),
        ("sources create acme --name A --provider hmac", "--provider: the provider 'hmac' needs 'header'"),
        ("sources create acme --name A --provider hmac --header a:b", "--header: the name of a header has letters"),
        ("connections create acme --name A --email ada@example.com", "--email: Berth sends no mail here."),
        ("events list acme --source mine", "--source: 'mine' is not valid."),
        ("events list acme --form mine", "--form: 'mine' is not valid."),
    ],
)
def test_messages_about_values_name_the_option(commands: Commands, arguments: str, expected: str) -> None:
    result = commands.berth(*arguments.split())
    assert result.exit_code == ExitCode.BAD_USAGE
    assert result.stderr.splitlines()[-1].startswith(f"Error: {expected}")


@pytest.mark.parametrize(
    ("option", "content", "expected"),
    [
        ("--filter-file", '{"payload": {"total": {"$above": 1}}}', "payload.total.$above: there is no such operator."),
        ("--transform-file", '{"remove": "total"}', "remove is a list of paths"),
    ],
)
def test_messages_about_files_name_the_option(
    commands: Commands, tmp_path: Path, option: str, content: str, expected: str
) -> None:
    file = tmp_path / "given.json"
    file.write_text(content, encoding="utf-8")
    result = commands.berth("connections", "create", "acme", "--name", "A", option, str(file))
    assert result.exit_code == ExitCode.BAD_USAGE
    assert result.stderr.startswith(f"Error: {option}: {expected}")
