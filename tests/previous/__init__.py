"""The release before this one: its sources, and what its machines give to its functions.

An execution that is running when Berth is deployed goes on in the machine that it began in, with the new functions.
``python -m tests.previous REVISION`` writes both files anew, when a version has been released. There are none before
0.10.0, the first release that is upgraded: until then, the tests record today's.
"""

from __future__ import annotations

import io
import json
import lzma
import tarfile
from pathlib import Path
from typing import Any, TypedDict

FOLDER = Path(__file__).parent
PAYLOADS = FOLDER / "payloads.json"
SOURCES = FOLDER / "sources.tar.xz"


class Payload(TypedDict):
    state: str
    payload: dict[str, Any]


def read_payloads(file: Path = PAYLOADS) -> list[Payload]:
    """One of each shape, by the name of the state that gives it to its function."""
    found: list[Payload] = json.loads(file.read_text(encoding="utf-8"))
    return found


def write_payloads(payloads: list[Payload], file: Path = PAYLOADS) -> None:
    file.write_text(json.dumps(payloads, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def pack(archive: bytes) -> bytes:
    """The sources of a release as they are kept, from an archive of them."""
    return lzma.compress(archive, preset=9 | lzma.PRESET_EXTREME)


def unpack(sources: bytes, folder: Path) -> Path:
    """The sources of the control plane, from which it can be deployed."""
    with tarfile.open(fileobj=io.BytesIO(sources)) as packed:
        packed.extractall(folder, filter="data")
    return folder
