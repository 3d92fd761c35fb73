"""State Begin: take the tenant's lock, and check whether the operation may run. A create first needs its turn."""

from typing import Any

from lambdas.runtime import step, use_cases
from orchestrator.tenants.schemas import parse_begin_step


def handler(event: object, _context: object) -> dict[str, Any]:
    run = parse_begin_step(event)
    return step(run, lambda: use_cases.begin(run))
