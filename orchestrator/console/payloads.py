"""Payloads of events as pages show them: any bytes, up to a maximum that a page can show."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.cli.api import Document
from orchestrator.cli.escaping import escaped
from orchestrator.cli.event_view import payload_bytes, payload_text

MAX_CHARACTERS = 50_000
MAX_BYTES = 2_048
"""Bytes of a payload that is not text."""
_PER_LINE = 16


@dataclass(frozen=True, slots=True)
class Payload:
    shown: str
    size: int
    unit: str
    """The unit of the size: characters, or bytes."""
    cut: bool
    """True if the payload goes on."""


def payload_of(event: Document, *, most: int = MAX_CHARACTERS) -> Payload | None:
    """The beginning of the payload; ``None`` if a list has left it out.

    Unprintable characters are escaped, as the command line does it: among them are those that change the direction of
    what follows.
    """
    if "payload" not in event and "payload_base64" not in event:
        return None
    text = payload_text(event)
    if text is not None:
        return Payload(escaped(text[:most]), len(text), "characters", len(text) > most)
    data = payload_bytes(event)
    limit = min(MAX_BYTES, most)
    return Payload(_dump(data[:limit]), len(data), "bytes", len(data) > limit)


def _dump(data: bytes) -> str:
    """Bytes as most programs show them: the offset, the bytes, and the characters that are ASCII."""
    lines = []
    for offset in range(0, len(data), _PER_LINE):
        part = data[offset : offset + _PER_LINE]
        characters = "".join(chr(each) if 0x20 <= each < 0x7F else "." for each in part)
        lines.append(f"{offset:06x}  {part.hex(' '):<{_PER_LINE * 3}} {characters}")
    return "\n".join(lines)
