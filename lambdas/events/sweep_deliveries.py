"""Finds, every minute, what has to be done and has nobody who does it: deliveries that are due, parked or not sent.

It also moves the replays on that somebody has asked for.
"""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from lambdas.event_deliveries import report_unreadable
from lambdas.event_runtime import use_cases
from lambdas.observing import count, logger
from orchestrator.events.delivery.replaying import Replayed

if TYPE_CHECKING:
    from lambdas.context import LambdaContext

TO_SPARE_MILLISECONDS = 10_000
"""Time enough for one more page of deliveries."""


def handler(_event: object, context: "LambdaContext") -> None:
    def has_time() -> bool:
        return context.get_remaining_time_in_millis() > TO_SPARE_MILLISECONDS

    try:
        swept = use_cases.sweeping.sweep(has_time)
        logger.info("Swept", extra={**asdict(replace(swept, errors=[])), "errors": len(swept.errors)})
        # Replays come last: everything else is waited for, and goes first.
        replayed = use_cases.replaying.move_on(has_time)
    finally:
        report_unreadable()
    if replayed != Replayed():
        logger.info("Replayed", extra={**asdict(replace(replayed, errors=[])), "errors": len(replayed.errors)})
    if replayed.unreadable:
        count("UnreadableRows", replayed.unreadable, by_service=False)
    if swept.left:
        count("SweepsCutShort")
    _raise([*swept.errors, *replayed.errors])


def _raise(errors: Sequence[Exception]) -> None:
    """Everybody else had their turns. Now an operator has to know."""
    for error in errors:
        logger.error("A part of the sweep failed", exc_info=error)
    if errors:
        raise errors[0]
