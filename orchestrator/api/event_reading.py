"""Reads the requests that send events.

This is separate from :mod:`orchestrator.api.reading`, because the payload is kept byte for byte and never parsed into
objects, bodies may be large, and the function must start fast.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from orchestrator.common.errors import InvalidRequest
from orchestrator.events.content import MAX_BODY_BYTES
from orchestrator.events.event_types import is_event_type
from orchestrator.events.plans import MAX_BATCH

if TYPE_CHECKING:
    from orchestrator.events.incoming import Incoming

MAX_SINGLE_BYTES = MAX_BODY_BYTES + 1024
"""The payload, and what is around it."""
MAX_BATCH_BYTES = 6 * 1024 * 1024
"""Lambda takes no larger requests."""

_IDEMPOTENCY_KEY = re.compile(r"[!-~]{1,255}")
_BEARER = re.compile(r"[Bb]earer +([!-~]+)")
_CORRELATION_ID = re.compile(r"[!-~]{1,128}")


class SentEvent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    event_type: str
    payload: msgspec.Raw


class SentEvents(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    events: list[msgspec.Raw]


_event_decoder = msgspec.json.Decoder(SentEvent)
_events_decoder = msgspec.json.Decoder(SentEvents)


class BodyTooLarge(InvalidRequest):
    """The body is larger than any route takes."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"The body has {size:,} bytes; at most {limit:,} are allowed.")


class NotJson(InvalidRequest):
    """The content type is not JSON."""


def header(event: Mapping[str, Any], name: str) -> str | None:
    """A header, by its name in lower case. API Gateway joins repeated headers by commas."""
    headers = event.get("headers")
    value = headers.get(name) if isinstance(headers, Mapping) else None
    return value if isinstance(value, str) else None


def api_key_of(event: Mapping[str, Any]) -> str | None:
    authorization = _BEARER.fullmatch(header(event, "authorization") or "")
    return authorization[1] if authorization else header(event, "x-api-key")


def idempotency_key_of(event: Mapping[str, Any]) -> str | None:
    key = header(event, "idempotency-key")
    if key is not None and not _IDEMPOTENCY_KEY.fullmatch(key):
        raise InvalidRequest("Idempotency-Key: use 1 to 255 printable ASCII characters without blanks.")
    return key


def correlation_id_of(event: Mapping[str, Any]) -> dict[str, str]:
    """The caller's correlation id, to be kept with the event. An unusable one is left out: it is only a hint."""
    value = header(event, "x-correlation-id")
    return {"correlation_id": value} if value and _CORRELATION_ID.fullmatch(value) else {}


def source_ip_of(event: Mapping[str, Any]) -> str | None:
    value: object = event
    for name in ("requestContext", "http", "sourceIp"):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value[:45] if isinstance(value, str) and value.isascii() else None


def raw_body(event: Mapping[str, Any], limit: int = MAX_BODY_BYTES) -> bytes:
    """The bytes that the caller sent."""
    body = event.get("body")
    if body is None:
        return b""
    if not isinstance(body, str):
        raise InvalidRequest("The body is not text.")
    try:
        data = base64.b64decode(body, validate=True) if event.get("isBase64Encoded") else body.encode()
    except (ValueError, binascii.Error):
        raise InvalidRequest("The body is not valid text.") from None
    if len(data) > limit:
        raise BodyTooLarge(len(data), limit)
    return data


def incoming_of(event: Mapping[str, Any]) -> Incoming:
    """A request to a public address."""
    # Imported here, because only one function has public addresses.
    from orchestrator.events.incoming import Incoming

    headers, method = event.get("headers"), event
    for name in ("requestContext", "http", "method"):
        method = method.get(name, "") if isinstance(method, Mapping) else ""
    given = headers.items() if isinstance(headers, Mapping) else ()
    return Incoming(
        method=method if isinstance(method, str) else "",
        headers={name.lower(): value for name, value in given if isinstance(name, str) and isinstance(value, str)},
        body=raw_body(event),
        source_ip=source_ip_of(event),
    )


def check_is_json(event: Mapping[str, Any]) -> None:
    content_type = (header(event, "content-type") or "application/json").partition(";")[0].strip().lower()
    if content_type != "application/json" and not content_type.endswith("+json"):
        raise NotJson("Send the body as application/json.")


def json_body(event: Mapping[str, Any], limit: int) -> bytes:
    check_is_json(event)
    data = raw_body(event, limit)
    try:
        data.decode()
    except UnicodeDecodeError:
        raise InvalidRequest("The body is not UTF-8.") from None
    return data


def sent_event(data: bytes) -> SentEvent:
    """One event from its JSON text."""
    try:
        event = _event_decoder.decode(data)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"the event: {str(error)[:200]}") from None
    except (msgspec.DecodeError, RecursionError):
        raise InvalidRequest("The body is not JSON.") from None
    if not is_event_type(event.event_type):
        raise InvalidRequest(
            "event_type: use 1 to 128 letters, digits and . _ : / -, beginning with a letter or digit."
        )
    if not bytes(event.payload).startswith(b"{"):
        raise InvalidRequest("payload: is not an object")
    if len(event.payload) > MAX_BODY_BYTES:
        raise BodyTooLarge(len(event.payload), MAX_BODY_BYTES)
    return event


def sent_events(data: bytes) -> Sequence[bytes]:
    """The JSON text of each event of a batch."""
    try:
        batch = _events_decoder.decode(data)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"the batch: {str(error)[:200]}") from None
    except (msgspec.DecodeError, RecursionError):
        raise InvalidRequest("The body is not JSON.") from None
    if not 1 <= len(batch.events) <= MAX_BATCH:
        raise InvalidRequest(f"events: a batch has 1 to {MAX_BATCH} events, not {len(batch.events)}.")
    return [bytes(each) for each in batch.events]
