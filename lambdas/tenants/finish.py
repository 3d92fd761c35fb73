"""State Finish: publish or remove the tenant's queue, write Success, release the lock."""

from typing import Any

from lambdas.runtime import last_step, use_cases
from orchestrator.tenants.schemas import parse_finish_step


def handler(event: object, _context: object) -> dict[str, Any]:
    payload = parse_finish_step(event)
    return last_step(payload.run, lambda: use_cases.finish(payload.run, stack=payload.stack))
