"""`berth events list`, `show`, `tail` and `send`, and `berth inbox`, against the functions of the Events API."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from orchestrator.api.requesting import HttpRequest
from orchestrator.cli import event_reads
from orchestrator.cli.api import Api
from orchestrator.cli.errors import ExitCode
from orchestrator.cli.invocation import World
from orchestrator.client.client import Client
from orchestrator.client.transport import ApiAnswer
from tests.adapters.events.functions import EventFunctions, http_event
from tests.adapters.events.test_configuration_commands import Commands
from tests.unit.cli.conftest import FakeControlPlane, Result

CLEAR_THE_SCREEN = "\x1b[2J"
LARGE = "x" * 10_000


class WithKey:
    """The Events API, as a producer with this key uses it."""

    def __init__(self, functions: EventFunctions, key: str) -> None:
        self._functions = functions
        self._key = key

    def send(self, request: HttpRequest) -> ApiAnswer:
        event = http_event(f"{request.method} {request.path}", key=self._key, body=request.body)
        answer = self._functions.call("ingest", event)
        return ApiAnswer(answer.status, answer.body)


class EventCommands(Commands):
    """The tenant acme has an API key."""

    def __init__(self, functions: EventFunctions) -> None:
        super().__init__(functions)
        self.key = functions.key("write")
        # Tests send more events per second than the plan free allows.
        assert functions.operate("PUT /settings", body={"plan": "pro"}).status == 200
        self.api.asked.clear()

    def send(self, event_type: str = "order.created", payload: object = None) -> str:
        text = json.dumps({"event_type": event_type, "payload": payload or {"order": 42}})
        return self.send_text(text)

    def send_text(self, text: str) -> str:
        self.functions.clock.advance(timedelta(milliseconds=1))
        answer = self.functions.call("ingest", http_event("POST /events", key=self.key, body=text))
        assert answer.status == 202, answer.body
        return str(answer.body["event_id"])

    def receive(self, body: str, content_type: str = "application/json") -> str:
        """Let a webhook come in, with exactly this body."""
        self.functions.clock.advance(timedelta(milliseconds=1))
        made = self.functions.operate("POST /sources", body={"name": "any", "provider": "none"})
        headers = {"content-type": content_type}
        event = http_event(
            "ANY /hooks/{sourceId}", ids={"sourceId": made.body["source_id"]}, body=body, headers=headers
        )
        event["requestContext"]["http"]["method"] = "POST"
        answer = self.functions.call("receive", event)
        assert answer.status == 200, answer.body
        return str(answer.body["event_id"])

    def submit(self) -> str:
        """Let a submission of a form come in."""
        self.functions.clock.advance(timedelta(milliseconds=1))
        made = self.functions.operate("POST /forms", body={"name": "any"})
        headers = {"content-type": "application/json"}
        event = http_event("ANY /forms/{formId}", ids={"formId": made.body["form_id"]}, body="{}", headers=headers)
        event["requestContext"]["http"]["method"] = "POST"
        answer = self.functions.call("receive", event)
        assert answer.status == 202, answer.body
        return str(answer.body["event_id"])

    def until_interrupted(self, *arguments: str, meanwhile: Sequence[Any] = ()) -> Result:
        """Run a command until it has slept once more than there are actions, and then press Ctrl-C."""

        def press() -> None:
            raise KeyboardInterrupt

        self.scene.meanwhile = [*meanwhile, press]
        return self.berth(*arguments)


@pytest.fixture
def commands(event_functions: EventFunctions) -> EventCommands:
    return EventCommands(event_functions)


def ids(result: Result) -> list[str]:
    return [event["event_id"] for event in json.loads(result.stdout)["events"]]


class TestList:
    def test_events_are_listed_newest_first(self, commands: EventCommands) -> None:
        first, second = commands.send(), commands.send("order.paid")
        result = commands.berth("events", "list", "acme")
        assert result.exit_code == ExitCode.OK
        heading, newest, oldest = (line.rstrip() for line in result.stdout.splitlines())
        assert heading.split() == ["Received", "(UTC)", "Event", "id", "Status", "Type"]
        assert newest == f"2026-11-16 12:00:00 {second} undelivered order.paid"
        assert oldest == f"2026-11-16 12:00:00 {first} undelivered order.created"
        assert commands.api.asked == ["GET /tenants/acme/events"]

    def test_all_pages_are_requested_that_are_needed(
        self, commands: EventCommands, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(event_reads, "MAX_PAGE_SIZE", 2)
        newest_first = [commands.send() for _ in range(5)][::-1]
        assert ids(commands.berth("events", "list", "acme", "--all", "--json")) == newest_first
        first = commands.berth("events", "list", "acme", "--limit", "3", "--json")
        assert ids(first) == newest_first[:3]
        rest = ("events", "list", "acme", "--cursor", json.loads(first.stdout)["cursor"], "--json")
        assert ids(commands.berth(*rest)) == newest_first[3:]
        assert "--all" in commands.berth("events", "list", "acme", "--limit", "3").stderr

    def test_each_filter_selects_its_events(self, commands: EventCommands) -> None:
        order, paid = commands.send(), commands.send("order.paid")
        hook = commands.receive("{}")
        expected = {
            ("--type", "order.paid"): [paid],
            ("--status", "undelivered"): [hook, paid, order],
            ("--status", "failed"): [],
            ("--since", "1h"): [hook, paid, order],
            ("--until", "1h"): [],
            ("--since", "2026-11-16T13:00:00Z"): [],
            ("--submissions",): [],
        }
        for options, found in expected.items():
            assert ids(commands.berth("events", "list", "acme", *options, "--json")) == found

    @pytest.mark.parametrize(
        "options",
        [
            ("--all", "--limit", "5"),
            ("--since", "soon"),
            ("--since", "999999d"),
            ("--status", "happy"),
            ("--type", "a", "--source", f"src_{'0' * 24}"),
            ("--cursor", "nonsense"),
        ],
        ids=" ".join,
    )
    def test_invalid_options_are_bad_usage(self, commands: EventCommands, options: tuple[str, ...]) -> None:
        assert commands.berth("events", "list", "acme", *options).exit_code == ExitCode.BAD_USAGE

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            (("--since", "soon"), "--since: 'soon' is not a time, such as 2026-11-17T12:00:00Z, 30m, 2h or 7d."),
            (("--until", "999999d"), "--until: '999999d' is too long ago."),
            (("--since", "2h", "--until", "3h"), "--since is not before --until, so no event can be found."),
            (
                ("--since", "2026-11-16T12:00:00Z", "--until", "2026-11-16"),
                "--since is not before --until, so no event can be found.",
            ),
            (("--source", "GitHub"), "--source: 'GitHub' is not valid. An example: src_0123456789abcdef01234567"),
            (("--form", "x"), "--form: 'x' is not valid. An example: form_0123456789abcdef01234567"),
        ],
    )
    def test_bad_values_are_answered_with_good_ones(
        self, commands: EventCommands, options: tuple[str, ...], expected: str
    ) -> None:
        assert commands.berth("events", "list", "acme", *options).stderr == f"Error: {expected}\n"


class TestShow:
    def test_an_event_is_shown_with_its_payload(self, commands: EventCommands) -> None:
        event_id = commands.send(payload={"name": "Größe", "order": 42})
        result = commands.berth("events", "show", "acme", event_id)
        assert f"event id:   {event_id}\ntenant:     acme\n" in result.stdout
        assert "type:       order.created\nstatus:     undelivered\n" in result.stdout
        assert result.stdout.endswith('\n\n{\n  "name": "Größe",\n  "order": 42\n}\n')

    def test_control_characters_of_a_payload_are_escaped(self, commands: EventCommands) -> None:
        for body, content_type in (
            (json.dumps({"a": CLEAR_THE_SCREEN}), "application/json"),
            (f"a {CLEAR_THE_SCREEN}", "text/plain"),
            ('{"a": "\u009b31m"}', "application/json"),
        ):
            shown = commands.berth("events", "show", "acme", commands.receive(body, content_type)).stdout
            assert "\\" in shown
            assert all(each.isprintable() or each == "\n" for each in shown)

    @pytest.mark.parametrize("body", [' {"price":  1.50, "price": 2}\n', f"not JSON: {CLEAR_THE_SCREEN}\r\n", LARGE])
    def test_raw_is_the_payload_byte_for_byte(self, commands: EventCommands, body: str) -> None:
        event_id = commands.receive(body)
        result = commands.berth("events", "show", "acme", event_id, "--raw")
        assert (result.exit_code, result.stdout) == (ExitCode.OK, body)

    def test_raw_does_not_write_control_characters_to_a_terminal(self, commands: EventCommands) -> None:
        harmful, harmless = commands.receive(CLEAR_THE_SCREEN), commands.send()
        control_plane = commands.scene.control_plane
        assert control_plane is not None
        world = World(lambda _: control_plane, output_is_a_terminal=lambda: True)
        refused = commands.scene.berth_in(world, ["events", "show", "acme", harmful, "--raw"])
        assert (refused.exit_code, refused.stdout) == (ExitCode.BAD_USAGE, "")
        assert "--raw > FILE" in refused.stderr
        shown = commands.scene.berth_in(world, ["events", "show", "acme", harmless, "--raw"])
        assert shown.stdout == '{"order": 42}'

    def test_an_event_by_timestamp_and_id_and_as_json(self, commands: EventCommands) -> None:
        event_id = commands.send()
        found = commands.json("events", "show", "acme", event_id)
        assert found["payload"] == {"order": 42}
        assert commands.json("events", "show", "acme", f"{found['timestamp']}#{event_id}") == found


class TestTail:
    def test_events_are_shown_once_as_they_come_in_newest_last(self, commands: EventCommands) -> None:
        sent = [commands.send()]
        come_in = [lambda: sent.append(commands.send("order.paid")), lambda: None, lambda: sent.append(commands.send())]
        result = commands.until_interrupted("events", "tail", "acme", meanwhile=come_in)
        assert result.exit_code == ExitCode.OK
        assert [line.split()[2] for line in result.stdout.splitlines()] == sent
        assert result.stdout.splitlines()[1].endswith(f"{sent[1]} undelivered order.paid")
        assert result.stderr.splitlines() == [
            "Waiting for events of tenant acme. Ctrl-C ends this. Submissions of forms: --submissions.",
            "No longer watching.",
        ]
        assert commands.scene.pauses == [event_reads.POLL_SECONDS] * 4

    def test_it_begins_with_the_last_events_and_misses_none_after_that(
        self, commands: EventCommands, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(event_reads, "MAX_PAGE_SIZE", 2)
        sent = [commands.send() for _ in range(event_reads.FIRST_EVENTS + 2)]
        come_in = [lambda: sent.extend(commands.send() for _ in range(5))]
        result = commands.until_interrupted("events", "tail", "acme", "--json", meanwhile=come_in)
        assert [json.loads(line)["event_id"] for line in result.stdout.splitlines()] == sent[2:]

    def test_a_tenant_without_events_yet(self, commands: EventCommands) -> None:
        sent: list[str] = []
        come_in = [lambda: sent.extend(commands.send() for _ in range(event_reads.FIRST_EVENTS + 1))]
        result = commands.until_interrupted("events", "tail", "acme", meanwhile=come_in)
        assert [line.split()[2] for line in result.stdout.splitlines()] == sent

    def test_events_of_one_type_are_listed(self, commands: EventCommands) -> None:
        commands.send()
        wanted = commands.send("order.paid")
        result = commands.until_interrupted("events", "tail", "acme", "--type", "order.paid", "--json")
        assert [json.loads(line)["event_id"] for line in result.stdout.splitlines()] == [wanted]

    def test_submissions_of_forms(self, commands: EventCommands) -> None:
        commands.send()
        sent: list[str] = []
        come_in = [lambda: sent.append(commands.submit())]
        result = commands.until_interrupted("events", "tail", "acme", "--submissions", "--json", meanwhile=come_in)
        assert [json.loads(line)["event_id"] for line in result.stdout.splitlines()] == sent
        assert result.stderr.startswith("Waiting for submissions of tenant acme. Ctrl-C ends this.\n")
        # Submissions have one type, and are not listed by it.
        both = commands.berth("events", "tail", "acme", "--submissions", "--type", "a")
        assert both.exit_code == ExitCode.BAD_USAGE

    def test_an_error_ends_it(self, commands: EventCommands) -> None:
        assert commands.berth("events", "tail", "nobody").exit_code == ExitCode.GONE


class TestInbox:
    def test_it_is_read_oldest_first_and_acknowledged(self, commands: EventCommands) -> None:
        first, second = commands.send(), commands.send()
        shown = commands.berth("inbox", "acme")
        assert [line.split()[2] for line in shown.stdout.splitlines()[1:]] == [first, second]
        assert "berth inbox ack acme" in shown.stderr
        done = commands.berth("inbox", "ack", "acme", first, first)
        assert (done.exit_code, done.stdout) == (ExitCode.OK, "1 event of tenant acme acknowledged.\n")
        assert ids(commands.berth("inbox", "acme", "--json")) == [second]
        assert commands.json("events", "show", "acme", first)["status"] == "delivered"

    def test_as_json_it_has_payloads_also_large_ones(self, commands: EventCommands) -> None:
        commands.send(payload={"large": LARGE})
        (event,) = commands.json("inbox", "acme")["events"]
        assert event["payload"] == {"large": LARGE}

    def test_ids_from_standard_input(self, commands: EventCommands) -> None:
        sent = [commands.send() for _ in range(3)]
        commands.scene.typed = "\n".join(sent) + "\n"
        assert commands.berth("inbox", "ack", "acme", "-").stdout == "3 events of tenant acme acknowledged.\n"
        assert commands.berth("inbox", "acme").stdout == "The inbox of tenant acme has no events.\n"
        commands.scene.typed = ""
        assert commands.berth("inbox", "ack", "acme", "-").exit_code == ExitCode.BAD_USAGE

    def test_an_unknown_event_is_named_and_the_others_are_acknowledged(self, commands: EventCommands) -> None:
        known, unknown = commands.send(), "0193f1c0-4a00-7000-8000-00000000a1b0"
        result = commands.berth("inbox", "ack", "acme", unknown, known)
        assert result.exit_code == ExitCode.GONE
        assert result.stdout == "1 event of tenant acme acknowledged.\n"
        assert unknown in result.stderr

    def test_it_reads_as_many_as_are_asked_for_and_of_one_type(self, commands: EventCommands) -> None:
        sent = [commands.send() for _ in range(3)]
        commands.send("order.paid")
        assert ids(commands.berth("inbox", "--limit", "2", "acme", "--json")) == sent[:2]
        assert commands.json("inbox", "acme", "--limit", "2")["cursor"] == sent[1]
        assert commands.json("inbox", "acme")["cursor"] is None
        assert len(ids(commands.berth("inbox", "acme", "--type", "order.paid", "--json"))) == 1
        assert "There are more." in commands.berth("inbox", "acme", "--limit", "2").stderr

    def test_an_inbox_that_is_off_says_how_to_switch_it_on(self, commands: EventCommands) -> None:
        commands.json("events", "settings", "acme", "--no-inbox")
        result = commands.berth("inbox", "acme")
        assert result.exit_code == ExitCode.REFUSED
        assert "berth events settings acme --inbox" in result.stderr


class KeyedControlPlane(FakeControlPlane):
    functions: EventFunctions

    def events_api(self, key: str | None = None) -> Api:
        return Client(transport=WithKey(self.functions, key)) if key else super().events_api()


class TestSend:
    @pytest.fixture(autouse=True)
    def _with_keys(self, commands: EventCommands) -> None:
        control_plane = KeyedControlPlane(commands.scene.api, events=commands.api)
        control_plane.functions = commands.functions
        commands.scene.control_plane = control_plane

    def test_an_event_is_sent_with_the_key_of_its_tenant(self, commands: EventCommands, tmp_path: Path) -> None:
        commands.scene.environment["BERTH_KEY"] = commands.key
        commands.scene.typed = '{"order": 42}'
        sent = commands.json("events", "send", "--type", "order.created")
        assert commands.json("events", "show", "acme", sent["event_id"])["payload"] == {"order": 42}
        payload, key = tmp_path / "order.json", tmp_path / "key"
        payload.write_text('{"order": 43}')
        key.write_text(f"{commands.key}\n")
        commands.scene.environment["BERTH_KEY"] = None
        result = commands.berth("events", "send", "--type", "order.created", str(payload), "--key-file", str(key))
        assert result.exit_code == ExitCode.OK
        assert commands.key not in result.output
        assert len(ids(commands.berth("events", "list", "acme", "--json"))) == 2

    def test_without_a_key_and_with_a_wrong_one(self, commands: EventCommands) -> None:
        commands.scene.environment["BERTH_KEY"] = None
        commands.scene.typed = "{}"
        result = commands.berth("events", "send", "--type", "a")
        assert result.exit_code == ExitCode.BAD_USAGE
        assert "berth keys create" in result.stderr
        commands.scene.environment["BERTH_KEY"] = "bk_test_" + "x" * 43
        assert commands.berth("events", "send", "--type", "a").exit_code == ExitCode.NO_CONTROL_PLANE

    @pytest.mark.parametrize("around", ["key: {}\nname: Shop", "{} {}", "{}x", "{}\x1b[2J", "{}é"])
    def test_a_key_with_other_text_is_neither_sent_nor_shown(
        self, commands: EventCommands, tmp_path: Path, around: str
    ) -> None:
        text, file = around.format(commands.key, commands.key), tmp_path / "key"
        file.write_text(text, encoding="utf-8")
        commands.scene.typed = "{}"
        commands.scene.environment["BERTH_KEY"] = text
        for options, named in (((), "BERTH_KEY"), (("--key-file", str(file)), str(file))):
            result = commands.berth("events", "send", "--type", "a", *options)
            assert result.exit_code == ExitCode.BAD_USAGE
            assert named in result.stderr
            assert commands.key not in result.output

    def test_a_key_file_that_cannot_be_read(self, commands: EventCommands, tmp_path: Path) -> None:
        missing, binary = tmp_path / "missing", tmp_path / "binary"
        binary.write_bytes(b"\xff\xfe")
        expected = {missing: "No such file or directory", tmp_path: "Is a directory", binary: "it is not UTF-8"}
        for file, why in expected.items():
            result = commands.berth("events", "send", "--type", "a", "--key-file", str(file))
            assert result.stderr == f"Error: The API key cannot be read from '{file}': {why}\n"

    @pytest.mark.parametrize("payload", ["", "[]", "42", "{", '{"a": NaN}'])
    def test_a_payload_that_is_not_an_object(self, commands: EventCommands, payload: str) -> None:
        commands.scene.environment["BERTH_KEY"] = commands.key
        commands.scene.typed = payload
        result = commands.berth("events", "send", "--type", "a")
        assert result.exit_code == ExitCode.BAD_USAGE
        assert "not a JSON object" in result.stderr


def test_an_invalid_tenant_id_is_refused_before_any_request(commands: EventCommands) -> None:
    for command in (("events", "list"), ("events", "tail"), ("inbox",)):
        assert commands.berth(*command, "a/b").exit_code == ExitCode.BAD_USAGE
    assert commands.api.asked == []
