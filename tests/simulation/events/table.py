"""The table of events as functions see it: its partitions have limits, its pages are short, and its indexes lag."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from orchestrator.adapters.dynamodb import delivery_keys
from orchestrator.common.errors import Throttled
from orchestrator.events.delivery.records import DispatchedEvent
from orchestrator.events.delivery.replays import Replay
from orchestrator.events.delivery.writes import DeliveryKey, DeliveryWrite
from orchestrator.events.event_ids import IdRange
from orchestrator.events.records import Event, TenantEpoch, UnreadableRow
from tests.fakes import FakeClock
from tests.fakes.deliveries import InMemoryDeliveries
from tests.fakes.replays import InMemoryReplays
from tests.simulation.events import partitions
from tests.simulation.events.partitions import Partitions, Use
from tests.simulation.events.replay_checks import ReplayChecks

TRIES = 3
"""The SDK makes about as many requests, and waits in between, before a function hears that a partition is busy."""
PAGE = 2
"""A page ends after 1 MB. The events of a run are small, so here it ends after so many of them."""
LONGEST_LAG = timedelta(minutes=1)


@dataclass
class Requests:
    """Makes the requests of functions wait for busy partitions, and fail in the end."""

    partitions: Partitions
    rng: random.Random
    wait: Callable[[float], None]
    seen: Counter[str]

    def make(self, use: Use, names: Collection[str]) -> None:
        for number in range(TRIES):
            if self.partitions.take(use, names):
                return
            self.seen["partition was busy"] += 1
            if number < TRIES - 1:
                self.wait(self.rng.random() * 0.2 * 2**number)
        self.seen[f"{use.value} gave up on a busy partition"] += 1
        raise Throttled(f"{use.value}: Throughput exceeds the limit of a partition: {', '.join(names)}")


class Lagging:
    """An index is behind by a minute at most, and usually by far less."""

    def __init__(self, clock: FakeClock, rng: random.Random, seen: Counter[str], often: float) -> None:
        self._clock = clock
        self._rng = rng
        self._seen = seen
        self._rows: InMemoryDeliveries | None = None
        self._since = clock.now()
        self.often = often

    def note(self, table: InMemoryDeliveries) -> None:
        """Remember the rows as they are."""
        self._rows = InMemoryDeliveries(dict(table.rows), dict(table.events))
        self._since = self._clock.now()

    def since(self) -> datetime | None:
        """The moment whose rows the index shows now, or ``None`` for the rows of this moment."""
        is_recent = self._clock.now() - self._since <= LONGEST_LAG
        if self._rows is None or not is_recent or self._rng.random() >= self.often:
            return None
        self._seen["index lagged"] += 1
        return self._since

    def rows(self, table: InMemoryDeliveries) -> InMemoryDeliveries:
        return self._rows if self.since() is not None and self._rows is not None else table


class SimulatedTable:
    """Implements :class:`orchestrator.events.delivery.ports.DeliveryTable`."""

    def __init__(self, rows: InMemoryDeliveries, requests: Requests, lagging: Lagging, checks: ReplayChecks) -> None:
        self._rows = rows
        self._requests = requests
        self._lagging = lagging
        self._checks = checks

    def accept(self, event: Event) -> bool:
        """``False`` if the partition is busy: then whoever sends the event hears so, and has to send it again."""
        if not self._requests.partitions.take(Use.WRITE, partitions.of_accepting(event)):
            return False
        self._rows.put_event(event)
        return True

    def apply(self, transition: Sequence[DeliveryWrite]) -> bool:
        self._requests.make(Use.WRITE, partitions.of_transition(transition, self._rows))
        before = {write.key: self._rows.rows.get(write.key, {}).get("delivery") for write in transition}
        is_made = self._rows.apply(transition)
        for key in before:
            if is_made and isinstance(key, DeliveryKey) and key in self._rows.rows:
                self._checks.wrote(before[key], self._rows.rows[key]["delivery"])
        return is_made

    def accepted(
        self, life: TenantEpoch, shard: int, within: IdRange, limit: int, *, submissions: bool
    ) -> tuple[Sequence[DispatchedEvent], str | None]:
        self._requests.make(Use.READ, partitions.of_read("accepted", (life, shard)))
        return self._rows.accepted(life, shard, within, min(limit, PAGE), submissions=submissions)

    def __getattr__(self, name: str) -> Any:
        """All other reads. The lists may lag; everything else is consistent."""

        def read(*args: Any, **named: Any) -> Any:
            self._requests.make(Use.READ, partitions.of_read(name, args))
            rows = self._lagging.rows(self._rows) if name in ("due", "parked") else self._rows
            return getattr(rows, name)(*args, **named)

        return read


class SimulatedReplays:
    """Implements :class:`orchestrator.events.delivery.replays.Replays`."""

    def __init__(self, rows: InMemoryReplays, requests: Requests, lagging: Lagging, checks: ReplayChecks) -> None:
        self._rows = rows
        self._requests = requests
        self._lagging = lagging
        self._checks = checks

    def replay(self, life: TenantEpoch, replay_id: str) -> Replay | None:
        self._requests.make(Use.READ, [delivery_keys.replays_pk(life)])
        return self._rows.replay(life, replay_id)

    def running(self) -> Iterator[Replay | UnreadableRow]:
        self._requests.make(Use.READ, [delivery_keys.LISTED_REPLAYS])
        since = self._lagging.since()
        for each in self._rows.running():
            if since is None or isinstance(each, UnreadableRow) or each.created_at <= since:
                yield each

    def count_running(self, life: TenantEpoch) -> int:
        self._requests.make(Use.READ, [delivery_keys.LISTED_REPLAYS])
        return self._rows.count_running(life)

    def count_since(self, life: TenantEpoch, first_id: str) -> int:
        self._requests.make(Use.READ, [delivery_keys.replays_pk(life)])
        return self._rows.count_since(life, first_id)

    def write(self, before: Replay | None, after: Replay) -> bool:
        self._requests.make(Use.WRITE, partitions.of_replay_write(before, after))
        is_made = self._rows.write(before, after)
        if is_made:
            self._checks.moved(before, after)
        return is_made
