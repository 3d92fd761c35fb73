"""How things are shown: results on stdout, everything about getting them on stderr."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from orchestrator.fleet import TenantState
from orchestrator.records import Status

STYLES: Mapping[str, str] = {
    TenantState.READY: "green",
    TenantState.PROVISIONING: "yellow",
    TenantState.FAILED: "bold red",
    TenantState.DELETING: "yellow",
    TenantState.DELETED: "dim",
    TenantState.UNKNOWN: "magenta",
    Status.STARTED: "yellow",
    Status.SUCCESS: "green",
    Status.FAILURE: "bold red",
}

_NAME_WIDTH = len("root cause: ")


def stdout() -> Console:
    return Console(highlight=False)


def stderr() -> Console:
    return Console(highlight=False, stderr=True)


def show_json(document: Mapping[str, object]) -> None:
    typer.echo(json.dumps(document, indent=2))


def show_pairs(pairs: Mapping[str, str | Text | None]) -> None:
    """One line each, however long, so that values can be copied. What there is not is left out."""
    console = stdout()
    for name, value in pairs.items():
        if value is not None:
            console.print(Text(f"{name}:".ljust(_NAME_WIDTH), "cyan") + Text.assemble(value), soft_wrap=True)


def show_line(line: str | Text = "", style: str = "") -> None:
    stdout().print(Text.assemble(line, style=style), soft_wrap=True)


def note(line: str) -> None:
    stderr().print(Text(line, "dim"), soft_wrap=True)


def complain(line: str) -> None:
    stderr().print(Text.assemble(("Error: ", "bold red"), line), soft_wrap=True)


def columns(*headings: str) -> Table:
    """A table without lines, and one blank between columns: 40 characters of a tenant id fit into 80."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def state(value: TenantState | Status) -> Text:
    return Text(value, STYLES[value])


def moment(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
