"""State AwaitOperator: store the task token, so that an operator's order can wake the execution."""

from lambdas.observing import logger
from lambdas.runtime import use_cases
from orchestrator.rollouts.steps import parse_await_operator_step


def handler(event: object, _context: object) -> None:
    payload = parse_await_operator_step(event)
    with logger.append_context_keys(rollout_id=payload.rollout, execution=payload.execution):
        use_cases.advancing.await_operator(payload.rollout, payload.attempt, payload.task_token)
        logger.info("Waiting for an operator")
