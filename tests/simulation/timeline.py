"""The actions that are due at some time, soonest first."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum


class Kind(Enum):
    STEP = "an execution passes through a state"
    EVENT = "an event arrives"
    OTHER = "anything else"


@dataclass(frozen=True, order=True)
class Entry:
    due: datetime
    number: int
    """Breaks ties: the entry that was added first comes first."""
    action: Callable[[], None] = field(compare=False)
    kind: Kind = field(compare=False)


class Timeline:
    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._count = itertools.count()

    def add(self, due: datetime, action: Callable[[], None], kind: Kind) -> None:
        heapq.heappush(self._entries, Entry(due, next(self._count), action, kind))

    @property
    def entries_left(self) -> bool:
        return bool(self._entries)

    @property
    def next_due(self) -> datetime:
        return self._entries[0].due

    def next(self) -> Entry:
        """Remove the soonest entry and return it."""
        return heapq.heappop(self._entries)

    def expected(self, kind: Kind) -> list[Entry]:
        """The entries of that kind, soonest first."""
        return sorted(entry for entry in self._entries if entry.kind is kind)

    def drop(self, entry: Entry) -> None:
        """Remove an entry, so that it does not happen."""
        self._entries.remove(entry)
        heapq.heapify(self._entries)
