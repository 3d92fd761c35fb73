"""The records of the event plane. :mod:`orchestrator.adapters.dynamodb.event_keys` says where each of them is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.event_ids import received_at
from orchestrator.events.plans import PLANS, Plan, PlanLimits
from orchestrator.events.statuses import EventStatus


@dataclass(frozen=True, slots=True)
class TenantEpoch:
    """One life of a tenant. A tenant that is deleted and created again has another epoch, and inherits nothing."""

    tenant: TenantId
    epoch: str
    """Random, made with the settings. It is part of every key of the tenant's event rows."""

    def __str__(self) -> str:
        return f"{self.tenant}#{self.epoch}"


@dataclass(frozen=True, slots=True)
class UnreadableRow:
    """A row that Berth cannot have written as it is now. It is reported, and stops the work on no other row."""

    row: str
    """The keys of the row."""


# Configuration


@dataclass(frozen=True, slots=True)
class EventSettings:
    """How a tenant's events are accepted and kept. A tenant without settings accepts no events."""

    life: TenantEpoch
    incarnation: str
    """The creation of the tenant that the settings were made for. They are void once the tenant has another one."""
    plan: Plan
    shards: int
    """Grows with the plan and never shrinks: reads look into this many shards."""
    inbox: bool
    """True if the tenant pulls its events from the inbox and acknowledges them."""
    type_index: bool
    """True if events can be listed by type, which costs a write unit per event."""
    created_at: datetime
    updated_at: datetime
    tenant_name: str = ""
    revision: int = 0
    """Grows with every change of the settings, with every key, source, form and connection that is added, and with
    every source and form that is deleted."""

    @property
    def limits(self) -> PlanLimits:
        return PLANS[self.plan]


class Scope(StrEnum):
    """The scopes of API keys. ``admin`` includes the others."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


class KeyStatus(StrEnum):
    ACTIVE = "active"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class ApiKey:
    """An API key without the key itself."""

    life: TenantEpoch
    key_id: str
    digest: str
    name: str
    prefix: str
    """The visible beginning of the key."""
    scopes: frozenset[Scope]
    status: KeyStatus
    created_at: datetime
    expires_at: datetime | None = None
    lifetime: timedelta | None = None
    """The lifetime that the key was made with, which its successors have, too. ``None`` if the key has no end. A
    rotation brings ``expires_at`` forward, and leaves this as it is."""
    last_used_at: datetime | None = None
    """Written at most once per hour."""

    def allows(self, scope: Scope) -> bool:
        return scope in self.scopes or Scope.ADMIN in self.scopes

    def is_valid(self, at: datetime) -> bool:
        return self.status is KeyStatus.ACTIVE and (self.expires_at is None or at < self.expires_at)


class SourceStatus(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"


class Provider(StrEnum):
    """The senders of a source's webhooks. The provider decides how a signature is checked."""

    STRIPE = "stripe"
    GITHUB = "github"
    SHOPIFY = "shopify"
    SLACK = "slack"
    STANDARD_WEBHOOKS = "standard-webhooks"
    HMAC = "hmac"
    SHARED_SECRET = "shared-secret"  # noqa: S105 - the name of a kind of check
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Source:
    """An address at which webhooks come in: ``/hooks/{source_id}``."""

    life: TenantEpoch
    source_id: str
    name: str
    provider: Provider
    status: SourceStatus
    created_at: datetime
    secret: bytes | None = field(default=None, repr=False)
    """Encrypted under KMS. ``None`` for a source that checks no signature."""
    verification: Mapping[str, str] = field(default_factory=dict)
    """For generic HMAC and shared secrets: :mod:`orchestrator.events.verification` has the names and defaults."""


@dataclass(frozen=True, slots=True)
class Form:
    """An address at which forms come in: ``/forms/{form_id}``."""

    life: TenantEpoch
    form_id: str
    name: str
    status: SourceStatus
    created_at: datetime
    origins: tuple[str, ...] = ()
    """The origins of pages that may send the form, and to which a submission may redirect. Empty: any page may send."""
    redirect_url: str | None = None
    honeypot: str | None = None
    """A field that people do not see. A submission that fills it in is answered like any other, and dropped."""
    submissions_per_minute: int = 60


class ChangeKind(StrEnum):
    """The kinds of changes of a tenant's configuration."""

    SETTINGS_CREATED = "settings-created"
    SETTINGS_CHANGED = "settings-changed"
    KEY_CREATED = "key-created"
    KEY_ROTATED = "key-rotated"
    KEY_REVOKED = "key-revoked"
    SOURCE_CREATED = "source-created"
    SOURCE_PAUSED = "source-paused"
    SOURCE_RESUMED = "source-resumed"
    SOURCE_DELETED = "source-deleted"
    FORM_CREATED = "form-created"
    FORM_CHANGED = "form-changed"
    FORM_PAUSED = "form-paused"
    FORM_RESUMED = "form-resumed"
    FORM_DELETED = "form-deleted"
    CONNECTION_CREATED = "connection-created"
    CONNECTION_CHANGED = "connection-changed"
    CONNECTION_PAUSED = "connection-paused"
    CONNECTION_RESUMED = "connection-resumed"
    CONNECTION_ROTATED = "connection-rotated"
    CONNECTION_DISABLED = "connection-disabled"
    CONNECTION_DELETED = "connection-deleted"


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a tenant's configuration, on record. It holds no secret."""

    life: TenantEpoch
    at: datetime
    by: str
    """The ARN of the operator, the id of the tenant's API key, or ``berth``."""
    kind: ChangeKind
    subject: str
    """The id of the key, source, form or connection. Empty for settings."""
    before: Mapping[str, str]
    """The attributes that the change has changed, as they were."""
    after: Mapping[str, str]


# Events


@dataclass(frozen=True, slots=True)
class Content:
    """The bytes of an event: the payload as it came in, and for webhooks the headers that came with it."""

    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Event:
    """An accepted event."""

    life: TenantEpoch
    event_id: str
    status: EventStatus
    event_type: str
    content: Content | None
    """``None`` in lists of events, which do not load large contents."""
    expires_at: datetime
    """When the row may be deleted, at the earliest."""
    source_id: str | None = None
    form_id: str | None = None
    content_type: str = "application/json"
    method: str = "POST"
    source_ip: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    retry_count: int = 0
    delivered_at: datetime | None = None
    content_key: str | None = None
    """The object in S3 that holds the content, if it is too large for the row."""
    packing: str = ""
    """How the object in S3 is packed: see :mod:`orchestrator.events.content`."""
    in_inbox: bool = False
    """True while the event waits in the inbox."""

    @property
    def received_at(self) -> datetime:
        return received_at(self.event_id)


@dataclass(frozen=True, slots=True)
class Repetition:
    """A mark that makes requests with the same key one event."""

    life: TenantEpoch
    source: str
    """Where the key is from: a source, a form, or ``api``. The same key of another one is another mark."""
    key: str
    event_id: str
    digest: str
    """The digest of the content. Empty if the content may differ."""
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Used:
    """How much of a month a tenant has used."""

    events: int = 0
    submissions: int = 0
    """How many of the events are submissions of forms."""


class Added(StrEnum):
    """The result of adding a number to a counter."""

    DONE = "done"
    REPEATED = "repeated"
    """The same events were added before."""
    DAMAGED = "damaged"
    """The row of the counter is damaged, so that nothing can ever be added."""


# The end of a tenant


@dataclass(frozen=True, slots=True)
class Deleted:
    """How much a purge has deleted."""

    events: int = 0
    objects: int = 0
    """Contents in S3."""
    rows: int = 0
    """Rows of keys, sources, forms, connections and usage."""

    def __bool__(self) -> bool:
        return bool(self.events or self.objects or self.rows)


@dataclass(frozen=True, slots=True)
class RemainingEvent:
    """An event of an epoch that has ended."""

    row: str
    """Names the row within its shard."""
    may_have_deliveries: bool
    """False for an event that was delivered at the first try, as most are, or that nobody wanted."""


@dataclass(frozen=True, slots=True)
class Purge:
    """The deletion of everything that an epoch of a tenant has left behind."""

    life: TenantEpoch
    requested_at: datetime
    heartbeat_at: datetime | None = None
    """When the machine last worked on it."""
    deleted: Deleted = Deleted()
    clean_since: datetime | None = None
    """The first of the looks that found nothing, since the last one that found something."""
    last_events: tuple[str, ...] = ()
    """The events that a step was deleting when it died: only this leads to deliveries that they have left."""
    failed_at: datetime | None = None
    failure: str | None = None
    finished_at: datetime | None = None
