"""Messages that ask for a try. They are hints: the rows decide. They carry names, and never the content of an event."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from orchestrator.events.delivery.records import DeliveryRef

MAX_DELAY = timedelta(seconds=900)
"""The longest delay of a message. What waits longer is found by its due time."""


@dataclass(frozen=True, slots=True)
class DeliveryMessage:
    ref: DeliveryRef
    tries: int = 0
    """How many tries have ended. The row of the delivery has to say the same, so that a message that comes twice, or
    late, starts no second try."""
    claims: bool = False
    """True if the delivery has a row, which has to be claimed before the try."""
    quick: bool = True
    """True for a first try of a healthy connection, which goes to the queue for those."""
    delay: timedelta = timedelta()
