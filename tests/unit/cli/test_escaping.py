"""Nothing that comes from elsewhere steers the operator's terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.table import Table
from rich.text import Text

from orchestrator.cli import render
from orchestrator.cli.escaping import escaped, safe_console

CLEAR_THE_SCREEN = "\x1b[2J"
SET_THE_TITLE = "\x1b]0;owned\x07"
C1 = "\x9b31m"
TURNED_AROUND = "\u202egnp.exe"
HARMFUL = [CLEAR_THE_SCREEN, SET_THE_TITLE, C1, TURNED_AROUND, "\x08", "\x7f", "\r", "\u2028", "\ud800"]


@pytest.mark.parametrize("harmful", HARMFUL, ids=ascii)
def test_a_control_character_is_spelled_out(harmful: str) -> None:
    shown = escaped(f"before {harmful} after")
    assert shown.isprintable()
    assert shown.isascii()
    assert shown.startswith("before \\")


@pytest.mark.parametrize("harmless", ["plain", "Größe 日本語", "two\nlines\tand a tab", "\\x1b as text"])
def test_text_stays_text(harmless: str) -> None:
    assert escaped(harmless) == harmless


@pytest.mark.parametrize("harmful", HARMFUL, ids=ascii)
def test_no_way_of_printing_lets_one_through(harmful: str) -> None:
    sink = io.StringIO()
    console = safe_console(Console(file=sink, force_terminal=False, width=200))
    table = Table()
    table.add_column(harmful)
    table.add_row(Text(harmful), f"plain {harmful}")
    console.print(Text(harmful), harmful, table, soft_wrap=True)
    assert all(each.isprintable() or each == "\n" for each in sink.getvalue())


def test_styles_are_still_drawn() -> None:
    sink = io.StringIO()
    safe_console(Console(file=sink, force_terminal=True, color_system="standard")).print(Text(C1, "red"))
    assert sink.getvalue() == "\x1b[31m\\x9b31m\x1b[0m\n"


@pytest.mark.parametrize("harmful", HARMFUL, ids=ascii)
def test_every_command_prints_by_such_a_console(harmful: str, capsys: pytest.CaptureFixture[str]) -> None:
    render.show_pairs({"root cause": f"The queue {harmful} failed"})
    render.show_line(harmful)
    render.note(harmful)
    render.complain(harmful)
    render.show_json({"detail": harmful})
    told = "".join(capsys.readouterr())
    assert all(each.isprintable() or each == "\n" for each in told)
