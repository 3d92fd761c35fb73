"""States Advance and GiveUp: decide what comes next for a rollout, or write down why nothing does."""

from typing import Any

from lambdas.runtime import rollout_step, wiring
from orchestrator.rollouts.advancing import Next
from orchestrator.rollouts.steps import parse_rollout_step


def handler(event: object, _context: object) -> dict[str, Any]:
    asked = parse_rollout_step(event)

    def work() -> Next:
        if asked.failure is not None:
            return wiring.advancing.give_up(asked.rollout, asked.attempt, asked.failure)
        return wiring.advancing.advance(asked.rollout, asked.attempt, asked.execution)

    return rollout_step(asked.rollout, asked.execution, work)
