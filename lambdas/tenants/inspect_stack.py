"""State InspectStack: read the status of the tenant's stack, and check whether its queue can be used."""

from typing import Any

from lambdas.runtime import step, wiring
from orchestrator.tenants.schemas import parse_stack_step
from orchestrator.tenants.tenant_stack import inspect_stack


def handler(event: object, _context: object) -> dict[str, Any]:
    payload = parse_stack_step(event)
    return step(
        payload.run,
        lambda: inspect_stack(
            payload.run,
            started=payload.started,
            reader=wiring.table,
            stacks=wiring.stacks,
            queues=wiring.queues,
            clock=wiring.clock,
        ),
    )
