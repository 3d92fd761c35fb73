"""State StartStack: take one step towards what the operation wants of the tenant's stack."""

from typing import Any

from lambdas.runtime import step, wiring
from orchestrator.schemas import parse_run
from orchestrator.tenant_stack import start_stack


def handler(event: object, _context: object) -> dict[str, Any]:
    run = parse_run(event)
    return step(
        run,
        lambda: start_stack(
            run,
            reader=wiring.table,
            releases=wiring.table,
            stacks=wiring.writable_stacks,
            queues=wiring.queues,
            clock=wiring.clock,
        ),
    )
