"""Acknowledgements, and the end of a tenant, as functions do them: each call to the table may fail, or be the last."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from orchestrator.events.delivery import acknowledging
from orchestrator.events.delivery.records import DispatchedEvent
from orchestrator.events.delivery.writes import AttemptKey, DeliveryKey, DeliveryWrite, EventKey
from orchestrator.events.event_ids import shard_of
from orchestrator.events.inbox import Acknowledged, Inbox
from orchestrator.events.purging import LookAgain, MoreToPurge, Purged, Purging
from orchestrator.events.records import Deleted, Purge, RemainingEvent, TenantEpoch, UnreadableRow
from orchestrator.events.statuses import UNDELIVERED, EventStatus
from tests.fakes.connections import InMemoryConfiguration, InMemoryConnections
from tests.fakes.deliveries import InMemoryDeliveries
from tests.fakes.replays import InMemoryReplays
from tests.simulation.events.environment import MINUTE, Environment, settings_of

SETTLE = timedelta(minutes=15)
"""As deployed: longer than any function runs."""
PAGE = 3
"""A page of the purge has 200 rows. The runs have few, so here it ends after so many."""
AGAIN = (timedelta(seconds=1), timedelta(seconds=30), timedelta(minutes=10))
"""When a consumer that got no answer asks again."""


# The inbox


@dataclass
class InboxRows:
    """Implements :class:`orchestrator.events.delivery.acknowledging.InboxRows`."""

    table: Any
    """As functions see it."""
    rows: InMemoryDeliveries

    def acknowledge_at_once(self, life: TenantEpoch, event_id: str, at: datetime) -> DispatchedEvent | bool:
        key = EventKey(life, event_id)
        row = self.rows.rows.get(key)
        if row is None:
            return False
        if row.get("indexed_as") != UNDELIVERED or "pending" in row:
            return self.rows.event(life, event_id) or False
        kept = {name: value for name, value in row.items() if name != "indexed_as"}
        self.rows.rows[key] = {**kept, "status": EventStatus.DELIVERED, "delivered_at": at}
        return True

    def event(self, life: TenantEpoch, event_id: str) -> DispatchedEvent | None:
        found: DispatchedEvent | None = self.table.event(life, event_id)
        return found

    def apply(self, transition: Sequence[DeliveryWrite]) -> bool:
        is_made: bool = self.table.apply(transition)
        return is_made


@dataclass
class SimulatedAcknowledgements:
    """Implements :class:`orchestrator.events.ports.Acknowledgements`, as the adapter does."""

    rows: Any

    def acknowledge(self, life: TenantEpoch, event_id: str, at: datetime) -> bool:
        return acknowledging.acknowledge(self.rows, life, event_id, at)


class Consumers:
    """Whoever reads an inbox acknowledges what it has read, and asks again until it has an answer."""

    def __init__(self, env: Environment) -> None:
        self._env = env

    def acknowledge(self, life: TenantEpoch, event_ids: Sequence[str]) -> None:
        env = self._env
        rows = env.port("inbox", InboxRows(env.simulated_table, env.table))
        unused: Any = None
        inbox = Inbox(
            events=unused, acknowledgements=SimulatedAcknowledgements(rows), listing=unused, clock=env.a_clock()
        )

        def acknowledged() -> None:
            answer = inbox.acknowledge(settings_of(life), event_ids)
            # From here on the consumer knows.
            for event_id, outcome in answer.items():
                env.seen[f"{outcome} an event"] += 1
                if outcome is Acknowledged.DONE:
                    env.checks.acknowledged.add((life, event_id))

        def over(error: BaseException | None) -> None:
            if error is not None:
                env.seen["acknowledgement repeated"] += 1
                env.later(env.rng.choice(AGAIN), lambda: self.acknowledge(life, event_ids))

        env.call(acknowledged, over)


# The end of a tenant


@dataclass
class InMemoryPurges:
    """Implements :class:`orchestrator.events.ports.Purges`."""

    configurations: dict[TenantEpoch, InMemoryConfiguration]
    all: dict[TenantEpoch, Purge] = field(default_factory=dict)

    def purge(self, life: TenantEpoch) -> Purge | None:
        return self.all.get(life)

    def open_purges(self) -> Iterator[Purge | UnreadableRow]:
        return (each for each in self.all.values() if each.finished_at is None)

    def finished_purges(self, limit: int) -> Sequence[Purge]:
        return [each for each in self.all.values() if each.finished_at is not None][:limit]

    def end(self, life: TenantEpoch, at: datetime) -> bool:
        configuration = self.configurations[life]
        if configuration.current is None:
            return False
        configuration.current = None
        self.all[life] = Purge(life, at)
        return True

    def begin_step(self, life: TenantEpoch, at: datetime) -> None:
        self._update(life, lambda purge: replace(purge, heartbeat_at=at, failed_at=None, failure=None))

    def note_events(self, life: TenantEpoch, rows: Sequence[str]) -> None:
        self._update(life, lambda purge: replace(purge, last_events=tuple(rows)))

    def record_step(self, life: TenantEpoch, deleted: Deleted, clean_since: datetime | None, at: datetime) -> None:
        def recorded(purge: Purge) -> Purge:
            before = purge.deleted
            total = Deleted(
                before.events + deleted.events, before.objects + deleted.objects, before.rows + deleted.rows
            )
            return replace(purge, heartbeat_at=at, clean_since=clean_since, deleted=total, last_events=())

        self._update(life, recorded)

    def finish(self, purge: Purge, at: datetime) -> bool:
        there = self.all[purge.life]
        if there.finished_at is not None or there.clean_since != purge.clean_since:
            return False
        self.all[purge.life] = replace(there, finished_at=at, heartbeat_at=at)
        return True

    def fail(self, life: TenantEpoch, reason: str, at: datetime) -> None:
        self._update(life, lambda purge: replace(purge, failed_at=at, failure=reason))

    def _update(self, life: TenantEpoch, change: Callable[[Purge], Purge]) -> None:
        if self.all[life].finished_at is None:
            self.all[life] = change(self.all[life])


@dataclass
class InMemoryRemains:
    """Implements :class:`orchestrator.events.ports.Remains`."""

    table: InMemoryDeliveries
    connections: InMemoryConnections
    replays: InMemoryReplays
    ended: Callable[[str], None]
    """Called with each connection that is deleted."""

    def delete_configuration(self, life: TenantEpoch) -> int:
        deleted = _delete_some(self.connections.all, lambda each: self.connections.all[each].life == life)
        for connection_id in deleted:
            self.ended(connection_id)
        return len(deleted)

    def delete_changes(self, life: TenantEpoch) -> int:
        del life
        return 0

    def delete_replays(self, life: TenantEpoch) -> int:
        return len(_delete_some(self.replays.all, lambda each: self.replays.all[each].life == life))

    def events(self, life: TenantEpoch, shard: int) -> Sequence[RemainingEvent]:
        keys = [each for each in self.table.rows if isinstance(each, EventKey) and each.life == life]
        found = [each for each in keys if shard_of(each.event_id) == shard]
        return [RemainingEvent(each.event_id, self._may_have_deliveries(each)) for each in found[:PAGE]]

    def _may_have_deliveries(self, key: EventKey) -> bool:
        row = self.table.rows[key]
        is_done = row["status"] in (EventStatus.DELIVERED, EventStatus.FILTERED)
        return not is_done or "retry_count" in row or "delivery_rows" in row

    def delete_deliveries(self, life: TenantEpoch, event: RemainingEvent) -> None:
        for key in list(self.table.rows):
            if isinstance(key, DeliveryKey | AttemptKey) and (key.ref.life, key.ref.event_id) == (life, event.row):
                del self.table.rows[key]

    def delete_events(self, life: TenantEpoch, shard: int, events: Sequence[RemainingEvent]) -> int:
        del shard
        for each in events:
            self.table.rows.pop(EventKey(life, each.row), None)
        return len(events)

    def delete_contents(self, life: TenantEpoch) -> int:
        del life
        return 0


def _delete_some(rows: dict[str, Any], is_left: Callable[[str], bool]) -> Sequence[str]:
    found = [each for each in rows if is_left(each)][:PAGE]
    for each in found:
        del rows[each]
    return found


class Purges:
    """The machine that purges, and whatever starts it again."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self.rows = InMemoryPurges(env.configurations)
        self._purges = env.port("purges", self.rows)
        self._remains = env.port("remains", self._all_remains())

    def _all_remains(self) -> InMemoryRemains:
        env = self._env
        return InMemoryRemains(env.table, env.connections, env.replays, env.checks.ended)

    @property
    def are_finished(self) -> bool:
        finished = {each.life for each in self.rows.finished_purges(len(self.rows.all))}
        return finished == self._env.checks.purged

    def end(self, life: TenantEpoch) -> None:
        """A life of the tenant ends. The search for such tenants runs again if it fails."""
        env, clock = self._env, self._env.a_clock()

        def over(error: BaseException | None) -> None:
            env.later(timedelta(seconds=1) if error is None else 10 * MINUTE, lambda: self._go_on(life, error))

        env.call(lambda: self._purges.end(life, clock.now()), over)

    def _go_on(self, life: TenantEpoch, error: BaseException | None) -> None:
        if error is None or life in self.rows.all:
            self._step(life)
        else:
            self.end(life)

    def _step(self, life: TenantEpoch) -> None:
        env = self._env
        purging = Purging(
            configuration=env.port("configuration", env.configurations[life]),
            purges=self._purges,
            remains=self._remains,
            clock=env.a_clock(),
            settle=SETTLE,
            has_time=env.has_time,
        )
        outcomes: list[object] = []

        def over(error: BaseException | None) -> None:
            if error is not None:
                env.seen["purge repeated"] += 1
                env.later(timedelta(seconds=env.rng.choice((1, 10, 3_600))), lambda: self._step(life))
                return
            (outcome,) = outcomes
            match outcome:
                case Purged():
                    env.seen["purge finished"] += 1
                case LookAgain(seconds):
                    env.later(timedelta(seconds=seconds), lambda: self._step(life))
                case MoreToPurge():
                    env.later(timedelta(seconds=5), lambda: self._step(life))
                case _:
                    raise AssertionError(f"the purge of {life} was refused: {outcome}")

        env.call(lambda: outcomes.append(purging.step(life)), over)
