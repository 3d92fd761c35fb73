"""The version of this command line."""

from __future__ import annotations

from pathlib import Path

FILE = Path(__file__).resolve().parents[2] / "version.txt"
"""In the checkout and in the wheel, this file is beside the folder ``orchestrator``.

The metadata of an editable installation has the version of the day when it was installed, which may be another one.
"""


def own_version() -> str:
    return FILE.read_text(encoding="utf-8").strip()


def advice_about(deployed: str | None) -> str | None:
    """The advice if the version that is deployed is not that of this command line."""
    ours = own_version()
    if deployed == ours:
        return None
    return f"This command line has version {ours}: install the other version, or deploy this one."
