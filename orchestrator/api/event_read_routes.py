"""The routes that read events and acknowledge those of the inbox. Operators have the same routes for any tenant."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType, field

from orchestrator.api.event_configuration_models import (
    FormId,
    SourceId,
)
from orchestrator.api.event_fields import EventId, EventRequest, EventTime, EventType, EventWire
from orchestrator.api.event_problems import INBOX_OFF, NO_SETTINGS, NO_SUCH_TENANT, UNKNOWN_EVENT, UNSUPPORTED_TYPE
from orchestrator.api.event_routes import BY_KEY
from orchestrator.api.fields import TenantIdText, or_default
from orchestrator.api.for_operators import for_operators
from orchestrator.api.problems import CREDENTIALS_NOT_ENABLED, INVALID_REQUEST, NOT_THROUGH_THE_API, TRY_AGAIN
from orchestrator.api.reading import shown
from orchestrator.api.route import NO_STORE, Answer, AnyRoute, Audience, Rate, Route
from orchestrator.common.errors import InvalidRequest
from orchestrator.events.event_ids import MAX_SHARDS, parse_event_id
from orchestrator.events.inbox import MAX_ACKNOWLEDGED
from orchestrator.events.listing import MAX_PAGE_SIZE, Filter, Kind
from orchestrator.events.records import Scope
from orchestrator.events.statuses import UNDELIVERED, EventStatus, status_of_word

_PAGE_SIZE = 50
_STATUS_WORDS = (*(str(status) for status in EventStatus), UNDELIVERED, "pending", "processing")

# Requests

Limit = Annotated[int, Meta(ge=1, le=MAX_PAGE_SIZE, description="The number of events per page.")]
Cursor = Annotated[
    str, Meta(min_length=1, max_length=64, description="The cursor of the previous page. The filters must be the same.")
]
TimeText = Annotated[
    str,
    Meta(
        min_length=10,
        max_length=40,
        description="A time in ISO 8601, such as 2026-11-17T12:00:00Z. Without an offset, it is in UTC.",
        extra_json_schema={"format": "date-time"},
    ),
]


class ListEvents(EventRequest, frozen=True, kw_only=True):
    kind: Kind = Kind.EVENTS
    since: TimeText | UnsetType = UNSET
    until: TimeText | UnsetType = UNSET
    event_type: EventType | UnsetType = UNSET
    status: (
        Annotated[
            str,
            Meta(
                description=f"One of {', '.join(_STATUS_WORDS)}. Events that wait in the inbox are undelivered, "
                "whatever their deliveries do, so a list of retrying or failed events leaves them out."
            ),
        ]
        | UnsetType
    ) = UNSET
    source_id: SourceId | UnsetType = UNSET
    form_id: FormId | UnsetType = UNSET
    cursor: Cursor | UnsetType = UNSET
    limit: Limit = _PAGE_SIZE

    @property
    def filter(self) -> Filter:
        return Filter(
            kind=self.kind,
            since=_moment_of("since", or_default(self.since)),
            until=_moment_of("until", or_default(self.until)),
            event_type=or_default(self.event_type),
            status=_status(or_default(self.status)),
            source_id=or_default(self.source_id),
            form_id=or_default(self.form_id),
        )


class PayloadAs(StrEnum):
    """How an answer holds the payload."""

    JSON = "json"
    BASE64 = "base64"


class OfEvent(EventRequest, frozen=True, kw_only=True):
    event_id: Annotated[
        str, Meta(min_length=1, max_length=100, description="The event's id, or {timestamp}#{event_id}.")
    ] = field(name="eventId")
    payload_as: Annotated[
        PayloadAs,
        Meta(
            description="base64: payload_base64 has the bytes that came in, for example to verify a signature. "
            "json: payload has them, without blanks around them, if they are JSON."
        ),
    ] = PayloadAs.JSON


class OfTenant(EventRequest, frozen=True, kw_only=True):
    tenant_id: TenantIdText = field(name="tenantId")


class ReadInbox(EventRequest, frozen=True, kw_only=True):
    event_type: EventType | UnsetType = UNSET
    cursor: Cursor | UnsetType = UNSET
    limit: Limit = _PAGE_SIZE


class AcknowledgeEvents(EventRequest, frozen=True, kw_only=True):
    event_ids: Annotated[list[EventId], Meta(min_length=1, max_length=MAX_ACKNOWLEDGED)]


def _moment_of(name: str, text: str | None) -> datetime | None:
    return moment_of(name, text) if text is not None else None


def moment_of(name: str, text: str) -> datetime:
    """The time in the field of that name."""
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidRequest(f"{name}: is not a time in ISO 8601, such as 2026-11-17T12:00:00Z") from None


def _status(word: str | None) -> EventStatus | None:
    if word is None:
        return None
    status = status_of_word(word)
    if status is None:
        raise InvalidRequest(f"status: {shown(word)} is not one of {', '.join(_STATUS_WORDS)}")
    return status


def cursor_of(request: ListEvents | ReadInbox) -> str | None:
    cursor: str | None = or_default(request.cursor)
    return parse_event_id(cursor) if cursor is not None else None


# Answers


class Event(EventWire, frozen=True, kw_only=True):
    """An accepted event."""

    tenant_id: TenantIdText
    event_id: EventId
    event_type: str
    status: Annotated[str, Meta(description="While the event waits in the inbox, undelivered instead of received.")]
    timestamp: EventTime
    delivered_at: EventTime | None
    retry_count: Annotated[int, Meta(ge=0)]
    source_id: str | None
    form_id: str | None
    content_type: str
    method: str
    source_ip: str | None
    metadata: dict[str, str]
    ttl: Annotated[int, Meta(description="When the event may be deleted at the earliest, in seconds since 1970.")]
    headers: Annotated[dict[str, str], Meta(description="The headers of a webhook.")] | UnsetType = UNSET
    payload: Annotated[Any, Meta(description="The payload, if it is JSON. It is sent as it came in.")] = UNSET
    payload_base64: (
        Annotated[
            str,
            Meta(
                description="The payload's bytes, if it is not JSON, if it is JSON that many programs cannot read "
                "(nested above 100 levels, or numbers above 1,000 digits), or if they were asked for."
            ),
        ]
        | UnsetType
    ) = UNSET
    payload_omitted: (
        Annotated[Literal[True], Meta(description="A list leaves out large payloads. Get the event by its id.")]
        | UnsetType
    ) = UNSET


class Events(EventWire, frozen=True, kw_only=True):
    events: Annotated[list[Event], Meta(max_length=MAX_PAGE_SIZE)]
    cursor: Annotated[str | None, Meta(description="The cursor for the next page. null on the last page.")]


class Acknowledgement(EventWire, frozen=True, kw_only=True):
    event_id: EventId
    result: Annotated[
        Literal["acknowledged", "unknown"],
        Meta(description="unknown: there is no such event, or it has expired."),
    ]


class Acknowledgements(EventWire, frozen=True, kw_only=True):
    results: Annotated[list[Acknowledgement], Meta(min_length=1, max_length=MAX_ACKNOWLEDGED)]


class TableCredentials(EventWire, frozen=True, kw_only=True):
    """Temporary AWS credentials for one tenant's rows of the table of events."""

    tenant_id: TenantIdText
    table: str
    partitions: Annotated[
        list[str], Meta(min_length=1, max_length=MAX_SHARDS, description="The partition keys of the tenant's events.")
    ]
    access_key_id: str
    secret_access_key: str
    session_token: str
    expires_at: EventTime

    def __repr__(self) -> str:
        """Show only the key's id, so that secrets are not printed or logged by accident."""
        return f"TableCredentials(access_key_id={self.access_key_id!r}, ...)"


# Routes

LIST_EVENTS: Route[ListEvents, Events] = Route(
    name="listEvents",
    method="GET",
    path="/events",
    audience=Audience.TENANT,
    scope=Scope.READ,
    rate=Rate.EVENT_READS,
    summary="List events, newest first",
    description="Use at most one of event_type, source_id and form_id. Finished events are listed for the retention of "
    "the plan.",
    request=ListEvents,
    answers=(Answer(200, Events, "A page of events."),),
    problems=BY_KEY,
)
GET_EVENT: Route[OfEvent, Event] = Route(
    name="getEvent",
    method="GET",
    path="/events/{eventId}",
    audience=Audience.TENANT,
    scope=Scope.READ,
    rate=Rate.EVENT_READS,
    summary="Get an event with its payload",
    request=OfEvent,
    answers=(Answer(200, Event, "The event."),),
    problems=(*BY_KEY, UNKNOWN_EVENT),
)
READ_INBOX: Route[ReadInbox, Events] = Route(
    name="readInbox",
    method="GET",
    path="/inbox",
    audience=Audience.TENANT,
    scope=Scope.READ,
    rate=Rate.EVENT_READS,
    summary="Read the undelivered events, oldest first",
    description="Reading changes nothing: acknowledge the events that were handled, and read again from the beginning. "
    "A cursor alone can skip events. One consumer reads an inbox at a time.",
    request=ReadInbox,
    answers=(Answer(200, Events, "A page of undelivered events, with their payloads."),),
    problems=(*BY_KEY, INBOX_OFF),
)
ACKNOWLEDGE: Route[AcknowledgeEvents, Acknowledgements] = Route(
    name="acknowledgeEvents",
    method="POST",
    path="/inbox/ack",
    audience=Audience.TENANT,
    scope=Scope.WRITE,
    rate=Rate.EVENTS,
    summary="Acknowledge events of the inbox",
    description="The events count as delivered. To acknowledge an event again changes nothing.",
    request=AcknowledgeEvents,
    answers=(Answer(200, Acknowledgements, "The result for each event."),),
    problems=(*BY_KEY, UNSUPPORTED_TYPE),
)

GET_CREDENTIALS: Route[OfTenant, TableCredentials] = Route(
    name="getEventCredentials",
    method="POST",
    path="/tenants/{tenantId}/events/credentials",
    audience=Audience.RECEIVER,
    rate=Rate.CREDENTIALS,
    summary="Get temporary AWS credentials that read a tenant's events",
    description="The credentials read this tenant's rows of the table of events and of its indexes by status and by "
    "type (GetItem, BatchGetItem, Query), and nothing else. Payloads in S3 are read by the API only.",
    request=OfTenant,
    answers=(Answer(200, TableCredentials, "The credentials.", (NO_STORE,)),),
    problems=(INVALID_REQUEST, CREDENTIALS_NOT_ENABLED, NO_SUCH_TENANT, NO_SETTINGS, NOT_THROUGH_THE_API, TRY_AGAIN),
)

TENANT_ROUTES: tuple[AnyRoute, ...] = (LIST_EVENTS, GET_EVENT, READ_INBOX, ACKNOWLEDGE)
ROUTES: tuple[AnyRoute, ...] = (*TENANT_ROUTES, *map(for_operators, TENANT_ROUTES), GET_CREDENTIALS)
