"""State AwaitStack: store the task token, so that the stack's event can wake the execution."""

from typing import Any

from lambdas.runtime import step, use_cases
from orchestrator.tenants.schemas import parse_await_step


def handler(event: object, _context: object) -> dict[str, Any]:
    payload = parse_await_step(event)
    return step(
        payload.run,
        lambda: use_cases.await_stack(payload.run, started=payload.started, task_token=payload.task_token),
    )
