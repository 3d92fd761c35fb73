"""Run in the sources of a release: writes one payload of each shape that its machines give to its functions.

The shapes are those of the stories and seeds of that release's own simulation.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.simulation import player, rollout_player
from tests.simulation.player import Trouble
from tests.simulation.rollout_storm import RolloutStorm
from tests.simulation.test_operations_survive_crashes import STORIES, begin
from tests.simulation.voyage import Voyage

ROLLOUTS = 60
VOYAGES = 120

seen: dict[str, dict[str, Any]] = {}


def shape(value: Any) -> Any:
    """Names and types, and what came of a step."""
    if isinstance(value, dict):
        return {name: each if name == "outcome" else shape(each) for name, each in sorted(value.items())}
    if isinstance(value, list):
        return [shape(each) for each in value[:1]]
    return type(value).__name__


def note(state: str, payload: Any) -> None:
    key = json.dumps([state, shape(payload)])
    seen.setdefault(key, {"state": state, "payload": json.loads(json.dumps(payload))})


def noting(state: str, function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def call(payload: Any, ports: Any) -> Any:
        note(state, payload)
        return function(payload, ports)

    return call


def noting_method(function: Callable[[Any, str, Any], Any]) -> Callable[[Any, str, Any], Any]:
    def call(self: Any, state: str, payload: Any) -> Any:
        note(state, payload)
        return function(self, state, payload)

    return call


def main() -> None:
    for state, function in list(player.FUNCTIONS.items()):
        player.FUNCTIONS[state] = noting(state, function)
    for kind in list(vars(rollout_player).values()):
        if isinstance(kind, type) and "_function" in vars(kind):
            kind._function = noting_method(kind._function)  # type: ignore[attr-defined]
    for story in STORIES.values():
        begin(story, Trouble()).play()
    for seed in range(ROLLOUTS):
        RolloutStorm(seed).play()
    for seed in range(VOYAGES):
        Voyage(seed).sail()
    told = sorted(seen.values(), key=lambda each: (each["state"], json.dumps(each["payload"], sort_keys=True)))
    Path(sys.argv[1]).write_text(json.dumps(told, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
