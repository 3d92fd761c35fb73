"""The write units that one event costs in four documents' own designs, computed from what the documents describe.

An event has at most 1 KB and one receiver, and is delivered at the first try. Each write lists the write units in the
table and in its indexes. A change of an attribute that is the key of an index is two writes there, and one of another
attribute is one if the index holds all attributes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class DesignWrite:
    what: str
    units: Mapping[str, int]
    """Write units by partition. All events of a tenant, or of a source, share each of these partitions."""


@dataclass(frozen=True)
class Design:
    document: str
    accept: tuple[DesignWrite, ...]
    deliver: tuple[DesignWrite, ...]

    @property
    def writes(self) -> tuple[DesignWrite, ...]:
        return self.accept + self.deliver

    @property
    def units(self) -> int:
        return sum(sum(write.units.values()) for write in self.writes)


FERRYHOOK = Design(
    "ferryhook",
    accept=(
        # GSI1 holds whole events, because it is there to show an event by its id.
        DesignWrite("the event", {"events": 1, "events GSI1": 1}),
        DesignWrite("usageThisMonth of the user", {"user": 1}),
        DesignWrite("eventCount and lastEventAt of the source", {"source": 1}),
    ),
    deliver=(
        DesignWrite("status processing", {"events": 1, "events GSI1": 1}),
        DesignWrite("the attempt", {"attempts of an event": 1}),
        DesignWrite("status delivered", {"events": 1, "events GSI1": 1}),
        DesignWrite("deliveryCount of the connection", {"connection": 1}),
    ),
)
ZAPIER = Design(
    "zapier-triggers",
    accept=(DesignWrite("the event", {"events": 1, "EventTypeIndex": 1, "StatusIndex": 1}),),
    deliver=(DesignWrite("status delivered", {"events": 1, "EventTypeIndex": 1, "StatusIndex": 2}),),
)
EVENTS_API = Design(
    "events-api",
    accept=(DesignWrite("the event", {"events": 1, "status-index": 1}),),
    deliver=(DesignWrite("status delivered", {"events": 1, "status-index": 2}),),
)
FORMBRIDGE = Design(
    "formbridge",
    accept=(DesignWrite("the submission", {"data": 1, "TenantIndex": 1}),),
    # TenantIndex holds keys only, and the document records no attempt.
    deliver=(DesignWrite("status delivered", {"data": 1}),),
)
DESIGNS = (FERRYHOOK, ZAPIER, EVENTS_API, FORMBRIDGE)

DISTINCT = frozenset({"events GSI1", "attempts of an event"})
"""Partitions that hold one event each: their keys are the event's id."""

TARGETS_MS = {"put": 10, "get": 5, "query": 50}
"""The p95 targets of the documents."""
