"""The delivery id and the event type of a webhook, as each provider names them.

| provider             | delivery id                | event type                                   |
|----------------------|----------------------------|----------------------------------------------|
| stripe               | `id` in the body           | `type` in the body                           |
| github               | X-GitHub-Delivery          | X-GitHub-Event                               |
| shopify              | X-Shopify-Webhook-Id       | X-Shopify-Topic                              |
| slack                | `event_id` in the body     | `event.type`, else `type` in the body        |
| standard-webhooks    | webhook-id                 | `type` in the body                           |
| hmac, shared-secret, | the source's               | the source's `event_type_header`, else       |
| none                 | `delivery_id_header`       | `type` in the body                           |

A webhook without a delivery id is always a new event. A webhook without a type has the type ``webhook``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from orchestrator.common.input_limits import is_utf8
from orchestrator.events.incoming import Incoming, json_object
from orchestrator.events.records import Provider, Source
from orchestrator.events.signatures import DELIVERY_ID_HEADER, EVENT_TYPE_HEADER

UNNAMED_TYPE = "webhook"
MAX_TYPE_CHARACTERS = 128
MAX_DELIVERY_ID_CHARACTERS = 500

_NOT_IN_A_TYPE = re.compile(r"[^A-Za-z0-9._:/-]+")
_FORM = "application/x-www-form-urlencoded"
_MAX_SLACK_FIELDS = 100


@dataclass(frozen=True, slots=True)
class Announcement:
    """The names that a provider gave to a webhook."""

    delivery_id: str | None
    event_type: str


def announced(source: Source, incoming: Incoming) -> Announcement:
    delivery_id, event_type = _names(source, incoming)
    return Announcement(_usable_id(delivery_id), usable_type(event_type))


def usable_type(given: object) -> str:
    """An event type that can be stored: other characters, such as a #, become ``_``."""
    text = _NOT_IN_A_TYPE.sub("_", given) if isinstance(given, str) else ""
    # A type begins with a letter or a digit.
    return text.lstrip("._:/-")[:MAX_TYPE_CHARACTERS] or UNNAMED_TYPE


def _usable_id(given: object) -> str | None:
    if not isinstance(given, str) or not given.strip() or not is_utf8(given):
        return None
    return given if len(given) <= MAX_DELIVERY_ID_CHARACTERS else None


def _names(source: Source, incoming: Incoming) -> tuple[object, object]:
    headers = incoming.headers
    match source.provider:
        case Provider.GITHUB:
            return headers.get("x-github-delivery"), headers.get("x-github-event")
        case Provider.SHOPIFY:
            return headers.get("x-shopify-webhook-id"), headers.get("x-shopify-topic")
        case Provider.STRIPE:
            body = json_object(incoming.body)
            return body.get("id"), body.get("type")
        case Provider.SLACK:
            return _slack(incoming)
        case Provider.STANDARD_WEBHOOKS:
            delivery_id = headers.get("webhook-id") or headers.get("svix-id")
            return delivery_id, json_object(incoming.body).get("type")
        case Provider.HMAC | Provider.SHARED_SECRET | Provider.NONE:
            delivery_id = _named_header(source, DELIVERY_ID_HEADER, headers)
            event_type = _named_header(source, EVENT_TYPE_HEADER, headers)
            return delivery_id, event_type or json_object(incoming.body).get("type")


def _named_header(source: Source, field: str, headers: Mapping[str, str]) -> str | None:
    name = source.verification.get(field)
    return headers.get(name.lower()) if name else None


def _slack(incoming: Incoming) -> tuple[object, object]:
    """Slack's Events API sends JSON. Its commands and buttons send forms, which have no delivery id."""
    if incoming.media_type == _FORM:
        return None, _slack_form_type(incoming.body)
    body = json_object(incoming.body)
    event = body.get("event")
    inner = event.get("type") if isinstance(event, dict) else None
    return body.get("event_id"), inner or body.get("type")


def _slack_form_type(body: bytes) -> object:
    try:
        fields = dict(parse_qsl(body.decode(), max_num_fields=_MAX_SLACK_FIELDS))
        if "command" in fields:
            return "slash_command"
        payload = json.loads(fields.get("payload", "null"))
    except (ValueError, RecursionError):
        return None
    return payload.get("type") if isinstance(payload, dict) else None
