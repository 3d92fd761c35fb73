"""Connections, in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from orchestrator.events.delivery.records import Connection, ConnectionStatus, Health
from orchestrator.events.records import TenantEpoch, UnreadableRow


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

    def needing_care(self) -> Iterator[Connection | UnreadableRow]:
        yield from [each for each in self.all.values() if each.needs_care]

    def set_health(self, connection: Connection, health: Health, *, draining: bool) -> bool:
        return self._change(connection, replace(connection, health=health, draining=draining, found_empty_at=None))

    def disable(self, connection: Connection, reason: str, at: datetime) -> bool:
        del at
        return self._change(
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
        return self._change(connection, replace(connection, found_empty_at=found_empty_at, draining=draining))

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

    def _change(self, before: Connection, after: Connection) -> bool:
        if self.all.get(before.connection_id) != before:
            return False
        self.put(after)
        return True
