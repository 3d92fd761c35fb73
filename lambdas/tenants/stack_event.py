"""CloudFormation's event for a tenant's stack that has settled: wake the run that waits for the stack."""

from lambdas.logs import logger
from lambdas.runtime import use_cases
from orchestrator.tenants.schemas import parse_stack_event


def handler(event: object, _context: object) -> None:
    settled = parse_stack_event(event)
    woken = use_cases.stack_settled(settled.stack_id, client_token=settled.client_token)
    logger.info("Stack settled", extra={"stack_id": settled.stack_id, "woken": woken})
