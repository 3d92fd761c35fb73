"""The mail that tells of an event: plain text, with the payload if it is JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from orchestrator.events.delivery.answers import printable
from orchestrator.events.delivery.payloads import Payload
from orchestrator.events.delivery.records import Outgoing
from orchestrator.events.delivery.signing import ID_HEADER
from orchestrator.events.documents import json_text, parse_json
from orchestrator.events.event_ids import event_timestamp

MAX_PAYLOAD_BYTES = 100 * 1024
TENANT_TAG, EPOCH_TAG, ORIGIN_TAG, CONNECTION_TAG, EVENT_TAG = "tenant", "epoch", "origin", "connection", "event"
_MAX_SUBJECT = 200


@dataclass(frozen=True, slots=True)
class Mail:
    to: str
    subject: str
    text: str = field(repr=False)
    headers: Mapping[str, str]
    tags: Mapping[str, str] = field(default_factory=dict)
    """The mail server repeats the tags when it reports that the mail came back. The receiver does not see them."""


def mail(outgoing: Outgoing, payload: Payload) -> Mail:
    event, tenant = outgoing.event, outgoing.event.life.tenant
    lines = [
        f"Tenant {tenant} has an event.",
        "",
        f"type:     {printable(event.event_type)}",
        f"id:       {event.event_id}",
        f"received: {event_timestamp(event.received_at)}",
        f"from:     {event.source_id or event.form_id or 'POST /events'}",
        "",
        _payload_text(payload),
    ]
    return Mail(
        to=outgoing.connection.destination.address,
        subject=printable(f"{event.event_type} ({tenant})", _MAX_SUBJECT),
        text="\n".join(lines) + "\n",
        # Automatic replies would come back to the sender's address.
        headers={ID_HEADER: outgoing.delivery_id, "Auto-Submitted": "auto-generated"},
        tags=_tags(outgoing),
    )


def _tags(outgoing: Outgoing) -> Mapping[str, str]:
    """The way back to the connection. SES allows letters, digits, _ and - in tags, and all of these have no others."""
    connection = outgoing.connection
    return {
        TENANT_TAG: connection.life.tenant.value,
        EPOCH_TAG: connection.life.epoch,
        ORIGIN_TAG: connection.origin,
        CONNECTION_TAG: connection.connection_id,
        EVENT_TAG: outgoing.event.event_id,
    }


def _payload_text(payload: Payload) -> str:
    text = json_text(payload.body)
    if text is None:
        size = f"{len(payload.body):,} bytes of {printable(payload.content_type)}"
        return f"The payload is not shown: {size}. Get it by GET /events/{{id}}."
    shown = bytearray()
    for part in _pretty(text):
        shown += part.encode()
        if len(shown) > MAX_PAYLOAD_BYTES:
            cut = shown[:MAX_PAYLOAD_BYTES].decode(errors="ignore")
            return f"{cut}\n\nThe payload is longer than this mail. Get it by GET /events/{{id}}."
    return shown.decode()


def _pretty(text: str) -> Iterator[str]:
    """The payload with indentation, part by part: indentation makes a deeply nested payload many times longer."""
    return json.JSONEncoder(indent=2, ensure_ascii=False).iterencode(parse_json(text))
