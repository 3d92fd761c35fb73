"""Gives each delivery whose message ended in the dead-letter queue a due time, so that the sweep has it tried again.

A message that cannot be read, or whose delivery cannot be recovered, is reported as failed: after several times SQS
moves it to the queue for operators.
"""

from typing import Any

from lambdas.event_runtime import use_cases
from lambdas.observing import count, logger
from orchestrator.adapters.delivery_queues import from_wire, received


def handler(event: object, _context: object) -> dict[str, Any]:
    failed: list[str] = []
    lost = 0
    for each in received(event):
        try:
            message = from_wire(each.body)
            ref = message.ref
            names = {"tenant_id": ref.life.tenant.value, "event_id": ref.event_id, "connection_id": ref.connection_id}
            recovered = use_cases.recovering.recover(message)
        except Exception:  # noqa: BLE001 - a failure with one message must not fail the others
            logger.exception("A delivery could not be recovered", extra={"message_id": each.message_id})
            failed.append(each.message_id)
        else:
            lost += 1
            logger.error("The message of a delivery was lost", extra={**names, "recovered": recovered})
    if lost:
        count("DeliveriesLost", lost)
    return {"batchItemFailures": [{"itemIdentifier": each} for each in failed]}
