"""Many inputs, one after another, each with a seed that makes it again."""

from __future__ import annotations

import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from tests.adapters.bad_input.world import ControlPlane, switch_log

INPUTS = int(os.environ.get("BERTH_FUZZ_INPUTS", "500"))
"""The number of inputs per edge."""
ONLY = os.environ.get("BERTH_FUZZ_SEED")
"""The one input that is to come again."""

LOGGED = 10
"""One in so many is logged as well: writing log lines costs more than most of what is tested."""


def storm(
    edge: str, plane: ControlPlane, make: Callable[[Random], Any], meet: Callable[[Any], str], *, inputs: int = INPUTS
) -> Counter[str]:
    """Let the inputs come. ``meet`` fails, or says how one was met."""
    met: Counter[str] = Counter()
    plane.as_before()
    for seed in _seeds(inputs):
        event = make(Random(zlib.crc32(edge.encode()) << 32 | seed))
        switch_log(on=seed % LOGGED == 0)
        try:
            met[meet(event)] += 1
        except BaseException as error:
            error.add_note(
                f"Input {seed} at {edge}: {as_text(event)}\n"
                f"Once more: BERTH_FUZZ_SEED={seed} pytest '{os.environ['PYTEST_CURRENT_TEST'].rpartition(' ')[0]}'"
            )
            raise
        if plane.effects:
            plane.as_before()
        else:
            plane.forget()
    return met


def _seeds(inputs: int) -> Iterable[int]:
    return [int(ONLY)] if ONLY else range(inputs)


def as_text(event: object) -> str:
    try:
        text = ascii(event)
    except RecursionError:
        return "nested too deeply to be shown"
    return text if len(text) < 3_000 else f"{text[:3_000]} ... ({len(text)} characters)"
