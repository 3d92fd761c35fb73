"""State StartStack: start the next change of the tenant's stack that the operation needs, and wait for its end."""

from typing import Any

from lambdas.runtime import step, use_cases, waiting_step
from orchestrator.tenants.schemas import parse_start_step


def handler(event: object, _context: object) -> dict[str, Any]:
    payload = parse_start_step(event)
    run, empty_since, task_token = payload.run, payload.empty_since, payload.task_token
    if task_token is None:
        # The execution began with a machine of 0.8.0, whose next state waits.
        return step(run, lambda: use_cases.start_stack(run, empty_since=empty_since, looked_at=payload.looked_at))
    return waiting_step(
        run, task_token, lambda: use_cases.start_and_wait(run, task_token=task_token, empty_since=empty_since)
    )
