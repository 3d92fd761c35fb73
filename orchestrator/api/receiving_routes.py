"""The routes for everybody: webhooks and forms.

They take what a provider or a browser sends, so a request has no wire model but the id in its path. The function checks
the signature of a webhook, and the origin of a form. It does not load this module, which would slow down its start.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from orchestrator.api.event_configuration_models import OfForm, OfSource
from orchestrator.api.event_fields import EventId, EventTime, EventWire
from orchestrator.api.event_problems import (
    INVALID_SIGNATURE,
    ORIGIN_NOT_ALLOWED,
    OVER_PLAN,
    SOURCE_PAUSED,
    TOO_LARGE,
    TOO_MANY_HOPS,
    TOO_MANY_SUBMISSIONS,
    UNKNOWN_SOURCE,
    UNSUPPORTED_TYPE,
    WRONG_METHOD,
)
from orchestrator.api.event_routes import AcceptedEvent
from orchestrator.api.problems import INVALID_REQUEST, NOT_THROUGH_THE_API, TRY_AGAIN
from orchestrator.api.route import ANY_METHOD, Answer, AnyRoute, Audience, Header, Rate, Route

ALWAYS = (INVALID_REQUEST, UNKNOWN_SOURCE, TOO_MANY_HOPS, SOURCE_PAUSED, TOO_LARGE, NOT_THROUGH_THE_API, TRY_AGAIN)

_ALLOW_ORIGIN = Header(
    "Access-Control-Allow-Origin",
    "The origin of the page, if the page may read the answer.",
    {"type": "string"},
    required=False,
)
_ALLOW_METHODS = Header("Access-Control-Allow-Methods", "The methods that the page may use.", {"type": "string"})
_REDIRECT = Header("Location", "The form's redirect_url.", {"type": "string", "format": "uri"})


class ReceivedWebhook(EventWire, frozen=True, kw_only=True):
    """The webhook is kept, or a provider's question about the address is answered."""

    event_id: EventId | UnsetType = UNSET
    status: (
        Annotated[str, Meta(description="received or undelivered; pong or listening if there is no event.")] | UnsetType
    ) = UNSET
    timestamp: EventTime | UnsetType = UNSET
    repeated: Annotated[bool, Meta(description="True if the webhook was kept before.")] | UnsetType = UNSET
    challenge: Annotated[str, Meta(description="The text by which Slack checks the address.")] | UnsetType = UNSET


RECEIVE_WEBHOOK: Route[OfSource, ReceivedWebhook] = Route(
    name="receiveWebhook",
    method=ANY_METHOD,
    path="/hooks/{sourceId}",
    audience=Audience.PUBLIC,
    rate=Rate.SUBMISSIONS,
    summary="Send a webhook to a source",
    description="The address that a provider is given. The signature in the headers decides, as the source's provider "
    "defines it. PUT, PATCH and DELETE are taken like POST. GET and HEAD say that the address is listening.",
    request=OfSource,
    bodies=("*/*",),
    answers=(Answer(200, ReceivedWebhook, "The webhook is kept."),),
    problems=(*ALWAYS, INVALID_SIGNATURE, WRONG_METHOD, OVER_PLAN),
)
SUBMIT_FORM: Route[OfForm, AcceptedEvent] = Route(
    name="submitForm",
    method="POST",
    path="/forms/{formId}",
    audience=Audience.PUBLIC,
    rate=Rate.SUBMISSIONS,
    summary="Submit a form",
    description="The address that a form on a web page is sent to. A submission from a page is redirected, if the form "
    "has a redirect_url.",
    request=OfForm,
    bodies=("application/json", "application/x-www-form-urlencoded", "multipart/form-data"),
    answers=(
        Answer(202, AcceptedEvent, "The submission is kept.", headers=(_ALLOW_ORIGIN,)),
        Answer(303, AcceptedEvent, "The submission is kept. The browser goes to this page.", headers=(_REDIRECT,)),
    ),
    problems=(*ALWAYS, ORIGIN_NOT_ALLOWED, UNSUPPORTED_TYPE, OVER_PLAN, TOO_MANY_SUBMISSIONS),
)
ASK_TO_SUBMIT_FORM: Route[OfForm, None] = Route(
    name="askToSubmitForm",
    method="OPTIONS",
    path="/forms/{formId}",
    audience=Audience.PUBLIC,
    rate=Rate.SUBMISSIONS,
    summary="Ask whether a page may submit a form",
    description="A browser asks this before a script of another origin sends JSON (CORS).",
    request=OfForm,
    answers=(Answer(204, None, "The page may submit the form.", headers=(_ALLOW_ORIGIN, _ALLOW_METHODS)),),
    problems=(UNKNOWN_SOURCE, ORIGIN_NOT_ALLOWED, NOT_THROUGH_THE_API, TRY_AGAIN),
)

ROUTES: tuple[AnyRoute, ...] = (RECEIVE_WEBHOOK, SUBMIT_FORM, ASK_TO_SUBMIT_FORM)
