"""Prints results to stdout, and notes, progress and errors to stderr."""

from __future__ import annotations

import json
import os
import re
import sys
import traceback
from collections.abc import Mapping

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from orchestrator.cli.api import Document
from orchestrator.cli.columns import UNLIMITED, Columns
from orchestrator.cli.escaping import SafeConsole
from orchestrator.common.times import parse_timestamp
from orchestrator.rollouts.records import RolloutStatus, StageStatus
from orchestrator.tenants.records import Operation, RootCause, Status, TenantState

_STYLES: Mapping[str, str] = {
    TenantState.READY: "green",
    TenantState.PROVISIONING: "yellow",
    TenantState.UPDATING: "yellow",
    TenantState.UPDATE_FAILED: "bold red",
    TenantState.FAILED: "bold red",
    TenantState.DELETING: "yellow",
    TenantState.DELETED: "dim",
    TenantState.UNKNOWN: "magenta",
    Status.STARTED: "yellow",
    Status.SUCCESS: "green",
    Status.FAILURE: "bold red",
    # RolloutStatus.FAILED has the same value, and the same style, as TenantState.FAILED.
    RolloutStatus.PENDING: "yellow",
    RolloutStatus.RUNNING: "yellow",
    RolloutStatus.PAUSED: "magenta",
    RolloutStatus.ABORTING: "yellow",
    RolloutStatus.SUCCEEDED: "green",
    RolloutStatus.HALTED: "bold red",
    RolloutStatus.ABORTED: "red",
    StageStatus.WAITING: "dim",
    StageStatus.AWAITING_APPROVAL: "magenta",
    StageStatus.BAKING: "cyan",
    StageStatus.DONE: "green",
    # The event plane: connections, sources, forms and keys, events and deliveries, replays, troubles.
    "active": "green",
    "paused": "magenta",
    "disabled": "bold red",
    "revoked": "red",
    "expired": "dim",
    "received": "yellow",
    "undelivered": "yellow",
    "waiting": "yellow",
    "retrying": "magenta",
    "parked": "magenta",
    "delivered": "green",
    "failed": "bold red",
    "filtered": "dim",
    "running": "yellow",
    "cancelled": "red",
    "finished": "green",
    "damaged": "bold red",
    "failing": "bold red",
}

_NAME_WIDTH = len("root cause: ")


def stdout() -> Console:
    console = SafeConsole(highlight=False, markup=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = UNLIMITED  # Programs read lines, and a line that was broken for nobody is two lines to them.
    return console


def stderr() -> Console:
    return SafeConsole(highlight=False, markup=False, stderr=True)


def show_json(document: Mapping[str, object]) -> None:
    typer.echo(json.dumps(document, indent=2))


def show_json_line(document: Mapping[str, object]) -> None:
    typer.echo(json.dumps(document))


def write_bytes(data: bytes) -> None:
    """Write these bytes as they are. The caller makes sure that no terminal interprets them."""
    stream = typer.get_binary_stream("stdout")
    stream.write(data)
    stream.flush()


def show_pairs(pairs: Mapping[str, str | Text | None]) -> None:
    """Print one line per pair, however long, so that values can be copied. Values that are None are left out."""
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


def show_traceback(error: BaseException) -> None:
    stderr().print(Text("".join(traceback.format_exception(error))), end="", soft_wrap=True)


def prompt(question: str) -> str:
    """The answer that the operator types; empty at the end of input."""
    stderr().print(Text(question), end=" ", soft_wrap=True)
    return sys.stdin.readline().strip()


def columns(*headings: str) -> Columns:
    return Columns(*headings)


def show_table(table: Table, *, wide: bool = False) -> None:
    """Print the table. A ``wide`` one has one line per row, however long, also on a terminal."""
    console = stdout()
    if wide:
        console.width = UNLIMITED
    console.print(table, soft_wrap=wide)


def labels(given: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(given.items()))


def state(word: str) -> Text:
    """A tenant's state, or the status of an operation, a rollout, a stage, or something of the event plane."""
    return Text(word, _STYLES.get(word, ""))


def moment(text: str, to: str = "%Y-%m-%d %H:%M:%S UTC") -> str:
    return parse_timestamp(text).strftime(to)


ALTERED = Text("ALTERED: somebody has overwritten this row", "bold red")
"""Marks a history entry that has changed since it was appended."""


def moment_of_entry(entry: Document) -> str:
    """The time when a history entry was appended; empty for an altered row that has no time."""
    return moment(entry["at"], "%Y-%m-%d %H:%M:%S") if entry["at"] else ""


def duration(seconds: float) -> str:
    """The duration in its two largest units."""
    minutes, rest = divmod(round(max(0.0, seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    units = [f"{number} {unit}" for number, unit in ((hours, "h"), (minutes, "min"), (rest, "s")) if number]
    return " ".join(units[: 2 if not hours or minutes else 1]) or "0 s"


def counted(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or f'{one}s'}"


def who(arn: str) -> str:
    """The last part of an ARN. For a role it is the session's name, often a person's."""
    return re.split("[/:]", arn)[-1]


def operation(record: Document) -> str:
    """The operation and version of a record. The version is left out for a delete: the recorded one means nothing."""
    return str(record["operation"]) + (f" {version(record)}" if version(record) else "")


def version(record: Document) -> str:
    return "" if record["operation"] == Operation.DELETE else record["version"] or ""


def root_cause(document: Document) -> str | None:
    cause = document["rootCause"]
    return str(RootCause(cause["resource"], cause["type"], cause["reason"])) if cause else None
