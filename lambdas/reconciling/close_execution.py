"""Executions that ended without success: settle each one's operation, unless it has said itself how it ended.

The events come through a queue, late enough for the last function of an aborted execution to have ended.
"""

from typing import Any

from lambdas.runtime import count, logger, wiring
from orchestrator.common.errors import Throttled
from orchestrator.reconciling.events import parse_execution_ended, parse_messages
from orchestrator.reconciling.settling import Settled


def handler(event: object, _context: object) -> dict[str, Any]:
    come_back: list[dict[str, str]] = []
    for message in parse_messages(event):
        try:
            _close(message.body)
        except Throttled as throttled:
            logger.info("Comes back later", extra={"reason": str(throttled)})
            come_back.append({"itemIdentifier": message.id})
    return {"batchItemFailures": come_back}


def _close(body: str) -> None:
    run = parse_execution_ended(body)
    with logger.append_context_keys(tenant_id=run.tenant.value, execution=run.execution, attempt=run.attempt.name):
        settlement = wiring.settling.settle(run)
        # What is still open, the scheduled reconciliation settles.
        logger.info("Execution ended", extra={"settlement": settlement.outcome})
        if isinstance(settlement, Settled):
            logger.warning("Operation settled", extra={"status": settlement.status, "reason": settlement.reason})
            count("OperationSettled")
