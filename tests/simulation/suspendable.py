"""Functions that can be held between any two of their calls, while the rest of the world goes on.

Use cases are plain functions, so each one that is held stands still in a thread of its own. Only one thread ever runs:
whoever resumes a function waits until it is held again or has ended, so the same seed tells the same scenario.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class Abandoned(BaseException):
    """The scenario has ended. Nothing that a function might still catch."""


class _Worker:
    """A thread that runs one function after the other."""

    def __init__(self) -> None:
        self.work: Callable[[], None] = lambda: None
        # Plain locks, which one thread acquires and the other releases: there are thousands of turns in a scenario.
        self._go, self._back = threading.Lock(), threading.Lock()
        self._go.acquire()
        self._back.acquire()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            self._go.acquire()
            self.work()
            self._back.release()

    def go_on(self) -> None:
        """Until the function is held, or has ended."""
        self._go.release()
        self._back.acquire()

    def hold(self) -> None:
        """Called from within."""
        self._back.release()
        self._go.acquire()


_idle: list[_Worker] = []


class Held:
    """One call of a function."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self._worker = _idle.pop() if _idle else _Worker()
        self._worker.work = self._work
        self._fate: BaseException | None = None
        self.over = False
        self.result: Any = None
        self.error: BaseException | None = None

    def resume(self, fate: BaseException | None = None) -> None:
        """Go on until it is held again or over; or have it meet its fate where it stands."""
        self._fate = fate
        self._worker.go_on()
        if self.over:
            _idle.append(self._worker)

    def _work(self) -> None:
        try:
            self._meet_fate()
            self.result = self._function()
        except BaseException as error:  # noqa: BLE001 - whoever resumes it decides what to make of it
            self.error = error
        self.over = True

    def hold(self) -> None:
        """Called by the function itself: it stands still here until it is resumed."""
        self._worker.hold()
        self._meet_fate()

    def _meet_fate(self) -> None:
        if self._fate is not None:
            raise self._fate
