"""State AwaitStack: leave the task token where the stack's event finds it."""

from typing import Any

from lambdas.runtime import step, wiring
from orchestrator.tenants.schemas import parse_await_step
from orchestrator.tenants.tenant_stack import await_stack


def handler(event: object, _context: object) -> dict[str, Any]:
    asked = parse_await_step(event)
    return step(
        asked.run,
        lambda: await_stack(
            asked.run,
            started=asked.started,
            task_token=asked.task_token,
            ledger=wiring.table,
            stacks=wiring.stacks,
            executions=wiring.executions,
        ),
    )
