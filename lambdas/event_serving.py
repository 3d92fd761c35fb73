"""The frame of the functions that answer tenants and operators about events.

A route of tenants is served once, for both: an API key says which tenant calls, and an operator names the tenant in the
path. Nothing else in a request can name a tenant, so that a key only ever reaches its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lambdas.event_runtime import use_cases
from lambdas.observing import logger
from orchestrator.api.event_answers import busy_response
from orchestrator.api.event_problems import UNSUPPORTED_TYPE
from orchestrator.api.event_reading import NotJson, check_is_json
from orchestrator.api.reading import read
from orchestrator.api.responses import Response, problem, refuse, try_again_later, unknown_caller
from orchestrator.api.route import AnyRoute, RequestT, Route
from orchestrator.common.errors import InvalidRequest, Throttled, Unsettled
from orchestrator.events.records import EventSettings

Event = Mapping[str, Any]

_LOGGED_IDS = ("key_id", "source_id", "form_id", "connection_id", "event_id")


@dataclass(frozen=True, slots=True)
class Served:
    """A route of tenants, and the function that answers it for the tenant with these settings."""

    route: AnyRoute
    answer: Callable[[Any, EventSettings, str], Response]
    """The last argument is who asks: an operator's ARN, or the id of an API key."""


def served(route: Route[RequestT, Any], answer: Callable[[RequestT, EventSettings], Response]) -> Served:
    """``answer`` gets the request in the route's own model."""
    return Served(route, lambda request, settings, _by: answer(request, settings))


def served_for(route: Route[RequestT, Any], answer: Callable[[RequestT, EventSettings, str], Response]) -> Served:
    """The same for an ``answer`` that needs to know who asks."""
    return Served(route, answer)


@dataclass(frozen=True, slots=True)
class Answered:
    response: Response
    names: Mapping[str, str | None] = field(default_factory=dict)
    """For the log: the tenant, the id of the API key that was used, why the function was busy."""


Answer = Callable[[Event], Answered]


def read_json(route: Route[RequestT, Any], event: Event) -> RequestT:
    """The request in the route's own model. A body must be JSON."""
    if event.get("body"):
        check_is_json(event)
    return read(route, event)


def respond(event: object, answers: Mapping[str, Answer], *, signed: bool) -> dict[str, Any]:
    """The response to an event of API Gateway. ``answers`` are by the key of each route.

    ``signed`` is true if callers have AWS credentials, so that API Gateway names them. Neither headers nor bodies are
    logged: they hold API keys, secrets and payloads.
    """
    request = event if isinstance(event, dict) else {}
    given = request.get("routeKey")
    route = given if isinstance(given, str) else ""
    known = route in answers
    try:
        if not use_cases.api_gateway.sent(request):
            answered = Answered(unknown_caller())
        elif known:
            answered = answers[route](request)
        else:
            answered = Answered(_no_such_route(route))
    except NotJson as error:
        answered = Answered(problem(UNSUPPORTED_TYPE, str(error)))
    except InvalidRequest as error:
        answered = Answered(refuse(error))
    except (Throttled, Unsettled) as error:
        reason = str(error)
        answered = Answered(try_again_later(reason) if signed else busy_response(error), {"reason": reason})
    response = answered.response
    logger.info(
        "Asked about events",
        extra={
            "route": route if known else None,
            "status": response.status,
            **({"caller": use_cases.api_gateway.caller(request)} if signed else {}),
            **{name: response.body[name] for name in _LOGGED_IDS if name in response.body},
            **answered.names,
        },
    )
    return response.as_proxy_result()


def _no_such_route(route: str) -> Response:
    return refuse(InvalidRequest(f"There is no route {route[:100]!a}."))
