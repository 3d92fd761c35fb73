"""The payload that a connection is sent: as it was accepted, or as its transform makes it of JSON."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.events.delivery.answers import Unsendable
from orchestrator.events.delivery.transforms import transformed
from orchestrator.events.documents import parse_json

_JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Payload:
    body: bytes
    content_type: str


def payload_to_send(body: bytes, content_type: str, transform: Mapping[str, Any] | None) -> Payload | Unsendable:
    """A payload that is not JSON is sent as it was accepted, whatever the transform says."""
    if transform is None:
        return Payload(body, content_type)
    try:
        # Numbers stay as they were written, whatever Python would make of them: no text holds this mark.
        mark = secrets.token_hex(16)
        payload = parse_json(body, parse_float=mark.__add__, parse_int=mark.__add__)
        changed = transformed(transform, payload)
        # ASCII text, because a text in JSON may hold half a character, which has no other encoding. A payload that is
        # wrapped is one level deeper than the one that was read, so it may be too deep to be written only here.
        written = json.dumps(changed, separators=(",", ":"))
        return Payload(re.sub(f'"{mark}([^"]*)"', r"\1", written).encode(), _JSON)
    except (json.JSONDecodeError, UnicodeDecodeError):
        return Payload(body, content_type)
    except (ValueError, RecursionError):
        # The original payload could hold what the transform has to remove.
        return Unsendable("The payload could not be transformed: it is nested too deeply.")
