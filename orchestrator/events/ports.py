"""The interfaces that the event plane needs from outside. Adapters implement them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.content import Packed
from orchestrator.events.event_ids import IdRange
from orchestrator.events.records import (
    Added,
    ApiKey,
    Change,
    Deleted,
    Event,
    EventSettings,
    Form,
    Purge,
    RemainingEvent,
    Repetition,
    Source,
    TenantEpoch,
    UnreadableRow,
    Used,
)

if TYPE_CHECKING:
    # The functions that take events use this module, too, and must start fast.
    from orchestrator.events.delivery.records import Connection


class Tenants(Protocol):
    """All that the event plane knows of provisioning."""

    def incarnation(self, tenant: TenantId) -> str | None:
        """Which creation of the tenant is alive. ``None`` if the tenant does not exist, or is being deleted.

        A tenant that is deleted and created again is another incarnation.
        """
        ...

    def has_ended(self, tenant: TenantId, incarnation: str) -> bool:
        """True if that creation of the tenant is gone for ever.

        A tenant that is being deleted has not ended: a delete that is refused restores it.
        """
        ...


class Configuration(Protocol):
    """Consistent reads of a tenant's configuration: what was written before a read is seen by it."""

    def settings(self, tenant: TenantId) -> EventSettings | None: ...

    def api_key(self, digest: str) -> ApiKey | None: ...

    def source(self, source_id: str) -> Source | None: ...

    def form(self, form_id: str) -> Form | None: ...


class KeyUse(Protocol):
    def note(self, key: ApiKey, at: datetime) -> None:
        """Record that the key was used, unless a use in the last hour is on record already."""
        ...


class Usage(Protocol):
    """How many events a tenant has had accepted."""

    def used(self, life: TenantEpoch, at: datetime) -> Used:
        """The number of events in the month of that moment. It may be behind by about 10 seconds."""
        ...


class UsageCounts(Protocol):
    """The counter of each month, for the limits of plans."""

    def add(self, life: TenantEpoch, month: str, used: Used, batch: bytes, at: datetime) -> Added:
        """Add to the counter, unless ``batch``, the digest of the events, was added before. One write.

        Only the last batches are remembered: a batch that comes again much later is added again.
        """
        ...


class ParkedRecords(Protocol):
    def park(self, records: Sequence[Mapping[str, str]]) -> None:
        """Keep records of a stream that cannot be used, for an operator to look at."""
        ...


class ListedSettings(Protocol):
    def listed_settings(self) -> Iterator[EventSettings | UnreadableRow]:
        """The settings of all tenants. The list may be behind."""
        ...

    def current_epochs(self, lives: Collection[TenantEpoch]) -> Set[TenantEpoch]:
        """Those of the epochs that the settings of their tenants name now, by consistent reads."""
        ...


class EventCounts(Protocol):
    def count(self, life: TenantEpoch, shard: int, within: IdRange) -> int:
        """The number of events in a shard, submissions included."""
        ...

    def has_any(self, life: TenantEpoch, shard: int, within: IdRange) -> bool:
        """Costs the same however many events there are."""
        ...


class BilledUsage(Protocol):
    """The number of events per hour, counted from the events themselves."""

    def billed_until(self, life: TenantEpoch) -> datetime | UnreadableRow | None:
        """The end of the last hour that was counted."""
        ...

    def all_billed_until(self, lives: Sequence[TenantEpoch]) -> Mapping[TenantEpoch, datetime | UnreadableRow]:
        """The same for many tenants, in few requests. Those that were never counted are left out."""
        ...

    def set_hour(self, life: TenantEpoch, hour: datetime, events: int, at: datetime) -> None: ...

    def set_billed_until(self, life: TenantEpoch, until: datetime) -> None: ...

    def billed(self, life: TenantEpoch, month: str) -> int:
        """The sum over the hours of the month that were counted."""
        ...


class Purges(Protocol):
    """The records of purges. Those that are finished are kept, and never change again."""

    def purge(self, life: TenantEpoch) -> Purge | None:
        """A consistent read."""
        ...

    def open_purges(self) -> Iterator[Purge | UnreadableRow]:
        """Oldest first. The list may be behind."""
        ...

    def finished_purges(self, limit: int) -> Sequence[Purge]:
        """Newest first, without rows that cannot be read. The list may be behind."""
        ...

    def end(self, life: TenantEpoch, at: datetime) -> bool:
        """Delete the settings and request the purge, in one write. ``False`` if the settings name another epoch."""
        ...

    def begin_step(self, life: TenantEpoch, at: datetime) -> None:
        """Note that a purge is being worked on. It is no longer recorded as failed."""
        ...

    def note_events(self, life: TenantEpoch, rows: Sequence[str]) -> None:
        """Note the events that are about to be deleted, in place of those that were noted before."""
        ...

    def record_step(self, life: TenantEpoch, deleted: Deleted, clean_since: datetime | None, at: datetime) -> None:
        """Add to the numbers on record, and forget which events were deleted last.

        ``clean_since`` is ``None`` if something may be left.
        """
        ...

    def finish(self, purge: Purge, at: datetime) -> bool:
        """``False`` if the purge has changed since it was read."""
        ...

    def fail(self, life: TenantEpoch, reason: str, at: datetime) -> None: ...


class Remains(Protocol):
    """Rows and objects of one epoch. Each call deletes some of them, and says how many; 0 if there were none."""

    def delete_configuration(self, life: TenantEpoch) -> int:
        """Keys, sources, forms, connections and usage."""
        ...

    def delete_changes(self, life: TenantEpoch) -> int:
        """The record of changes of the configuration."""
        ...

    def delete_replays(self, life: TenantEpoch) -> int: ...

    def events(self, life: TenantEpoch, shard: int) -> Sequence[RemainingEvent]:
        """Some of the events that are left in a shard, by a consistent read."""
        ...

    def delete_deliveries(self, life: TenantEpoch, event: RemainingEvent) -> None:
        """All deliveries and attempts of an event."""
        ...

    def delete_events(self, life: TenantEpoch, shard: int, events: Sequence[RemainingEvent]) -> int:
        """Raises :class:`orchestrator.common.errors.Throttled` if none of them could be deleted now."""
        ...

    def delete_contents(self, life: TenantEpoch) -> int: ...


class PurgeExecutions(Protocol):
    def start(self, life: TenantEpoch, at: datetime) -> bool:
        """Start the machine that purges. ``False`` if it was started in the same hour already."""
        ...


class EventWrites(Protocol):
    def put(self, event: Event, packed: Packed, *, type_index: bool) -> None:
        """Keep the event, unless it is kept already. One write."""
        ...

    def mark(self, repetition: Repetition, at: datetime) -> Repetition:
        """Leave the mark, unless there is one that has not expired. Returns the mark that is there now."""
        ...

    def is_marked(self, life: TenantEpoch, source: str, key: str, at: datetime) -> bool:
        """True if there is a mark that has not expired. It is read only when a limit is reached."""
        ...


class ConfigurationTable(Configuration, Protocol):
    """Writes of a tenant's configuration. Each is a transaction, conditional on the records that it was computed from.

    The same transaction records the change, and who made it: see :mod:`orchestrator.events.changes`.

    A write returns ``False`` if one of these records has changed meanwhile: read again, decide again. Whatever is added
    or removed with the settings changes their revision, so that of two such writes one is decided again.
    """

    def put_settings(self, settings: EventSettings, *, replaced: EventSettings | None) -> bool:
        """Write settings over those that were read. If that ends an epoch, its purge is requested with the same write.

        ``replaced`` is ``None`` if the tenant had no settings.
        """
        ...

    def api_keys(self, life: TenantEpoch) -> Sequence[ApiKey]:
        """All keys of the tenant, oldest first, also those that are revoked or have expired."""
        ...

    def listed_api_key(self, life: TenantEpoch, key_id: str) -> ApiKey | None: ...

    def add_api_key(
        self,
        key: ApiKey,
        settings: EventSettings,
        *,
        changed: tuple[ApiKey, ApiKey] | None = None,
        removed: Sequence[ApiKey] = (),
    ) -> bool:
        """Add a key. ``changed`` is an older key, before and after; the ``removed`` keys make room for the new one."""
        ...

    def change_api_key(self, before: ApiKey, after: ApiKey) -> bool: ...

    def sources(self, life: TenantEpoch) -> Sequence[Source]:
        """All sources of the tenant, oldest first, without their secrets."""
        ...

    def add_source(self, source: Source, settings: EventSettings) -> bool: ...

    def change_source(self, before: Source, after: Source) -> bool: ...

    def remove_source(self, source: Source, settings: EventSettings) -> bool: ...

    def forms(self, life: TenantEpoch) -> Sequence[Form]:
        """All forms of the tenant, oldest first."""
        ...

    def add_form(self, form: Form, settings: EventSettings) -> bool: ...

    def change_form(self, before: Form, after: Form) -> bool: ...

    def remove_form(self, form: Form, settings: EventSettings) -> bool: ...

    def connections(self, life: TenantEpoch) -> Sequence[Connection]:
        """All connections of the tenant, oldest first, also those that are deleted and still drain."""
        ...

    def connection(self, life: TenantEpoch, connection_id: str) -> Connection | None: ...

    def add_connection(self, connection: Connection, settings: EventSettings) -> bool: ...

    def change_connection(self, before: Connection, after: Connection) -> bool: ...


class RecordedChanges(Protocol):
    def changes(self, life: TenantEpoch, *, after: str | None, limit: int) -> tuple[Sequence[Change], str | None]:
        """Changes of the tenant's configuration, newest first, and the cursor of the next page."""
        ...


class EventReads(Protocol):
    """Reads of events. ``True`` beside a result says that there may be more after it."""

    def read(self, life: TenantEpoch, event_ids: Sequence[str]) -> Mapping[str, Event]:
        """The events with these ids, read consistently. Those that do not exist are left out."""
        ...

    def by_time(
        self, life: TenantEpoch, shard: int, within: IdRange, limit: int, *, submissions: bool
    ) -> tuple[Sequence[Event], bool]:
        """Events of a shard, newest first."""
        ...

    def by_status(
        self, life: TenantEpoch, status: str, shard: int, within: IdRange, limit: int, *, newest_first: bool
    ) -> tuple[Sequence[str], bool]:
        """The ids of events that are in the index by status. The index may be behind."""
        ...

    def by_type(
        self, life: TenantEpoch, event_type: str, shard: int, within: IdRange, limit: int
    ) -> tuple[Sequence[str], bool]:
        """The ids of events of a type, newest first."""
        ...

    def by_source(
        self, life: TenantEpoch, source_id: str, shard: int, within: IdRange, limit: int
    ) -> tuple[Sequence[str], bool]:
        """The ids of a source's events, newest first. Another tenant's source has none."""
        ...

    def by_form(
        self, life: TenantEpoch, form_id: str, shard: int, within: IdRange, limit: int
    ) -> tuple[Sequence[str], bool]:
        """The ids of a form's submissions, newest first. Another tenant's form has none."""
        ...


class ParkedDeliveries(Protocol):
    def count_parked(self, life: TenantEpoch, limit: int) -> int:
        """How many deliveries wait for a connection that is paused or broken, up to the limit. It may be behind."""
        ...


class Acknowledgements(Protocol):
    def acknowledge(self, life: TenantEpoch, event_id: str, at: datetime) -> bool:
        """Take the event out of the inbox. ``False`` if there is no such event. To repeat it changes nothing."""
        ...


class Contents(Protocol):
    """Contents of events that are too large for their row."""

    def put_once(self, key: str, data: bytes) -> None:
        """Store an object. One that is there already stays as it is."""
        ...

    def get(self, key: str) -> bytes | None:
        """``None`` if the object has expired."""
        ...


class Secrets(Protocol):
    """Encryption of signing secrets. The context is bound to the secret: it decrypts in no other place."""

    def encrypt(self, plaintext: bytes, life: TenantEpoch, context: Mapping[str, str]) -> bytes: ...

    def decrypt(self, ciphertext: bytes, life: TenantEpoch, context: Mapping[str, str]) -> bytes: ...
