"""The statuses of events.

| status       | meaning                                                                      |
|--------------|------------------------------------------------------------------------------|
| received     | accepted; not yet delivered. With the inbox on, shown as ``undelivered``     |
| delivered    | every connection that wants the event has it, or the inbox acknowledged it   |
| filtered     | no connection wants the event                                                |
| retrying     | a delivery failed and will be tried again                                    |
| failed       | a delivery failed for the last time; only a resend changes this              |
"""

from __future__ import annotations

from enum import StrEnum


class EventStatus(StrEnum):
    RECEIVED = "received"
    DELIVERED = "delivered"
    FILTERED = "filtered"
    RETRYING = "retrying"
    FAILED = "failed"


def is_finished(status: EventStatus) -> bool:
    """True if nothing more is going to happen to the event by itself."""
    return status in (EventStatus.DELIVERED, EventStatus.FILTERED, EventStatus.FAILED)


UNDELIVERED = "undelivered"
"""The status in the index, and in answers, of an event that waits in the inbox."""

_WORDS = {UNDELIVERED: EventStatus.RECEIVED, "pending": EventStatus.RECEIVED, "processing": EventStatus.RECEIVED}
"""Other words for a status, which filters accept."""


def status_of_word(word: str) -> EventStatus | None:
    """The status that a word in a filter means. ``None`` for a word that means none."""
    if word in _WORDS:
        return _WORDS[word]
    return EventStatus(word) if word in EventStatus.__members__.values() else None
