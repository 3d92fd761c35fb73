"""Shows what a command is waiting for: with a spinner on a terminal, otherwise with a line every now and then."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.text import Text

from orchestrator.cli.interrupts import holding_interrupts
from orchestrator.cli.render import stderr

REMIND_SECONDS = 30
"""The longest silence in a log. CI servers stop a job that prints nothing for long."""


class Progress:
    def __init__(self, monotonic: Callable[[], float], *, busy_with: str = "") -> None:
        """``busy_with`` is what the control plane does for seconds before it answers. A terminal shows that at once."""
        self._monotonic = monotonic
        self._busy_with = busy_with
        self._started = monotonic()
        self._console = stderr()
        self._status = self._console.status(self)
        self._shown = ""
        self._shown_at = 0.0

    def __enter__(self) -> Self:
        if self._busy_with and self._console.is_interactive:
            with holding_interrupts():
                self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with holding_interrupts():
            self._status.stop()

    def __rich__(self) -> Text:
        """Rich calls this for every frame, so the seconds count up between two requests to the API."""
        doing = "waiting" if self._shown else self._busy_with or "waiting"
        return Text(f"{doing}, {self._elapsed:.0f} s")

    def show_waiting(self, reason: str) -> None:
        """Show why the command is waiting: once, not at every poll."""
        interactive = self._console.is_interactive
        if interactive:
            with holding_interrupts():
                self._status.start()
        if reason != self._shown:
            self._show(reason)
        elif not interactive and self._elapsed - self._shown_at >= REMIND_SECONDS:
            self._show(f"{reason} ({self._elapsed:.0f} s)")
        else:
            return
        self._shown, self._shown_at = reason, self._elapsed

    @property
    def _elapsed(self) -> float:
        return self._monotonic() - self._started

    def _show(self, line: str) -> None:
        self._console.print(Text(line, "dim"), soft_wrap=True)
