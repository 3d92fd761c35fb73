"""Writes of the configuration of tenants' events. Each is one transaction, so that both rows of a record agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from orchestrator.adapters.dynamodb import event_keys
from orchestrator.adapters.dynamodb.connection_rows import (
    AS_READ,
    DERIVED,
    connection_from,
    connection_row,
    key_of,
    pointer_row,
)
from orchestrator.adapters.dynamodb.event_changes import change_row
from orchestrator.adapters.dynamodb.event_configuration import (
    DynamoConfiguration,
    api_key_from,
    api_key_row,
    form_from,
    form_row,
    settings_row,
    source_from,
    source_row,
)
from orchestrator.adapters.dynamodb.event_unreadable import read_row
from orchestrator.adapters.dynamodb.keys import Key
from orchestrator.adapters.dynamodb.reads import Reads
from orchestrator.adapters.dynamodb.transacting import CONDITION_FAILED, cancelled
from orchestrator.adapters.dynamodb.values import Item, n, s, time
from orchestrator.adapters.dynamodb.writes import Writes, listing
from orchestrator.events.changes import Recorder
from orchestrator.events.delivery.records import Connection
from orchestrator.events.records import ApiKey, Change, EventSettings, Form, Source, TenantEpoch

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_ABSENT = "attribute_not_exists(pk)"
_EXISTS = "attribute_exists(pk)"


@dataclass(frozen=True, slots=True)
class _Rows:
    """The two rows of a key, a source or a form."""

    key: Key
    listed_key: Key
    attributes: Item
    secret: Item


class DynamoEpochEnds(DynamoConfiguration):
    """The end of an epoch: its settings are deleted or replaced, and its purge is requested, in one transaction."""

    def end(self, life: TenantEpoch, at: datetime) -> bool:
        """Delete the settings, and request the purge of what is left. ``False`` if they name another epoch."""
        key, values = event_keys.settings_key(life.tenant), {":epoch": s(life.epoch)}
        return self._end_epoch(life, [Writes(self._table).delete(key, "epoch = :epoch", values)], at)

    def _end_epoch(self, life: TenantEpoch, writes: Sequence[Item], at: datetime) -> bool:
        """Delete or replace the settings of an epoch, and request its purge, unless it has been requested."""
        row: Item = {
            **event_keys.purge_key(life),
            "tenant_id": s(life.tenant.value),
            "epoch": s(life.epoch),
            "requested_at": time(at),
            **listing(event_keys.listed_purge(life, at)),
        }
        request = Writes(self._table).put(row, condition=_ABSENT)
        codes = cancelled(self._client, [*writes, request])
        if codes == [*(["None"] * len(writes)), CONDITION_FAILED]:
            # The purge has been requested already.
            codes = cancelled(self._client, writes)
        return not codes


class DynamoConfigurationTable(DynamoEpochEnds):
    """Implements :class:`orchestrator.events.ports.ConfigurationTable`, for the caller that the recorder names."""

    def __init__(self, client: DynamoDBClient, table: str, *, events_table: str, recorder: Recorder) -> None:
        super().__init__(client, table)
        self._events_table = events_table
        self._recorder = recorder

    def put_settings(self, settings: EventSettings, *, replaced: EventSettings | None) -> bool:
        key, writes = event_keys.settings_key(settings.life.tenant), Writes(self._table)
        place = listing(event_keys.listed_settings(settings.life.tenant))
        row: Item = {**settings_row(settings), **place}
        is_same_life = replaced is not None and replaced.life == settings.life
        change = self._recorder.settings(replaced if is_same_life else None, settings)
        if replaced is None:
            return self._transact([writes.put({**key, **row}, condition=_ABSENT)], change)
        if is_same_life:
            return self._transact([writes.change(key, settings_row(replaced) | place, row)], change)
        condition, values = "epoch = :epoch AND revision = :revision", _as_read(replaced)
        put = writes.put({**key, **row}, condition=condition, values=values)
        return self._end_epoch(replaced.life, [put, self._recorded(change)], settings.created_at)

    # Keys

    def api_keys(self, life: TenantEpoch) -> Sequence[ApiKey]:
        rows = self._listed(life, event_keys.LISTED_KEY_PREFIX)
        return sorted(map(api_key_from, rows), key=lambda key: (key.created_at, key.key_id))

    def listed_api_key(self, life: TenantEpoch, key_id: str) -> ApiKey | None:
        row = self._get(event_keys.listed_api_key_key(life, key_id))
        return api_key_from(row) if row else None

    def add_api_key(
        self,
        key: ApiKey,
        settings: EventSettings,
        *,
        changed: tuple[ApiKey, ApiKey] | None = None,
        removed: Sequence[ApiKey] = (),
    ) -> bool:
        writes = self._added(_rows_of_key(key), settings)
        if changed:
            writes += self._changed(*map(_rows_of_key, changed))
        for each in removed:
            writes += self._removed(_rows_of_key(each))
        return self._transact(writes, self._recorder.key_added(key, changed))

    def change_api_key(self, before: ApiKey, after: ApiKey) -> bool:
        writes = self._changed(_rows_of_key(before), _rows_of_key(after))
        return self._transact(writes, self._recorder.key_changed(before, after))

    # Sources

    def sources(self, life: TenantEpoch) -> Sequence[Source]:
        rows = self._listed(life, event_keys.SOURCE_PREFIX)
        return sorted(map(source_from, rows), key=lambda source: (source.created_at, source.source_id))

    def add_source(self, source: Source, settings: EventSettings) -> bool:
        return self._transact(self._added(_rows_of_source(source), settings), self._recorder.source(None, source))

    def change_source(self, before: Source, after: Source) -> bool:
        writes = self._changed(_rows_of_source(before), _rows_of_source(after))
        return self._transact(writes, self._recorder.source(before, after))

    def remove_source(self, source: Source, settings: EventSettings) -> bool:
        writes = [self._next_revision(settings), *self._removed(_rows_of_source(source))]
        return self._transact(writes, self._recorder.source(source, None))

    # Forms

    def forms(self, life: TenantEpoch) -> Sequence[Form]:
        rows = self._listed(life, event_keys.FORM_PREFIX)
        return sorted(map(form_from, rows), key=lambda form: (form.created_at, form.form_id))

    def add_form(self, form: Form, settings: EventSettings) -> bool:
        return self._transact(self._added(_rows_of_form(form), settings), self._recorder.form(None, form))

    def change_form(self, before: Form, after: Form) -> bool:
        writes = self._changed(_rows_of_form(before), _rows_of_form(after))
        return self._transact(writes, self._recorder.form(before, after))

    def remove_form(self, form: Form, settings: EventSettings) -> bool:
        writes = [self._next_revision(settings), *self._removed(_rows_of_form(form))]
        return self._transact(writes, self._recorder.form(form, None))

    # Connections

    def connections(self, life: TenantEpoch) -> Sequence[Connection]:
        pointers = self._listed(life, event_keys.POINTER_PREFIX)
        keys = [key for pointer in pointers for key in event_keys.found_by(pointer)]
        read = (read_row(row, connection_from) for row in Reads(self._client, self._table).many(keys))
        found = [each for each in read if isinstance(each, Connection) and each.life == life]
        return sorted(found, key=lambda each: (each.created_at, each.connection_id))

    def connection(self, life: TenantEpoch, connection_id: str) -> Connection | None:
        pointer = self._get(event_keys.pointer_key(life, connection_id))
        row = self._get(event_keys.found_by(pointer)[0]) if pointer else None
        found = read_row(row, connection_from) if row else None
        return found if isinstance(found, Connection) and found.life == life else None

    def add_connection(self, connection: Connection, settings: EventSettings) -> bool:
        pointer = event_keys.pointer_key(connection.life, connection.connection_id)
        writes = Writes(self._table)
        return self._transact(
            [
                self._next_revision(settings),
                writes.put({**key_of(connection), **connection_row(connection)}, condition=_ABSENT),
                writes.put({**pointer, **pointer_row(connection)}, condition=_ABSENT),
            ],
            self._recorder.connection(None, connection),
        )

    def change_connection(self, before: Connection, after: Connection) -> bool:
        old, new = connection_row(before), connection_row(after)
        write = Writes(self._table).change(key_of(before), old, new, as_read=AS_READ, derived=DERIVED)
        return self._transact([write], self._recorder.connection(before, after))

    # The parts of transactions

    def _added(self, rows: _Rows, settings: EventSettings) -> list[Item]:
        """Two new rows, if the settings are still those that were read: so no limit is passed by two adds at a time."""
        writes = Writes(self._table)
        return [
            self._next_revision(settings),
            writes.put({**rows.key, **rows.attributes, **rows.secret}, condition=_ABSENT),
            writes.put({**rows.listed_key, **rows.attributes}, condition=_ABSENT),
        ]

    def _next_revision(self, settings: EventSettings) -> Item:
        return Writes(self._table).update(
            event_keys.settings_key(settings.life.tenant),
            "SET revision = :next",
            condition="epoch = :epoch AND revision = :revision",
            values=_as_read(settings) | {":next": n(settings.revision + 1)},
        )

    def _changed(self, before: _Rows, after: _Rows) -> list[Item]:
        writes = Writes(self._table)
        return [
            writes.change(before.key, before.attributes, after.attributes),
            writes.change(before.listed_key, before.attributes, after.attributes),
        ]

    def _removed(self, rows: _Rows) -> list[Item]:
        writes = Writes(self._table)
        return [writes.delete(rows.key, _EXISTS, {}), writes.delete(rows.listed_key, _EXISTS, {})]

    def _transact(self, writes: Sequence[Item], change: Change) -> bool:
        return not cancelled(self._client, [*writes, self._recorded(change)])

    def _recorded(self, change: Change) -> Item:
        return Writes(self._events_table).put(change_row(change))

    def _listed(self, life: TenantEpoch, prefix: str) -> list[Item]:
        return list(Reads(self._client, self._table).partition(event_keys.configuration_pk(life), prefix))


def _rows_of_key(key: ApiKey) -> _Rows:
    listed = event_keys.listed_api_key_key(key.life, key.key_id)
    return _Rows(event_keys.api_key_key(key.digest), listed, api_key_row(key), {})


def _rows_of_source(source: Source) -> _Rows:
    listed = event_keys.listed_source_key(source.life, source.source_id)
    secret = {"secret": {"B": source.secret}} if source.secret else {}
    return _Rows(event_keys.source_key(source.source_id), listed, source_row(source), secret)


def _rows_of_form(form: Form) -> _Rows:
    listed = event_keys.listed_form_key(form.life, form.form_id)
    return _Rows(event_keys.form_key(form.form_id), listed, form_row(form), {})


def _as_read(settings: EventSettings) -> Item:
    return {":epoch": s(settings.life.epoch), ":revision": n(settings.revision)}
