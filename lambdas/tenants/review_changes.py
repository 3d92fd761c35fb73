"""State ReviewChanges: create a change set, which shows what an update would change."""

from typing import Any

from lambdas.runtime import step, wiring
from orchestrator.tenants.schemas import parse_run
from orchestrator.tenants.tenant_stack import review_changes


def handler(event: object, _context: object) -> dict[str, Any]:
    run = parse_run(event)
    return step(
        run,
        lambda: review_changes(
            run,
            reader=wiring.table,
            releases=wiring.table,
            stacks=wiring.writable_stacks,
            drafting=wiring.drafting,
        ),
    )
