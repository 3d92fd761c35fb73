"""State Begin: take the tenant's lock, and check whether the operation may run. A create first needs its turn."""

from typing import Any

from lambdas.runtime import step, use_cases
from orchestrator.tenants.schemas import parse_begin_step


def handler(event: object, _context: object) -> dict[str, Any]:
    payload = parse_begin_step(event)
    return step(payload.run, lambda: use_cases.begin(payload.run, can_wait=payload.can_wait))
