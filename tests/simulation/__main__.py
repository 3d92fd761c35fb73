"""Plays many seeds of the simulation, on all cores: ``python -m tests.simulation --seeds 10000``.

It stops at the first promise that is broken, and says how to see it broken again: ``--seed N`` plays one and tells all
that happens in it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterator

from tests.simulation.voyage import Broken, Voyage

AT_ONCE = 50
"""As many seeds are handed to a process at once."""


def say(text: object) -> None:
    sys.stdout.write(f"{text}\n")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=1_000, help="how many to play")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first of them")
    parser.add_argument("--seed", type=int, help="play this one alone, and tell all that happens")
    asked = parser.parse_args()
    return play_one(asked.seed) if asked.seed is not None else play(asked.first, asked.seeds)


def play_one(seed: int) -> int:
    voyage = Voyage(seed)
    voyage.harbour.log = say
    say(f"seed {seed}: {voyage.harbour.weather}")
    try:
        voyage.sail()
    except Broken as broken:
        say(broken)
        return 1
    say(f"seed {seed}: every promise was kept.")
    return 0


def play(first: int, count: int) -> int:
    started, done, seen = time.monotonic(), 0, Counter[str]()
    parts = [range(start, min(start + AT_ONCE, first + count)) for start in range(first, first + count, AT_ONCE)]
    with multiprocessing.Pool() as pool:
        for part, told, broken in pool.imap_unordered(play_part, parts):
            if broken:
                say(f"\n{broken}")
                return 1
            done, seen = done + len(part), seen + told
            rate = done / (time.monotonic() - started)
            sys.stdout.write(f"\r{done} of {count} seeds, {rate:.0f} a second")
            sys.stdout.flush()
    say(f"\n{done} seeds from {first} on, and every promise was kept. What was seen:")
    for line in table(seen):
        say(line)
    return 0


def play_part(seeds: range) -> tuple[range, Counter[str], str | None]:
    """The seeds, what was seen, and what was broken: only text can be handed to another process for sure."""
    seen = Counter[str]()
    for seed in seeds:
        voyage = Voyage(seed)
        try:
            voyage.sail()
        except Broken as broken:
            return seeds, seen, str(broken)
        seen += voyage.seen
    return seeds, seen, None


def table(seen: Counter[str]) -> Iterator[str]:
    for what in sorted(seen):
        yield f"  {seen[what]:>9,}  {what}"


if __name__ == "__main__":
    sys.exit(main())
