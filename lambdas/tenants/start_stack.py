"""State StartStack: take one step towards what the operation wants of the tenant's stack."""

from typing import Any

from lambdas.runtime import step, wiring
from orchestrator.tenants.schemas import parse_start_step
from orchestrator.tenants.tenant_stack import start_stack


def handler(event: object, _context: object) -> dict[str, Any]:
    asked = parse_start_step(event)
    return step(
        asked.run,
        lambda: start_stack(
            asked.run,
            reader=wiring.table,
            releases=wiring.table,
            stacks=wiring.writable_stacks,
            queues=wiring.queues,
            drafting=wiring.drafting,
            clock=wiring.clock,
            empty_for=wiring.settings.empty_for,
            empty_since=asked.empty_since,
            looked_at=asked.looked_at,
        ),
    )
