"""State StartStack: start the next change of the tenant's stack that the operation needs."""

from typing import Any

from lambdas.runtime import step, use_cases
from orchestrator.tenants.schemas import parse_start_step


def handler(event: object, _context: object) -> dict[str, Any]:
    payload = parse_start_step(event)
    return step(
        payload.run,
        lambda: use_cases.start_stack(payload.run, empty_since=payload.empty_since, looked_at=payload.looked_at),
    )
