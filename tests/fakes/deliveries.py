"""The table of events and deliveries, in memory. ``tests/adapters/events`` holds it and DynamoDB's to one contract."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, assert_never, cast

from orchestrator.adapters.dynamodb import delivery_keys
from orchestrator.common.writes import Check, Delete, Put, Update
from orchestrator.events.delivery.records import (
    Attempt,
    Delivery,
    DeliveryRef,
    DeliveryState,
    DispatchedEvent,
)
from orchestrator.events.delivery.writes import AttemptKey, DeliveryKey, DeliveryWrite, EventKey, Key
from orchestrator.events.event_ids import IdRange, is_submission, shard_of
from orchestrator.events.records import Event, TenantEpoch
from orchestrator.events.statuses import UNDELIVERED, EventStatus
from tests.fakes.conditions import Fields, holds, stored


@dataclass
class InMemoryDeliveries:
    """Implements :class:`orchestrator.events.delivery.ports.DeliveryTable`."""

    rows: dict[Key, Fields] = field(default_factory=dict)
    events: dict[EventKey, Event] = field(default_factory=dict)

    def put_event(self, event: Event) -> None:
        key = EventKey(event.life, event.event_id)
        self.events[key] = event
        self.rows[key] = {"status": event.status} | ({"indexed_as": UNDELIVERED} if event.in_inbox else {})

    # Reading

    def event(self, life: TenantEpoch, event_id: str) -> DispatchedEvent | None:
        key = EventKey(life, event_id)
        row = self.rows.get(key)
        if row is None:
            return None
        event = replace(
            self.events[key],
            status=row["status"],
            delivered_at=row.get("delivered_at"),
            retry_count=row.get("retry_count", 0),
            in_inbox=row.get("indexed_as") == UNDELIVERED,
        )
        entries = row.get("deliveries")
        return DispatchedEvent(event, row.get("pending"), None if entries is None else dict(entries))

    def delivery(self, ref: DeliveryRef) -> Delivery | None:
        return cast("Delivery | None", self.rows.get(DeliveryKey(ref), {}).get("delivery"))

    def deliveries_of(self, refs: Sequence[DeliveryRef]) -> Mapping[DeliveryRef, Delivery]:
        found = {ref: self.delivery(ref) for ref in refs}
        return {ref: delivery for ref, delivery in found.items() if delivery}

    def deliveries(self, life: TenantEpoch, event_id: str) -> Sequence[Delivery]:
        return [each for each in self._deliveries() if (each.ref.life, each.ref.event_id) == (life, event_id)]

    def attempts(self, life: TenantEpoch, event_id: str) -> Sequence[Attempt]:
        attempts = [
            cast(Attempt, row["attempt"])
            for key, row in self.rows.items()
            if isinstance(key, AttemptKey) and (key.ref.life, key.ref.event_id) == (life, event_id)
        ]
        return sorted(attempts, key=lambda attempt: attempt.at)

    def due(
        self, shard: int, until: datetime, limit: int, *, latest_first: bool = False, cursor: str | None = None
    ) -> tuple[Sequence[DeliveryRef], str | None]:
        found = [
            (delivery_keys.due_sk(each.due, each.ref), each.ref)
            for each in self._deliveries()
            if each.state is DeliveryState.RETRYING
            and each.due is not None
            and each.due <= until
            and delivery_keys.due_shard(each.ref) == shard
        ]
        found.sort(key=lambda each: each[0], reverse=latest_first)
        left = [each for each in found if cursor is None or (each[0] < cursor if latest_first else each[0] > cursor)]
        return [ref for _, ref in left[:limit]], left[limit - 1][0] if len(left) >= limit else None

    def untried(
        self, life: TenantEpoch, shard: int, within: IdRange, *, submissions: bool, after: str | None
    ) -> tuple[Sequence[DispatchedEvent], str | None]:
        assert after is None, "there is one page"
        ids = sorted(
            key.event_id
            for key in self.events
            if key.life == life and shard_of(key.event_id) == shard and is_submission(key.event_id) is submissions
        )
        there = [self.event(life, each) for each in ids if (within.first or "") <= each < (within.before or "~")]
        return [each for each in there if each is not None and _may_be_untried(each)], None

    def accepted(
        self, life: TenantEpoch, shard: int, within: IdRange, limit: int, *, submissions: bool
    ) -> tuple[Sequence[DispatchedEvent], str | None]:
        ids = sorted(
            key.event_id
            for key in self.events
            if key.life == life and shard_of(key.event_id) == shard and is_submission(key.event_id) is submissions
        )
        in_range = [
            each
            for each in ids
            if (each > within.after if within.after else each >= (within.first or "")) and each < (within.before or "~")
        ]
        there = [event for each in in_range if (event := self.event(life, each)) is not None]
        return there[:limit], there[limit - 1].event.event_id if len(there) > limit else None

    def parked(self, connection_id: str, limit: int, *, after: str | None = None) -> Sequence[DeliveryRef]:
        parked = [each.ref for each in self._of(connection_id, DeliveryState.PARKED)]
        found = [ref for ref in parked if after is None or ref.event_id > after]
        return sorted(found, key=lambda ref: ref.event_id)[:limit]

    def failed(self, connection_id: str, *, after: str | None, limit: int) -> tuple[Sequence[DeliveryRef], str | None]:
        found = sorted(
            (
                (delivery_keys.failed_sk(cast(datetime, each.ended_at), each.ref.event_id), each.ref)
                for each in self._of(connection_id, DeliveryState.FAILED)
            ),
            key=lambda each: each[0],
            reverse=True,
        )
        left = [each for each in found if after is None or each[0] < after]
        return [ref for _, ref in left[:limit]], left[limit - 1][0] if len(left) > limit else None

    def _deliveries(self) -> list[Delivery]:
        return [cast(Delivery, row["delivery"]) for key, row in self.rows.items() if isinstance(key, DeliveryKey)]

    def _of(self, connection_id: str, state: DeliveryState) -> list[Delivery]:
        return [each for each in self._deliveries() if each.ref.connection_id == connection_id and each.state is state]

    # Writing

    def apply(self, transition: Sequence[DeliveryWrite]) -> bool:
        keys = [write.key for write in transition]
        assert len(keys) == len(set(keys)), "DynamoDB takes no two writes to one row in a transaction"
        if not all(
            write.condition is None or holds(write.condition, self._conditional(write.key)) for write in transition
        ):
            return False
        for write in transition:
            self._make(write)
        return True

    def _may(self, write: DeliveryWrite) -> bool:
        return write.condition is None or holds(write.condition, self._conditional(write.key))

    def _conditional(self, key: Key) -> Fields | None:
        """The fields of a row that conditions may name."""
        row = self.rows.get(key)
        if row is None or not isinstance(key, DeliveryKey):
            return row
        return {"revision": row["delivery"].revision}

    def _make(self, write: DeliveryWrite) -> None:
        match write:
            case Put(key, given):
                self.rows[key] = {name: stored(value) for name, value in given.items()}
            case Update(key):
                self.rows[key] = _updated(self.rows.get(key, {}), write)
            case Delete(key):
                self.rows.pop(key, None)
            case Check():
                pass
            case _:
                assert_never(write)


def _may_be_untried(event: DispatchedEvent) -> bool:
    if event.event.status is EventStatus.DELIVERED:
        return event.pending is None and event.entries is None
    return event.event.status in (EventStatus.RECEIVED, EventStatus.RETRYING)


def _updated(now: Fields, update: Update[Key]) -> Fields:
    row: dict[str, Any] = {**update.defaults, **now}
    for name, value in update.sets.items():
        whole, _, entry = name.partition(".")
        row[whole] = {**row[whole], entry: stored(value)} if entry else stored(value)
    for name, member in update.takes.items():
        row[name] = row[name] - {member}
    # DynamoDB has no empty sets.
    empty = {name for name in update.takes if not row[name]}
    return {name: value for name, value in row.items() if name not in {*update.clears, *empty}}
