"""The planted bugs of the three simulations, each of which a seed catches.

``seeds.json`` has the seed of each. If it no longer catches its bug, because the simulation plays other runs by now,
all seeds are tried in order, and ``python -m tests.planted --area simulation --record`` writes down what was found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from tests.planted.bugs import PlantedBug
from tests.simulation import planted_bugs as of_tenants
from tests.simulation.events import planted_bugs as of_events
from tests.simulation.events.seeded_events import play_seed as play_events
from tests.simulation.rollouts import planted_bugs as of_rollouts
from tests.simulation.rollouts.seeded_rollout import play_seed as play_rollout
from tests.simulation.seeded_run import Broken, SeededRun

RECORDED = Path(__file__).with_name("seeds.json")
SEEDS_OF_TENANTS = range(1_500)


@dataclass(frozen=True)
class Seeds:
    name: str
    option: str
    play: Callable[[int], object]
    seeds: range
    found: str
    """A regular expression for the message of the check that finds the bug."""

    @property
    def command(self) -> str:
        return f"python -m tests.simulation{self.option}"

    def find(self) -> int | None:
        """The recorded seed, or else the first one in which the check finds the bug."""
        known = recorded().get(self.name)
        for seed in chain([] if known is None else [known], self.seeds):
            try:
                self.play(seed)
            except Broken as broken:
                # The bug may break another promise first.
                if re.search(self.found, str(broken), re.DOTALL):
                    return seed
        return None


def recorded() -> dict[str, int]:
    seeds: dict[str, int] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return seeds


def record(found: dict[str, int]) -> None:
    seeds = recorded() | found
    kept = {name: seeds[name] for name in sorted(BUGS) if name in seeds}
    RECORDED.write_text(json.dumps(kept, indent=0) + "\n", encoding="utf-8")


def _of_tenants() -> Iterator[tuple[str, PlantedBug]]:
    for name, bug in of_tenants.BUGS.items():

        def play(seed: int, bug: of_tenants.PlantedBug = bug) -> None:
            SeededRun(seed, bug.faults, bug.actions).play()

        found = f"seed [0-9]+: .*({bug.found}).*python -m tests.simulation --seed [0-9]+"
        yield name, PlantedBug(name, bug.bug, Seeds(name, "", play, SEEDS_OF_TENANTS, found))


def _of_rollouts() -> Iterator[tuple[str, PlantedBug]]:
    for name, bug in of_rollouts.BUGS.items():

        def play(seed: int, bug: of_rollouts.PlantedBug = bug) -> None:
            play_rollout(seed, bug.favoured_actions)

        yield name, PlantedBug(name, bug.bug, Seeds(name, " --rollouts", play, bug.seeds, bug.found))


def _of_events() -> Iterator[tuple[str, PlantedBug]]:
    for name, bug in of_events.BUGS.items():

        def play(seed: int, bug: of_events.PlantedBug = bug) -> None:
            play_events(seed, bug.faults)

        yield name, PlantedBug(name, bug.bug, Seeds(name, " --events", play, of_events.SEEDS, bug.found))


BUGS = dict(chain(_of_tenants(), _of_rollouts(), _of_events()))
assert len(BUGS) == sum(map(len, (of_tenants.BUGS, of_rollouts.BUGS, of_events.BUGS))), "Two bugs have the same name."
