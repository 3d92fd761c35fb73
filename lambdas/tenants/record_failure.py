"""State RecordFailure: write Failure with its root cause, free the lock, and say what the execution fails with."""

from lambdas.runtime import count, logger, wiring
from orchestrator.tenants.operations import record_failure
from orchestrator.tenants.schemas import parse_failure_step


def handler(event: object, _context: object) -> dict[str, str]:
    asked = parse_failure_step(event, wiring.names)
    run = asked.run
    with logger.append_context_keys(tenant_id=run.tenant.value, execution=run.execution, attempt=run.attempt.name):
        cause = record_failure(
            run,
            failure=asked.failure,
            failed_stack=asked.failed_stack,
            reader=wiring.table,
            ledger=wiring.table,
            stacks=wiring.stacks,
            executions=wiring.executions,
            clock=wiring.clock,
        )
        logger.error("Operation failed", extra={"root_cause": str(cause)})
        count("OperationFailed")
    return {"Error": "Berth.OperationFailed", "Cause": f"Tenant {run.tenant}: {cause}"}
