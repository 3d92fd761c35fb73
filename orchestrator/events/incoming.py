"""A request to a public address: its bytes as they came in, and the headers that are kept with an event."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from orchestrator.common.input_limits import is_utf8
from orchestrator.events.hops import HOPS_HEADER

MAX_HEADERS = 64
MAX_HEADER_BYTES = 8 * 1024
"""The size of all kept headers together, names and values."""
MAX_CONTENT_TYPE_CHARACTERS = 200

SECRET_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie", "x-api-key"})
"""These headers are not kept with an event, and give it no name."""
_STORED_ELSEWHERE = frozenset({"content-type", HOPS_HEADER})
_OF_THE_CONNECTION = frozenset(
    {"accept-encoding", "connection", "content-length", "host", "te", "transfer-encoding", "upgrade", "via"}
)
_OF_API_GATEWAY = ("x-amzn-", "x-amz-cf-", "x-forwarded-")


@dataclass(frozen=True, slots=True)
class Incoming:
    """A request. The names of headers are in lower case."""

    method: str
    headers: Mapping[str, str]
    body: bytes
    source_ip: str | None = None

    @property
    def content_type(self) -> str:
        """The header Content-Type, cut to a length that can be stored."""
        given = self.headers.get("content-type", "").strip()
        return given[:MAX_CONTENT_TYPE_CHARACTERS] if given and is_utf8(given) else "application/octet-stream"

    @property
    def media_type(self) -> str:
        """The content type without parameters, in lower case: ``application/json``."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


def kept_headers(headers: Mapping[str, str], *, without: Collection[str] = ()) -> dict[str, str]:
    """The headers that the sender chose, without secrets. A header that does not fit into the limits is left out.

    ``without`` names further headers that hold a secret, in lower case.
    """
    kept: dict[str, str] = {}
    size = 0
    for name, value in headers.items():
        if not _is_kept(name) or name in without or not is_utf8(value):
            continue
        size_with_it = size + len(name.encode()) + len(value.encode())
        if len(kept) < MAX_HEADERS and size_with_it <= MAX_HEADER_BYTES:
            kept[name] = value
            size = size_with_it
    return kept


def _is_kept(name: str) -> bool:
    dropped = name in SECRET_HEADERS or name in _STORED_ELSEWHERE or name in _OF_THE_CONNECTION
    return is_utf8(name) and not dropped and not name.startswith(_OF_API_GATEWAY)


def json_object(body: bytes) -> Mapping[str, object]:
    """The body as a JSON object. Empty if the body is anything else."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
