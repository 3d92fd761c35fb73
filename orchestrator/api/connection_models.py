"""The wire models of connections, and of subscriptions of Zapier."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType, field

from orchestrator.api.event_configuration_models import ResourceName
from orchestrator.api.event_fields import EventId, EventRequest, EventType, EventWire
from orchestrator.api.fields import Moment, TenantIdText, or_default, whole
from orchestrator.common.errors import InvalidRequest
from orchestrator.events.configuring_connections import (
    MAX_DOCUMENT_BYTES,
    MAX_PER_TENANT,
    ConnectionChange,
    NewConnection,
)
from orchestrator.events.delivery import records, troubles
from orchestrator.events.delivery.addresses import MAX_URL
from orchestrator.events.delivery.retries import DEFAULT_WAITS, MAX_DURATION, MAX_TRIES, RetrySchedule, retry_schedule
from orchestrator.events.resource_ids import IdPrefix, id_pattern
from orchestrator.events.zapier_samples import MAX_SAMPLES

_EXAMPLE = "0123456789abcdef01234567"
_ORIGINS = "|".join(
    [
        records.API_ORIGIN,
        *(id_pattern(each).removeprefix("^").removesuffix("$") for each in (IdPrefix.SOURCE, IdPrefix.FORM)),
    ]
)

# Values

ConnectionId = Annotated[
    str,
    Meta(
        title="ConnectionId",
        pattern=whole(id_pattern(IdPrefix.CONNECTION)),
        examples=[f"{IdPrefix.CONNECTION}_{_EXAMPLE}"],
    ),
]
Origin = Annotated[
    str,
    Meta(
        title="Origin",
        description="The events that are delivered: api for those that were sent to POST /events, or the id of a "
        "source or a form for those that came in there.",
        pattern=whole(f"^(?:{_ORIGINS})$"),
        examples=[records.API_ORIGIN, f"{IdPrefix.SOURCE}_{_EXAMPLE}"],
    ),
]
DestinationKind = Annotated[
    records.DestinationKind,
    Meta(
        title="DestinationKind",
        description="queue: the tenant's own queue. webhook: a URL, with signed requests. zapier: a Zap. email: an "
        "address of mail, which only an operator can choose.",
    ),
]
ConnectionStatus = Annotated[
    Literal["active", "paused", "disabled"],
    Meta(
        title="ConnectionStatus",
        description="While a connection is paused, its deliveries wait. Berth disables a connection that has failed "
        "for days, or whose receiver says that it is gone; then its deliveries fail.",
    ),
]
ConnectionTrouble = Annotated[
    troubles.Trouble,
    Meta(
        title="ConnectionTrouble",
        description="damaged: its record cannot be read, and its deliveries wait until an operator has mended it. "
        "disabled: its deliveries fail. failing: its receiver has failed for minutes, and its deliveries "
        "wait. paused: somebody has paused it, and its deliveries wait.",
    ),
]
Address = Annotated[
    str,
    Meta(
        title="Address",
        description="The URL of a webhook or a Zap, or an address of mail. The tenant's own queue has none.",
        min_length=1,
        max_length=MAX_URL,
        examples=["https://shop.example.com/hooks/berth"],
    ),
]
Filter = Annotated[
    dict[str, Any],
    Meta(
        title="Filter",
        description="Which events are delivered, by event_type, headers and payload, with the operators $eq, $neq, "
        "$gt, $gte, $lt, $lte, $in, $nin, $startsWith, $endsWith, $exist, $and, $or and $not. As JSON, a filter has "
        f"at most {MAX_DOCUMENT_BYTES} bytes.",
        examples=[{"event_type": "order.created", "payload": {"total": {"$gte": 100}}}],
    ),
]
Transform = Annotated[
    dict[str, Any],
    Meta(
        title="Transform",
        description="How a payload that is a JSON object is changed before it is sent: remove, rename, set, wrap, in "
        "this order. A path goes into objects by keys, separated by dots.",
        examples=[{"remove": ["customer.card"], "rename": {"total": "amount"}, "wrap": "order"}],
    ),
]
RetrySeconds = Annotated[
    list[Annotated[int, Meta(ge=1, le=int(MAX_DURATION.total_seconds()))]],
    Meta(
        title="RetrySeconds",
        description="The waits between the tries of a delivery. Each is longer or shorter by up to a fifth. All of "
        f"them together end within {MAX_DURATION.days} days.",
        max_length=MAX_TRIES - 1,
        examples=[[int(wait.total_seconds()) for wait in DEFAULT_WAITS]],
    ),
]


# Requests


class CreateConnection(EventRequest, frozen=True, kw_only=True):
    name: ResourceName
    origin: Origin = records.API_ORIGIN
    destination: DestinationKind = records.DestinationKind.QUEUE
    address: Address | UnsetType = UNSET
    filter: Filter | UnsetType = UNSET
    transform: Transform | UnsetType = UNSET
    retry_seconds: RetrySeconds | UnsetType = UNSET

    def to_domain(self) -> NewConnection:
        return NewConnection(
            name=self.name,
            destination=records.Destination(self.destination, or_default(self.address, "")),
            origin=self.origin,
            filter=or_default(self.filter),
            transform=or_default(self.transform),
            retry=RetrySchedule() if self.retry_seconds is UNSET else retry_schedule(self.retry_seconds),
        )


class OfConnection(EventRequest, frozen=True, kw_only=True):
    connection_id: ConnectionId = field(name="connectionId")


class UpdateConnection(OfConnection, frozen=True, kw_only=True):
    """The fields to change. Those that are left out stay as they are."""

    name: ResourceName | UnsetType = UNSET
    address: Address | UnsetType = UNSET
    filter: Annotated[Filter | None, Meta(description="null: all events are delivered.")] | UnsetType = UNSET
    transform: Annotated[Transform | None, Meta(description="null: payloads are sent as they are.")] | UnsetType = UNSET
    retry_seconds: Annotated[RetrySeconds | None, Meta(description="null: the usual waits.")] | UnsetType = UNSET

    def to_domain(self) -> ConnectionChange:
        retry = None
        if self.retry_seconds is not UNSET:
            retry = RetrySchedule() if self.retry_seconds is None else retry_schedule(self.retry_seconds)
        return ConnectionChange(
            name=or_default(self.name),
            address=or_default(self.address),
            filter=None if self.filter is UNSET else self.filter or {},
            transform=None if self.transform is UNSET else self.transform or {},
            retry=retry,
        )


# Answers


class Connection(EventWire, frozen=True, kw_only=True):
    """Where events are delivered to."""

    tenant_id: TenantIdText
    connection_id: ConnectionId
    name: ResourceName
    origin: Origin
    destination: DestinationKind
    address: Address | None
    filter: Filter | None
    transform: Transform | None
    retry_seconds: RetrySeconds
    status: ConnectionStatus
    reason: Annotated[str | None, Meta(description="Why the connection is disabled.")]
    signed: Annotated[bool, Meta(description="True if its deliveries are signed by Standard Webhooks.")]
    former_secret_until: Annotated[
        Moment | None, Meta(description="After a rotation: how long deliveries carry the former signature, too.")
    ]
    failing_since: Annotated[Moment | None, Meta(description="The first failure since the last success.")]
    breaker_open_until: Annotated[
        Moment | None,
        Meta(description="Deliveries wait until then, because too many have failed one after the other."),
    ]
    created_at: Moment


class IssuedConnection(Connection, frozen=True, kw_only=True):
    """A connection with a new signing secret."""

    secret: Annotated[
        str | None,
        Meta(
            description="The secret by which the receiver checks the signature. It cannot be shown again. null if "
            "deliveries are not signed."
        ),
    ]

    def __repr__(self) -> str:
        """Leave the secret out, so that it is not printed or logged by accident."""
        return f"IssuedConnection(connection_id={self.connection_id!r}, ...)"


class Connections(EventWire, frozen=True, kw_only=True):
    """All connections of a tenant, oldest first."""

    connections: Annotated[list[Connection], Meta(max_length=MAX_PER_TENANT)]


class TroubledConnection(EventWire, frozen=True, kw_only=True):
    """A connection whose deliveries fail or wait."""

    tenant_id: TenantIdText
    connection_id: ConnectionId
    name: ResourceName
    trouble: ConnectionTrouble
    reason: Annotated[str | None, Meta(description="Why the connection is disabled, or that it is damaged.")]
    failing_since: Annotated[Moment | None, Meta(description="The first failure since the last success.")]


class TroubledConnections(EventWire, frozen=True, kw_only=True):
    """Connections of all tenants whose deliveries fail or wait: damaged, disabled, failing,
    paused, in this order."""

    connections: Annotated[list[TroubledConnection], Meta(max_length=troubles.MAX_SHOWN)]
    more: Annotated[
        bool,
        Meta(
            description="True if there are others, which are left out. Damaged ones are left out only if there are "
            f"more than {troubles.MAX_SHOWN} of them, or more than {troubles.MAX_READ:,} connections that are disabled "
            "or wait."
        ),
    ]


class DeletedConnection(EventWire, frozen=True, kw_only=True):
    """The connection is deleted. Its unfinished deliveries fail within minutes."""

    tenant_id: TenantIdText
    connection_id: ConnectionId


class SentTest(EventWire, frozen=True, kw_only=True):
    """A test event was accepted for this connection alone."""

    tenant_id: TenantIdText
    connection_id: ConnectionId
    event_id: EventId


# Zapier


class SubscribeZap(EventRequest, frozen=True, kw_only=True):
    target_url: Address | UnsetType = UNSET
    hook_url: Annotated[Address, Meta(description="Another name of target_url.")] | UnsetType = field(
        name="hookUrl", default=UNSET
    )
    event_type: EventType | UnsetType = UNSET

    @property
    def url(self) -> str:
        given = {each for each in (self.target_url, self.hook_url) if each is not UNSET}
        if len(given) != 1:
            raise InvalidRequest("target_url: is required, and hookUrl is another name of the same field.")
        return str(given.pop())


class Subscription(EventWire, frozen=True, kw_only=True):
    """A subscription of Zapier, which is a connection."""

    id: Annotated[ConnectionId, Meta(description="The id to unsubscribe with.")]
    tenant_id: TenantIdText
    target_url: Address
    event_type: Annotated[EventType | None, Meta(description="null: all events.")]


class OfSubscription(EventRequest, frozen=True, kw_only=True):
    subscription_id: ConnectionId = field(name="subscriptionId")


class GetSamples(EventRequest, frozen=True, kw_only=True):
    event_type: EventType | UnsetType = UNSET


class Samples(EventWire, frozen=True, kw_only=True):
    """Payloads of the last events, newest first; a made-up one if there are none."""

    samples: Annotated[list[dict[str, Any]], Meta(max_length=MAX_SAMPLES)]
