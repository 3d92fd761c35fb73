"""CloudFormation's event for a tenant's stack that has settled: wake the run that waits for the stack."""

from lambdas.runtime import logger, wiring
from orchestrator.tenants.schemas import parse_stack_event
from orchestrator.tenants.tenant_stack import stack_settled


def handler(event: object, _context: object) -> None:
    settled = parse_stack_event(event)
    woken = stack_settled(
        settled.stack_id,
        client_token=settled.client_token,
        names=wiring.names,
        reader=wiring.table,
        executions=wiring.executions,
    )
    logger.info("Stack settled", extra={"stack_id": settled.stack_id, "woken": woken})
