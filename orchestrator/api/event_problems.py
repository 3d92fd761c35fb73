"""The problems that the routes of the event plane answer with. This module loads no wire models."""

from __future__ import annotations

from dataclasses import replace

from orchestrator.api.problems import UNKNOWN_TENANT, Problem
from orchestrator.events.refusals import EventRefusal

UNKNOWN_KEY = Problem(
    "unknown-key",
    401,
    "The API key is not valid",
    "There is no API key in the request, or the key is unknown, expired or revoked. Send a valid key in the header "
    "`Authorization: Bearer ...` or `X-Api-Key`.",
)
INVALID_SIGNATURE = Problem(
    "invalid-signature",
    401,
    "The signature is not valid",
    "The signature of the webhook is missing, wrong or too old. Compare the secret of the source with the provider's.",
)
MISSING_SCOPE = Problem(
    "missing-scope",
    403,
    "The API key lacks a scope",
    "The API key is valid, but does not have the scope that the route needs.",
)
UNKNOWN_EVENT = Problem(
    EventRefusal.UNKNOWN_EVENT,
    404,
    "There is no such event",
    "The tenant has no event with this id, or the event has expired.",
)
UNKNOWN_SOURCE = Problem(
    "unknown-source", 404, "There is no such address", "There is no source or form with this id, or its tenant is gone."
)
SOURCE_PAUSED = Problem(
    "source-paused", 409, "The address is paused", "The source or the form is paused. Nothing was accepted."
)
TOO_MANY_HOPS = Problem(
    "too-many-hops",
    409,
    "The event runs in circles",
    "The event came through deliveries of Berth four times before. The fifth is not accepted, because it is a loop.",
)
WRONG_METHOD = Problem(
    "method-not-allowed", 405, "The method is not allowed", "The address takes no requests with this method."
)
ORIGIN_NOT_ALLOWED = Problem(
    "origin-not-allowed", 403, "The page may not send this form", "The page is at none of the form's origins."
)
TOO_MANY_SUBMISSIONS = Problem(
    "too-many-submissions",
    429,
    "The form's limit is reached",
    "The form has had its submissions of this minute. Nothing was accepted.",
    required=("retryAfterSeconds",),
    retry=True,
)
DIFFERENT_CONTENT = Problem(
    "different-content",
    409,
    "The idempotency key was used before",
    "The Idempotency-Key was used for another event in the last 24 hours. Nothing was accepted now.",
)
INBOX_OFF = Problem("inbox-off", 409, "The inbox is off", "The tenant's inbox is switched off in its event settings.")
TOO_LARGE = Problem("too-large", 413, "The event is too large", "The body is larger than 256 KB. Nothing was accepted.")
UNSUPPORTED_TYPE = Problem(
    "unsupported-media-type",
    415,
    "The content type is not supported",
    "The route does not accept bodies of this content type.",
)
OVER_PLAN = Problem(
    "over-plan",
    429,
    "The plan's limit is reached",
    "The tenant has reached the number of events per second or per month, or of requests per second, of its plan. "
    "Nothing was done.",
    required=("retryAfterSeconds",),
    retry=True,
)

# Configuration

NO_SUCH_TENANT = replace(
    UNKNOWN_TENANT,
    description="The tenant does not exist, is still being created, or is being deleted.",
)
NO_SETTINGS = Problem(
    EventRefusal.NO_SETTINGS,
    404,
    "The tenant has no event settings",
    "The tenant accepts no events, because an operator has not made its event settings yet.",
    required=("tenantId",),
)
NO_SUCH_KEY = Problem(
    EventRefusal.NO_SUCH_KEY,
    404,
    "There is no such API key",
    "The tenant has no API key with this id.",
    required=("tenantId",),
)
KEY_NOT_ACTIVE = Problem(
    EventRefusal.KEY_NOT_ACTIVE,
    409,
    "The API key does not work any more",
    "The API key is revoked or has expired, so it cannot be rotated. Create a new key.",
    required=("tenantId",),
)
NO_SUCH_SOURCE = Problem(
    EventRefusal.NO_SUCH_SOURCE,
    404,
    "There is no such source",
    "The tenant has no source with this id.",
    required=("tenantId",),
)
NO_SUCH_FORM = Problem(
    EventRefusal.NO_SUCH_FORM,
    404,
    "There is no such form",
    "The tenant has no form with this id.",
    required=("tenantId",),
)
NO_SUCH_CONNECTION = Problem(
    EventRefusal.NO_SUCH_CONNECTION,
    404,
    "There is no such connection",
    "The tenant has no connection with this id.",
    required=("tenantId",),
)
NOT_SIGNED = Problem(
    EventRefusal.NOT_SIGNED,
    409,
    "The connection has no secret",
    "Only webhooks are signed, so only their secrets can be rotated.",
    required=("tenantId",),
)
HAS_CONNECTIONS = Problem(
    EventRefusal.HAS_CONNECTIONS,
    409,
    "There are connections",
    "The source or form has connections, whose deliveries would be lost. Delete the connections first.",
    required=("tenantId",),
)
LIMIT_REACHED = Problem(
    EventRefusal.LIMIT_REACHED,
    409,
    "The tenant has as many as allowed",
    "The tenant has the largest allowed number of API keys, sources, forms, connections or replays, or has tested its "
    "connections too often. Remove one that nobody uses, or try again later.",
    required=("tenantId",),
)

# Deliveries

EXPIRES_SOON = Problem(
    EventRefusal.EXPIRES_SOON,
    409,
    "The event expires soon",
    "The event is deleted within the hour, so it is not sent again. Send its payload as a new event.",
    required=("tenantId",),
)
NOTHING_TO_RESEND = Problem(
    EventRefusal.NOTHING_TO_RESEND,
    409,
    "There is nothing to send",
    "No delivery of the event has failed, or there is no connection that could take it. Nothing was sent.",
    required=("tenantId",),
)
CONNECTION_DISABLED = Problem(
    EventRefusal.CONNECTION_DISABLED,
    409,
    "The connection is disabled",
    "Nothing is sent to a connection that is disabled. Resume it first; one that sends mail is resumed by an operator.",
    required=("tenantId",),
)
NO_SUCH_REPLAY = Problem(
    EventRefusal.NO_SUCH_REPLAY,
    404,
    "There is no such replay",
    "The tenant has no replay with this id, or it was made more than 90 days ago.",
    required=("tenantId",),
)
REPLAY_ENDED = Problem(
    EventRefusal.REPLAY_ENDED,
    409,
    "The replay has ended",
    "The replay is finished or cancelled, so it cannot go on. Start another one.",
    required=("tenantId",),
)
