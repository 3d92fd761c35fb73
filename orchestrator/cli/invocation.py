"""The parts that every command shares: global options, access to the outside world, and error reporting."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, TypeVar

import typer

from orchestrator.cli import completing, render
from orchestrator.cli.api import Api
from orchestrator.cli.control_plane import ControlPlane, DeployedStack, Options, find
from orchestrator.cli.errors import ExitCode, NotConfirmed, explain, may_come_of_another_version, sdk_errors
from orchestrator.cli.interrupts import came_of_an_interrupt
from orchestrator.cli.option_names import Parameter, in_words_of_options
from orchestrator.cli.progress import Progress
from orchestrator.cli.version import advice_about
from orchestrator.client.retrying import BUSY_RETRY_SECONDS, Retrying
from orchestrator.common.errors import BerthError, InvalidRequest
from orchestrator.common.input_limits import REASON_MAX_LENGTH

MAX_SECONDS = 7 * 24 * 3600
"""The longest --timeout. It keeps values out that overflow a clock."""

TENANT_ID_RULE = "1 to 40 letters, digits and inner dashes"
Tenant = Annotated[
    str,
    typer.Argument(
        metavar="TENANT",
        help=f"The tenant's id: {TENANT_ID_RULE}.",
        show_default=False,
        autocompletion=completing.tenant_ids,
    ),
]
Timeout = Annotated[int, typer.Option(metavar="SECONDS", min=1, max=MAX_SECONDS, help="How long to wait.")]
Reason = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT",
        help=f"Why: one line of at most {REASON_MAX_LENGTH} characters, recorded in the history with your name.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]

NOT_ASKED = "Required without a terminal, where nobody can be asked."
Yes = Annotated[bool, typer.Option("--yes", help=f"Do not ask for confirmation. {NOT_ASKED}")]

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
    found: list[ControlPlane] = field(default_factory=list)
    parameters: Sequence[Parameter] = ()
    """The parameters of the command, for messages about invalid values."""

    def find(self) -> ControlPlane:
        """The control plane, which is looked for once."""
        if not self.found:
            self.found.append(self.world.find(self.options))
        return self.found[0]

    def connect(self) -> Api:
        """The control plane's API. Most commands need nothing else."""
        return self.find().api()

    def confirm(self, warning: str, *, answer: str = "yes", called: str = "yes") -> None:
        """Ask the operator to confirm by typing ``answer``, which the question calls ``called``.

        The question names the control plane, because commands for two of them look the same. Without a terminal nobody
        can be asked, so the command has to have the option --yes.
        """
        if not self.world.someone_is_there():
            raise InvalidRequest(f"{warning} Without a terminal, this has to be confirmed by --yes. Nothing was done.")
        place = self.find().stack.place
        if render.prompt(f"Control plane {place}. {warning} Type {called} to continue:") != answer:
            raise NotConfirmed(f"That is not {called}, so nothing was done.")

    @contextmanager
    def retrying(self, seconds: float = BUSY_RETRY_SECONDS, *, busy_with: str = "") -> Iterator[Retrying]:
        world = self.world
        with Progress(world.monotonic, busy_with=busy_with) as progress:
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
            failure = explain(error, self._advice_about_versions() if may_come_of_another_version(error) else ())
            if as_json:
                render.show_json(failure.document)
            is_about_input = failure.code is ExitCode.BAD_USAGE
            render.complain(in_words_of_options(failure.line, self.parameters) if is_about_input else failure.line)
            for line in failure.advice:
                render.note(line)
            raise typer.Exit(failure.code) from error

    def _advice_about_versions(self) -> Sequence[str]:
        """Advice if the control plane that the command has asked, or its event plane, has another version."""
        # The error that is reported is the one that counts: also without an event plane, or without an answer.
        with suppress(BerthError, *sdk_errors()):
            for stack in self._stacks():
                if other_version := advice_about(stack.version):
                    return (f"The stack {stack.name} has version {stack.version or 'unknown'}. {other_version}",)
        return ()

    def _stacks(self) -> Iterator[DeployedStack]:
        for control_plane in self.found:
            yield control_plane.stack
            yield control_plane.events_stack
