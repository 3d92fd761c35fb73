"""Showing that something is being waited for: alive on a terminal, a line now and then elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.text import Text

from orchestrator.cli.interrupts import holding_interrupts
from orchestrator.cli.render import stderr

REMIND_SECONDS = 30
"""How long a log stays silent. Build servers take silence for a hang."""


class Progress:
    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._started = monotonic()
        self._console = stderr()
        self._status = self._console.status(self)
        self._told = ""
        self._told_at = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with holding_interrupts():
            self._status.stop()

    def __rich__(self) -> Text:
        """Asked for at every frame, so that the seconds run between two questions to the API."""
        return Text(f"waiting, {self._elapsed:.0f} s")

    def tell(self, what: str) -> None:
        """Say what is being waited for: once, not at every look."""
        alive = self._console.is_interactive
        if alive:
            with holding_interrupts():
                self._status.start()
        if what != self._told:
            self._say(what)
        elif not alive and self._elapsed - self._told_at >= REMIND_SECONDS:
            self._say(f"{what} ({self._elapsed:.0f} s)")
        else:
            return
        self._told, self._told_at = what, self._elapsed

    @property
    def _elapsed(self) -> float:
        return self._monotonic() - self._started

    def _say(self, line: str) -> None:
        self._console.print(Text(line, "dim"), soft_wrap=True)
