"""State CheckMessages: see whether deleting the tenant would lose messages."""

from typing import Any

from lambdas.runtime import step, wiring
from orchestrator.deleting import check_messages
from orchestrator.schemas import parse_run


def handler(event: object, _context: object) -> dict[str, Any]:
    run = parse_run(event)
    return step(
        run,
        lambda: check_messages(
            run, reader=wiring.table, stacks=wiring.stacks, queues=wiring.queues, clock=wiring.clock
        ),
    )
