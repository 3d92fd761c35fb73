"""How an event is shown outside: in answers of the API, and in messages to a tenant's queue."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from orchestrator.events.event_ids import event_timestamp
from orchestrator.events.readable_json import is_readable
from orchestrator.events.records import Event
from orchestrator.events.statuses import UNDELIVERED


def event_fields(event: Event) -> dict[str, Any]:
    """All fields but the content, by the names that the outside knows."""
    return {
        "tenant_id": event.life.tenant.value,
        "event_id": event.event_id,
        "event_type": event.event_type,
        "status": UNDELIVERED if event.in_inbox else event.status.value,
        "timestamp": event_timestamp(event.received_at),
        "delivered_at": event_timestamp(event.delivered_at) if event.delivered_at else None,
        "retry_count": event.retry_count,
        "source_id": event.source_id,
        "form_id": event.form_id,
        "content_type": event.content_type,
        "method": event.method,
        "source_ip": event.source_ip,
        "metadata": dict(event.metadata),
        "ttl": int(event.expires_at.timestamp()),
    }


def json_text(body: bytes) -> str | None:
    """The text of a payload that is JSON, and that most programs can read. ``None`` for any other payload."""
    try:
        text = body.decode()
        value = parse_json(text)
        if "\\ud" in text.lower():
            # An escape may be half a character, which many programs refuse.
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return text if is_readable(body) else None


def parse_json(
    text: str | bytes, *, parse_float: Callable[[str], Any] = float, parse_int: Callable[[str], Any] = int
) -> Any:
    """Raises :class:`json.JSONDecodeError` or :class:`UnicodeDecodeError` for what is not JSON.

    Bytes may begin with a byte order mark, which many programs on Windows write.
    For JSON that Python cannot read, another ``ValueError`` or a ``RecursionError`` is raised.
    """
    return json.loads(text, parse_constant=_refuse, parse_float=parse_float, parse_int=parse_int)


def _refuse(constant: str) -> None:
    """Python reads NaN and Infinity, which are not JSON."""
    raise json.JSONDecodeError("not JSON", constant, 0)
