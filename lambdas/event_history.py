"""Answers to tenants and operators who look at deliveries, resend events and replay them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lambdas.event_runtime import use_cases
from lambdas.event_serving import Served, served, served_for
from orchestrator.api import delivery_routes as routes
from orchestrator.api.delivery_answers import (
    ACCEPTED,
    attempts_response,
    deliveries_response,
    replay_response,
    replays_response,
    resent_response,
)
from orchestrator.api.fields import or_default
from orchestrator.api.responses import Response
from orchestrator.events.delivery.replays import Replay
from orchestrator.events.event_ids import parse_event_id
from orchestrator.events.records import EventSettings, TenantEpoch
from orchestrator.events.refusals import Refused


def _attempts(request: routes.OfAttempts, settings: EventSettings) -> Response:
    return attempts_response(use_cases.delivery_history.attempts(settings, parse_event_id(request.event_id)))


def _deliveries(request: routes.ListDeliveries, settings: EventSettings) -> Response:
    return deliveries_response(
        use_cases.delivery_history.deliveries(
            settings,
            request.connection_id,
            request.state,
            cursor=or_default(request.cursor),
            limit=request.limit,
        )
    )


def _resend(request: routes.ResendEvent, settings: EventSettings) -> Response:
    event_id = parse_event_id(request.event_id)
    results = use_cases.resending.resend(settings, event_id, or_default(request.connection_id))
    return resent_response(settings.life, event_id, results)


def _start(request: routes.StartReplay, settings: EventSettings, by: str) -> Response:
    replay = use_cases.managing_replays.start(settings, request.to_domain(), by)
    return replay_response(replay, asked_by=by, status=ACCEPTED)


def _list(request: routes.ListReplays, settings: EventSettings, by: str) -> Response:
    replays, cursor = use_cases.managing_replays.list(
        settings.life, cursor=or_default(request.cursor), limit=request.limit
    )
    return replays_response(replays, cursor, asked_by=by)


def _about(
    order: Callable[[TenantEpoch, str], Replay | Refused],
) -> Callable[[routes.OfReplay, EventSettings, str], Response]:
    def answer(request: routes.OfReplay, settings: EventSettings, by: str) -> Response:
        return replay_response(order(settings.life, request.replay_id), asked_by=by)

    return answer


SERVED: Sequence[Served] = (
    served(routes.GET_ATTEMPTS, _attempts),
    served(routes.LIST_DELIVERIES, _deliveries),
    served(routes.RESEND_EVENT, _resend),
    served_for(routes.START_REPLAY, _start),
    served_for(routes.LIST_REPLAYS, _list),
    served_for(routes.GET_REPLAY, _about(lambda *names: use_cases.managing_replays.find(*names))),
    served_for(routes.PAUSE_REPLAY, _about(lambda *names: use_cases.managing_replays.pause(*names))),
    served_for(routes.RESUME_REPLAY, _about(lambda *names: use_cases.managing_replays.resume(*names))),
    served_for(routes.CANCEL_REPLAY, _about(lambda *names: use_cases.managing_replays.cancel(*names))),
)
