"""The interfaces that publishing needs from outside. Adapters implement them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from orchestrator.own_events.kinds import OwnEvent


@dataclass(frozen=True, slots=True)
class Put:
    """The events that the bus did not take. It has all others."""

    rejected: tuple[OwnEvent, ...] = ()
    """The bus will not take them, however often they are sent."""
    failed: tuple[OwnEvent, ...] = ()
    """The bus may take them when they are sent again."""


class Bus(Protocol):
    def put(self, events: Sequence[OwnEvent]) -> Put: ...


class Handover(Protocol):
    def hand_over(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Hand records of a stream to the function that publishes the changes in them. It has them afterwards."""
        ...
