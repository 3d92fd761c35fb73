"""The clock, the format of timestamps, and ids that sort by time."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Protocol


def timestamp(moment: datetime) -> str:
    """ISO 8601 in UTC with milliseconds. All timestamps have the same width, so they sort by time as text."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def readable(moment: datetime) -> str:
    """The moment in a sentence, as the command line shows moments."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


ID_PATTERN = "^[0-9]{8}-[0-9]{6}-[0-9a-f]{4}$"


def new_id(at: datetime, *about: object) -> str:
    """An id for a request that was made at that time. Ids sort by time."""
    digest = hashlib.sha256("/".join([at.isoformat(), *map(str, about)]).encode()).hexdigest()
    return f"{at:%Y%m%d-%H%M%S}-{digest[:4]}"


def parse_timestamp(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


class Clock(Protocol):
    def now(self) -> datetime: ...
