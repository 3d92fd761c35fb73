"""The record of changes of a tenant's configuration: who, when and how. The write that makes a change records it.

No secret is recorded: neither an API key nor its digest, nor the secret of a source or a connection.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from orchestrator.common.times import Clock, timestamp
from orchestrator.events.delivery.records import Connection, ConnectionStatus
from orchestrator.events.ports import RecordedChanges
from orchestrator.events.records import ApiKey, Change, ChangeKind, EventSettings, Form, Source, SourceStatus

BERTH = "berth"
"""The caller on record if Berth itself has disabled a connection."""
KEPT_FOR = timedelta(days=400)
"""How long changes are kept: longer than a year, so that a yearly review sees every change."""

_MAX_FILTER = 1_000
"""How many characters of a filter are recorded."""

Described = Mapping[str, str]
_NOTHING: Described = {}


@dataclass(frozen=True, slots=True)
class Recorder:
    """Describes the changes that one caller makes.

    ``by`` is the operator's ARN, the id of the tenant's API key, or :data:`BERTH`.
    """

    by: str
    clock: Clock

    def settings(self, before: EventSettings | None, after: EventSettings) -> Change:
        kind = ChangeKind.SETTINGS_CHANGED if before else ChangeKind.SETTINGS_CREATED
        return self._change(after, kind, "", _settings(before) if before else _NOTHING, _settings(after))

    def key_added(self, key: ApiKey, replaced: tuple[ApiKey, ApiKey] | None) -> Change:
        if replaced is None:
            return self._change(key, ChangeKind.KEY_CREATED, key.key_id, _NOTHING, _key(key))
        old, expiring = replaced
        after = {**_key(key), "replaces": old.key_id, "replaced_key_expires_at": _moment(expiring.expires_at)}
        return self._change(key, ChangeKind.KEY_ROTATED, key.key_id, _NOTHING, after)

    def key_changed(self, before: ApiKey, after: ApiKey) -> Change:
        return self._change(after, ChangeKind.KEY_REVOKED, after.key_id, _key(before), _key(after))

    def source(self, before: Source | None, after: Source | None) -> Change:
        kinds = (ChangeKind.SOURCE_CREATED, ChangeKind.SOURCE_PAUSED, ChangeKind.SOURCE_RESUMED)
        return self._resource(before, after, (*kinds, ChangeKind.SOURCE_RESUMED, ChangeKind.SOURCE_DELETED))

    def form(self, before: Form | None, after: Form | None) -> Change:
        kinds = (ChangeKind.FORM_CREATED, ChangeKind.FORM_PAUSED, ChangeKind.FORM_RESUMED)
        return self._resource(before, after, (*kinds, ChangeKind.FORM_CHANGED, ChangeKind.FORM_DELETED))

    def _resource(
        self, before: Source | Form | None, after: Source | Form | None, kinds: Sequence[ChangeKind]
    ) -> Change:
        created, paused, resumed, changed, deleted = kinds
        there = after or before
        assert there is not None  # noqa: S101 - a change of nothing is no change
        if before is None:
            kind = created
        elif after is None:
            kind = deleted
        elif before.status is after.status:
            kind = changed
        else:
            kind = paused if after.status is SourceStatus.PAUSED else resumed
        subject = there.source_id if isinstance(there, Source) else there.form_id
        # The name says what was deleted, although it did not change.
        described = _resource(after) if after else {"name": there.name}
        return self._change(there, kind, subject, _resource(before) if before else _NOTHING, described)

    def connection(self, before: Connection | None, after: Connection) -> Change:
        described = _connection(after)
        if after.status is ConnectionStatus.DELETED:
            described = {"name": after.name}
        subject, former = after.connection_id, _connection(before) if before else _NOTHING
        return self._change(after, _kind_of_connection(before, after), subject, former, described)

    def _change(
        self,
        of: EventSettings | ApiKey | Source | Form | Connection,
        kind: ChangeKind,
        subject: str,
        before: Described,
        after: Described,
    ) -> Change:
        same = {name for name in before if before[name] == after.get(name) and name != "name"}
        return Change(
            life=of.life,
            at=self.clock.now(),
            by=self.by,
            kind=kind,
            subject=subject,
            before={name: value for name, value in before.items() if name not in same},
            after={name: value for name, value in after.items() if name not in same},
        )


def _settings(settings: EventSettings) -> Described:
    return {
        "plan": settings.plan.value,
        "shards": str(settings.shards),
        "inbox": _switch(settings.inbox),
        "type_index": _switch(settings.type_index),
        "tenant_name": settings.tenant_name,
    }


def _key(key: ApiKey) -> Described:
    return {
        "name": key.name,
        "prefix": key.prefix,
        "scopes": ", ".join(sorted(key.scopes)),
        "status": key.status.value,
        "expires_at": _moment(key.expires_at),
    }


def _resource(resource: Source | Form) -> Described:
    described = {"name": resource.name, "status": resource.status.value}
    if isinstance(resource, Source):
        return {**described, "provider": resource.provider.value}
    return {
        **described,
        "origins": ", ".join(resource.origins),
        "redirect_url": resource.redirect_url or "",
        "honeypot": resource.honeypot or "",
        "submissions_per_minute": str(resource.submissions_per_minute),
    }


_STATUS_KINDS = {
    ConnectionStatus.ACTIVE: ChangeKind.CONNECTION_RESUMED,
    ConnectionStatus.PAUSED: ChangeKind.CONNECTION_PAUSED,
    ConnectionStatus.DISABLED: ChangeKind.CONNECTION_DISABLED,
    ConnectionStatus.DELETED: ChangeKind.CONNECTION_DELETED,
}


def _kind_of_connection(before: Connection | None, after: Connection) -> ChangeKind:
    if before is None:
        return ChangeKind.CONNECTION_CREATED
    if before.status is not after.status:
        return _STATUS_KINDS[after.status]
    return ChangeKind.CONNECTION_CHANGED if before.secret == after.secret else ChangeKind.CONNECTION_ROTATED


def _connection(connection: Connection) -> Described:
    return {
        "name": connection.name,
        "status": connection.status.value,
        "origin": connection.origin,
        "destination": connection.destination.kind.value,
        "address": _address(connection.destination.address),
        "filter": _document(connection.filter)[:_MAX_FILTER],
        # A transform may set a password of the receiver.
        "transform": _digest(_document(connection.transform)),
        "retry": ", ".join(f"{wait.total_seconds():.0f}" for wait in connection.retry.waits),
        "reason": connection.reason or "",
        "former_secret_until": _moment(connection.former_secret_until),
    }


def _address(address: str) -> str:
    """A URL without its path, because knowing the path may be all that it takes to send there."""
    host = urlsplit(address).netloc
    return f"{host}, {_digest(address)}" if host else address


def _digest(text: str) -> str:
    """A digest, which shows that a text was changed, but not the text."""
    return f"sha256 {hashlib.sha256(text.encode()).hexdigest()[:8]}" if text else ""


def _document(document: Mapping[str, Any] | None) -> str:
    return json.dumps(document) if document is not None else ""


def _switch(is_on: bool) -> str:
    return "on" if is_on else "off"


def _moment(at: datetime | None) -> str:
    return timestamp(at) if at else "never"


@dataclass(frozen=True, slots=True)
class ChangePage:
    changes: Sequence[Change]
    cursor: str | None
    """Where the next page begins. ``None`` on the last page."""


class ListingChanges:
    def __init__(self, *, changes: RecordedChanges) -> None:
        self._changes = changes

    def page(self, settings: EventSettings, *, cursor: str | None, limit: int) -> ChangePage:
        """One page of the changes, newest first."""
        changes, cursor = self._changes.changes(settings.life, after=cursor, limit=limit)
        return ChangePage(changes, cursor)
