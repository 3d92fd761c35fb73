"""The log of decisions: one line for every request that was not made by the account's root."""

from __future__ import annotations

import json
import threading
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Decision:
    allowed: bool
    principal: str
    action: str
    resource: str
    reason: str = ""
    in_transaction: bool = False
    """True for an item of a DynamoDB transaction. Each item is decided, and billed, separately."""


class DecisionLog:
    """The emulator's process writes the log, and the tests read it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()

    def add(self, decision: Decision) -> None:
        with self._lock, self._path.open("a", encoding="utf-8") as log:
            log.write(json.dumps(asdict(decision)) + "\n")

    def read(self) -> list[Decision]:
        lines = self._path.read_text(encoding="utf-8").splitlines() if self._path.exists() else []
        return [Decision(**json.loads(line)) for line in lines]
