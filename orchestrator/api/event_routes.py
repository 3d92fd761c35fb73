"""The tenants' routes for events: accepting them."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from orchestrator.api.event_fields import EventId, EventRequest, EventTime, EventType, EventWire
from orchestrator.api.event_problems import (
    DIFFERENT_CONTENT,
    MISSING_SCOPE,
    OVER_PLAN,
    TOO_LARGE,
    UNKNOWN_KEY,
    UNSUPPORTED_TYPE,
)
from orchestrator.api.problems import INVALID_REQUEST, NOT_THROUGH_THE_API, TRY_AGAIN, Problem
from orchestrator.api.route import RETRY_AFTER_SOMETIMES, Answer, AnyRoute, Audience, Rate, Route
from orchestrator.events.plans import MAX_BATCH
from orchestrator.events.records import Scope

BY_KEY: tuple[Problem, ...] = (INVALID_REQUEST, UNKNOWN_KEY, MISSING_SCOPE, OVER_PLAN, NOT_THROUGH_THE_API, TRY_AGAIN)
"""The problems of every route that is called with an API key."""


class SendEvent(EventRequest, frozen=True, kw_only=True):
    """One event. The payload is kept byte for byte."""

    event_type: EventType
    payload: Annotated[dict[str, Any], Meta(description="Any JSON object.")]


class SendEvents(EventRequest, frozen=True, kw_only=True):
    events: Annotated[list[SendEvent], Meta(min_length=1, max_length=MAX_BATCH)]


class AcceptedEvent(EventWire, frozen=True, kw_only=True):
    """The event is stored and will not be lost."""

    event_id: EventId
    status: Annotated[str, Meta(description="received, or undelivered if the event waits in the inbox.")]
    timestamp: EventTime
    repeated: Annotated[
        bool, Meta(description="True if the event was accepted before, by a request with the same Idempotency-Key.")
    ]


class BatchOutcome(EventWire, frozen=True, kw_only=True):
    """The outcome of one event of a batch: either an id, or a problem."""

    status_code: Annotated[int, Meta(ge=200, le=599)]
    event: AcceptedEvent | UnsetType = UNSET
    problem: Annotated[dict[str, Any], Meta(description="Problem details (RFC 9457).")] | UnsetType = UNSET


class AcceptedBatch(EventWire, frozen=True, kw_only=True):
    accepted: Annotated[int, Meta(ge=0, le=MAX_BATCH)]
    refused: Annotated[int, Meta(ge=0, le=MAX_BATCH)]
    results: Annotated[list[BatchOutcome], Meta(description="In the order of the request.")]


SEND_EVENT: Route[SendEvent, AcceptedEvent] = Route(
    name="sendEvent",
    method="POST",
    path="/events",
    audience=Audience.TENANT,
    scope=Scope.WRITE,
    rate=Rate.EVENTS,
    summary="Send an event",
    description="The event is kept once the answer is 202. With the header Idempotency-Key, requests with the same key "
    "within 24 hours are one event; the same key with another content is refused.",
    request=SendEvent,
    answers=(Answer(202, AcceptedEvent, "The event is kept."),),
    problems=(*BY_KEY, DIFFERENT_CONTENT, TOO_LARGE, UNSUPPORTED_TYPE),
)
SEND_EVENTS: Route[SendEvents, AcceptedBatch] = Route(
    name="sendEvents",
    method="POST",
    path="/events/batch",
    audience=Audience.TENANT,
    scope=Scope.WRITE,
    rate=Rate.EVENTS,
    summary=f"Send up to {MAX_BATCH} events",
    description="Each event has an outcome of its own. With the header Idempotency-Key, a batch that is sent again is "
    "accepted once, and what was accepted before costs nothing. If some events were refused for now, Retry-After says "
    "when there is room for them.",
    request=SendEvents,
    answers=(Answer(202, AcceptedBatch, "The outcome of each event.", (RETRY_AFTER_SOMETIMES,)),),
    problems=(*BY_KEY, TOO_LARGE, UNSUPPORTED_TYPE),
)

ROUTES: tuple[AnyRoute, ...] = (SEND_EVENT, SEND_EVENTS)
