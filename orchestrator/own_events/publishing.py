"""Publishes Berth's own events: on the bus, and to the operators' own tenant if there is one.

The streams of the tables are the outbox: a change and the row that says so are one write, and the stream has the row.
A stream hands a record over at least once. So an event may be published again, with the same id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.own_events.kinds import OwnEvent
from orchestrator.own_events.operators import OperatorsTenant
from orchestrator.own_events.ports import Bus


@dataclass(frozen=True, slots=True)
class Published:
    rejected: tuple[OwnEvent, ...] = ()
    """Events that can never be published as they are."""
    failed: tuple[OwnEvent, ...] = ()
    """Events that have to be published again."""
    operators_missing: bool = False
    """True if the operators' own tenant does not accept events: it does not exist, or has no event settings."""


class Publishing:
    def __init__(self, *, bus: Bus, operators: OperatorsTenant | None) -> None:
        self._bus = bus
        self._operators = operators

    def publish(self, events: Sequence[OwnEvent]) -> Published:
        if not events:
            return Published()
        put = self._bus.put(events)
        too_large = self._operators.accept(events) if self._operators else ()
        rejected = {each.id: each for each in (*put.rejected, *(too_large or ()))}
        return Published(tuple(rejected.values()), put.failed, operators_missing=too_large is None)
