"""How the content of an event is stored: as it is, compressed above 1 KB, and in S3 above 4 KB.

An update of a row costs its whole size, and every delivery is an update, so rows are kept small. Headers are packed
with the body, because they compress well together.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass

from orchestrator.events.plans import LIFETIMES_DAYS, Plan, time_to_live
from orchestrator.events.records import Content, TenantEpoch

MAX_BODY_BYTES = 256 * 1024
MAX_INLINE_BYTES = 4 * 1024
_COMPRESSED_ABOVE_BYTES = 1024
_MAX_UNPACKED_BYTES = 2 * MAX_BODY_BYTES
_LENGTH_BYTES = 4


MAX_PAGE_BYTES = 1_250_000
"""The contents in one answer, together. Lambda answers with 6 MB at most, and text may become four times as long: a
quotation mark in a header is escaped as JSON, and again in the answer of the function.
"""


def size_of(content: Content | None) -> int:
    """The bytes of a content in an answer, before anything is escaped."""
    if content is None:
        return 0
    return len(content.body) + sum(len(name.encode()) + len(value.encode()) for name, value in content.headers.items())


@dataclass(frozen=True, slots=True)
class Packed:
    data: bytes
    packing: str
    """``h``: the data begins with headers. ``z``: the data is compressed. Both, or neither, in this order."""

    @property
    def is_inline(self) -> bool:
        return len(self.data) <= MAX_INLINE_BYTES


def lifetime_prefix(days: int) -> str:
    """The beginning of the keys of all objects that live so long. The bucket expires them by it."""
    return f"{days}d/"


def content_prefixes(life: TenantEpoch) -> list[str]:
    """The beginnings of the keys of all objects of a tenant's life: its plan may have changed in between."""
    # Without the slash at the end, a prefix would also be that of a longer epoch.
    return [f"{lifetime_prefix(days)}{life.tenant}/{life.epoch}/" for days in LIFETIMES_DAYS]


def content_key(life: TenantEpoch, plan: Plan, event_id: str, packed: Packed) -> str:
    """The key of an event's object, which expires with the row. It says how the object is packed."""
    lifetime = lifetime_prefix(time_to_live(plan).days)
    return f"{lifetime}{life.tenant}/{life.epoch}/{event_id}-{packed.packing or 'raw'}"


def pack(content: Content) -> Packed:
    data, packing = content.body, ""
    if content.headers:
        headers = json.dumps(dict(content.headers), separators=(",", ":")).encode()
        data, packing = len(headers).to_bytes(_LENGTH_BYTES) + headers + data, "h"
    if len(data) > _COMPRESSED_ABOVE_BYTES and len(smaller := zlib.compress(data)) < len(data):
        data, packing = smaller, packing + "z"
    return Packed(data, packing)


def unpack(packed: Packed) -> Content:
    data = packed.data
    if "z" in packed.packing:
        data = zlib.decompressobj().decompress(data, _MAX_UNPACKED_BYTES)
    if "h" not in packed.packing:
        return Content(data)
    end = _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES])
    return Content(data[end:], json.loads(data[_LENGTH_BYTES:end]))
