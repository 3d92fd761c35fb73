"""The document docs/own-events.json: the JSON schema of every kind of event. ``make openapi`` writes it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from orchestrator.own_events.kinds import Kind, schema_of

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "own-events.json"


def written() -> str:
    """The text of the document."""
    return json.dumps({kind.value: schema_of(kind) for kind in Kind}, indent=2) + "\n"


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.exit("usage: python -m orchestrator.own_events.schemas")
    DOCUMENT.write_text(written(), encoding="utf-8")
