"""State AwaitStack: store the task token, so that the stack's event can wake the execution."""

from typing import Any

from lambdas.runtime import use_cases, waiting_step
from orchestrator.tenants.schemas import parse_await_step


def handler(event: object, _context: object) -> dict[str, Any]:
    payload = parse_await_step(event)
    return waiting_step(
        payload.run,
        payload.task_token,
        lambda: use_cases.await_stack(payload.run, task_token=payload.task_token),
    )
