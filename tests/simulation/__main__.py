"""Plays many seeds of the simulation, on all cores: ``python -m tests.simulation --seeds 10000``.

Each run starts at a random seed, which it prints; ``--from N`` starts at N. ``--rollouts`` plays rollouts instead of
tenants, and ``--events`` the event plane. The output lists every broken promise; ``--seed N`` plays one seed and prints
everything that happens.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from enum import Enum
from functools import partial

from tests.simulation.seeded_run import Broken, SeededRun

AT_ONCE = 50
"""The number of seeds that a process gets at a time."""
SEEDS = 10**12
"""The first seed of a run is below this number."""
MAX_BROKEN = 20
"""Stop after this many seeds that broke a promise."""


class What(Enum):
    """What to play, by the option that says so."""

    TENANTS = ""
    ROLLOUTS = " --rollouts"
    EVENTS = " --events"


Seen = Counter[str]
Play = Callable[[int], Seen]


def say(text: object) -> None:
    sys.stdout.write(f"{text}\n")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=1_000, help="how many to play")
    parser.add_argument("--from", type=int, dest="first", help="the first of them; any if none is given")
    parser.add_argument("--seed", type=int, help="play this one alone, and print everything that happens")
    parser.add_argument("--rollouts", action="store_true", help="play rollouts")
    parser.add_argument("--events", action="store_true", help="play the event plane")
    parser.add_argument("--processes", type=int, help="how many to play at once; one per core if none is given")
    given = parser.parse_args()
    what = What.ROLLOUTS if given.rollouts else What.EVENTS if given.events else What.TENANTS
    if given.seed is not None:
        return ONE[what](given.seed)
    first = random.SystemRandom().randrange(SEEDS) if given.first is None else given.first
    return play(first, given.seeds, what=what, processes=given.processes)


def play_one(seed: int) -> int:
    run = SeededRun(seed)
    run.env.log = say
    say(f"seed {seed}: {run.env.faults}")
    try:
        run.play()
    except Broken as broken:
        say(broken)
        return 1
    say(f"seed {seed}: every promise was kept.")
    return 0


def play_one_rollout(seed: int) -> int:
    for line in table(play_rollout(seed)):
        say(line)
    say(f"seed {seed}: every promise was kept.")
    return 0


def play_one_run_of_events(seed: int) -> int:
    from tests.simulation.events.seeded_events import SeededEvents

    run = SeededEvents(seed)
    run.env.log = say
    say(f"seed {seed}: {run.env.faults}")
    try:
        run.play()
    except Broken as broken:
        say(broken)
        return 1
    for line in table(run.env.seen):
        say(line)
    say(f"seed {seed}: every promise was kept.")
    return 0


def play(first: int, count: int, *, what: What, processes: int | None = None) -> int:
    say(f"{count:,} seeds from {first} on. To replay: --from {first}{what.value}")
    started, done, seen, in_seeds, broken = time.monotonic(), 0, Seen(), Seen(), list[str]()
    parts = [range(start, min(start + AT_ONCE, first + count)) for start in range(first, first + count, AT_ONCE)]
    with multiprocessing.Pool(processes) as pool:
        for part, part_seen, part_seeds, broken_there in pool.imap_unordered(partial(play_part, what=what), parts):
            done, seen, in_seeds = done + len(part), seen + part_seen, in_seeds + part_seeds
            for each in broken_there:
                say(f"\r{each}")
            broken += broken_there
            if len(broken) >= MAX_BROKEN:
                break
            show_progress(done, count, time.monotonic() - started)
    say("")
    for line in table(seen, in_seeds):
        say(line)
    if broken:
        say(f"{done:,} seeds from {first} on, and {len(broken)} have broken a promise:")
        for each in broken[:MAX_BROKEN]:
            say(each.partition("\n")[0])
        return 1
    assert done == count, f"only {done:,} seeds were played"
    say(f"{done:,} seeds from {first} on, and every promise was kept.")
    return 0


def show_progress(done: int, count: int, seconds: float) -> None:
    rate = done / seconds
    left = int((count - done) / rate)
    sys.stdout.write(f"\r{done:,} of {count:,} seeds, {rate:.0f} per second, {left // 60}:{left % 60:02} left  ")
    sys.stdout.flush()


def play_part(seeds: range, *, what: What) -> tuple[range, Seen, Seen, list[str]]:
    """The seeds, what was seen, in how many of them, and what was broken: only text can be handed to another process
    for sure."""
    seen, in_seeds, broken = Seen(), Seen(), list[str]()
    play_seed: Play = MANY[what]
    for seed in seeds:
        try:
            seen_there = play_seed(seed)
            seen += seen_there
            in_seeds.update(each for each, number in seen_there.items() if number)
        except AssertionError as error:
            text = str(error)
            broken.append(text if text.startswith("seed ") else f"seed {seed}: {text}")
        except Exception:  # noqa: BLE001 - a StopIteration would end the pool's own loop, as if all seeds were played
            broken.append(f"seed {seed}: {traceback.format_exc()}")
    return seeds, seen, in_seeds, broken


def play_tenants(seed: int) -> Seen:
    run = SeededRun(seed)
    run.play()
    return run.seen


def play_rollout(seed: int) -> Seen:
    from tests.simulation.rollouts.seeded_rollout import play_seed

    return play_seed(seed)


def play_events(seed: int) -> Seen:
    from tests.simulation.events.seeded_events import play_seed

    return play_seed(seed)


def table(seen: Seen, in_seeds: Seen | None = None) -> Iterator[str]:
    """How often each was seen and, if there were many seeds, in how many of them."""
    for what in sorted(seen):
        yield f"  {seen[what]:>9,}  {what}" + (f" (in {in_seeds[what]:,} seeds)" if in_seeds else "")


ONE: dict[What, Callable[[int], int]] = {
    What.TENANTS: play_one,
    What.ROLLOUTS: play_one_rollout,
    What.EVENTS: play_one_run_of_events,
}
MANY: dict[What, Play] = {
    What.TENANTS: play_tenants,
    What.ROLLOUTS: play_rollout,
    What.EVENTS: play_events,
}


if __name__ == "__main__":
    sys.exit(main())
