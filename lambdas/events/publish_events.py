"""Publishes Berth's own events: the changes that the streams of the tables report.

The streams are the outbox: a change and the row that says so are one write, and the stream has the row. A stream hands
a record over at least once, so an event may be published again, with the same id.

A record that cannot be read, or an event that the bus refuses, is parked, and never holds up the stream. Whatever may
succeed later is raised: then Lambda hands the batch over again, and its events have the same ids as before.
"""

import json

from lambdas.event_runtime import use_cases
from lambdas.observing import count, logger
from orchestrator.adapters.dynamodb.own_event_stream import read_changes
from orchestrator.common.errors import Unsettled


def handler(event: object, _context: object) -> None:
    changes = read_changes(event)
    put = use_cases.ports.bus.put(changes.events)
    control_plane = use_cases.ports.settings.control_plane
    parked = [
        *changes.unreadable,
        *({"event": json.dumps(each.detail(control_plane), sort_keys=True)} for each in put.rejected),
    ]
    if parked:
        count("RecordsParked", len(parked))
        use_cases.ports.parked_records.park(parked)
    logger.info(
        "Published",
        extra={
            "ids": {each.id: each.kind for each in changes.events},
            "failed": len(put.failed),
            "parked": len(parked),
        },
    )
    if put.failed:
        raise Unsettled(f"EventBridge did not take {len(put.failed)} events. They are published again.")
