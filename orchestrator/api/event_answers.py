"""HTTP answers to requests that send events."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from orchestrator.api.event_problems import (
    DIFFERENT_CONTENT,
    MISSING_SCOPE,
    OVER_PLAN,
    TOO_LARGE,
    UNKNOWN_KEY,
    UNSUPPORTED_TYPE,
)
from orchestrator.api.event_reading import BodyTooLarge, NotJson
from orchestrator.api.problems import INVALID_REQUEST
from orchestrator.api.responses import Response, json_response, problem, try_again_later
from orchestrator.common.errors import InvalidRequest, Throttled, Unsettled
from orchestrator.events.accepting import Accepted, DifferentContent, Outcome, TooLarge
from orchestrator.events.authorising import Denied
from orchestrator.events.event_ids import event_timestamp, received_at
from orchestrator.events.quotas import OverLimit
from orchestrator.events.records import EventSettings, Scope
from orchestrator.events.statuses import UNDELIVERED

ACCEPTED = 202

_BUSY = "There are too many requests at this moment. Send the request again."


def outcome_response(outcome: Outcome, settings: EventSettings) -> Response:
    match outcome:
        case Accepted(event_id, status, repeated):
            body: dict[str, object] = {
                "event_id": event_id,
                "status": UNDELIVERED if settings.inbox else status.value,
                "timestamp": event_timestamp(received_at(event_id)),
                "repeated": repeated,
            }
            return json_response(ACCEPTED, body)
        case DifferentContent(event_id):
            return problem(
                DIFFERENT_CONTENT,
                f"The Idempotency-Key was used before, for event {event_id} with another content. Use a new key for a "
                "new event. If the first request was not answered with 202, repeat it as it was.",
            )
        case TooLarge(size, limit):
            return problem(TOO_LARGE, f"The body has {size:,} bytes; at most {limit:,} are allowed.")
        case OverLimit():
            return over_limit_response(outcome)


def over_limit_response(over: OverLimit) -> Response:
    response = problem(OVER_PLAN, over.reason, retryAfterSeconds=over.retry_after_seconds)
    response.headers["Retry-After"] = str(over.retry_after_seconds)
    return response


def denied_response(denied: Denied, scope: Scope) -> Response:
    if denied is Denied.MISSING_SCOPE:
        return problem(MISSING_SCOPE, f"The API key does not have the scope {scope}. Use a key that has it.")
    response = problem(UNKNOWN_KEY, "The API key is missing, unknown, expired or revoked.")
    response.headers["WWW-Authenticate"] = "Bearer"
    return response


def busy_response(error: Throttled | Unsettled) -> Response:
    """The answer to tenants and strangers. AWS's own words may name tables and the account, and are for the log."""
    return try_again_later(_BUSY if isinstance(error, Throttled) else str(error))


def refused_response(error: InvalidRequest) -> Response:
    """A request whose body cannot be read as events."""
    match error:
        case BodyTooLarge():
            return problem(TOO_LARGE, str(error))
        case NotJson():
            return problem(UNSUPPORTED_TYPE, str(error))
        case _:
            return problem(INVALID_REQUEST, str(error))


def batch_response(responses: Sequence[Response], *, per_second: int) -> Response:
    """``per_second`` is the tenant's rate: after Retry-After, there is room for all events that were refused."""
    accepted = [response.status == ACCEPTED for response in responses]
    response = json_response(
        ACCEPTED,
        {
            "accepted": sum(accepted),
            "refused": len(accepted) - sum(accepted),
            "results": [
                {"status_code": each.status, ("event" if is_accepted else "problem"): each.body}
                for each, is_accepted in zip(responses, accepted, strict=True)
            ],
        },
    )
    waits = [int(each.headers["Retry-After"]) for each in responses if "Retry-After" in each.headers]
    if waits:
        response.headers["Retry-After"] = str(max(*waits, ceil(len(waits) / per_second)))
    return response
