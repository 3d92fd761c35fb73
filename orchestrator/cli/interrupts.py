"""Handling of Ctrl-C: a note to the operator, and sections that it must not interrupt."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from orchestrator.cli import render


@contextmanager
def noting_an_interrupt(line: str) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        render.note(line)
        raise


@contextmanager
def holding_interrupts() -> Iterator[None]:
    """Delay Ctrl-C until the block has ended.

    A rich display that is interrupted while it starts or stops is broken: its next call raises IndexError, and the
    cursor may stay hidden.
    """
    held: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _frame: held.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    # The handler is not callable if the process ignores Ctrl-C.
    if held and callable(before):
        before(held[0], None)


def came_of_an_interrupt(error: BaseException | None) -> bool:
    """True if the error was raised while a KeyboardInterrupt was being handled."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False
