"""Results of reads that a warm function remembers for some seconds."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from datetime import datetime
from typing import Generic, TypeVar

from orchestrator.common.times import Clock

MAX_REMEMBERED = 2_000

Value = TypeVar("Value")


class Remembered(Generic[Value]):
    """Results of reads, for at most so many seconds from the beginning of the read.

    Only what was found is remembered. The oldest result gives way to a new one. ``monotonic`` and ``clock`` both
    measure the time, and the longer one counts: the clock may be set, and ``monotonic`` may stand still while Lambda
    has frozen the instance.
    """

    def __init__(self, monotonic: Callable[[], float], clock: Clock, *, seconds: float) -> None:
        self._monotonic = monotonic
        self._clock = clock
        self._seconds = seconds
        self._results: OrderedDict[Hashable, tuple[float, datetime, Value]] = OrderedDict()

    def forget(self, name: Hashable) -> None:
        self._results.pop(name, None)

    def get(self, name: Hashable, read: Callable[[], Value | None]) -> Value | None:
        now, at = self._monotonic(), self._clock.now()
        known = self._results.get(name)
        if known is not None:
            since, read_at, value = known
            # A clock that was set back says nothing, so nothing is remembered then.
            if now - since < self._seconds and abs((at - read_at).total_seconds()) < self._seconds:
                return value
        found = read()
        self._results.pop(name, None)
        if found is not None:
            self._results[name] = now, at, found
            if len(self._results) > MAX_REMEMBERED:
                self._results.popitem(last=False)
        return found
