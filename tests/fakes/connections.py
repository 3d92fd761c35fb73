"""Connections, in memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.delivery.records import Connection, ConnectionStatus, Health
from orchestrator.events.records import (
    EventSettings,
    Form,
    Provider,
    Source,
    SourceStatus,
    TenantEpoch,
    UnreadableRow,
)


@dataclass
class InMemoryConnections:
    """Implements ``Connections`` and ``ConnectionChanges`` of :mod:`orchestrator.events.delivery.ports`."""

    all: dict[str, Connection] = field(default_factory=dict)
    """By id."""

    def put(self, connection: Connection) -> Connection:
        self.all[connection.connection_id] = connection
        return connection

    def of_origin(self, life: TenantEpoch, origin: str) -> Sequence[Connection]:
        return [each for each in self.all.values() if (each.life, each.origin) == (life, origin)]

    def connection(self, life: TenantEpoch, origin: str, connection_id: str) -> Connection | None:
        found = self.all.get(connection_id)
        return found if found is not None and (found.life, found.origin) == (life, origin) else None

    def needing_care(self, is_wanted: Callable[[Connection], bool]) -> Iterator[Connection | UnreadableRow]:
        yield from [each for each in self.all.values() if each.needs_care and is_wanted(each)]

    def set_health(self, connection: Connection, health: Health, *, draining: bool) -> bool:
        return self.change(connection, replace(connection, health=health, draining=draining, found_empty_at=None))

    def disable(self, connection: Connection, reason: str, at: datetime) -> bool:
        del at
        return self.change(
            connection,
            replace(
                connection,
                status=ConnectionStatus.DISABLED,
                reason=reason,
                revision=connection.revision + 1,
                health=replace(connection.health, open_until=None),
                draining=True,
                found_empty_at=None,
            ),
        )

    def set_drained(self, connection: Connection, *, found_empty_at: datetime | None, draining: bool) -> bool:
        return self.change(connection, replace(connection, found_empty_at=found_empty_at, draining=draining))

    def remove(self, connection: Connection) -> bool:
        there = self.all.get(connection.connection_id)
        if there is not None and there.revision != connection.revision:
            return False
        self.all.pop(connection.connection_id, None)
        return True

    # As somebody configures them

    def pause(self, connection_id: str) -> None:
        there = self.all[connection_id]
        if there.status is ConnectionStatus.ACTIVE:
            self.put(
                replace(
                    there,
                    status=ConnectionStatus.PAUSED,
                    draining=False,
                    found_empty_at=None,
                    revision=there.revision + 1,
                )
            )

    def resume(self, connection_id: str) -> None:
        there = self.all[connection_id]
        if there.status in (ConnectionStatus.PAUSED, ConnectionStatus.DISABLED):
            self.put(
                replace(
                    there,
                    status=ConnectionStatus.ACTIVE,
                    reason=None,
                    draining=True,
                    found_empty_at=None,
                    health=Health(),
                    revision=there.revision + 1,
                )
            )

    def delete(self, connection_id: str) -> None:
        there = self.all.get(connection_id)
        if there is not None:
            self.put(
                replace(
                    there,
                    status=ConnectionStatus.DELETED,
                    draining=True,
                    found_empty_at=None,
                    revision=there.revision + 1,
                )
            )

    def change(self, before: Connection, after: Connection) -> bool:
        if self.all.get(before.connection_id) != before:
            return False
        self.put(after)
        return True


@dataclass
class InMemoryConfiguration:
    """Implements ``ConnectionsById`` of :mod:`orchestrator.events.delivery.ports`, and the part of
    ``ConfigurationTable`` of :mod:`orchestrator.events.ports` for the connections of one life of a tenant."""

    rows: InMemoryConnections
    current: EventSettings | None
    """``None`` once the life has ended."""
    source_ids: Collection[str] = ()

    def settings(self, tenant: TenantId) -> EventSettings | None:
        current = self.current
        return current if current is not None and current.life.tenant == tenant else None

    def source(self, source_id: str) -> Source | None:
        if self.current is None or source_id not in self.source_ids:
            return None
        life, at = self.current.life, self.current.created_at
        return Source(life, source_id, "source", Provider.NONE, SourceStatus.ACTIVE, at)

    def form(self, form_id: str) -> Form | None:  # noqa: ARG002 - there are no forms
        return None

    def connections(self, life: TenantEpoch) -> Sequence[Connection]:
        return [each for each in self.rows.all.values() if each.life == life]

    def connection(self, life: TenantEpoch, connection_id: str) -> Connection | None:
        found = self.rows.all.get(connection_id)
        return found if found is not None and found.life == life else None

    def add_connection(self, connection: Connection, settings: EventSettings) -> bool:
        if settings != self.current:
            return False
        self.current = replace(settings, revision=settings.revision + 1)
        self.rows.put(connection)
        return True

    def change_connection(self, before: Connection, after: Connection) -> bool:
        return self.rows.change(before, after)
