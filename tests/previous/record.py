"""Run in the sources of a release: writes one payload of each shape that its machines give to its functions.

The shapes are those of the scenarios and seeds of that release's own simulation.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.simulation.aws import executions
from tests.simulation.aws.executions import FaultInjector
from tests.simulation.rollouts import executions as rollout_executions
from tests.simulation.rollouts.seeded_rollout import SeededRollout
from tests.simulation.seeded_run import SeededRun
from tests.simulation.test_operations_survive_crashes import SCENARIOS, begin

ROLLOUTS = 300
RUNS = 120

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
    for state, function in list(executions.FUNCTIONS.items()):
        executions.FUNCTIONS[state] = noting(state, function)
    for kind in list(vars(rollout_executions).values()):
        if isinstance(kind, type) and "_function" in vars(kind):
            kind._function = noting_method(kind._function)  # type: ignore[attr-defined]
    for scenario in SCENARIOS.values():
        begin(scenario, FaultInjector()).play()
    for seed in range(ROLLOUTS):
        SeededRollout(seed).play()
    for seed in range(RUNS):
        SeededRun(seed).play()
    payloads = sorted(seen.values(), key=lambda each: (each["state"], json.dumps(each["payload"], sort_keys=True)))
    Path(sys.argv[1]).write_text(json.dumps(payloads, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
