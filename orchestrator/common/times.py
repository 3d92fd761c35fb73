"""Time: where it is told, how it is written down, and ids that sort by it."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    pass
import hashlib
from datetime import UTC


def timestamp(moment: datetime) -> str:
    """ISO 8601 in UTC with milliseconds: one width, so that text order is time order."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


ID_PATTERN = "^[0-9]{8}-[0-9]{6}-[0-9a-f]{4}$"


def new_id(at: datetime, *about: object) -> str:
    """An id for what is asked for at that moment. Ids sort by time."""
    digest = hashlib.sha256("/".join([at.isoformat(), *map(str, about)]).encode()).hexdigest()
    return f"{at:%Y%m%d-%H%M%S}-{digest[:4]}"


def parse_timestamp(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


class Clock(Protocol):
    def now(self) -> datetime: ...
