"""The version of this command line."""

from __future__ import annotations

from pathlib import Path

FILE = Path(__file__).resolve().parents[2] / "version.txt"
"""In the checkout and in the wheel, this file is beside the folder ``orchestrator``.

The metadata of an editable installation has the version of the day when it was installed, which may be another one.
"""


def own_version() -> str:
    return FILE.read_text(encoding="utf-8").strip()
