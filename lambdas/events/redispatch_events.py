"""Dispatches events that were never dispatched: every night, and after Lambda has given up a batch of the stream."""

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from lambdas.event_deliveries import report_unreadable
from lambdas.event_runtime import use_cases
from lambdas.observing import count, logger
from orchestrator.adapters.delivery_queues import received
from orchestrator.adapters.dynamodb.dispatch_stream import GivenUp, read_given_up
from orchestrator.events.delivery.redispatching import Redispatched

if TYPE_CHECKING:
    from lambdas.context import LambdaContext

TO_SPARE_MILLISECONDS = 30_000
"""Time enough to dispatch one more page of events."""


def handler(event: object, context: "LambdaContext") -> dict[str, Any] | None:
    def has_time() -> bool:
        return context.get_remaining_time_in_millis() > TO_SPARE_MILLISECONDS

    messages = list(received(event))
    if not messages:
        done = use_cases.redispatching.nightly(has_time)
        _report(done)
        if done.errors:
            # Lambda repeats the run, and in the end an operator has to know.
            raise done.errors[0]
        return None
    failed = []
    for message in messages:
        given_up = read_given_up(message.body)
        logger.error("Lambda has given up a batch of the stream", extra={"batch": message.body[:2000]})
        done = (
            use_cases.redispatching.redispatch(given_up.begin, given_up.end, has_time)
            if isinstance(given_up, GivenUp)
            else use_cases.redispatching.nightly(has_time)
        )
        _report(done)
        if done.errors or not done.complete:
            failed.append(message.message_id)
    return {"batchItemFailures": [{"itemIdentifier": each} for each in failed]}


def _report(done: Redispatched) -> None:
    logger.info("Dispatched again", extra={**asdict(replace(done, errors=[])), "errors": len(done.errors)})
    for error in done.errors:
        logger.error("Events of a tenant could not be dispatched again", exc_info=error)
    if not done.complete:
        count("RedispatchesCutShort")
    report_unreadable()
