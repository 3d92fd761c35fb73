"""States Advance and GiveUp: decide the next step of a rollout, or record the error that stopped it."""

from typing import Any

from lambdas.runtime import rollout_step, use_cases
from orchestrator.rollouts.advancing import Next
from orchestrator.rollouts.steps import parse_rollout_step


def handler(event: object, _context: object) -> dict[str, Any]:
    payload = parse_rollout_step(event)

    def work() -> Next:
        if payload.failure is not None:
            return use_cases.advancing.give_up(payload.rollout, payload.attempt, payload.failure)
        return use_cases.advancing.advance(payload.rollout, payload.attempt, payload.execution)

    return rollout_step(payload.rollout, payload.execution, work)
