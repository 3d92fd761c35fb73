"""Executions that ended without success: settle the operation of each, unless the execution has recorded its result.

The events come through a queue with a delay, so that the last function of an aborted execution has ended by then.
"""

from typing import Any

from lambdas.observing import count, logger
from lambdas.runtime import use_cases
from orchestrator.common.errors import Throttled
from orchestrator.reconciling.events import parse_execution_ended, parse_messages
from orchestrator.reconciling.settling import Settled


def handler(event: object, _context: object) -> dict[str, Any]:
    failures: list[dict[str, str]] = []
    for message in parse_messages(event):
        try:
            _close(message.body)
        except Throttled as throttled:
            logger.info("Message will be retried", extra={"reason": str(throttled)})
            failures.append({"itemIdentifier": message.id})
    return {"batchItemFailures": failures}


def _close(body: str) -> None:
    run = parse_execution_ended(body)
    with logger.append_context_keys(tenant_id=run.tenant.value, execution=run.execution, attempt=run.attempt.name):
        settlement = use_cases.settling.settle(run)
        # An operation that cannot be settled yet is left to the scheduled reconciliation.
        logger.info("Execution ended", extra={"settlement": settlement.outcome})
        if isinstance(settlement, Settled):
            logger.warning("Operation settled", extra={"status": settlement.status, "reason": settlement.reason})
            count("OperationSettled")
