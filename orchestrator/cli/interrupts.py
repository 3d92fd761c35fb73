"""Ctrl-C: what is said about it, and where it waits for a moment."""

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
    """Ctrl-C takes effect right after the block, not within it.

    A display of rich that was interrupted while it started or stopped can be neither stopped nor started: its next call
    raises IndexError, and the cursor may stay hidden.
    """
    held: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _frame: held.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    # Where Ctrl-C is ignored there is nothing to call.
    if held and callable(before):
        before(held[0], None)


def came_of_an_interrupt(error: BaseException | None) -> bool:
    """True of an error that was raised while Ctrl-C was being handled."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False
