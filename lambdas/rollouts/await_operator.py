"""State AwaitOperator: leave the task token where an operator's word finds it."""

from lambdas.runtime import logger, wiring
from orchestrator.rollouts.steps import parse_await_operator_step


def handler(event: object, _context: object) -> None:
    asked = parse_await_operator_step(event)
    with logger.append_context_keys(rollout_id=asked.rollout, execution=asked.execution):
        wiring.advancing.await_operator(asked.rollout, asked.attempt, asked.task_token)
        logger.info("Waiting for an operator")
