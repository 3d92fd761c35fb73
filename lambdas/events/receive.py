"""Takes webhooks and forms from anybody: `ANY /hooks/{sourceId}`, `POST` and `OPTIONS /forms/{formId}`.

The signature of a webhook, and the origin of a form, are checked here. No header and no body is logged.
"""

from collections.abc import Mapping
from typing import Any

from lambdas.event_runtime import use_cases
from lambdas.observing import count, logger
from orchestrator.api.event_answers import busy_response, refused_response
from orchestrator.api.event_problems import UNKNOWN_SOURCE
from orchestrator.api.event_reading import header, incoming_of
from orchestrator.api.receiving_answers import (
    preflight_response,
    submission_response,
    unknown_address_response,
    webhook_response,
)
from orchestrator.api.responses import Response, problem, unknown_caller
from orchestrator.common.errors import InvalidRequest, Throttled, Unsettled
from orchestrator.events.forms import cors_headers
from orchestrator.events.receiving import Trapped
from orchestrator.events.signatures import Unverified

# Built at import, so that the first call does not wait for the clients.
receiving = use_cases.receiving

_HOOK = "/hooks/{sourceId}"
_FORM = "/forms/{formId}"
_MAX_LOGGED_CHARACTERS = 64


def handler(event: object, _context: object) -> dict[str, Any]:
    request = event if isinstance(event, dict) else {}
    log: dict[str, object] = {}
    if not use_cases.api_gateway.sent(request):
        response = unknown_caller()
    else:
        try:
            response = _answer(request, log)
        except (Throttled, Unsettled) as error:
            log["reason"] = str(error)
            response = busy_response(error)
    logger.info("receive", extra={**log, "status": response.status, "event_id": response.body.get("event_id")})
    return response.as_proxy_result()


def _answer(request: Mapping[str, Any], log: dict[str, object]) -> Response:
    route = request.get("routeKey")
    method, _, path = route.partition(" ") if isinstance(route, str) else ("", "", "")
    log["route"] = path[:_MAX_LOGGED_CHARACTERS]
    if path == _HOOK:
        return _webhook(_parameter(request, "sourceId", log), request, log)
    if path == _FORM:
        form_id = _parameter(request, "formId", log)
        # Read before the submission: once that is accepted, nothing may fail. Whatever the answer is, a page that may
        # send the form may read it.
        form = receiving.form(form_id)
        if form is None:
            # Not looked up a second time: strangers can guess as often as they like.
            return unknown_address_response()
        origin = header(request, "origin")
        response = preflight_response(form, origin) if method == "OPTIONS" else _submission(form_id, request, log)
        return _with_headers(response, cors_headers(form, origin))
    return problem(UNKNOWN_SOURCE, "There is no such route. Webhooks go to /hooks/..., forms to /forms/...")


def _webhook(source_id: str, request: Mapping[str, Any], log: dict[str, object]) -> Response:
    try:
        received = receiving.webhook(source_id, incoming_of(request))
    except InvalidRequest as error:
        return refused_response(error)
    log["result"] = type(received.result).__name__
    if received.source is not None:
        log |= {"tenant_id": received.source.life.tenant.value, "provider": received.source.provider.value}
    if isinstance(received.result, Unverified):
        log["reason"] = received.result.reason
        count("UnverifiedWebhooks")
    return webhook_response(received.result)


def _submission(form_id: str, request: Mapping[str, Any], log: dict[str, object]) -> Response:
    try:
        received = receiving.submission(form_id, incoming_of(request))
    except InvalidRequest as error:
        return refused_response(error)
    log["result"] = type(received.result).__name__
    if received.form is not None:
        log["tenant_id"] = received.form.life.tenant.value
    if isinstance(received.result, Trapped):
        count("TrappedSubmissions")
    return submission_response(received)


def _with_headers(response: Response, headers: Mapping[str, str]) -> Response:
    response.headers.update(headers)
    return response


def _parameter(request: Mapping[str, Any], name: str, log: dict[str, object]) -> str:
    parameters = request.get("pathParameters")
    value = parameters.get(name) if isinstance(parameters, Mapping) else None
    text = value if isinstance(value, str) else ""
    log[name] = text[:_MAX_LOGGED_CHARACTERS]
    return text
