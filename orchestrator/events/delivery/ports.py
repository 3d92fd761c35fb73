"""The interfaces that deliveries need from outside. Adapters implement them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.delivery.answers import Failure, ReceiverResponse
from orchestrator.events.delivery.mail import Mail
from orchestrator.events.delivery.messages import DeliveryMessage
from orchestrator.events.delivery.queue_message import QueueMessage
from orchestrator.events.delivery.records import (
    Attempt,
    Connection,
    Delivery,
    DeliveryRef,
    DispatchedEvent,
    Health,
    Outgoing,
    ServedQueue,
    TryResult,
)
from orchestrator.events.delivery.webhook_request import WebhookRequest
from orchestrator.events.delivery.writes import DeliveryWrite
from orchestrator.events.event_ids import IdRange
from orchestrator.events.records import TenantEpoch, UnreadableRow


class Connections(Protocol):
    """Consistent reads of connections. Deleted ones are included: their row stays while deliveries are parked.

    A connection whose row cannot be read is not missing: its deliveries wait until somebody has mended the row.
    """

    def of_origin(self, life: TenantEpoch, origin: str) -> Sequence[Connection | UnreadableRow]:
        """All connections of an origin, in one request. Another tenant's origin has none."""
        ...

    def connection(self, life: TenantEpoch, origin: str, connection_id: str) -> Connection | UnreadableRow | None: ...

    def needing_care(self, is_wanted: Callable[[Connection], bool]) -> Iterator[Connection | UnreadableRow]:
        """Connections that are paused, disabled or deleted while deliveries may be parked, or draining, or whose
        breaker is open. The list may be behind, the connections in it are not.

        Those that are not wanted as they are listed are left out, and are not read.
        A row that cannot be read is an ``UnreadableConnection``, unless its place in the list is damaged, too."""
        ...


class ListedConnections(Protocol):
    """Connections of all tenants that are in an index, as they are now."""

    def disabled(self, limit: int) -> Iterable[Connection | UnreadableRow]:
        """Disabled connections that the sweep has nothing more to do for."""
        ...

    def cared_for(self, limit: int) -> Iterable[Connection | UnreadableRow]:
        """Connections that the sweep looks after."""
        ...


class ConnectionsById(Protocol):
    def connection(self, life: TenantEpoch, connection_id: str) -> Connection | None:
        """A consistent read. Deleted connections are included. Another tenant's connection is not found."""
        ...


class ConnectionChanges(Protocol):
    """The changes that deliveries make to a connection. Each write is conditional on what was read.

    A write returns ``False`` if that has changed meanwhile: another delivery has made the same change, or somebody has
    configured the connection anew.
    """

    def set_health(self, connection: Connection, health: Health, *, draining: bool) -> bool: ...

    def disable(self, connection: Connection, reason: str, at: datetime) -> bool:
        """The connection is disabled and drains. The change is on record like one by an operator."""
        ...

    def set_drained(self, connection: Connection, *, found_empty_at: datetime | None, draining: bool) -> bool: ...

    def remove(self, connection: Connection) -> bool:
        """Delete the row of a deleted connection of which nothing is parked any more."""
        ...


class DeliveryTable(Protocol):
    """The rows of deliveries, beside the events."""

    def event(self, life: TenantEpoch, event_id: str) -> DispatchedEvent | None:
        """A consistent read, without contents in S3."""
        ...

    def delivery(self, ref: DeliveryRef) -> Delivery | None:
        """A consistent read."""
        ...

    def deliveries_of(self, refs: Sequence[DeliveryRef]) -> Mapping[DeliveryRef, Delivery]:
        """Consistent reads of many, in few requests. Those that do not exist are left out."""
        ...

    def apply(self, transition: Sequence[DeliveryWrite]) -> bool:
        """All writes or none. ``False`` if a condition does not hold: read again, decide again."""
        ...

    def due(
        self, shard: int, until: datetime, limit: int, *, latest_first: bool = False, cursor: str | None = None
    ) -> tuple[Sequence[DeliveryRef], str | None]:
        """Deliveries of a shard that are due until then, and the cursor of the next page. The list may be behind."""
        ...

    def untried(
        self, life: TenantEpoch, shard: int, within: IdRange, *, submissions: bool, after: str | None
    ) -> tuple[Sequence[DispatchedEvent], str | None]:
        """Events of a shard that some connection may not have tried, and the cursor of the next page.

        Those are events that are received or retrying, and those that were delivered without any connection, which may
        have been acknowledged in the inbox before they were dispatched.
        """
        ...

    def accepted(
        self, life: TenantEpoch, shard: int, within: IdRange, limit: int, *, submissions: bool
    ) -> tuple[Sequence[DispatchedEvent], str | None]:
        """Events of a shard, oldest first, by a consistent read, and the id after which the next page begins."""
        ...

    def parked(self, connection_id: str, limit: int, *, after: str | None = None) -> Sequence[DeliveryRef]:
        """The parked deliveries of a connection, oldest event first. The list may be behind.

        ``after`` is the id of an event: those of it, and of older ones, are left out.
        """
        ...

    def failed(self, connection_id: str, *, after: str | None, limit: int) -> tuple[Sequence[DeliveryRef], str | None]:
        """The deliveries of a connection that failed for good, newest first, and the cursor of the next page."""
        ...

    def attempts(self, life: TenantEpoch, event_id: str) -> Sequence[Attempt]:
        """All attempts of an event, of all its connections, oldest first."""
        ...

    def deliveries(self, life: TenantEpoch, event_id: str) -> Sequence[Delivery]:
        """All rows of an event's deliveries."""
        ...


class MessageQueue(Protocol):
    """The two queues of deliveries: first tries of healthy connections, and everything else."""

    def send(self, messages: Sequence[DeliveryMessage]) -> Sequence[DeliveryMessage]:
        """Send messages, in batches. Returns those that could not be sent."""
        ...


class Sender(Protocol):
    def send(self, outgoing: Outgoing) -> TryResult:
        """Try once. A receiver's failure is an answer. Only a failure of our own is raised."""
        ...


# The interfaces that sending needs. None of them raises for a failure of the receiver.


class Webhooks(Protocol):
    def post(self, request: WebhookRequest) -> ReceiverResponse | Failure:
        """Send one request to an address that is allowed, within a deadline for everything. No redirect is followed."""
        ...


class TenantQueues(Protocol):
    def served_queue(self, tenant: TenantId) -> ServedQueue | None:
        """The tenant's own queue, by a consistent read. ``None`` if the tenant has none now, or is being deleted."""
        ...


class QueueMessages(Protocol):
    def send(self, url: str, message: QueueMessage) -> Failure | None: ...


class Mails(Protocol):
    def send(self, mail: Mail) -> Failure | None:
        """Hand the mail to the mail server. Whether it arrives is not known."""
        ...
