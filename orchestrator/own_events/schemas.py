"""``python -m orchestrator.own_events.schemas`` prints the JSON schema of every kind of event."""

from __future__ import annotations

import json
import sys

from orchestrator.own_events.kinds import Kind, schema_of


def main() -> None:
    sys.stdout.write(json.dumps({kind.value: schema_of(kind) for kind in Kind}, indent=2) + "\n")


if __name__ == "__main__":
    main()
