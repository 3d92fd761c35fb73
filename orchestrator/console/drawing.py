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
