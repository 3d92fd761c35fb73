"""Takes an event out of the inbox, while its connections may be at work on it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from orchestrator.common.errors import Unsettled
from orchestrator.events.delivery import transitions
from orchestrator.events.delivery.records import DispatchedEvent
from orchestrator.events.delivery.writes import DeliveryWrite
from orchestrator.events.records import TenantEpoch

_ROUNDS = 8


class InboxRows(Protocol):
    """The rows of events. All reads are consistent."""

    def acknowledge_at_once(self, life: TenantEpoch, event_id: str, at: datetime) -> DispatchedEvent | bool:
        """Acknowledge an event that only the inbox has, by one write.

        ``True`` if that is done, ``False`` if there is no such event; otherwise the event, which is as it was.
        """
        ...

    def event(self, life: TenantEpoch, event_id: str) -> DispatchedEvent | None: ...

    def apply(self, transition: Sequence[DeliveryWrite]) -> bool: ...


def acknowledge(rows: InboxRows, life: TenantEpoch, event_id: str, at: datetime) -> bool:
    """Acknowledge the event by one write, or by a transition if the event has connections, too.

    ``False`` if there is no such event. Acknowledging it again changes nothing.
    """
    found = rows.acknowledge_at_once(life, event_id, at)
    for _ in range(_ROUNDS):
        if isinstance(found, bool):
            return found
        # The event was acknowledged before, or is so now.
        if not found.event.in_inbox or rows.apply(transitions.acknowledged(found, at)):
            return True
        # A connection has changed the row meanwhile.
        found = rows.event(life, event_id) or False
    raise Unsettled(f"Tenant {life.tenant}: event {event_id} is being delivered. Acknowledge it again.")
