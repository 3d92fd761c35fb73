"""Event ids are UUIDs of version 7 (RFC 9562), and keys: the id alone says where the event is stored.

- The first 48 bits are the time in milliseconds, the next 12 bits the fraction of the millisecond. Ids sort by time,
  and the timestamp of an event needs no attribute of its own.
- The last hexadecimal digit is the shard.
- The digit before it is odd for a submission of a form, and even for any other event.
- The other 57 bits are random.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from orchestrator.common.errors import InvalidRequest

EVENT_ID_PATTERN = r"^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"
MAX_SHARDS = 16

_EVENT_ID = re.compile(EVENT_ID_PATTERN)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LAST_MILLISECOND = f"{(datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1):012x}"
"""48 bits hold times up to the year 10889, and Python has none after 9999."""
_FRACTIONS = 4096
"""A millisecond is divided into this many parts, because 12 bits hold its fraction."""


@dataclass(frozen=True, slots=True)
class IdRange:
    """The ids from ``first`` on, after ``after``, and before ``before``. ``None`` is no bound."""

    first: str | None = None
    after: str | None = None
    before: str | None = None


def new_event_id(
    at: datetime, shard: int, *, submission: bool = False, random_bits: Callable[[int], int] = secrets.randbits
) -> str:
    microseconds = (at - _EPOCH) // _MICROSECOND
    milliseconds, rest = divmod(microseconds, 1000)
    # Rounded up, so that the fraction converts back to the same microsecond.
    fraction = -(-rest * _FRACTIONS // 1000)
    low = (0b10 << 62) | (random_bits(57) << 5) | (submission << 4) | shard
    digits = f"{milliseconds:012x}7{fraction:03x}{low:016x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def parse_event_id(text: object) -> str:
    """An event id, or ``{timestamp}#{event_id}`` as some clients know it."""
    event_id = text.rpartition("#")[2] if isinstance(text, str) else ""
    # fullmatch, because `$` alone would accept a trailing newline.
    if not _EVENT_ID.fullmatch(event_id) or _milliseconds(event_id) > _LAST_MILLISECOND:
        raise InvalidRequest("The event id is not valid: it is a UUID of version 7, in lower case.")
    return event_id


def _milliseconds(event_id: str) -> str:
    return event_id[:8] + event_id[9:13]


def shard_of(event_id: str) -> int:
    return int(event_id[-1], 16)


def is_submission(event_id: str) -> bool:
    """True for the id of a form's submission."""
    return int(event_id[-2], 16) % 2 == 1


def received_at(event_id: str) -> datetime:
    """When the event was accepted, with microseconds."""
    milliseconds = int(_milliseconds(event_id), 16)
    microseconds = int(event_id[15:18], 16) * 1000 // _FRACTIONS
    return _EPOCH + timedelta(milliseconds=milliseconds, microseconds=microseconds)


def event_timestamp(moment: datetime) -> str:
    """ISO 8601 in UTC with microseconds, always with the same width, so that timestamps sort as text."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def first_id_at(moment: datetime, shard: int = 0) -> str:
    """The smallest id of that moment: where a range of time begins or ends in a list that is sorted by id."""
    return new_event_id(moment, shard, random_bits=lambda _bits: 0)
