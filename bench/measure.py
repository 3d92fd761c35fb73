"""What a measurement is."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Result:
    name: str
    value: float
    unit: str
    aim: str


def interleaved(one: Callable[[], object], other: Callable[[], object], rounds: int) -> tuple[float, float]:
    """The median of each, in milliseconds. By turns, so that whatever else the machine does hits both."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for call, taken in zip((one, other), times, strict=True):
            started = time.perf_counter()
            call()
            taken.append((time.perf_counter() - started) * 1000)
    return statistics.median(times[0]), statistics.median(times[1])
