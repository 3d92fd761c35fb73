"""Code that the functions of deliveries share: what they log and count.

A receiver's failure is data: it is counted, and is no error of ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lambdas.event_runtime import use_cases
from lambdas.observing import count, logger

if TYPE_CHECKING:
    from orchestrator.events.delivery.dispatching import Dispatched


def report_dispatched(done: Dispatched) -> None:
    logger.info(
        "Dispatched",
        extra={"sent": done.sent, "filtered": done.filtered, "parked": done.parked, "later": len(done.later)},
    )
    if done.later:
        # The reasons say nothing of the content of an event.
        logger.warning("Events have to be dispatched again", extra={"reasons": sorted(set(done.later))})
        count("DispatchedAgain", len(done.later))


def report_unreadable(records: Sequence[Mapping[str, str]] = ()) -> None:
    """Report rows that somebody other than Berth has written. They hold up nothing."""
    rows = [each.row for each in use_cases.ports.take_unreadable()]
    if rows or records:
        logger.error("Rows cannot be read", extra={"rows": [*rows, *records]})
        count("UnreadableRows", len(rows) + len(records), by_service=False)
