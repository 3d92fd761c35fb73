"""The geometry of the drawings. The templates draw it as SVG, and the style sheet colours it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

WIDTH = 600.0
"""The width of a drawing in its own units. The page scales it."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a bar: the tenants in one state."""

    name: str
    count: int
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class Bar:
    name: str
    total: int
    parts: Sequence[Part]


def bars(counts: Mapping[str, Mapping[str, int]], order: Sequence[str]) -> list[Bar]:
    """One bar per name, divided by state. The longest bar has the whole width."""
    longest = max((sum(states.values()) for states in counts.values()), default=0) or 1
    return [bar(name, states, order, WIDTH * sum(states.values()) / longest) for name, states in counts.items()]


def bar(name: str, counts: Mapping[str, int], order: Sequence[str], width: float = WIDTH) -> Bar:
    total = sum(counts.values())
    parts: list[Part] = []
    x = 0.0
    for each in order:
        if count := counts.get(each, 0):
            # A single tenant of thousands must be seen, too.
            part = max(2.0, width * count / total)
            parts.append(Part(each, count, round(x, 2), round(part, 2)))
            x += part
    return Bar(name, total, parts)


@dataclass(frozen=True, slots=True)
class Took:
    """An operation that has ended, and the seconds that it took."""

    name: str
    seconds: float
    status: str
    tenant: str | None


@dataclass(frozen=True, slots=True)
class Point:
    took: Took
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Plot:
    points: Sequence[Point]
    longest: float
    """The seconds at the top."""
    height: float


PLOT_HEIGHT = 100.0
_GAP = 0.25
"""The part of a column that is left empty."""


def plotted(operations: Sequence[Took]) -> Plot:
    """One column per operation, as high as it took long. The longest one has the whole height."""
    longest = max((each.seconds for each in operations), default=0.0) or 1.0
    # Columns have a maximum width, for drawings of a few operations.
    column = WIDTH / max(len(operations), 20)
    return Plot(
        [
            Point(
                each,
                round(number * column, 2),
                round(PLOT_HEIGHT - height, 2),
                round(column * (1 - _GAP), 2),
                round(height, 2),
            )
            for number, each in enumerate(operations)
            for height in [max(1.5, PLOT_HEIGHT * each.seconds / longest)]
        ],
        longest,
        PLOT_HEIGHT,
    )
