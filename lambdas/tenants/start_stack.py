"""State StartStack: start the next change of the tenant's stack that the operation needs."""

from typing import Any

from lambdas.runtime import step, wiring
from orchestrator.tenants.schemas import parse_start_step
from orchestrator.tenants.tenant_stack import start_stack


def handler(event: object, _context: object) -> dict[str, Any]:
    payload = parse_start_step(event)
    return step(
        payload.run,
        lambda: start_stack(
            payload.run,
            reader=wiring.table,
            releases=wiring.table,
            stacks=wiring.writable_stacks,
            queues=wiring.queues,
            drafting=wiring.drafting,
            clock=wiring.clock,
            empty_for=wiring.settings.empty_for,
            empty_since=payload.empty_since,
            looked_at=payload.looked_at,
        ),
    )
