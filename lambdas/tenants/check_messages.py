"""State CheckMessages: check whether deleting the tenant would lose messages."""

from typing import Any

from lambdas.runtime import step, wiring
from orchestrator.tenants.deleting import check_messages
from orchestrator.tenants.schemas import parse_check_step


def handler(event: object, _context: object) -> dict[str, Any]:
    payload = parse_check_step(event)
    return step(
        payload.run,
        lambda: check_messages(
            payload.run,
            empty_since=payload.empty_since,
            empty_for=wiring.settings.empty_for,
            reader=wiring.table,
            stacks=wiring.stacks,
            queues=wiring.queues,
            clock=wiring.clock,
        ),
    )
