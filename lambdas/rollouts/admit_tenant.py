"""State Admit: check whether the tenant may be updated now."""

from typing import Any

from lambdas.runtime import turn_step, use_cases
from orchestrator.rollouts.steps import parse_turn


def handler(event: object, _context: object) -> dict[str, Any]:
    turn = parse_turn(event).turn
    return turn_step(turn, lambda: use_cases.gate.admit(turn))
