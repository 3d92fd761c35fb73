"""Run in the sources of a release: writes one payload of each shape that its machines give to its functions.

The shapes are those of the scenarios and seeds of that release's own simulation.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.previous import Payload, write_payloads
from tests.simulation.aws import executions
from tests.simulation.aws.executions import FaultInjector
from tests.simulation.rollouts import executions as rollout_executions
from tests.simulation.rollouts.seeded_rollout import SeededRollout
from tests.simulation.seeded_run import SeededRun
from tests.simulation.test_operations_survive_crashes import SCENARIOS, begin

ROLLOUTS = 300
RUNS = 120

Note = Callable[[str, Any], None]


def shape(value: Any) -> Any:
    """Names and types, and what came of a step."""
    if isinstance(value, dict):
        return {name: each if name == "outcome" else shape(each) for name, each in sorted(value.items())}
    if isinstance(value, list):
        return [shape(each) for each in value[:1]]
    return type(value).__name__


def record(*, rollouts: int = ROLLOUTS, runs: int = RUNS) -> list[Payload]:
    """Play all scenarios and so many seeds. The payloads are sorted by state."""
    seen: dict[str, Payload] = {}

    def note(state: str, payload: Any) -> None:
        key = json.dumps([state, shape(payload)])
        seen.setdefault(key, {"state": state, "payload": json.loads(json.dumps(payload))})

    with _noting(note):
        for scenario in SCENARIOS.values():
            begin(scenario, FaultInjector()).play()
        for seed in range(rollouts):
            SeededRollout(seed).play()
        for seed in range(runs):
            SeededRun(seed).play()
    return sorted(seen.values(), key=lambda each: (each["state"], json.dumps(each["payload"], sort_keys=True)))


@contextmanager
def _noting(note: Note) -> Iterator[None]:
    """Note what the simulation's machines give to functions."""
    functions = dict(executions.FUNCTIONS)
    kinds = [kind for kind in vars(rollout_executions).values() if isinstance(kind, type) and "_function" in vars(kind)]
    methods = {kind: vars(kind)["_function"] for kind in kinds}
    executions.FUNCTIONS.update({state: _noted(note, state, function) for state, function in functions.items()})
    for kind, method in methods.items():
        kind._function = _noted_method(note, method)  # type: ignore[attr-defined]
    try:
        yield
    finally:
        executions.FUNCTIONS.update(functions)
        for kind, method in methods.items():
            kind._function = method  # type: ignore[attr-defined]


def _noted(note: Note, state: str, function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def call(payload: Any, ports: Any) -> Any:
        note(state, payload)
        return function(payload, ports)

    return call


def _noted_method(note: Note, method: Callable[[Any, str, Any], Any]) -> Callable[[Any, str, Any], Any]:
    def call(self: Any, state: str, payload: Any) -> Any:
        note(state, payload)
        return method(self, state, payload)

    return call


if __name__ == "__main__":
    write_payloads(record(), Path(sys.argv[1]))
