"""State Finish: publish the queue, write Success, free the lock."""

from typing import Any

from lambdas.runtime import step, wiring
from orchestrator.operations import finish
from orchestrator.schemas import parse_finish_step


def handler(event: object, _context: object) -> dict[str, Any]:
    asked = parse_finish_step(event)
    return step(
        asked.run,
        lambda: finish(
            asked.run,
            stack_id=asked.stack_id,
            queue=asked.queue,
            version=asked.version,
            ledger=wiring.table,
            queues=wiring.queues,
            clock=wiring.clock,
        ),
    )
