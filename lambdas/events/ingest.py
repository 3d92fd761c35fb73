"""POST /events and POST /events/batch: takes the events of a tenant's producers.

The function reads its requests itself, because it must start fast and keep payloads byte for byte.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from lambdas.event_runtime import use_cases
from lambdas.observing import logger
from orchestrator.api.event_answers import (
    ACCEPTED,
    batch_response,
    busy_response,
    denied_response,
    outcome_response,
    refused_response,
)
from orchestrator.api.event_reading import (
    MAX_BATCH_BYTES,
    MAX_SINGLE_BYTES,
    api_key_of,
    correlation_id_of,
    idempotency_key_of,
    json_body,
    sent_event,
    sent_events,
    source_ip_of,
)
from orchestrator.api.responses import Response, try_again_later, unknown_caller
from orchestrator.common.errors import InvalidRequest, Throttled, Unsettled
from orchestrator.events.accepting import NewEvent
from orchestrator.events.authorising import Denied, Grant, Standing
from orchestrator.events.records import Content, Scope

# Built at import, so that the first call does not wait for the client.
authorising, accepting = use_cases.authorising, use_cases.accepting


def handler(event: object, _context: object) -> dict[str, Any]:
    request = event if isinstance(event, dict) else {}
    grant: Grant | Denied | None = None
    try:
        if use_cases.api_gateway.sent(request):
            grant = authorising.by_key(api_key_of(request), Scope.WRITE)
            response = _respond(request, grant)
        else:
            response = unknown_caller()
    except InvalidRequest as error:
        response = refused_response(error)
    except (Throttled, Unsettled) as error:
        response = _busy(error)
    return _logged(response, grant if isinstance(grant, Grant) else None)


def _respond(request: Mapping[str, Any], grant: Grant | Denied) -> Response:
    if isinstance(grant, Denied):
        return denied_response(grant, Scope.WRITE)
    key = idempotency_key_of(request)
    if request.get("routeKey") == "POST /events/batch":
        return _accept_batch(request, grant.standing, key)
    return _accept(request, grant.standing, json_body(request, MAX_SINGLE_BYTES), key)


def _accept_batch(request: Mapping[str, Any], standing: Standing, key: str | None) -> Response:
    texts = sent_events(json_body(request, MAX_BATCH_BYTES))
    responses: list[Response] = []
    for number, text in enumerate(texts):
        # No key of a single event has a blank, so it cannot be taken for this one.
        accept = partial(_accept, request, standing, text, key and f"{key} {number}")
        try:
            responses.append(_each(accept))
        except Exception:
            if not any(each.status == ACCEPTED for each in responses):
                raise
            # The caller must learn which events are kept, or would send them again. The others are not tried: what
            # failed would take its time again.
            logger.exception("Batch ended early", extra={"accepted_before": number})
            failed = try_again_later("Berth failed at this event of the batch, or at one before it. Send it again.")
            responses += [failed] * (len(texts) - number)
            break
    return batch_response(responses, per_second=standing.settings.limits.events_per_second)


def _each(accept: Callable[[], Response]) -> Response:
    """One event of a batch: what is wrong with it concerns no other."""
    try:
        return accept()
    except InvalidRequest as error:
        return refused_response(error)
    except (Throttled, Unsettled) as error:
        return _busy(error)


def _busy(error: Throttled | Unsettled) -> Response:
    logger.warning("Busy", extra={"reason": str(error)})
    return busy_response(error)


def _accept(request: Mapping[str, Any], standing: Standing, text: bytes, key: str | None) -> Response:
    sent = sent_event(text)
    new = NewEvent(
        sent.event_type,
        Content(bytes(sent.payload)),
        source_ip=source_ip_of(request),
        metadata=correlation_id_of(request),
        repetition_key=key,
    )
    return outcome_response(accepting.accept(standing, new), standing.settings)


def _logged(response: Response, grant: Grant | None) -> dict[str, Any]:
    # Neither the headers nor the body are logged: they hold the key and the payload.
    logger.info(
        "Events sent",
        extra={
            "tenant_id": grant.standing.settings.life.tenant.value if grant else None,
            "key_id": grant.key.key_id if grant else None,
            "event_id": response.body.get("event_id"),
            "accepted": response.body.get("accepted"),
            "refused": response.body.get("refused"),
            "status": response.status,
        },
    )
    return response.as_proxy_result()
