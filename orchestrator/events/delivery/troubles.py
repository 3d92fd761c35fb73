"""Connections of all tenants whose deliveries fail or wait: what an operator may want to tell a tenant.

A receiver that fails is the tenant's affair, so nothing here is a failure of Berth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.events.delivery.ports import ListedConnections
from orchestrator.events.delivery.records import Connection, ConnectionStatus

MAX_SHOWN = 200


class Trouble(StrEnum):
    DISABLED = "disabled"
    """Its deliveries fail."""
    FAILING = "failing"
    """Its breaker is open, so its deliveries are parked."""
    PAUSED = "paused"
    """Somebody has paused it, so its deliveries are parked."""


_ORDER = tuple(Trouble)


@dataclass(frozen=True, slots=True)
class Troubles:
    connections: Sequence[tuple[Connection, Trouble]]
    """Disabled ones first."""
    more: bool
    """True if there are others, which are left out."""


class ListingTroubles:
    def __init__(self, *, connections: ListedConnections) -> None:
        self._connections = connections

    def list(self) -> Troubles:
        """Read from the indexes that hold only such connections. Rows that cannot be read are left out."""
        disabled = self._connections.disabled(MAX_SHOWN + 1)
        cared_for = self._connections.cared_for(MAX_SHOWN + 1)
        # Between the two reads, a connection may have moved from one list to the other.
        by_id = {each.connection_id: each for each in (*disabled, *cared_for)}
        found = [(each, trouble) for each in by_id.values() if (trouble := trouble_of(each))]
        found.sort(key=lambda each: _ORDER.index(each[1]))
        return Troubles(found[:MAX_SHOWN], more=max(map(len, (found, disabled, cared_for))) > MAX_SHOWN)


def trouble_of(connection: Connection) -> Trouble | None:
    match connection.status:
        case ConnectionStatus.DISABLED:
            return Trouble.DISABLED
        case ConnectionStatus.PAUSED:
            return Trouble.PAUSED
        case ConnectionStatus.ACTIVE if connection.health.open_until is not None:
            return Trouble.FAILING
    return None
