"""Calls of functions that can be suspended between any two of their own calls, while everything else goes on.

Use cases are plain functions, so a suspended one blocks in a thread of its own. Only one thread ever runs: whoever
resumes a call waits until it is suspended again or has ended, so a seed always plays the same run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class Abandoned(BaseException):
    """Ends a suspended call when the run is over. No function catches it."""


class _Worker:
    """A thread that runs one function after the other."""

    def __init__(self) -> None:
        self.work: Callable[[], None] = lambda: None
        # Plain locks, which one thread acquires and the other releases: a run switches threads thousands of times.
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
        """Run until the function is suspended or has ended."""
        self._go.release()
        self._back.acquire()

    def suspend(self) -> None:
        """Called in the worker's thread."""
        self._back.release()
        self._go.acquire()


_idle: list[_Worker] = []


class SuspendableCall:
    """One call of a function."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self._worker = _idle.pop() if _idle else _Worker()
        self._worker.work = self._work
        self._injected: BaseException | None = None
        self.over = False
        self.result: Any = None
        self.error: BaseException | None = None

    def resume(self, error: BaseException | None = None) -> None:
        """Run until the call is suspended again or over. ``error`` is raised where it was suspended."""
        self._injected = error
        self._worker.go_on()
        if self.over:
            _idle.append(self._worker)

    def _work(self) -> None:
        try:
            self._raise_injected()
            self.result = self._function()
        except BaseException as error:  # noqa: BLE001 - whoever resumes the call handles it
            self.error = error
        self.over = True

    def suspend(self) -> None:
        """Called by the function itself: blocks until the call is resumed."""
        self._worker.suspend()
        self._raise_injected()

    def _raise_injected(self) -> None:
        if self._injected is not None:
            raise self._injected
