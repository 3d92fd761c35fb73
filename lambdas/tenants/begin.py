"""State Begin: take the tenant's lock, write Started, and check whether the operation may run."""

from typing import Any

from lambdas.runtime import step, wiring
from orchestrator.tenants.operations import begin
from orchestrator.tenants.schemas import parse_run


def handler(event: object, _context: object) -> dict[str, Any]:
    run = parse_run(event)
    return step(
        run,
        lambda: begin(
            run,
            reader=wiring.table,
            ledger=wiring.ledger,
            releases=wiring.table,
            stacks=wiring.stacks,
            executions=wiring.executions,
            parameters=wiring.parameters,
            clock=wiring.clock,
        ),
    )
