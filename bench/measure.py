"""What a measurement is."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Result:
    name: str
    value: float
    unit: str
    aim: str
    details: tuple[str, ...] = ()
    """Printed under the table; not kept."""

    @property
    def is_broken(self) -> bool:
        """Something was counted of which there may be none. A ratio beyond its aim is for a reader to judge."""
        return self.aim == "0" and self.value != 0


def percentile(values: Sequence[float], part: int) -> float:
    """The smallest of them that so many per cent do not exceed."""
    return sorted(values)[-(-len(values) * part // 100) - 1]


def interleaved(one: Callable[[], object], other: Callable[[], object], rounds: int) -> tuple[float, float]:
    """The median of each, in milliseconds. By turns, so that whatever else the machine does hits both."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for call, taken in zip((one, other), times, strict=True):
            started = time.perf_counter()
            call()
            taken.append((time.perf_counter() - started) * 1000)
    return statistics.median(times[0]), statistics.median(times[1])
