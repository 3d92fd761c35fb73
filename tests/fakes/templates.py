"""Templates that an operator could publish."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

EXAMPLE_FILE = Path(__file__).resolve().parents[2] / "docs" / "templates" / "queue-bucket-table.json"
"""The example of the documentation: a queue, a bucket and a table."""
EXAMPLE_VERSION = "2.1.0"


def example_template(version: str = EXAMPLE_VERSION) -> dict[str, Any]:
    text = EXAMPLE_FILE.read_text(encoding="utf-8")
    template: dict[str, Any] = json.loads(text.replace(f'"{EXAMPLE_VERSION}"', f'"{version}"'))
    return template


def queue_template(version: str = EXAMPLE_VERSION) -> dict[str, Any]:
    """A template with a queue only, for which the service role needs no policy of the operator."""
    template = example_template(version)
    for name in ("Files", "Orders"):
        del template["Resources"][name]
    for name in ("FilesBucket", "FilesBucketArn", "OrdersTable"):
        del template["Outputs"][name]
    return template
