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
    def test_without_options_they_are_shown(self, commands: Commands) -> None:
        result = commands.berth("events", "settings", "acme")
        assert commands.api.asked == ["GET /tenants/acme/settings"]
        assert lines(result.stdout) == [
            "tenant:     acme",
            "plan:       free",
            "retention:  24 hours",
            "limits:     10,000 events per month, 10 events per second",
            "shards:     1",
            "inbox:      on",
            "type index: on",
            "updated:    2026-11-16 12:00:00 UTC",
        ]
        assert "berth keys create acme" in result.stderr

    def test_options_change_them(self, commands: Commands) -> None:
        options = ("--plan", "PRO", "--no-inbox", "--no-type-index", "--name", "Acme Ltd")
        shown = commands.json("events", "settings", "acme", *options)
        assert (shown["plan"], shown["inbox"], shown["type_index"]) == ("pro", False, False)
        assert "retention:  30 days\n" in commands.berth("events", "settings", "acme").stdout
        assert commands.json("events", "settings", "acme", "--inbox")["inbox"] is True
        assert "name:       Acme Ltd" in commands.berth("events", "settings", "acme").stdout

    def test_a_tenant_that_does_not_exist(self, commands: Commands) -> None:
        result = commands.berth("events", "settings", "globex", "--plan", "free")
        assert result.exit_code == ExitCode.GONE
        assert "no tenant globex" in result.stderr

    def test_a_tenant_without_settings_is_told_how_to_get_them(self, commands: Commands) -> None:
        commands.functions.serve(created_at="2026-11-17T00:00:00.000Z")
        result = commands.berth("keys", "list", "acme")
        assert result.exit_code == ExitCode.GONE
        assert "berth events settings acme --plan free" in result.stderr

    def test_a_plan_that_there_is_not(self, commands: Commands) -> None:
        result = commands.berth("events", "settings", "acme", "--plan", "gold")
        assert result.exit_code == ExitCode.BAD_USAGE
        assert "free, starter, pro, team" in result.stderr.replace("\n", " ")
        assert commands.api.asked == []

    def test_a_control_plane_without_events_says_so(self, scene: Scene) -> None:
        for command in (("events", "settings"), ("keys", "list"), ("sources", "list"), ("forms", "list")):
            result = scene.berth(*command, "acme")
            assert result.exit_code == ExitCode.NO_CONTROL_PLANE
            assert "has no event plane" in result.stderr


@pytest.fixture
def scene() -> Scene:
    return Scene()


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

    def test_the_command_to_try_a_key_fits_its_scopes(self, commands: Commands) -> None:
        result = commands.berth("keys", "create", "acme", "--name", "Reports", "--scope", "read")
        assert f'curl -H "Authorization: Bearer $BERTH_KEY" {EVENTS_API_URL}events\n' in result.stderr

    def test_keys_are_listed(self, commands: Commands) -> None:
        assert "has no API keys" in commands.berth("keys", "list", "acme").stdout
        created = commands.json("keys", "create", "acme", "--name", "Shop", "--scope", "read", "--scope", "write")
        commands.scene.environment["COLUMNS"] = "200"
        listed = commands.berth("keys", "list", "acme")
        (row,) = lines(listed.stdout)[1:]
        assert re.split(r" {2,}| (?=active)", row)[0].startswith(created["key_id"])
        for word in ("Shop", created["prefix"], "read, write", "active", "never"):
            assert word in row

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

    def test_a_key_can_expire(self, commands: Commands) -> None:
        created = commands.json("keys", "create", "acme", "--name", "Shop", "--scope", "read", "--expires", "90")
        assert created["expires_at"] == "2027-02-14T12:00:00.000Z"

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

    def test_on_a_terminal_revoking_is_confirmed(self, commands: Commands) -> None:
        created = commands.json("keys", "create", "acme", "--name", "Shop", "--scope", "admin")
        commands.scene.typed = "no\n"
        result = commands.berth("keys", "revoke", "acme", created["key_id"])
        assert result.exit_code == ExitCode.REFUSED
        assert commands.functions.ask("GET /keys", created["key"]).status == 200
        assert commands.berth("keys", "revoke", "acme", created["key_id"], "--yes").exit_code == ExitCode.OK

    def test_a_key_that_there_is_not(self, commands: Commands) -> None:
        result = commands.berth("keys", "revoke", "--yes", "acme", f"key_{'0' * 24}")
        assert result.exit_code == ExitCode.GONE
        assert "See its keys: berth keys list acme" in result.stderr

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

    def test_documents_have_the_url(self, commands: Commands) -> None:
        created = commands.json("sources", "create", "acme", "--name", "GitHub", "--provider", "github")
        assert created["url"] == f"{EVENTS_API_URL}hooks/{created['source_id']}"
        (listed,) = commands.json("sources", "list", "acme")["sources"]
        assert listed["url"] == created["url"]

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

    def test_there_is_no_option_for_the_secret_itself_and_the_help_says_why(self, commands: Commands) -> None:
        text = " ".join(commands.berth("sources", "create", "--help").stdout.split())
        assert "--secret-file" in text
        assert "--secret " not in text.replace("--secret-file", "")
        assert "other users of the machine can see the arguments" in text

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

    def test_a_sender_with_a_header_of_its_own(self, commands: Commands) -> None:
        options = ("--header", "X-Signature", "--encoding", "base64", "--delivery-id-header", "X-Id")
        created = commands.json("sources", "create", "acme", "--name", "ERP", "--provider", "hmac", *options)
        assert created["verification"] == {
            "header": "X-Signature",
            "encoding": "base64",
            "delivery_id_header": "X-Id",
        }

    def test_a_source_that_checks_nothing_comes_with_a_warning(self, commands: Commands) -> None:
        result = commands.berth("sources", "create", "acme", "--name", "Test", "--provider", "none")
        assert "anyone who knows the URL can send events" in result.stderr
        assert "secret" not in result.stdout

    def test_a_source_is_paused_resumed_and_deleted(self, commands: Commands) -> None:
        source = commands.json("sources", "create", "acme", "--name", "Test", "--provider", "none")["source_id"]
        assert commands.berth("sources", "pause", "acme", source).stdout == (
            f"Source {source} of tenant acme is paused.\n"
        )
        assert "paused" in commands.berth("sources", "list", "acme").stdout
        assert commands.json("sources", "resume", "acme", source)["status"] == "active"
        commands.scene.typed = "\n"
        assert commands.berth("sources", "delete", "acme", source).exit_code == ExitCode.REFUSED
        assert commands.berth("sources", "delete", "acme", source, "--yes").exit_code == ExitCode.OK
        assert "has no sources" in commands.berth("sources", "list", "acme").stdout
        assert commands.berth("sources", "pause", "acme", source).exit_code == ExitCode.GONE


class TestForms:
    ORIGIN = ("--allow-origin", "https://www.example.com")

    def test_a_form_has_an_url(self, commands: Commands) -> None:
        options = ("--redirect", "https://www.example.com/thanks", "--honeypot", "website", "--per-minute", "5")
        result = commands.berth("forms", "create", "acme", "--name", "Contact", *self.ORIGIN, *options)
        shown = {name: value.strip() for name, value in (line.split(":", 1) for line in lines(result.stdout))}
        assert shown["url"] == f"{EVENTS_API_URL}forms/{shown['form id']}"
        assert (shown["honeypot"], shown["per minute"]) == ("website", "5")
        assert "method post" in result.stderr
        assert "Any page" not in result.stderr

    def test_documents_have_the_url(self, commands: Commands) -> None:
        created = commands.json("forms", "create", "acme", "--name", "Contact")
        assert created["url"] == f"{EVENTS_API_URL}forms/{created['form_id']}"
        (listed,) = commands.json("forms", "list", "acme")["forms"]
        assert listed["url"] == created["url"]

    def test_an_origin_that_is_none_is_answered_with_an_example(self, commands: Commands) -> None:
        result = commands.berth("forms", "create", "acme", "--name", "Contact", "--allow-origin", "www.example.com")
        assert result.exit_code == ExitCode.BAD_USAGE
        assert result.stderr == (
            "Error: --allow-origin: 'www.example.com' is not valid. An example: https://www.example.com\n"
        )

    def test_a_form_without_origins_comes_with_a_warning(self, commands: Commands) -> None:
        result = commands.berth("forms", "create", "acme", "--name", "Contact")
        assert "Any page may send this form: berth forms update acme form_" in result.stderr

    def test_a_form_is_changed(self, commands: Commands) -> None:
        created = commands.json("forms", "create", "acme", "--name", "Contact", *self.ORIGIN, "--honeypot", "website")
        changed = commands.json(
            "forms", "update", "acme", created["form_id"], "--allow-origin", "https://a.example", "--no-honeypot"
        )
        assert (changed["origins"], changed["honeypot"], changed["name"]) == (["https://a.example"], None, "Contact")
        assert commands.json("forms", "update", "acme", created["form_id"], "--any-origin")["origins"] == []
        listed = commands.berth("forms", "list", "acme").stdout
        assert "any" in listed

    def test_options_that_contradict_each_other(self, commands: Commands) -> None:
        form = f"form_{'0' * 24}"
        for options in ((*self.ORIGIN, "--any-origin"), ("--honeypot", "a", "--no-honeypot")):
            result = commands.berth("forms", "update", "acme", form, *options)
            assert result.exit_code == ExitCode.BAD_USAGE
            assert "cannot be combined" in result.stderr
        assert commands.api.asked == []

    def test_a_form_is_paused_resumed_and_deleted(self, commands: Commands) -> None:
        form = commands.json("forms", "create", "acme", "--name", "Contact")["form_id"]
        assert commands.json("forms", "pause", "acme", form)["status"] == "paused"
        assert commands.berth("forms", "resume", "acme", form).stdout == (
            f"Form {form} of tenant acme accepts submissions.\n"
        )
        assert commands.berth("forms", "delete", "--yes", "acme", form).exit_code == ExitCode.OK
        assert "has no forms" in commands.berth("forms", "list", "acme").stdout


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


@pytest.mark.parametrize("group", ["events", "keys", "sources", "forms"])
def test_the_help_has_examples(commands: Commands, group: str) -> None:
    assert f"berth {group}" in commands.berth(group, "--help").stdout


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
