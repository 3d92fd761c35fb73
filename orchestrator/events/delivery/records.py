"""The records of deliveries. :mod:`orchestrator.adapters.dynamodb.event_keys` says where each of them is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from orchestrator.events.delivery.retries import RetrySchedule
from orchestrator.events.records import Event, TenantEpoch, UnreadableRow

API_ORIGIN = "api"
"""The origin of events that were sent to ``POST /events``. All other origins are the id of a source or a form."""

INBOX = "inbox"
"""The member of ``pending`` that stands for the inbox."""


TEST_EVENT_TYPE = "berth.test"
ONLY_CONNECTION = "only_connection"
"""The name in the metadata of a test event that says which connection is tested."""


def origin_of(event: Event) -> str:
    return event.source_id or event.form_id or API_ORIGIN


def only_connection(event: Event) -> str | None:
    """The one connection that a test event is sent to, whatever its filter says. ``None`` for all other events."""
    return event.metadata.get(ONLY_CONNECTION) if event.event_type == TEST_EVENT_TYPE else None


# Connections


class DestinationKind(StrEnum):
    QUEUE = "queue"
    """The tenant's own queue."""
    WEBHOOK = "webhook"
    ZAPIER = "zapier"
    EMAIL = "email"


@dataclass(frozen=True, slots=True)
class Destination:
    kind: DestinationKind
    address: str = ""
    """A URL, or an address of e-mail. Empty for the tenant's own queue, which is looked up at each delivery."""


class ConnectionStatus(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    """Its deliveries are parked until it is resumed."""
    DISABLED = "disabled"
    """Its deliveries fail. Berth disables a connection that fails for days, whose receiver says that it is gone, or
    whose mail comes back."""
    DELETED = "deleted"
    """Its deliveries fail. The row stays until none is parked, and is shown to nobody."""


@dataclass(frozen=True, slots=True)
class Health:
    """How the last deliveries went. Written only when it changes, so a healthy connection costs no write."""

    failing_since: datetime | None = None
    """The first failure since the last success."""
    slow_since: datetime | None = None
    """Set by a delivery that took long, or was answered with 429, 502 or 504; removed by a quick one minutes later."""
    open_until: datetime | None = None
    """Until when the breaker is open: deliveries are parked without a try."""
    opened: int = 0
    """How often the breaker has opened since the last success."""

    @property
    def is_good(self) -> bool:
        """True if the next delivery may share a queue with those of other healthy connections."""
        return self.failing_since is None and self.slow_since is None


@dataclass(frozen=True, slots=True)
class Connection:
    """Where the events of an origin are delivered to."""

    life: TenantEpoch
    connection_id: str
    origin: str
    """``api``, or the id of a source or a form."""
    name: str
    destination: Destination
    status: ConnectionStatus
    created_at: datetime
    filter: Mapping[str, Any] | None = None
    """Which events it wants: see :mod:`orchestrator.events.delivery.filters`. ``None``: all."""
    transform: Mapping[str, Any] | None = None
    retry: RetrySchedule = field(default_factory=RetrySchedule)
    secret: bytes | None = field(default=None, repr=False)
    """The signing secret, encrypted under KMS. ``None`` for destinations that are not signed."""
    former_secret: bytes | None = field(default=None, repr=False)
    former_secret_until: datetime | None = None
    reason: str | None = None
    """Why the connection is disabled."""
    revision: int = 0
    """Grows with every change of the configuration, but not with health."""
    health: Health = Health()
    draining: bool = False
    """True from a resume, a close of the breaker, a disable or a delete on, until nothing is parked any more."""
    found_empty_at: datetime | None = None
    """When the sweep, while draining, first found that nothing is parked."""
    enabled_at: datetime | None = None
    """When somebody last resumed or paused the connection after it had been disabled."""

    @property
    def needs_care(self) -> bool:
        """True while deliveries may be parked, so that the sweep has to look after the connection."""
        waits = self.status in (ConnectionStatus.PAUSED, ConnectionStatus.DELETED)
        return waits or self.draining or self.health.open_until is not None


@dataclass(frozen=True, slots=True)
class UnreadableConnection(UnreadableRow):
    """A connection whose row cannot be read, found by its place in a list. Deliveries may be parked for it."""

    life: TenantEpoch
    connection_id: str


# Deliveries


class DeliveryState(StrEnum):
    DELIVERED = "delivered"
    RETRYING = "retrying"
    """It failed, or waits for a try, and has a due time."""
    PARKED = "parked"
    """It waits until its connection is resumed, or its breaker closes."""
    FAILED = "failed"
    """It failed for good."""


@dataclass(frozen=True, slots=True)
class DeliveryEntry:
    """One delivery in its event's own row. An event that is delivered at the first try has no other record of it."""

    state: DeliveryState
    tries: int
    at: datetime
    code: int | None = None
    """The HTTP status of the last answer. ``None`` if there was none."""
    milliseconds: int = 0
    reason: str = ""
    """Why it failed."""


DISPATCH = "*"
"""Stands for the connection in the row of an event that has to be dispatched again."""


@dataclass(frozen=True, slots=True)
class DeliveryRef:
    """Names a delivery, in messages and in indexes."""

    life: TenantEpoch
    event_id: str
    connection_id: str


@dataclass(frozen=True, slots=True)
class Delivery:
    """A delivery that did not succeed at the first try. From then on this row is the truth."""

    ref: DeliveryRef
    state: DeliveryState
    tries: int
    """Tries that have ended."""
    first_try: datetime
    """When the first try of this round began. A resend begins another round."""
    expires_at: datetime
    """When the row may be deleted: the same time as for the event."""
    origin: str = API_ORIGIN
    tries_before: int = 0
    """Tries of earlier rounds."""
    due: datetime | None = None
    """When it is tried next, or looked at again. Set while the state is ``retrying``."""
    sent: int = 0
    """How often a message was sent for the try that is due. It is sent again, ever more seldom, until it arrives."""
    leased_until: datetime | None = None
    """Somebody is trying it now."""
    planned: datetime | None = None
    """Set while the try that is due is an extra one, because of a resend: when the schedule's own try is due."""
    asked: bool = False
    """True if a resend has asked for the try that is due: an open breaker does not hold it up."""
    resend: bool = False
    """True if somebody has asked for this round. Its failure does not change the status of the event."""
    replay_id: str = ""
    """The replay that has asked for this round. Empty if it was none."""
    lost: int = 0
    """How often a message for it ended in the dead-letter queue."""
    code: int | None = None
    reason: str = ""
    ended_at: datetime | None = None
    revision: int = 0
    """Grows with every write. A write is conditional on the revision that was read."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of a delivery, on record. A first try that succeeds has none."""

    ref: DeliveryRef
    number: int
    at: datetime
    delivered: bool
    code: int | None
    milliseconds: int
    text: str
    """The beginning of the answer, or why there was none."""
    expires_at: datetime
    resend: bool = False


@dataclass(frozen=True, slots=True)
class DispatchedEvent:
    """An event with what its row says of its deliveries."""

    event: Event
    pending: frozenset[str] | None = None
    """The connections, and the inbox, that are not done with it. ``None`` if dispatch has written nothing: then the
    event has one connection and no inbox, or only the inbox, or was not dispatched yet."""
    entries: Mapping[str, DeliveryEntry] | None = None
    """The entries by connection. ``None`` if the row has no such map."""


# One try


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One try: this event, to this connection."""

    connection: Connection
    event: Event
    """With its content."""
    at: datetime

    @property
    def delivery_id(self) -> str:
        """The same over all tries and rounds, so that a receiver can recognise a repetition."""
        return f"{self.event.event_id}-{self.connection.connection_id}"


@dataclass(frozen=True, slots=True)
class ServedQueue:
    """The queue of a tenant that is alive."""

    incarnation: str
    """The creation of the tenant that the queue belongs to."""
    url: str


class Verdict(StrEnum):
    DELIVERED = "delivered"
    RETRY = "retry"
    GIVE_UP = "give-up"
    """The receiver asks not to be sent this event again."""
    GONE = "gone"
    """The receiver does not want any event any more: the connection is disabled."""


@dataclass(frozen=True, slots=True)
class TryResult:
    """How a try ended."""

    verdict: Verdict
    milliseconds: int
    code: int | None = None
    text: str = ""
    """The beginning of the answer, at most 1,000 characters, or why there was none. The tenant may read it."""
    retry_after: timedelta | None = None
    slows: bool = False
    """True for an answer by which a receiver says that it is overloaded: 429, 502, 504, or none in time."""
