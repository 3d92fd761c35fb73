"""Connections, as dispatch, deliveries and the sweep read and change them.

A row that cannot be read is reported, and returned as such: it was not deleted, so its deliveries wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from orchestrator.adapters.aws import error_code, throttling
from orchestrator.adapters.dynamodb import event_keys
from orchestrator.adapters.dynamodb.connection_rows import (
    AS_READ,
    DERIVED,
    connection_from,
    connection_row,
    key_of,
)
from orchestrator.adapters.dynamodb.event_changes import change_row
from orchestrator.adapters.dynamodb.event_unreadable import CANNOT_BE_READ, read_row
from orchestrator.adapters.dynamodb.keys import key
from orchestrator.adapters.dynamodb.reads import Reads
from orchestrator.adapters.dynamodb.transacting import cancelled
from orchestrator.adapters.dynamodb.values import Item, n, s
from orchestrator.adapters.dynamodb.writes import Writes
from orchestrator.events.changes import Recorder
from orchestrator.events.delivery.records import Connection, ConnectionStatus, Health, UnreadableConnection
from orchestrator.events.records import TenantEpoch, UnreadableRow

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_CONDITION_FAILED = "ConditionalCheckFailedException"


class DynamoConnections:
    """Implements ``Connections`` and ``ListedConnections`` of :mod:`orchestrator.events.delivery.ports`.

    ``report`` is told of damaged rows.
    """

    def __init__(self, client: DynamoDBClient, table: str, *, report: Callable[[UnreadableRow], None]) -> None:
        self._reads = Reads(client, table)
        self._report = report

    def of_origin(self, life: TenantEpoch, origin: str) -> Sequence[Connection | UnreadableRow]:
        rows = self._reads.partition(event_keys.origin_pk(life, origin), event_keys.CONNECTION_PREFIX)
        return [each for row in rows if (each := self._of(life, row))]

    def connection(self, life: TenantEpoch, origin: str, connection_id: str) -> Connection | UnreadableRow | None:
        row = self._reads.get(event_keys.connection_key(life, origin, connection_id))
        return self._of(life, row) if row else None

    def needing_care(self, is_wanted: Callable[[Connection], bool]) -> Iterator[Connection | UnreadableRow]:
        for found in self._listed(event_keys.LISTED_CARE, is_wanted=is_wanted):
            # The index may list a connection that needs no care any more.
            if isinstance(found, UnreadableRow) or found.needs_care:
                yield found

    def cared_for(self, limit: int) -> Iterator[Connection | UnreadableRow]:
        return self._listed(event_keys.LISTED_CARE, limit)

    def disabled(self, limit: int) -> Iterator[Connection | UnreadableRow]:
        return self._listed(event_keys.LISTED_DISABLED, limit)

    def _listed(
        self,
        listing_key: str,
        limit: int | None = None,
        *,
        is_wanted: Callable[[Connection], bool] = lambda _connection: True,
    ) -> Iterator[Connection | UnreadableRow]:
        listed = {
            (row["pk"]["S"], row["sk"]["S"]): row["ListingSort"]["S"]
            for row in islice(self._reads.listed(listing_key), limit)
            # The index has whole rows.
            if isinstance(as_listed := read_row(row, connection_from), UnreadableRow) or is_wanted(as_listed)
        }
        for row in self._reads.many([key(*name) for name in listed]):
            found = read_row(row, connection_from)
            if isinstance(found, UnreadableRow):
                yield _unreadable(found, listed[row["pk"]["S"], row["sk"]["S"]])
            else:
                yield found

    def _of(self, life: TenantEpoch, row: Item) -> Connection | UnreadableRow | None:
        found = read_row(row, connection_from)
        if isinstance(found, UnreadableRow):
            self._report(found)
            return found
        return found if found.life == life else None


def _unreadable(row: UnreadableRow, place: str) -> UnreadableRow:
    """The row with the connection that it belongs to, as its place in the list says."""
    try:
        return UnreadableConnection(row.row, *event_keys.listed_connection(place))
    except CANNOT_BE_READ:
        return row


class DynamoConnectionChanges:
    """Implements :class:`orchestrator.events.delivery.ports.ConnectionChanges`. The recorder names who changes."""

    def __init__(self, client: DynamoDBClient, table: str, *, events_table: str, recorder: Recorder) -> None:
        self._client = client
        self._writes = Writes(table)
        self._events_table = events_table
        self._recorder = recorder

    def set_health(self, connection: Connection, health: Health, *, draining: bool) -> bool:
        # Deliveries may have been parked since the sweep found none, so it has to look twice again.
        return self._change(connection, replace(connection, health=health, draining=draining, found_empty_at=None))

    def disable(self, connection: Connection, reason: str, at: datetime) -> bool:
        disabled = replace(
            connection,
            status=ConnectionStatus.DISABLED,
            reason=reason,
            revision=connection.revision + 1,
            # The breaker has nothing to protect any more: deliveries fail without a try.
            health=replace(connection.health, open_until=None),
            draining=True,
            found_empty_at=None,
        )
        change = replace(self._recorder.connection(connection, disabled), at=at)
        recorded = Writes(self._events_table).put(change_row(change))
        return not cancelled(self._client, [self._changed(connection, disabled), recorded])

    def set_drained(self, connection: Connection, *, found_empty_at: datetime | None, draining: bool) -> bool:
        return self._change(connection, replace(connection, found_empty_at=found_empty_at, draining=draining))

    def remove(self, connection: Connection) -> bool:
        epoch: Item = {":epoch": s(connection.life.epoch)}
        as_read = epoch | {":revision": n(connection.revision)}
        pointer = event_keys.pointer_key(connection.life, connection.connection_id)
        writes = [
            self._writes.delete(key_of(connection), "epoch = :epoch AND revision = :revision", as_read),
            # A row whose pointer is lost is removed, too.
            self._writes.delete(pointer, "attribute_not_exists(pk) OR epoch = :epoch", epoch),
        ]
        return not cancelled(self._client, writes)

    def _change(self, before: Connection, after: Connection) -> bool:
        """One UpdateItem, which costs half of a transaction."""
        if before == after:
            return True
        update: Any = self._changed(before, after)["Update"]
        try:
            with throttling():
                self._client.update_item(**update)
        except ClientError as error:
            if error_code(error) != _CONDITION_FAILED:
                raise
            return False
        return True

    def _changed(self, before: Connection, after: Connection) -> Item:
        rows = connection_row(before), connection_row(after)
        return self._writes.change(key_of(before), *rows, as_read=AS_READ, derived=DERIVED)
