"""Connections of all tenants whose deliveries fail or wait: what an operator may want to tell a tenant.

A receiver that fails is the tenant's affair, and no failure of Berth. A row that is damaged is the operator's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from heapq import nsmallest

from orchestrator.events.delivery.ports import ListedConnections
from orchestrator.events.delivery.records import Connection, ConnectionStatus, UnreadableConnection
from orchestrator.events.records import UnreadableRow

MAX_SHOWN = 200
MAX_READ = 5_000
"""How many connections of each list are read. The lists are ordered by tenant, so a damaged connection may come after
any number of paused ones, and only its row says that it is damaged.
"""


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
Troubled = tuple[Connection | UnreadableConnection, Trouble]


@dataclass(frozen=True, slots=True)
class Troubles:
    connections: Sequence[Troubled]
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
        disabled = _Worst(self._connections.disabled(MAX_READ + 1))
        cared_for = _Worst(self._connections.cared_for(MAX_READ + 1))
        # Between the two reads, a connection may have moved from one list to the other.
        by_id = {each[0].connection_id: each for each in (*disabled.found, *cared_for.found)}
        found = sorted(by_id.values(), key=_place)
        more = len(found) > MAX_SHOWN or max(disabled.read, cared_for.read) > MAX_READ
        return Troubles(found[:MAX_SHOWN], more=more)


class _Worst:
    """The worst troubles of a list, one more than are shown. No more of them are kept while the list is read."""

    def __init__(self, listed: Iterable[Connection | UnreadableRow]) -> None:
        self.read = 0
        self.found = nsmallest(MAX_SHOWN + 1, self._troubled(listed), key=_place)

    def _troubled(self, listed: Iterable[Connection | UnreadableRow]) -> Iterator[Troubled]:
        for each in listed:
            self.read += 1
            if isinstance(each, Connection | UnreadableConnection) and (trouble := trouble_of(each)):
                yield each, trouble


def _place(troubled: Troubled) -> int:
    return _ORDER.index(troubled[1])


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
