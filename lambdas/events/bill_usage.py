"""Counts, every hour, the events of the hours that are over: the figures for bills."""

from typing import TYPE_CHECKING

from lambdas.event_runtime import use_cases
from lambdas.observing import count, logger

if TYPE_CHECKING:
    from lambdas.context import LambdaContext

TO_SPARE_MILLISECONDS = 20_000
"""Time enough to count the current hour of a tenant, and to record how far the run came."""


def handler(_event: object, context: "LambdaContext") -> None:
    def has_time() -> bool:
        return context.get_remaining_time_in_millis() > TO_SPARE_MILLISECONDS

    billed = use_cases.billing(has_time=has_time).run()
    if billed.unreadable:
        logger.error("Rows cannot be read", extra={"rows": [each.row for each in billed.unreadable]})
        count("UnreadableRows", len(billed.unreadable), by_service=False)
    logger.info("Billed", extra={"hours": billed.hours, "events": billed.events, "complete": billed.complete})
