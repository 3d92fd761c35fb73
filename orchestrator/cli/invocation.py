"""The parts that every command shares: global options, access to the outside world, and error reporting."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, TypeVar

import typer

from orchestrator.cli import render
from orchestrator.cli.api import Api
from orchestrator.cli.control_plane import ControlPlane, Options, find
from orchestrator.cli.errors import NotConfirmed, explain
from orchestrator.cli.interrupts import came_of_an_interrupt
from orchestrator.cli.progress import Progress
from orchestrator.client.retrying import BUSY_RETRY_SECONDS, Retrying

MAX_SECONDS = 7 * 24 * 3600
"""The longest --timeout. It keeps values out that overflow a clock."""

Tenant = Annotated[str, typer.Argument(metavar="TENANT", help="The tenant's id.", show_default=False)]
Timeout = Annotated[int, typer.Option(metavar="SECONDS", min=1, max=MAX_SECONDS, help="How long to wait.")]
Reason = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="Why: one line, recorded in the history with your name.", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]

NOT_ASKED = "Without a terminal there is no question."

Choice = TypeVar("Choice", bound=StrEnum)


def one_of(choices: type[Choice]) -> Callable[[str], Choice]:
    """A parser for an option whose value is one of several words, in upper or lower case."""

    def parse(value: str) -> Choice:
        for choice in choices:
            if choice.lower() == value.lower():
                return choice
        raise typer.BadParameter(f"{value!a} is not one of {', '.join(choices)}.")

    return parse


@dataclass(frozen=True, slots=True)
class World:
    """Access to the outside world: control plane, clock, terminal. Tests pass their own as the context's object."""

    find: Callable[[Options], ControlPlane] = find
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    someone_is_there: Callable[[], bool] = lambda: sys.stdin.isatty()
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    output_is_a_terminal: Callable[[], bool] = lambda: sys.stdout.isatty()


@dataclass(frozen=True, slots=True)
class Invocation:
    """One invocation of `berth`: its global options, and its access to the outside world."""

    options: Options
    debug: bool
    world: World = field(default_factory=World)

    def find(self) -> ControlPlane:
        return self.world.find(self.options)

    def connect(self) -> Api:
        """The control plane's API. Most commands need nothing else."""
        return self.find().api()

    def confirm(self, warning: str) -> None:
        """Ask the operator to confirm, if there is a terminal."""
        if self.world.someone_is_there() and render.prompt(f"{warning} Type yes to continue:") != "yes":
            raise NotConfirmed("The answer was not yes, so nothing was done.")

    @contextmanager
    def retrying(self, seconds: float = BUSY_RETRY_SECONDS) -> Iterator[Retrying]:
        world = self.world
        with Progress(world.monotonic) as progress:
            yield Retrying(progress, seconds=seconds, monotonic=world.monotonic, sleep=world.sleep)

    @contextmanager
    def reporting_errors(self, *, as_json: bool) -> Iterator[None]:
        """Report an exception as one line on stderr, advice, and an exit code; with ``--json`` also as a document."""
        try:
            yield
        except BrokenPipeError:
            raise  # The reader has closed the pipe; typer exits without a message.
        except Exception as error:
            if came_of_an_interrupt(error):
                raise KeyboardInterrupt from error
            if self.debug:
                render.show_traceback(error)
            failure = explain(error)
            if as_json:
                render.show_json(failure.document)
            render.complain(failure.line)
            for line in failure.advice:
                render.note(line)
            raise typer.Exit(failure.code) from error
