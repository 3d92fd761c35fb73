"""Results of measurements, and how they are taken."""

from __future__ import annotations

import contextlib
import os
import resource
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path


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
    """Formatting and writing log lines are measured, but not the speed of a terminal."""
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
        yield


def percentile(values: Sequence[float], part: int) -> float:
    """The smallest value that ``part`` per cent of the values do not exceed."""
    return sorted(values)[-(-len(values) * part // 100) - 1]


def interleaved(one: Callable[[], object], other: Callable[[], object], rounds: int) -> tuple[float, float]:
    """The median of each, in milliseconds. The calls alternate, so that other load on the machine affects both."""
    ours, others = interleaved_times(one, other, rounds)
    return statistics.median(ours), statistics.median(others)


def interleaved_by_clocks(
    one: Callable[[], object], other: Callable[[], object], rounds: int, clocks: Sequence[Callable[[], float]]
) -> list[tuple[float, float]]:
    """The medians of both calls by each clock, in milliseconds."""
    times: tuple[list[list[float]], list[list[float]]] = ([], [])
    for _ in range(rounds):
        for call, taken in zip((one, other), times, strict=True):
            started = [clock() for clock in clocks]
            call()
            taken.append([(clock() - before) * 1000 for clock, before in zip(clocks, started, strict=True)])
    ours, others = ([statistics.median(by_clock) for by_clock in zip(*taken, strict=True)] for taken in times)
    return list(zip(ours, others, strict=True))


wall_clock = time.perf_counter


def cpu_of_children() -> float:
    """The seconds of processor time that finished child processes have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


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
