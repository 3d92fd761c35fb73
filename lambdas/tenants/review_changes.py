"""State ReviewChanges: create a change set, which shows what an update would change."""

from typing import Any

from lambdas.runtime import step, use_cases
from orchestrator.tenants.schemas import parse_run


def handler(event: object, _context: object) -> dict[str, Any]:
    run = parse_run(event)
    return step(run, lambda: use_cases.review_changes(run))
