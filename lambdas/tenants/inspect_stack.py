"""State InspectStack: say where the tenant's stack is, and whether its queue can be used."""

from typing import Any

from lambdas.runtime import step, wiring
from orchestrator.tenants.schemas import parse_stack_step
from orchestrator.tenants.tenant_stack import inspect_stack


def handler(event: object, _context: object) -> dict[str, Any]:
    asked = parse_stack_step(event)
    return step(
        asked.run,
        lambda: inspect_stack(
            asked.run,
            started=asked.started,
            reader=wiring.table,
            stacks=wiring.stacks,
            queues=wiring.queues,
            clock=wiring.clock,
        ),
    )
