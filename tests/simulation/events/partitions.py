"""The partitions of the table of events and of its indexes. Each takes so many requests per second, and no more.

The limits are far lower than DynamoDB's, so that a few events reach them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from orchestrator.adapters.dynamodb import delivery_keys, event_keys
from orchestrator.adapters.dynamodb.delivery_rows import Stored, delivery_row, key_of
from orchestrator.events.delivery.records import DeliveryRef
from orchestrator.events.delivery.replays import Replay, ReplayStatus
from orchestrator.events.delivery.writes import DeliveryKey, DeliveryWrite, EventKey, Key
from orchestrator.events.event_ids import shard_of
from orchestrator.events.records import Event
from tests.fakes import FakeClock
from tests.fakes.conditions import Fields
from tests.fakes.deliveries import InMemoryDeliveries


class Use(Enum):
    READ = "read"
    WRITE = "write"


@dataclass
class Partitions:
    clock: FakeClock
    reads: int
    writes: int
    """Per second and partition. 0 is no limit."""
    _used: Counter[tuple[int, Use, str]] = field(default_factory=Counter)

    def take(self, use: Use, names: Collection[str]) -> bool:
        """``False`` if one of the partitions has nothing left: then none of them is charged.

        A request may use more than is left of a partition, so that every request can be made at some time.
        """
        limit = self.reads if use is Use.READ else self.writes
        if not limit:
            return True
        second = int(self.clock.now().timestamp())
        if any(self._used[second, use, name] >= limit for name in names):
            return False
        self._used.update((second, use, name) for name in names)
        return True


# Reads


def of_read(name: str, args: tuple[Any, ...]) -> Collection[str]:
    """The partitions that a method of the table of deliveries reads."""
    match name, args:
        case "event", (life, event_id):
            return [event_keys.shard_pk(life, shard_of(event_id))]
        case "delivery", (ref,):
            return [_deliveries_pk(ref)]
        case "deliveries_of", (refs,):
            return {_deliveries_pk(ref) for ref in refs}
        case "deliveries" | "attempts", (life, event_id):
            return [delivery_keys.deliveries_pk(life, event_id)]
        case "due", (shard, *_):
            return [delivery_keys.due_pk(shard)]
        case "untried" | "accepted", (life, shard, *_):
            return [event_keys.shard_pk(life, shard)]
        case "parked", (connection_id, *_):
            shards = range(delivery_keys.CONNECTION_SHARDS)
            return [delivery_keys.parked_pk(connection_id, shard) for shard in shards]
    raise AssertionError(f"No function of a run reads {name}.")


def _deliveries_pk(ref: DeliveryRef) -> str:
    return delivery_keys.deliveries_pk(ref.life, ref.event_id)


# Writes


def of_accepting(event: Event) -> Collection[str]:
    shard = shard_of(event.event_id)
    by_status = [event_keys.status_index_pk(event.life, shard)] if event.in_inbox else []
    return [event_keys.shard_pk(event.life, shard), *by_status]


def of_transition(transition: Iterable[DeliveryWrite], table: InMemoryDeliveries) -> Collection[str]:
    """The partitions of the rows, and those of their places in the index that the writes change."""
    transition = list(transition)
    keys = [write.key for write in transition]
    before = InMemoryDeliveries({key: table.rows[key] for key in keys if key in table.rows})
    after = InMemoryDeliveries(dict(before.rows))
    # If a condition does not hold, only the rows themselves are looked at.
    after.apply(transition)
    moved = {place for key in keys for place in {_place(key, before.rows), _place(key, after.rows)} if place}
    stayed = {_place(key, before.rows) for key in keys if _place(key, before.rows) == _place(key, after.rows)}
    return [*(key_of(key)["pk"]["S"] for key in keys), *(pk for pk, _ in moved - stayed)]


def _place(key: Key, rows: dict[Key, Fields]) -> tuple[str, str] | None:
    """The partition and the sort key of a row in the index by status."""
    row = rows.get(key, {})
    if isinstance(key, EventKey) and "indexed_as" in row:
        pk, sk = Stored(key).values("indexed_as", row["indexed_as"])
        return pk["S"], sk["S"]
    if isinstance(key, DeliveryKey) and "delivery" in row:
        item = delivery_row(row["delivery"])
        return (item["GSI1PK"]["S"], item["GSI1SK"]["S"]) if "GSI1PK" in item else None
    return None


def of_replay_write(before: Replay | None, after: Replay) -> Collection[str]:
    was_listed = before is not None and before.status is ReplayStatus.RUNNING
    is_listed = after.status is ReplayStatus.RUNNING
    index = [delivery_keys.LISTED_REPLAYS] if was_listed is not is_listed else []
    return [delivery_keys.replays_pk(after.life), *index]
