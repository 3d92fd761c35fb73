"""Shows events: one per line, and one with its payload. Payloads may hold anything; the consoles escape it."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

from rich.text import Text

from orchestrator.cli import render
from orchestrator.cli.api import Document
from orchestrator.events.statuses import UNDELIVERED


def show_list(events: Sequence[Document]) -> None:
    render.show_line(_line("Received (UTC)", "Event id", Text("Status"), "Type"), "bold")
    for event in events:
        show_line(event)


def show_line(event: Document) -> None:
    """One line per event, however long its type is: a table of this width would break every second type."""
    received = render.moment(event["timestamp"], "%Y-%m-%d %H:%M:%S")
    render.show_line(_line(received, event["event_id"], render.state(event["status"]), event["event_type"]))


def _line(received: str, event_id: str, status: Text, event_type: str) -> Text:
    status.pad_right(len(UNDELIVERED) - len(status))
    return Text(f"{received:19} {event_id:36} ") + status + Text(f" {event_type}")


def show_event(event: Document) -> None:
    render.show_pairs(
        {
            "event id": event["event_id"],
            "tenant": event["tenant_id"],
            "type": event["event_type"],
            "status": render.state(event["status"]),
            "received": render.moment(event["timestamp"], "%Y-%m-%d %H:%M:%S.%f UTC"),
            "delivered": _moment(event["delivered_at"]),
            "source": event["source_id"],
            "form": event["form_id"],
            "sender": event["source_ip"],
            "content": f"{event['method']}, {event['content_type']}",
            "metadata": _pairs(event["metadata"]),
            "headers": _pairs(event.get("headers", {})),
        }
    )
    render.show_line()
    render.show_line(_payload(event))


def payload_bytes(event: Document) -> bytes:
    """The payload of an event that was requested with its payload in base64."""
    return base64.b64decode(event["payload_base64"])


def payload_text(event: Document) -> str | None:
    """The payload as people read it; ``None`` if it is not text."""
    if "payload" in event:
        return json.dumps(event["payload"], indent=2, ensure_ascii=False)
    try:
        return payload_bytes(event).decode()
    except UnicodeDecodeError:
        return None


def _payload(event: Document) -> str:
    text = payload_text(event)
    if text is not None:
        return text
    return f"The payload is not text: {len(payload_bytes(event))} bytes. Write it to a file: --raw > FILE"


def _moment(text: str | None) -> str | None:
    return render.moment(text) if text else None


def _pairs(values: dict[str, Any]) -> str | None:
    return ", ".join(f"{name}={value}" for name, value in values.items()) or None
