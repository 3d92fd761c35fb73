"""Text from outside cannot control the operator's terminal."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.live import Live
from rich.table import Table
from rich.text import Text

from orchestrator.cli import render
from orchestrator.cli.escaping import SafeConsole, escaped
from orchestrator.tenants.decisions import Failed
from orchestrator.tenants.records import RootCause, Status
from tests.fakes import an_audit
from tests.unit.cli.conftest import Scene

ROOT = Path(__file__).parents[3]
CLEAR_THE_SCREEN = "\x1b[2J"
SET_THE_TITLE = "\x1b]0;owned\x07"
C1 = "\x9b31m"
TURNED_AROUND = "\u202egnp.exe"
HARMFUL = [CLEAR_THE_SCREEN, SET_THE_TITLE, C1, TURNED_AROUND, "\x08", "\x7f", "\r", "\u2028", "\ud800"]


@pytest.mark.parametrize("harmful", HARMFUL, ids=ascii)
def test_a_control_character_is_escaped(harmful: str) -> None:
    shown = escaped(f"before {harmful} after")
    assert shown.isprintable()
    assert shown.isascii()
    assert shown.startswith("before \\")


@pytest.mark.parametrize("harmless", ["plain", "Größe 日本語", "two\nlines\tand a tab", "\\x1b as text"])
def test_printable_text_is_unchanged(harmless: str) -> None:
    assert escaped(harmless) == harmless


@pytest.mark.parametrize("harmful", HARMFUL, ids=ascii)
def test_every_function_that_prints_escapes(harmful: str) -> None:
    sink = io.StringIO()
    console = SafeConsole(file=sink, force_terminal=False, width=200)
    table = Table()
    table.add_column(harmful)
    table.add_row(Text(harmful), f"plain {harmful}")
    console.print(Text(harmful), harmful, table, soft_wrap=True)
    assert all(each.isprintable() or each == "\n" for each in sink.getvalue())


@pytest.mark.parametrize("text", ["[/x]", "[link=https://elsewhere.example/]a[/link]", "[bold]a[/]"])
def test_square_brackets_are_printed_and_not_interpreted_as_markup(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = render.columns("Tenant")
    table.add_row(text)
    for console in (render.stdout(), render.stderr()):
        console.print(table)
    assert all(text in shown for shown in capsys.readouterr())


@pytest.mark.parametrize("harmful", HARMFUL, ids=ascii)
def test_a_redrawn_display_escapes_too(harmful: str) -> None:
    sink = io.StringIO()
    console = SafeConsole(file=sink, force_terminal=True, color_system=None, width=200)
    with Live(Text(f"before {harmful} after"), console=console, auto_refresh=False) as live:
        live.refresh()
    assert f"before {harmful[0]}" not in sink.getvalue()


def test_styles_are_kept() -> None:
    sink = io.StringIO()
    SafeConsole(file=sink, force_terminal=True, color_system="standard").print(Text(C1, "red"))
    assert sink.getvalue() == "\x1b[31m\\x9b31m\x1b[0m\n"


@pytest.mark.parametrize("harmful", HARMFUL, ids=ascii)
def test_every_command_uses_a_safe_console(harmful: str, capsys: pytest.CaptureFixture[str]) -> None:
    render.show_pairs({"root cause": f"The queue {harmful} failed"})
    render.show_line(harmful)
    render.note(harmful)
    render.complain(harmful)
    render.show_json({"detail": harmful})
    output = "".join(capsys.readouterr())
    assert all(each.isprintable() or each == "\n" for each in output)


@pytest.mark.parametrize("harmful", HARMFUL, ids=ascii)
def test_a_traceback_is_escaped(harmful: str, capsys: pytest.CaptureFixture[str]) -> None:
    render.show_traceback(ValueError(f"The queue {harmful} failed"))
    output = capsys.readouterr().err
    assert output.startswith("ValueError: The queue ")
    assert all(each.isprintable() or each == "\n" for each in output)


def test_the_output_of_debug_is_escaped(scene: Scene) -> None:
    cause = RootCause("InboundQueue", "AWS::SQS::Queue", f"{SET_THE_TITLE}{CLEAR_THE_SCREEN}{TURNED_AROUND}")
    scene.queue_answers(Failed(an_audit(Status.FAILURE, root_cause=cause)))
    output = scene.berth("--debug", "get-queue", "acme").stderr
    assert "Traceback" in output
    assert all(each.isprintable() or each == "\n" for each in output)


def test_no_module_prints_without_a_safe_console() -> None:
    """The exceptions print JSON, which escapes everything that is not ASCII, and our own version and OpenAPI documents.

    The pages of `berth console` are no console of a terminal.
    """
    others: list[str] = []
    for path in sorted((ROOT / "orchestrator").rglob("*.py")):
        for line in path.read_text(encoding="utf-8").splitlines():
            if re.search(r"(?<!Safe)Console\(|\bprint_exc|[^.\w]print\(|typer\.echo\(|std(out|err)\.write", line):
                others.append(f"{path.name}: {line.strip()}")
    assert others == [
        'app.py: typer.echo(f"berth {berth_version()}, tenant template {template_version()}")',
        "console.py: served = Console(control_plane, place_of(control_plane, here.options.profile), read_only, "
        "here.world.now)",
        "openapi.py: typer.echo(written(EVENT_PLANE if events else CONTROL_PLANE), nl=False)",
        "render.py: typer.echo(json.dumps(document, indent=2))",
        "render.py: typer.echo(json.dumps(document))",
        "console.py: shown = Console(control_plane, place_of(control_plane))",
        'schemas.py: sys.stdout.write(json.dumps({kind.value: schema_of(kind) for kind in Kind}, indent=2) + "\\n")',
    ]
