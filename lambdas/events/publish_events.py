"""Publishes Berth's own events: the changes that the streams of the tables report.

A record that cannot be read, or an event that the bus refuses, is parked, and never holds up the stream. Whatever may
succeed later is raised: then Lambda hands the batch over again, and its events have the same ids as before.
"""

import json

from lambdas.event_runtime import use_cases
from lambdas.logs import count, logger
from orchestrator.adapters.dynamodb.own_event_stream import read_changes
from orchestrator.common.errors import Unsettled


def handler(event: object, _context: object) -> None:
    changes = read_changes(event)
    published = use_cases.publishing.publish(changes.events)
    control_plane = use_cases.ports.settings.control_plane
    parked = [
        *changes.unreadable,
        *({"event": json.dumps(each.detail(control_plane), sort_keys=True)} for each in published.rejected),
    ]
    if parked:
        count("RecordsParked", len(parked))
        use_cases.ports.parked_records.park(parked)
    if published.operators_missing:
        count("OperatorsTenantMissing")
        logger.warning("The operators' own tenant accepts no events", extra={"events": len(changes.events)})
    logger.info(
        "Published",
        extra={
            "ids": {each.id: each.kind for each in changes.events},
            "failed": len(published.failed),
            "parked": len(parked),
        },
    )
    if published.failed:
        raise Unsettled(f"EventBridge did not take {len(published.failed)} events. They are published again.")
