"""The release before this one: its sources, and what its machines give to its functions.

An execution that is running when Berth is deployed goes on in the machine that it began in, with the new functions.
``python -m tests.previous REVISION`` writes both files anew, when a version has been released.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any, TypedDict

FOLDER = Path(__file__).parent
PAYLOADS = FOLDER / "payloads.json"
SOURCES = FOLDER / "sources.tar.xz"


class Payload(TypedDict):
    state: str
    payload: dict[str, Any]


def payloads() -> list[Payload]:
    """One of each shape, by the name of the state that gives it to its function."""
    found: list[Payload] = json.loads(PAYLOADS.read_text(encoding="utf-8"))
    return found


def unpack(folder: Path) -> Path:
    """The sources of the control plane, from which it can be deployed."""
    with tarfile.open(SOURCES) as sources:
        sources.extractall(folder, filter="data")
    return folder
