"""State InspectStack: read the status of the tenant's stack, and check whether its queue can be used."""

from typing import Any

from lambdas.runtime import step, use_cases
from orchestrator.tenants.schemas import parse_run


def handler(event: object, _context: object) -> dict[str, Any]:
    run = parse_run(event)
    return step(run, lambda: use_cases.inspect_stack(run))
