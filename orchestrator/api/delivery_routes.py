"""The routes that show what became of events, and send them again. Operators have the same routes for any tenant."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType, field

from orchestrator.api.connection_models import ConnectionId, OfConnection, Origin
from orchestrator.api.event_fields import EventId, EventRequest, EventTime, EventWire
from orchestrator.api.event_problems import (
    CONNECTION_DISABLED,
    EXPIRES_SOON,
    LIMIT_REACHED,
    NO_SUCH_CONNECTION,
    NO_SUCH_REPLAY,
    NOTHING_TO_RESEND,
    REPLAY_ENDED,
    UNKNOWN_EVENT,
    UNSUPPORTED_TYPE,
)
from orchestrator.api.event_read_routes import TimeText, moment_of
from orchestrator.api.event_routes import BY_KEY
from orchestrator.api.fields import TenantIdText, or_default, whole
from orchestrator.api.for_operators import for_operators
from orchestrator.api.problems import Problem
from orchestrator.api.reading import shown
from orchestrator.api.route import Answer, AnyRoute, Audience, Rate, Route
from orchestrator.common.errors import InvalidRequest
from orchestrator.events.delivery import history, replays, rounds
from orchestrator.events.delivery.history import MAX_PAGE_SIZE
from orchestrator.events.delivery.records import DeliveryState
from orchestrator.events.records import Scope
from orchestrator.events.resource_ids import IdPrefix, id_pattern

_PAGE_SIZE = 50

DeliveryStatus = Annotated[
    history.ShownState,
    Meta(
        title="DeliveryStatus",
        description="waiting: the first try is on its way. retrying: it failed, and is tried again. parked: it waits "
        "until its connection is resumed, or its breaker closes. failed: it is not tried again, unless somebody asks.",
    ),
]
ResendResult = Annotated[
    rounds.ResendResult,
    Meta(
        title="ResendResult",
        description="sent: a new round of tries has begun. due: the delivery waited, and is tried now as well; its "
        "next retry stays planned. trying: it is being tried at this moment. parked: the connection is paused; it goes "
        f"out when that is resumed. exhausted: it is not sent, because it was tried {rounds.MAX_TRIES} times, or the "
        f"event was sent to {rounds.MAX_CONNECTIONS} other connections.",
    ),
]
ReplayId = Annotated[
    str,
    Meta(
        title="ReplayId",
        pattern=whole(id_pattern(IdPrefix.REPLAY)),
        examples=[f"{IdPrefix.REPLAY}_0192f3a4b5c6d7e8f9a0b1c2"],
        description="Ids sort by time.",
    ),
]
ConnectionName = Annotated[
    str, Meta(title="ConnectionName", description="null if the connection was deleted, and its record is gone.")
]
ReplayStatus = Annotated[replays.ReplayStatus, Meta(title="ReplayStatus")]
Number = Annotated[int, Meta(ge=0)]

# Requests


class OfAttempts(EventRequest, frozen=True, kw_only=True):
    event_id: Annotated[
        str, Meta(min_length=1, max_length=100, description="The event's id, or {timestamp}#{event_id}.")
    ] = field(name="eventId")


class ResendEvent(OfAttempts, frozen=True, kw_only=True):
    connection_id: (
        Annotated[
            ConnectionId, Meta(description="Without it, the event is sent to all connections to which it failed.")
        ]
        | UnsetType
    ) = UNSET


class ListDeliveries(OfConnection, frozen=True, kw_only=True):
    status: Annotated[
        str,
        Meta(
            description="failed, newest first, or parked, oldest event first. Other deliveries are not listed by "
            "connection: list the events with that status. Those that wait in the inbox are undelivered, whatever "
            "their deliveries do: get the attempts of each."
        ),
    ] = DeliveryState.FAILED.value
    cursor: (
        Annotated[
            str,
            Meta(pattern=whole(r"^[0-9A-Za-z:.#-]{1,100}$"), description="The cursor of the previous page."),
        ]
        | UnsetType
    ) = UNSET
    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE_SIZE, description="The number of deliveries per page.")] = _PAGE_SIZE

    @property
    def state(self) -> DeliveryState:
        if self.status not in DeliveryState.__members__.values():
            raise InvalidRequest(f"status: {shown(self.status)} is not one of failed, parked")
        return DeliveryState(self.status)


class StartReplay(EventRequest, frozen=True, kw_only=True):
    """Either connection_id or origin is given."""

    connection_id: ConnectionId | UnsetType = UNSET
    origin: Annotated[Origin, Meta(description="To all connections of this origin.")] | UnsetType = UNSET
    since: TimeText
    until: Annotated[TimeText, Meta(description="Default: now.")] | UnsetType = UNSET
    include_delivered: Annotated[
        bool, Meta(description="Send also what a connection has received before. Its receiver gets it once more.")
    ] = False
    only_failed: Annotated[
        bool, Meta(description="Send only what failed, and nothing that the connection was never sent.")
    ] = False

    def to_domain(self) -> replays.NewReplay:
        until: str | None = or_default(self.until)
        return replays.NewReplay(
            since=moment_of("since", self.since),
            until=moment_of("until", until) if until is not None else None,
            connection_id=or_default(self.connection_id),
            origin=or_default(self.origin),
            include_delivered=self.include_delivered,
            only_failed=self.only_failed,
        )


class ListReplays(EventRequest, frozen=True, kw_only=True):
    cursor: Annotated[ReplayId, Meta(description="The cursor of the previous page.")] | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE_SIZE, description="The number of replays per page.")] = _PAGE_SIZE


class OfReplay(EventRequest, frozen=True, kw_only=True):
    replay_id: ReplayId = field(name="replayId")


# Answers


class Delivery(EventWire, frozen=True, kw_only=True):
    """How far an event has come on its way to one connection."""

    event_id: EventId
    connection_id: ConnectionId
    connection_name: ConnectionName | None
    status: DeliveryStatus
    tries: Annotated[int, Meta(ge=0, description="Tries that have ended.")]
    at: Annotated[EventTime | None, Meta(description="When it ended, or was last tried.")]
    due_at: Annotated[EventTime | None, Meta(description="When it is tried next, at the latest.")]
    code: Annotated[int | None, Meta(description="The HTTP status of the last answer. null if there was none.")]
    reason: Annotated[str | None, Meta(description="Why the last try failed.")]
    resend: Annotated[bool, Meta(description="True if somebody has asked for the last round of tries.")]


class DeliveryAttempt(EventWire, frozen=True, kw_only=True):
    """One try."""

    connection_id: ConnectionId
    connection_name: ConnectionName | None
    number: Annotated[int, Meta(ge=1, description="Counts the tries for this connection.")]
    at: EventTime
    delivered: bool
    code: Annotated[int | None, Meta(description="The HTTP status of the answer. null if there was none.")]
    milliseconds: Number
    answer: Annotated[
        str,
        Meta(
            description="The beginning of the answer, or why there was none. Empty if the answers of newer attempts "
            "have too much text."
        ),
    ]
    resend: Annotated[bool, Meta(description="True if somebody has asked for it.")]


class Attempts(EventWire, frozen=True, kw_only=True):
    """Everything that was done to deliver an event."""

    tenant_id: TenantIdText
    event_id: EventId
    status: Annotated[str, Meta(description="The status of the event.")]
    deliveries: Annotated[list[Delivery], Meta(description="One for each connection that wants the event.")]
    attempts: Annotated[
        list[DeliveryAttempt], Meta(max_length=history.MAX_ATTEMPTS, description="Of all connections, oldest first.")
    ]
    attempts_omitted: Annotated[
        int, Meta(ge=0, description="The number of older attempts that are left out, because there are too many.")
    ] = 0


class Deliveries(EventWire, frozen=True, kw_only=True):
    deliveries: Annotated[list[Delivery], Meta(max_length=MAX_PAGE_SIZE)]
    cursor: Annotated[str | None, Meta(description="The cursor for the next page. null on the last page.")]


class Resend(EventWire, frozen=True, kw_only=True):
    connection_id: ConnectionId
    result: ResendResult


class Resent(EventWire, frozen=True, kw_only=True):
    tenant_id: TenantIdText
    event_id: EventId
    results: Annotated[list[Resend], Meta(min_length=1)]


class Replay(EventWire, frozen=True, kw_only=True):
    """A job that sends the events of a time again."""

    tenant_id: TenantIdText
    replay_id: ReplayId
    connection_id: Annotated[ConnectionId | None, Meta(description="null for all connections of the origin.")]
    origin: Origin
    since: EventTime
    until: EventTime
    include_delivered: bool
    only_failed: bool
    status: ReplayStatus
    reason: Annotated[str | None, Meta(description="Why Berth has paused or cancelled the replay.")]
    created_at: EventTime
    created_by: Annotated[
        str, Meta(description="The id of an API key, or the ARN of an operator. Tenants see the word operator.")
    ]
    ended_at: EventTime | None
    percent: Annotated[int, Meta(ge=0, le=100, description="How much of the time was looked through.")]
    looked_at: Annotated[int, Meta(ge=0, description="The number of events that were looked at.")]
    sent: Annotated[int, Meta(ge=0, description="The number of deliveries that were asked for.")]
    skipped: Annotated[int, Meta(ge=0, description="The number of deliveries that were not asked for.")]


class Replays(EventWire, frozen=True, kw_only=True):
    replays: Annotated[list[Replay], Meta(max_length=MAX_PAGE_SIZE)]
    cursor: Annotated[ReplayId | None, Meta(description="The cursor for the next page. null on the last page.")]


# Routes

GET_ATTEMPTS: Route[OfAttempts, Attempts] = Route(
    name="getAttempts",
    method="GET",
    path="/events/{eventId}/attempts",
    audience=Audience.TENANT,
    scope=Scope.READ,
    rate=Rate.EVENT_READS,
    summary="Get the deliveries of an event, and all tries",
    request=OfAttempts,
    answers=(Answer(200, Attempts, "The deliveries and the tries."),),
    problems=(*BY_KEY, UNKNOWN_EVENT),
)
LIST_DELIVERIES: Route[ListDeliveries, Deliveries] = Route(
    name="listDeliveries",
    method="GET",
    path="/connections/{connectionId}/deliveries",
    audience=Audience.TENANT,
    scope=Scope.READ,
    rate=Rate.EVENT_READS,
    summary="List the deliveries of a connection that failed or are parked",
    request=ListDeliveries,
    answers=(Answer(200, Deliveries, "A page of deliveries."),),
    problems=(*BY_KEY, NO_SUCH_CONNECTION),
)
RESEND_EVENT: Route[ResendEvent, Resent] = Route(
    name="resendEvent",
    method="POST",
    path="/events/{eventId}/resend",
    audience=Audience.TENANT,
    scope=Scope.ADMIN,
    rate=Rate.EVENT_READS,
    summary="Send an event again",
    description="To one connection, or to all to which it failed. A delivery that waits for a retry is tried now as "
    "well: an extra try, which is made even while the breaker of the connection is open. A success turns a failed "
    "event into a delivered one; a failure leaves the event as it is.",
    request=ResendEvent,
    answers=(Answer(202, Resent, "What becomes of each delivery."),),
    problems=(
        *BY_KEY,
        UNKNOWN_EVENT,
        NO_SUCH_CONNECTION,
        NOTHING_TO_RESEND,
        CONNECTION_DISABLED,
        EXPIRES_SOON,
        UNSUPPORTED_TYPE,
    ),
)


def _warning_about_replay(request: StartReplay) -> str | None:
    return "This sends events again that were delivered already." if request.include_delivered else None


START_REPLAY: Route[StartReplay, Replay] = Route(
    name="startReplay",
    method="POST",
    path="/replays",
    audience=Audience.TENANT,
    scope=Scope.ADMIN,
    rate=Rate.EVENT_READS,
    summary="Send the events of a time again",
    description="Sends what failed, and what the connection wants and was never sent. What it has received is sent "
    f"again only with include_delivered. It begins within a minute. {replays.MAX_RUNNING} replays of a tenant run at a "
    f"time, and {replays.MAX_PER_DAY} begin within 24 hours.",
    request=StartReplay,
    answers=(Answer(202, Replay, "The replay will begin."),),
    problems=(*BY_KEY, NO_SUCH_CONNECTION, NOTHING_TO_RESEND, LIMIT_REACHED, UNSUPPORTED_TYPE),
    warning=_warning_about_replay,
)
LIST_REPLAYS: Route[ListReplays, Replays] = Route(
    name="listReplays",
    method="GET",
    path="/replays",
    audience=Audience.TENANT,
    scope=Scope.READ,
    rate=Rate.EVENT_READS,
    summary="List the replays of the last 90 days, newest first",
    request=ListReplays,
    answers=(Answer(200, Replays, "A page of replays."),),
    problems=BY_KEY,
)
GET_REPLAY: Route[OfReplay, Replay] = Route(
    name="getReplay",
    method="GET",
    path="/replays/{replayId}",
    audience=Audience.TENANT,
    scope=Scope.READ,
    rate=Rate.EVENT_READS,
    summary="Get a replay with its progress",
    request=OfReplay,
    answers=(Answer(200, Replay, "The replay."),),
    problems=(*BY_KEY, NO_SUCH_REPLAY),
)


def _order(name: str, summary: str, description: str, *problems: Problem) -> Route[OfReplay, Replay]:
    return Route(
        name=f"{name}Replay",
        method="POST",
        path=f"/replays/{{replayId}}/{name}",
        audience=Audience.TENANT,
        scope=Scope.ADMIN,
        rate=Rate.EVENT_READS,
        summary=summary,
        description=description,
        request=OfReplay,
        answers=(Answer(200, Replay, "The replay."),),
        problems=(*BY_KEY, NO_SUCH_REPLAY, REPLAY_ENDED, *problems),
    )


PAUSE_REPLAY = _order("pause", "Pause a replay", "It stays where it is until it is resumed.")
RESUME_REPLAY = _order("resume", "Resume a replay", "It goes on within a minute.", LIMIT_REACHED)
CANCEL_REPLAY = _order("cancel", "Cancel a replay", "What it has sent so far stays sent.")

TENANT_ROUTES: tuple[AnyRoute, ...] = (
    GET_ATTEMPTS,
    LIST_DELIVERIES,
    RESEND_EVENT,
    START_REPLAY,
    LIST_REPLAYS,
    GET_REPLAY,
    PAUSE_REPLAY,
    RESUME_REPLAY,
    CANCEL_REPLAY,
)
ROUTES: tuple[AnyRoute, ...] = (*TENANT_ROUTES, *map(for_operators, TENANT_ROUTES))
