"""Connections of all tenants whose deliveries fail or wait: what an operator may want to tell a tenant.

A receiver that fails is the tenant's affair, and no failure of Berth. A row that is damaged is the operator's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.events.delivery.ports import ListedConnections
from orchestrator.events.delivery.records import Connection, ConnectionStatus, UnreadableConnection

MAX_SHOWN = 200


class Trouble(StrEnum):
    DAMAGED = "damaged"
    """Its row cannot be read, so its deliveries wait until somebody has mended it."""
    DISABLED = "disabled"
    """Its deliveries fail."""
    FAILING = "failing"
    """Its breaker is open, so its deliveries are parked."""
    PAUSED = "paused"
    """Somebody has paused it, so its deliveries are parked."""


_ORDER = tuple(Trouble)


@dataclass(frozen=True, slots=True)
class Troubles:
    connections: Sequence[tuple[Connection | UnreadableConnection, Trouble]]
    """Damaged ones first."""
    more: bool
    """True if there are others, which are left out."""


class ListingTroubles:
    def __init__(self, *, connections: ListedConnections) -> None:
        self._connections = connections

    def list(self) -> Troubles:
        """Read from the indexes that hold only such connections.

        A row whose place in its index is damaged, too, is left out: nobody knows to which tenant it belongs.
        """
        disabled = self._connections.disabled(MAX_SHOWN + 1)
        cared_for = self._connections.cared_for(MAX_SHOWN + 1)
        # Between the two reads, a connection may have moved from one list to the other.
        named = [each for each in (*disabled, *cared_for) if isinstance(each, Connection | UnreadableConnection)]
        by_id = {each.connection_id: each for each in named}
        found = [(each, trouble) for each in by_id.values() if (trouble := trouble_of(each))]
        found.sort(key=lambda each: _ORDER.index(each[1]))
        return Troubles(found[:MAX_SHOWN], more=max(map(len, (found, disabled, cared_for))) > MAX_SHOWN)


def trouble_of(connection: Connection | UnreadableConnection) -> Trouble | None:
    if isinstance(connection, UnreadableConnection):
        return Trouble.DAMAGED
    match connection.status:
        case ConnectionStatus.DISABLED:
            return Trouble.DISABLED
        case ConnectionStatus.PAUSED:
            return Trouble.PAUSED
        case ConnectionStatus.ACTIVE if connection.health.open_until is not None:
            return Trouble.FAILING
    return None
