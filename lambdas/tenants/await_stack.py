"""State AwaitStack: store the task token, so that the stack's event can wake the execution."""

from typing import Any

from lambdas.runtime import step, wiring
from orchestrator.tenants.schemas import parse_await_step
from orchestrator.tenants.tenant_stack import await_stack


def handler(event: object, _context: object) -> dict[str, Any]:
    payload = parse_await_step(event)
    return step(
        payload.run,
        lambda: await_stack(
            payload.run,
            started=payload.started,
            task_token=payload.task_token,
            ledger=wiring.ledger,
            stacks=wiring.stacks,
            executions=wiring.executions,
        ),
    )
