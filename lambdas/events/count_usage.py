"""Counts the events that the table's stream reports, for the limits of plans.

A stream should have no more than two readers. So this function also hands the deliveries that failed for good to the
one that publishes Berth's own events.

A record that cannot be counted is parked, and never holds up the stream. Only a failure of DynamoDB, or of handing
records over, is raised: then Lambda hands the batch over again, and the tenants that were counted already are
recognised by the digest of the batch.
"""

from collections.abc import Mapping, Sequence

from lambdas.event_runtime import use_cases
from lambdas.observing import count, logger
from orchestrator.adapters.dynamodb.event_stream import read_stream


def handler(event: object, _context: object) -> None:
    records = read_stream(event)
    counted = use_cases.counting.count(list(records.events))
    parked = [*records.unreadable, *(records.events[each] for each in counted.damaged)]
    if parked:
        _park(parked)
    if records.exhausted:
        use_cases.ports.handover.hand_over(records.exhausted)
    logger.info(
        "Counted",
        extra={
            "events": counted.events,
            "ended": counted.ended,
            "repeated": counted.repeated,
            "parked": len(parked),
            "handed_over": len(records.exhausted),
        },
    )


def _park(parked: Sequence[Mapping[str, str]]) -> None:
    count("RecordsParked", len(parked))
    try:
        use_cases.ports.parked_records.park(parked)
    except Exception:  # noqa: BLE001 - whatever it is, the stream must go on
        # The log has the keys, too. To raise would have the other records counted twice, and hold up the stream.
        logger.exception("Records could not be parked", extra={"records": parked})
