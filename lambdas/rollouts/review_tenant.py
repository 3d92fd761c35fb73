"""States Review and TellFailure of a dry run: find out what the update would change, and record it."""

from typing import Any

from lambdas.runtime import turn_step, use_cases
from orchestrator.rollouts.steps import parse_turn


def handler(event: object, _context: object) -> dict[str, Any]:
    payload = parse_turn(event)
    return turn_step(payload.turn, lambda: use_cases.reviewing.review(payload.turn, payload.failure))
