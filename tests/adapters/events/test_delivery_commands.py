"""`berth deliveries`, `attempts`, `resend`, `replay` and `listen`, against the functions of the Events API."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook

from orchestrator.cli.errors import ExitCode
from orchestrator.cli.replay import FOLLOW_SECONDS
from orchestrator.events.delivery import rounds, transitions
from orchestrator.events.delivery.records import DeliveryEntry, DeliveryState
from tests.adapters.events.functions import EventFunctions
from tests.adapters.events.test_configuration_commands import Commands
from tests.adapters.events.test_delivery_functions import Scene
from tests.fakes.receivers import Receiver, answers
from tests.present import present
from tests.unit.cli.conftest import Result

UNKNOWN = "conn_" + "9" * 24


class DeliveryCommands(Commands):
    def __init__(self, functions: EventFunctions) -> None:
        super().__init__(functions)
        self.world = Scene(functions)
        self.connection = self.world.connection

    def until_interrupted(self, *arguments: str, meanwhile: list[Any]) -> Result:
        """Run a command until it has slept once more than there are actions, and then press Ctrl-C."""

        def press() -> None:
            raise KeyboardInterrupt

        self.scene.meanwhile = [*meanwhile, press]
        return self.berth(*arguments)


@pytest.fixture
def commands(event_functions: EventFunctions) -> DeliveryCommands:
    return DeliveryCommands(event_functions)


class TestDeliveries:
    def test_only_so_many_are_listed(self, commands: DeliveryCommands) -> None:
        failed = [commands.world.failed() for _ in range(3)]
        some = commands.json("deliveries", "acme", commands.connection, "--limit", "2")
        assert [each["event_id"] for each in some["deliveries"]] == failed[:0:-1]
        assert some["cursor"]
        every = commands.json("deliveries", "acme", commands.connection, "--all")
        assert ([each["event_id"] for each in every["deliveries"]], every["cursor"]) == (failed[::-1], None)

    def test_others_are_refused_with_what_to_do(self, commands: DeliveryCommands) -> None:
        result = commands.berth("deliveries", "acme", commands.connection, "--status", "retrying")
        assert result.exit_code == ExitCode.BAD_USAGE
        told = " ".join(result.stderr.split())
        assert "List the events with the status retrying instead. That list leaves out events" in told
        assert "wait in the inbox" in told
        assert commands.berth("deliveries", "acme", UNKNOWN).exit_code == ExitCode.GONE
        unknown = commands.berth("deliveries", "acme", commands.connection, "--status", "gone")
        assert "status: 'gone' is not one of failed, parked" in unknown.stderr


class TestListsByStatus:
    @pytest.mark.parametrize("status", ["retrying", "failed"])
    def test_they_say_that_they_leave_out_the_inbox(self, commands: DeliveryCommands, status: str) -> None:
        getattr(commands.world, status)()
        listed = commands.berth("events", "list", "acme", "--status", status)
        assert listed.stdout == "Tenant acme has no such events outside its inbox.\n"
        told = " ".join(listed.stderr.split())
        assert told.startswith("Events that wait in the inbox are not in this list.")
        for command in ("berth inbox acme", "berth attempts acme EVENT_ID", "berth deliveries acme CONNECTION_ID"):
            assert command in told


class TestAttempts:
    def test_a_delivery_to_a_queue_has_no_status_code_and_is_not_called_unanswered(
        self, commands: DeliveryCommands
    ) -> None:
        world, event_id = commands.world, commands.world.send()
        event = present(world.table.event(world.life, event_id))
        taken = DeliveryEntry(DeliveryState.DELIVERED, 1, world.functions.clock.now(), milliseconds=84)
        assert world.table.apply(transitions.delivered_at_first(event, commands.connection, taken))
        result = commands.berth("attempts", "acme", event_id)
        assert result.stdout.endswith(f"{commands.connection} (orders) try 1 delivered taken, 84 ms\n")

    def test_an_event_that_nobody_has_tried(self, commands: DeliveryCommands) -> None:
        result = commands.berth("attempts", "acme", commands.world.send())
        assert "No connection has tried to deliver it yet." in result.stdout

    def test_an_event_that_no_connection_wants(self, commands: DeliveryCommands) -> None:
        assert commands.berth("events", "settings", "acme", "--no-inbox").exit_code == ExitCode.OK
        commands.world.functions.clock.advance(timedelta(minutes=1))
        result = commands.berth("attempts", "acme", commands.world.filtered())
        assert "status:     filtered" in result.stdout
        assert "No connection wants it." in result.stdout


class TestResend:
    def test_a_failed_event_is_sent_again(self, commands: DeliveryCommands) -> None:
        event_id = commands.world.failed()
        result = commands.berth("resend", "acme", event_id)
        assert (result.exit_code, result.stdout) == (
            ExitCode.OK,
            f"To {commands.connection} (orders): the event is being sent.\n",
        )
        assert result.stderr == f"How it goes: berth attempts acme {event_id}\n"
        assert len(commands.world.messages()) == 1
        again = commands.json("resend", "acme", event_id, "--connection", commands.connection)
        assert again["results"] == [{"connection_id": commands.connection, "result": "due"}]

    def test_an_event_that_was_sent_too_often_is_not(
        self, commands: DeliveryCommands, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        event_id = commands.world.failed()
        monkeypatch.setattr(rounds, "MAX_TRIES", 1)
        result = commands.berth("resend", "acme", event_id)
        assert result.exit_code == ExitCode.OK
        assert "is not sent again, because it was sent too often" in " ".join(result.stdout.split())
        assert commands.world.messages() == []

    def test_an_event_of_which_nothing_failed_is_refused(self, commands: DeliveryCommands) -> None:
        result = commands.berth("resend", "acme", commands.world.send())
        assert result.exit_code == ExitCode.REFUSED
        assert "No delivery of it has failed for good. Name a connection" in " ".join(result.stderr.split())

    def test_a_bad_id_is_refused_without_a_request(self, commands: DeliveryCommands) -> None:
        commands.api.asked.clear()
        for arguments in (("42",), (commands.world.send(), "--connection", "42")):
            assert commands.berth("resend", "acme", *arguments).exit_code == ExitCode.BAD_USAGE
        assert commands.api.asked == []


class TestReplay:
    def test_it_is_followed_until_it_is_finished(self, commands: DeliveryCommands) -> None:
        commands.world.failed()
        commands.functions.clock.advance(timedelta(minutes=1))
        commands.scene.meanwhile = [lambda: None, commands.world.sweep]
        result = commands.berth(
            "replay", "acme", "--connection", commands.connection, "--since", "2026-11-16T11:00:00Z", "--follow"
        )
        assert result.exit_code == ExitCode.OK, result.output
        # The function of the sweep runs in the same process, and writes its metrics to standard output, too.
        running, finished = (line for line in result.stdout.splitlines() if line.startswith("rpl_"))
        assert "running   0 %: 0 events looked at, 0 sent, 0 skipped" in running
        assert "finished  100 %: 1 event looked at, 1 sent, 0 skipped" in finished
        assert commands.scene.pauses == [FOLLOW_SECONDS] * 2

    def test_replays_are_listed_shown_paused_resumed_and_cancelled(self, commands: DeliveryCommands) -> None:
        assert commands.berth("replay", "list", "acme").stdout == "Tenant acme has no replays.\n"
        started = commands.json("replay", "acme", "--from", "api", "--since", "2026-11-16T11:00:00Z", "--only-failed")
        replay_id = started["replay_id"]
        assert replay_id in commands.berth("replay", "list", "acme").stdout
        shown = commands.berth("replay", "show", "acme", replay_id)
        assert "to:         all connections of api" in shown.stdout
        assert "sends:      only what failed" in shown.stdout
        for order, status in (("pause", "paused"), ("resume", "running"), ("cancel", "cancelled")):
            assert commands.json("replay", order, "acme", replay_id)["status"] == status
        assert commands.berth("replay", "resume", "acme", replay_id).exit_code == ExitCode.REFUSED
        assert commands.berth("replay", "show", "acme", replay_id, "--follow").exit_code == ExitCode.FAILED
        assert commands.berth("replay", "show", "acme", "rpl_" + "0" * 24).exit_code == ExitCode.GONE

    def test_ctrl_c_ends_watching_and_not_the_replay(self, commands: DeliveryCommands) -> None:
        started = ("replay", "acme", "--from", "api", "--since", "2026-11-16T11:00:00Z", "--follow")
        result = commands.until_interrupted(*started, meanwhile=[])
        assert "The replay goes on." in result.stderr
        (replay,) = commands.json("replay", "list", "acme")["replays"]
        assert replay["status"] == "running"

    def test_a_delivered_event_is_resent_only_after_confirmation(self, commands: DeliveryCommands) -> None:
        commands.scene.typed = "no\n"
        everything = ("replay", "acme", "--from", "api", "--since", "2026-11-16T11:00:00Z", "--include-delivered")
        assert commands.berth(*everything).exit_code == ExitCode.REFUSED
        assert commands.functions.operate("GET /replays").body["replays"] == []
        assert commands.berth(*everything, "--yes").exit_code == ExitCode.OK

    @pytest.mark.parametrize(
        "options",
        [
            ("--since", "1h"),
            ("--since", "1h", "--from", "api", "--connection", UNKNOWN),
            ("--since", "yesterday", "--from", "api"),
            ("--since", "1h", "--connection", "42"),
            ("--from", "api"),
        ],
    )
    def test_invalid_options_are_bad_usage(self, commands: DeliveryCommands, options: tuple[str, ...]) -> None:
        assert commands.berth("replay", "acme", *options).exit_code == ExitCode.BAD_USAGE


class TestListen:
    def test_only_new_events_are_shown(self, commands: DeliveryCommands) -> None:
        commands.world.send()
        sent: list[str] = []
        come_in = [lambda: sent.append(commands.world.send()), lambda: None]
        result = commands.until_interrupted("listen", "acme", meanwhile=come_in)
        assert result.exit_code == ExitCode.OK
        assert [line.split()[2] for line in result.stdout.splitlines()] == sent
        assert result.stderr.splitlines()[-1] == "No longer listening."

    def test_events_are_forwarded_signed_and_answers_are_shown(self, commands: DeliveryCommands) -> None:
        sent: list[str] = []
        come_in = [lambda: sent.extend(commands.world.send() for _ in range(2))]
        with Receiver(answers(200, b"thanks"), answers(500, b"out of order")) as receiver:
            url = f"http://127.0.0.1:{receiver.port}/hook"
            result = commands.until_interrupted("listen", "acme", "--forward", url, meanwhile=come_in)
            received = list(receiver.requests)
        secret = result.stderr.split("signed with ")[1].split()[0]
        assert [each.headers["webhook-id"] for each in received] == [f"{each}-listen" for each in sent]
        for each in received:
            assert (each.path, each.headers["berth-event-type"]) == ("/hook", "order.created")
            assert (
                Webhook(secret).sign(
                    each.headers["webhook-id"], _moment(each.headers["webhook-timestamp"]), each.body.decode()
                )
                in each.headers["webhook-signature"].split()
            )
        first, second = (line for line in result.stdout.splitlines() if line.startswith("  "))
        assert first.startswith("  200 in ")
        assert first.endswith(" thanks")
        assert second.startswith("  500 in ")

    def test_a_server_that_is_not_there_is_told_and_listening_goes_on(
        self, commands: DeliveryCommands, tmp_path: Path
    ) -> None:
        with Receiver(answers(200)) as receiver:
            url = f"http://127.0.0.1:{receiver.port}/hook"
        secret = tmp_path / "secret"
        secret.write_text("whsec_" + "QUJD" * 8)
        result = commands.until_interrupted(
            *("listen", "acme", "--forward", url, "--secret-file", str(secret), "--json"),
            meanwhile=[commands.world.send, commands.world.send],
        )
        lines = [json.loads(line) for line in result.stdout.splitlines()]
        assert [each["forwarded"]["code"] for each in lines] == [None, None]
        assert "signed with the secret of --secret-file" in result.stderr
        assert secret.read_text() not in result.output

    @pytest.mark.parametrize(
        "url",
        [
            "https://example.com/hook",
            "http://192.168.1.5:3000/hook",
            "http://169.254.169.254/latest",
            "http://127.0.0.1.nip.io:3000/",
            "http://0.0.0.0:3000/",
            "ftp://127.0.0.1/",
            "127.0.0.1:3000",
            "nonsense",
        ],
    )
    def test_events_are_forwarded_to_this_machine_only(self, commands: DeliveryCommands, url: str) -> None:
        commands.api.asked.clear()
        result = commands.until_interrupted("listen", "acme", "--forward", url, meanwhile=[])
        assert result.exit_code == ExitCode.BAD_USAGE
        assert "such as http://127.0.0.1:3000/hook" in " ".join(result.stderr.split())
        assert commands.api.asked == []

    def test_a_secret_that_is_none_is_refused(self, commands: DeliveryCommands, tmp_path: Path) -> None:
        secret = tmp_path / "secret"
        secret.write_text("correct horse")
        forward = ("listen", "acme", "--forward", "http://127.0.0.1:3000/", "--secret-file", str(secret))
        assert commands.until_interrupted(*forward, meanwhile=[]).exit_code == ExitCode.BAD_USAGE
        assert commands.berth("listen", "acme", "--secret-file", str(secret)).exit_code == ExitCode.BAD_USAGE


def _moment(timestamp: str) -> datetime:
    return datetime.fromtimestamp(int(timestamp), UTC)
