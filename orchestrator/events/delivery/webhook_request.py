"""The request of a webhook: the payload, signed, with headers that say what it is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.events.delivery.payloads import Payload
from orchestrator.events.delivery.records import Outgoing
from orchestrator.events.delivery.signing import SIGNATURE_HEADER, signature_headers
from orchestrator.events.hops import HOPS_HEADER, next_hop

EVENT_TYPE_HEADER = "berth-event-type"
EVENT_ID_HEADER = "berth-event-id"

_NOT_IN_A_HEADER = re.compile(r"[^\x20-\x7e]")
_UNKNOWN_TYPE = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class WebhookRequest:
    """A POST. The names of headers are in lower case."""

    url: str
    headers: Mapping[str, str]
    body: bytes = field(repr=False)


def webhook_request(
    outgoing: Outgoing, payload: Payload, signing_secrets: Sequence[str], *, version: str
) -> WebhookRequest:
    """The request, which has no signature without a secret. ``version`` is Berth's version."""
    event = outgoing.event
    headers = {
        "user-agent": f"Berth/{version}",
        "accept": "*/*",
        "content-type": _content_type(payload.content_type),
        **signature_headers(outgoing.delivery_id, payload.body, signing_secrets, outgoing.at),
        EVENT_ID_HEADER: event.event_id,
        EVENT_TYPE_HEADER: _NOT_IN_A_HEADER.sub("_", event.event_type),
        HOPS_HEADER: str(next_hop(event.metadata)),
    }
    if not signing_secrets:
        del headers[SIGNATURE_HEADER]
    return WebhookRequest(outgoing.connection.destination.address, headers, payload.body)


def _content_type(given: str) -> str:
    return given if given and not _NOT_IN_A_HEADER.search(given) else _UNKNOWN_TYPE
