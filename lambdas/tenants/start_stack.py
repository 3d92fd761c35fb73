"""State StartStack: start the next change of the tenant's stack that the operation needs, and wait for its end."""

from typing import Any

from lambdas.runtime import use_cases, waiting_step
from orchestrator.tenants.schemas import parse_start_step


def handler(event: object, _context: object) -> dict[str, Any]:
    payload = parse_start_step(event)
    run, task_token, empty_since = payload.run, payload.task_token, payload.empty_since
    return waiting_step(
        run, task_token, lambda: use_cases.start_and_wait(run, task_token=task_token, empty_since=empty_since)
    )
