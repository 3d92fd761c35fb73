"""State CheckMessages: check whether deleting the tenant would lose messages."""

from typing import Any

from lambdas.runtime import step, use_cases
from orchestrator.tenants.schemas import parse_check_step


def handler(event: object, _context: object) -> dict[str, Any]:
    payload = parse_check_step(event)
    return step(payload.run, lambda: use_cases.check_messages(payload.run, empty_since=payload.empty_since))
