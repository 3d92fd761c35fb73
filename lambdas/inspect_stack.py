"""State InspectStack: say where the tenant's stack is."""

from typing import Any

from lambdas.runtime import step, wiring
from orchestrator.schemas import parse_stack_step
from orchestrator.tenant_stack import inspect_stack


def handler(event: object, _context: object) -> dict[str, Any]:
    asked = parse_stack_step(event)
    return step(
        asked.run,
        lambda: inspect_stack(
            asked.run,
            stack_id=asked.stack_id,
            clearing=asked.clearing,
            why_not=asked.why_not,
            stacks=wiring.stacks,
            clock=wiring.clock,
        ),
    )
