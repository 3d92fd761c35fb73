"""Narrow terminals, pipes, and messages in words of the command line."""

from __future__ import annotations

import pytest
from rich.text import Text

from orchestrator.cli.errors import ExitCode
from orchestrator.cli.option_names import in_words_of_options
from orchestrator.common.tenant_ids import TENANT_ID_MAX_LENGTH, TenantId
from tests.fakes import ACME, a_release
from tests.unit.cli.conftest import BERTH, TERMINAL, Scene
from tests.unit.cli.fake_api import ScriptedEventsApi
from tests.unit.cli.test_main import commands_below

LONGEST = TenantId.parse("x" * TENANT_ID_MAX_LENGTH)


def plain(text: str) -> str:
    return Text.from_ansi(text).plain


def test_on_a_narrow_terminal_ids_and_times_are_not_broken(scene: Scene) -> None:
    scene.has(LONGEST)
    scene.berth("label", LONGEST.value, "plan=gold", exits=ExitCode.OK)
    scene.environment |= TERMINAL | {"COLUMNS": "60"}
    lines = [line.rstrip() for line in plain(scene.berth("tenants").stdout).splitlines()]
    assert lines[:5] == [
        LONGEST.value,
        "  State: READY",
        "  Version: 0.1.0",
        "  Updated (UTC): 2026-11-16 12:00",
        "  Labels: plan=gold",
    ]


def test_on_a_narrow_terminal_sentences_are_not_broken_into_single_words(scene: Scene) -> None:
    scene.api.table.record_release(a_release("0.3.0", notes="Events come in, and are read once."))
    scene.environment |= TERMINAL | {"COLUMNS": "60"}
    assert "  Notes: Events come in, and are read once." in plain(scene.berth("releases").stdout).splitlines()


@pytest.mark.parametrize("width", ["40", "60", "80", "200"])
def test_a_history_keeps_its_times_whole_at_any_width(scene: Scene, width: str) -> None:
    scene.has()
    scene.berth("upgrade", "acme", "--reason", "because there is a new release that everybody needs")
    scene.api.begin()
    scene.api.fail()
    scene.environment |= TERMINAL | {"COLUMNS": width}
    shown = plain(scene.berth("tenant", "acme").stdout)
    assert "2026-11-16 12:00:10" in shown
    assert "2026-11-16 12:00:20" in shown


def test_piped_output_is_not_wrapped(scene: Scene) -> None:
    scene.has()
    reason = "because " * 30
    scene.berth("pin", "acme", "0.1.0", "--reason", reason.strip(), exits=ExitCode.OK)
    scene.environment["COLUMNS"] = None
    assert reason.strip() in scene.berth("tenant", "acme").stdout


def test_in_a_pipe_a_connection_with_an_address_is_one_line(scene: Scene) -> None:
    scene.environment["COLUMNS"] = None
    scene.events = ScriptedEventsApi()
    heading, *rows = scene.berth("connections", "list", "acme", exits=ExitCode.OK).stdout.splitlines()
    assert heading.rstrip().endswith("Destination")
    assert [row.split(" api ")[1].strip() for row in rows] == ["webhook https://shop.example.com/hooks/berth"]


def test_on_a_narrow_terminal_the_address_of_a_connection_is_not_broken_into_pieces(scene: Scene) -> None:
    scene.environment |= TERMINAL | {"COLUMNS": "60"}
    scene.events = ScriptedEventsApi()
    lines = plain(scene.berth("connections", "list", "acme", exits=ExitCode.OK).stdout).splitlines()
    assert "  Destination: webhook https://shop.example.com/hooks/berth" in [line.rstrip() for line in lines]


def test_the_bound_is_in_the_message_and_in_the_help(scene: Scene) -> None:
    scene.has()
    assert "at most 500 characters" in scene.berth("unpin", "acme", "--reason", "x" * 501).stderr
    for command in ("create", "unpin", "retry"):
        shown = " ".join(plain(scene.berth(command, "--help").stdout).replace("│", " ").split())
        assert "at most 500 characters" in shown
        assert "1 to 40 letters, digits and inner dashes" in shown or command == "retry"


def test_a_message_that_is_about_no_option_stays_as_it_is() -> None:
    create = next(command for path, command in commands_below(BERTH) if path == ("create",))
    for message in (f"Tenant {ACME}: too many", "unheardOf: 'x' is not a number", "No such thing."):
        assert in_words_of_options(message, create.params) == message
