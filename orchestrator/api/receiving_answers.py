"""HTTP answers to webhooks and to submissions of forms."""

from __future__ import annotations

from dataclasses import replace

from orchestrator.api.event_answers import outcome_response
from orchestrator.api.event_problems import (
    INVALID_SIGNATURE,
    ORIGIN_NOT_ALLOWED,
    SOURCE_PAUSED,
    TOO_MANY_HOPS,
    TOO_MANY_SUBMISSIONS,
    UNKNOWN_SOURCE,
    UNSUPPORTED_TYPE,
    WRONG_METHOD,
)
from orchestrator.api.responses import NO_CONTENT, Response, json_response, problem
from orchestrator.events.accepting import Accepted
from orchestrator.events.challenges import Challenge
from orchestrator.events.forms import PREFLIGHT_HEADERS, WrongContentType, is_allowed_origin, redirect_for
from orchestrator.events.hops import TooManyHops
from orchestrator.events.quotas import OverLimit
from orchestrator.events.receiving import (
    Decided,
    NoSuchAddress,
    OriginNotAllowed,
    Paused,
    ReceivedSubmission,
    Trapped,
    WebhookResult,
    WrongMethod,
)
from orchestrator.events.records import EventSettings, Form
from orchestrator.events.signatures import Unverified
from orchestrator.events.statuses import EventStatus

_SEE_OTHER = 303


def webhook_response(result: WebhookResult) -> Response:
    match result:
        case Challenge(_, answer):
            return json_response(200, dict(answer))
        case Unverified(reason):
            return problem(INVALID_SIGNATURE, reason)
        case WrongMethod(allowed):
            response = problem(WRONG_METHOD, f"Send the webhook with one of {', '.join(allowed)}.")
            response.headers["Allow"] = ", ".join(allowed)
            return response
        case Decided(outcome, settings):
            response = outcome_response(outcome, settings)
            # Some providers take no other status for a success.
            return replace(response, status=200) if isinstance(outcome, Accepted) else response
        case NoSuchAddress() | Paused() | TooManyHops():
            return _refused(result)


def submission_response(received: ReceivedSubmission) -> Response:
    """The answer without the headers for the page that sent the form."""
    result = received.result
    match result:
        case Decided(Accepted() as accepted, settings):
            return _success(received, accepted, settings)
        case Trapped(settings, event_id):
            return _success(received, Accepted(event_id, EventStatus.RECEIVED), settings)
        case Decided(outcome, settings):
            return outcome_response(outcome, settings)
        case OriginNotAllowed():
            return _origin_not_allowed()
        case WrongContentType(detail):
            return problem(UNSUPPORTED_TYPE, detail)
        case OverLimit(reason, seconds):
            response = problem(TOO_MANY_SUBMISSIONS, reason, retryAfterSeconds=seconds)
            response.headers["Retry-After"] = str(seconds)
            return response
        case NoSuchAddress() | Paused() | TooManyHops():
            return _refused(result)


def unknown_address_response() -> Response:
    return _refused(NoSuchAddress())


def preflight_response(form: Form, origin: str | None) -> Response:
    """The answer to a browser that asks whether a page may send the form."""
    if not is_allowed_origin(form, origin):
        return _origin_not_allowed()
    return Response(NO_CONTENT, dict(PREFLIGHT_HEADERS), {})


def _success(received: ReceivedSubmission, accepted: Accepted, settings: EventSettings) -> Response:
    response = outcome_response(accepted, settings)
    url = redirect_for(received.form) if received.form and received.from_page else None
    if url is None:
        return response
    return replace(response, status=_SEE_OTHER, headers={**response.headers, "Location": url})


def _origin_not_allowed() -> Response:
    return problem(
        ORIGIN_NOT_ALLOWED,
        "The form takes submissions from pages of its own origins only. Add the page's origin (scheme, host and port) "
        "to the form's origins.",
    )


def _refused(result: NoSuchAddress | Paused | TooManyHops) -> Response:
    match result:
        case NoSuchAddress():
            return problem(UNKNOWN_SOURCE, "There is no source or form with this id. Check the URL.")
        case Paused(what):
            return problem(SOURCE_PAUSED, f"The {what} is paused, so nothing was accepted. Resume it and send again.")
        case TooManyHops(hops, limit):
            return problem(
                TOO_MANY_HOPS,
                f"The request is hop {hops} of an event, and {limit} are the limit. Two or more connections deliver "
                "to each other's sources: remove one of them.",
            )
