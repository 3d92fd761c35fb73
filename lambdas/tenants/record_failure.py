"""State RecordFailure: write Failure with its root cause, release the lock, and return the execution's error."""

from lambdas.observing import count, logger
from lambdas.runtime import use_cases
from orchestrator.tenants.schemas import parse_failure_step


def handler(event: object, _context: object) -> dict[str, str]:
    payload = parse_failure_step(event, use_cases.ports.settings.names)
    run = payload.run
    with logger.append_context_keys(tenant_id=run.tenant.value, execution=run.execution, attempt=run.attempt.name):
        cause = use_cases.record_failure(run, failure=payload.failure, failed_stack=payload.failed_stack)
        logger.error("Operation failed", extra={"root_cause": str(cause)})
        count("OperationFailed")
    return {"Error": "Berth.OperationFailed", "Cause": f"Tenant {run.tenant}: {cause}"}
