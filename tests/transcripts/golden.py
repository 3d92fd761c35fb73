"""Compares what the product says today with the files of this folder, and writes them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path

FOLDER = Path(__file__).parent
WRITE = "python -m tests.transcripts --write"


def difference(name: str, current: str) -> str:
    """The difference between the file and the current text, with the command that writes the file. Empty if equal."""
    file = FOLDER / name
    stored = file.read_text(encoding="utf-8") if file.exists() else ""
    if stored == current:
        return ""
    lines = difflib.unified_diff(
        stored.splitlines(), current.splitlines(), f"tests/transcripts/{name}", "what the product says now", lineterm=""
    )
    return "\n".join(["", *lines, "", f"If this change is intended, write the files again: {WRITE}"])


def leftovers(names: Iterable[str], below: str = ".") -> list[str]:
    """The stored files that are not among the names."""
    stored = {file.relative_to(FOLDER).as_posix() for file in (FOLDER / below).rglob("*.txt")}
    return sorted(stored - set(names))


def write(name: str, current: str) -> bool:
    """Write the file if it differs, and return whether it was written."""
    if not difference(name, current):
        return False
    file = FOLDER / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(current, encoding="utf-8")
    return True


def remove(name: str) -> None:
    (FOLDER / name).unlink()
