"""The message that a tenant's own queue gets: a JSON object with the names of ``GET /events/{eventId}``.

What deliveries change of an event (status, delivered_at, retry_count) is left out. A message that would be too large
has no payload, and ``payload_omitted`` instead: the consumer gets the event by its id.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.events.delivery.payloads import Payload
from orchestrator.events.delivery.records import Outgoing
from orchestrator.events.delivery.signing import ID_HEADER
from orchestrator.events.delivery.webhook_request import EVENT_TYPE_HEADER
from orchestrator.events.documents import event_fields, json_text
from orchestrator.events.hops import HOPS_HEADER, next_hop

MAX_MESSAGE_BYTES = 180 * 1024
"""The size of the body. Queues of tenants take messages of 256 KB, attributes included."""

_OF_DELIVERIES = ("status", "delivered_at", "retry_count")
# SQS replaces these two characters. In JSON they can only be inside a text, where they may be written as escapes.
_ESCAPED = str.maketrans({"\ufffe": "\\ufffe", "\uffff": "\\uffff"})


@dataclass(frozen=True, slots=True)
class QueueMessage:
    body: str = field(repr=False)
    attributes: Mapping[str, str]
    """Message attributes. They have the names of a webhook's headers."""


def queue_message(outgoing: Outgoing, payload: Payload, headers: Mapping[str, str]) -> QueueMessage:
    """``headers`` came in with the event."""
    event = outgoing.event
    fields = {name: value for name, value in event_fields(event).items() if name not in _OF_DELIVERIES}
    fields["content_type"] = payload.content_type
    whole = fields | ({"headers": dict(headers)} if headers else {})
    text = json_text(payload.body)
    if text is None:
        body = json.dumps(whole | {"payload_base64": base64.b64encode(payload.body).decode()})
    else:
        # The payload stays byte for byte, numbers included.
        body = f'{json.dumps(whole)[:-1]}, "payload": {text.strip().translate(_ESCAPED)}}}'
    if len(body.encode()) > MAX_MESSAGE_BYTES:
        body = json.dumps(fields | {"payload_omitted": True})
    attributes = {
        ID_HEADER: outgoing.delivery_id,
        EVENT_TYPE_HEADER: event.event_type,
        HOPS_HEADER: str(next_hop(event.metadata)),
    }
    return QueueMessage(body, attributes)
