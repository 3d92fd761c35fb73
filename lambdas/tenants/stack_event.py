"""CloudFormation's event for a tenant's stack that has settled: wake the run that waits for the stack."""

from lambdas.observing import logger
from lambdas.runtime import outcome_json, use_cases
from orchestrator.tenants.schemas import parse_stack_event


def handler(event: object, _context: object) -> None:
    settled = parse_stack_event(event)
    found = use_cases.stack_settled(settled.stack_id, client_token=settled.client_token)
    result = outcome_json(found.outcome) if found else {}
    woken = found is not None and use_cases.ports.executions.wake(found.task_token, result)
    logger.info("Stack settled", extra={"stack_id": settled.stack_id, "woken": woken, "response": result})
