"""Tries deliveries: each message asks for one try. The messages of a batch are worked on at the same time.

A message is reported as failed only if the failure is ours. Then SQS hands it over again, and after several times moves
it to the dead letters. What a receiver answers is on record, whatever it is.
"""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

from lambdas.event_deliveries import report_unreadable
from lambdas.event_runtime import use_cases
from lambdas.observing import count, logger
from orchestrator.adapters.delivery_queues import Received, from_wire, received
from orchestrator.common.errors import Throttled
from orchestrator.events.delivery.delivering import Outcome
from orchestrator.events.delivery.health import SLOW_MILLISECONDS

AT_ONCE = 10
"""The number of messages in a batch."""
COUNTED = {
    Outcome.DELIVERED: "Delivered",
    Outcome.RETRYING: "TriesFailed",
    Outcome.FAILED: "DeliveriesFailed",
    Outcome.PARKED: "Parked",
    Outcome.MISSING: "EventsMissing",
    "error": "Errors",
    "throttled": "Throttled",
}
"""The metrics. Only the last two are about failures of ours, after which the message comes again."""
COMES_AGAIN = frozenset({"error", "throttled"})

# Built at import, so that the threads of the first batch do not each build their own.
delivering = use_cases.delivering


def handler(event: object, _context: object) -> dict[str, Any]:
    messages = list(received(event))
    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        tries = [pool.submit(_deliver, each) for each in messages]
        if wait(tries, timeout=SLOW_MILLISECONDS / 1000).not_done:
            _note_slow()
    outcomes = [each.result() for each in tries]
    counted = Counter(outcomes)
    for outcome, metric in COUNTED.items():
        if counted[outcome]:
            count(metric, counted[outcome])
    report_unreadable()
    failed = [each.message_id for each, outcome in zip(messages, outcomes, strict=True) if outcome in COMES_AGAIN]
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}


def _note_slow() -> None:
    try:
        delivering.note_slow()
    except Exception:  # noqa: BLE001 - it is noted at the end of the try, too
        logger.exception("Slow receivers could not be noted early")


def _deliver(given: Received) -> str:
    names = {"message_id": given.message_id}
    try:
        message = from_wire(given.body)
        ref = message.ref
        names |= {"tenant_id": ref.life.tenant.value, "event_id": ref.event_id, "connection_id": ref.connection_id}
        outcome = delivering.deliver(message)
    except Throttled as throttled:
        logger.warning("The message comes again", extra={**names, "reason": str(throttled)})
        return "throttled"
    except Exception:  # noqa: BLE001 - a failure with one message must not fail the others
        logger.exception("The message comes again", extra=names)
        return "error"
    logger.info("Tried", extra={**names, "tries": message.tries, "outcome": outcome})
    return outcome
