"""State RecordOutcome: write down what became of the tenant in its turn."""

from typing import Any

from lambdas.runtime import turn_step, wiring
from orchestrator.rollouts.steps import parse_turn


def handler(event: object, _context: object) -> dict[str, Any]:
    asked = parse_turn(event)
    return turn_step(asked.turn, lambda: wiring.gate.record(asked.turn, asked.failure))
