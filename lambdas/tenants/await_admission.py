"""State AwaitAdmission: put the create into the line of those that wait for their turn."""

from typing import Any

from lambdas.runtime import use_cases, waiting_step
from orchestrator.tenants.schemas import parse_await_step


def handler(event: object, _context: object) -> dict[str, Any]:
    payload = parse_await_step(event)
    run, task_token = payload.run, payload.task_token
    return waiting_step(run, task_token, lambda: use_cases.await_admission(run, task_token=task_token))
