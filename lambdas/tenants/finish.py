"""State Finish: publish or remove the tenant's queue, write Success, release the lock."""

from typing import Any

from lambdas.runtime import last_step, wiring
from orchestrator.tenants.operations import finish
from orchestrator.tenants.schemas import parse_finish_step


def handler(event: object, _context: object) -> dict[str, Any]:
    payload = parse_finish_step(event)
    return last_step(
        payload.run,
        lambda: finish(
            payload.run,
            stack=payload.stack,
            reader=wiring.table,
            ledger=wiring.ledger,
            releases=wiring.table,
            stacks=wiring.stacks,
            parameters=wiring.parameters,
            clock=wiring.clock,
        ),
    )
