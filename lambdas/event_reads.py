"""Answers to tenants and operators who read events."""

from __future__ import annotations

from collections.abc import Sequence

from lambdas.event_runtime import use_cases
from lambdas.event_serving import Served, served
from orchestrator.api import event_read_routes as routes
from orchestrator.api.event_read_answers import (
    acknowledged_response,
    event_response,
    events_response,
    inbox_off_response,
)
from orchestrator.api.fields import or_default
from orchestrator.api.responses import Response
from orchestrator.events.event_ids import parse_event_id
from orchestrator.events.records import EventSettings


def _list(request: routes.ListEvents, settings: EventSettings) -> Response:
    cursor = routes.cursor_of(request)
    return events_response(use_cases.listing.page(settings, request.filter, cursor=cursor, limit=request.limit))


def _get(request: routes.OfEvent, settings: EventSettings) -> Response:
    event_id = parse_event_id(request.event_id)
    found = use_cases.listing.find(settings, event_id)
    return event_response(settings.life.tenant, event_id, found, request.payload_as)


def _inbox(request: routes.ReadInbox, settings: EventSettings) -> Response:
    if not settings.inbox:
        return inbox_off_response(settings.life.tenant)
    cursor, event_type = routes.cursor_of(request), or_default(request.event_type)
    return events_response(use_cases.inbox.page(settings, event_type=event_type, cursor=cursor, limit=request.limit))


def _acknowledge(request: routes.AcknowledgeEvents, settings: EventSettings) -> Response:
    return acknowledged_response(request.event_ids, use_cases.inbox.acknowledge(settings, request.event_ids))


SERVED: Sequence[Served] = (
    served(routes.LIST_EVENTS, _list),
    served(routes.GET_EVENT, _get),
    served(routes.READ_INBOX, _inbox),
    served(routes.ACKNOWLEDGE, _acknowledge),
)
