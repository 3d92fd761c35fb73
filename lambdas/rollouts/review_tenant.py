"""States Review and TellFailure of a dry run: see what would become of the tenant, and write it down."""

from typing import Any

from lambdas.runtime import turn_step, wiring
from orchestrator.rollouts.steps import parse_turn


def handler(event: object, _context: object) -> dict[str, Any]:
    asked = parse_turn(event)
    return turn_step(asked.turn, lambda: wiring.reviewing.review(asked.turn, asked.failure))
