"""A queue of SQS with message groups, as AWS documents fair queues. The emulator has none.

Documented, and played here:

- A group is noisy if more than a tenth of the messages in flight are its own, and at least 30 of them are; or if it
  took more than a tenth of the consumers' recent processing time.
- Messages of other groups come first, whenever there are some. Of several noisy groups, the one with the fewest
  messages in flight comes first.
- A group is quiet again when none of its messages waits, or when nothing was sent for five minutes.
- A message without a group is a group of its own.

Not documented, and assumed: "recent" is the last minute, and of quiet groups the oldest message comes first.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

NOISY_SHARE = 0.1
NOISY_IN_FLIGHT = 30
QUIET_AFTER_SECONDS = 300.0
RECENT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Taken:
    """A message in flight."""

    group: str
    body: Any
    at: float


@dataclass
class FairQueue:
    """With ``is_fair=False`` groups are ignored: the oldest message comes first."""

    is_fair: bool = True
    noisy: set[str] = field(default_factory=set)
    _waiting: dict[str, deque[tuple[int, Any]]] = field(default_factory=dict)
    _in_flight: Counter[str] = field(default_factory=Counter)
    _processed: deque[tuple[float, str, float]] = field(default_factory=deque)
    _spent: dict[str, float] = field(default_factory=dict)
    """The recent processing time by group, in seconds."""
    _last_sent: dict[str, float] = field(default_factory=dict)
    _numbers: count[int] = field(default_factory=count)

    def send(self, group: str | None, body: Any, now: float) -> None:
        number = next(self._numbers)
        name = group if group is not None and self.is_fair else f"#{number}" if self.is_fair else ""
        self._waiting.setdefault(name, deque()).append((number, body))
        self._last_sent[name] = now

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def receive(self, limit: int, now: float) -> Sequence[Taken]:
        self._forget(now)
        taken: list[Taken] = []
        while self._waiting and len(taken) < limit:
            self._mark(now)
            group = self._next()
            _, body = self._waiting[group].popleft()
            if not self._waiting[group]:
                del self._waiting[group]
                self.noisy.discard(group)
            self._in_flight[group] += 1
            taken.append(Taken(group, body, now))
        return taken

    def delete(self, taken: Taken, now: float) -> None:
        self._in_flight[taken.group] -= 1
        if not self._in_flight[taken.group]:
            del self._in_flight[taken.group]
        self._processed.append((now, taken.group, now - taken.at))
        self._spent[taken.group] = self._spent.get(taken.group, 0.0) + now - taken.at

    def _next(self) -> str:
        quiet = [group for group in self._waiting if group not in self.noisy]
        if quiet:
            return min(quiet, key=lambda group: self._waiting[group][0][0])
        return min(self._waiting, key=lambda group: (self._in_flight[group], self._waiting[group][0][0]))

    def _mark(self, now: float) -> None:
        if not self.is_fair:
            return
        in_flight, spent = self._in_flight.total(), sum(self._spent.values())
        for group in self._waiting:
            own = self._in_flight[group]
            has_many = own >= NOISY_IN_FLIGHT and own > NOISY_SHARE * in_flight
            if has_many or self._spent.get(group, 0.0) > NOISY_SHARE * spent:
                self.noisy.add(group)
            if now - self._last_sent[group] > QUIET_AFTER_SECONDS:
                self.noisy.discard(group)

    def _forget(self, now: float) -> None:
        while self._processed and self._processed[0][0] < now - RECENT_SECONDS:
            _, group, seconds = self._processed.popleft()
            self._spent[group] -= seconds
            if self._spent[group] <= 1e-9:
                del self._spent[group]
