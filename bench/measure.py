"""Results of measurements, and how they are taken."""

from __future__ import annotations

import contextlib
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TextIO


@dataclass(frozen=True)
class Result:
    name: str
    value: float
    unit: str
    aim: str
    details: tuple[str, ...] = ()
    """Printed under the table, but not saved."""

    @property
    def is_broken(self) -> bool:
        """True if a count that must be 0 is not. Whether a ratio beyond its aim matters is left to the reader."""
        return self.aim == "0" and self.value != 0


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """The functions log to the standard output at the time of their import.

    Formatting and writing are measured, but not the speed of a terminal.
    """
    with contextlib.redirect_stdout(_nowhere()):
        yield


@cache
def _nowhere() -> TextIO:
    """It stays open, because loggers keep the stream that they found when they were made."""
    return Path(os.devnull).open("w")


def percentile(values: Sequence[float], part: int) -> float:
    """The smallest value that ``part`` per cent of the values do not exceed."""
    return sorted(values)[-(-len(values) * part // 100) - 1]


def interleaved(one: Callable[[], object], other: Callable[[], object], rounds: int) -> tuple[float, float]:
    """The median of each, in milliseconds. The calls alternate, so that other load on the machine affects both."""
    ours, others = interleaved_times(one, other, rounds)
    return statistics.median(ours), statistics.median(others)


def interleaved_times(
    one: Callable[[], object], other: Callable[[], object], rounds: int
) -> tuple[list[float], list[float]]:
    """The time of every call, in milliseconds."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for call, taken in zip((one, other), times, strict=True):
            started = time.perf_counter()
            call()
            taken.append((time.perf_counter() - started) * 1000)
    return times
