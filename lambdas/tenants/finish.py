"""State Finish: publish the queue or forget the tenant, write Success, free the lock."""

from typing import Any

from lambdas.runtime import last_step, wiring
from orchestrator.tenants.operations import finish
from orchestrator.tenants.schemas import parse_finish_step


def handler(event: object, _context: object) -> dict[str, Any]:
    asked = parse_finish_step(event)
    return last_step(
        asked.run,
        lambda: finish(
            asked.run,
            stack=asked.stack,
            reader=wiring.table,
            ledger=wiring.table,
            releases=wiring.table,
            stacks=wiring.stacks,
            parameters=wiring.parameters,
            clock=wiring.clock,
        ),
    )
