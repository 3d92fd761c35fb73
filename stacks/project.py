"""The paths and the version of this repository."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

LAYER = ROOT / "build" / "layer"
"""The functions' dependencies, once ``python -m stacks.build`` has built them."""

CODE = ROOT / "build" / "code"
"""The functions' code, built by the same command."""

PYTHON_VERSION = "3.13"
"""The Python version of the functions' runtime, which the tests run on, too. Code and dependencies are built for it."""

_VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+")


def read_version(file: Path = ROOT / "version.txt") -> str:
    """The version of this checkout, at which it provisions tenants."""
    version = file.read_text(encoding="utf-8").strip()
    if not _VERSION.fullmatch(version):
        raise ValueError(f"{file.name} contains {version!r}, which is not a version like 1.2.3.")
    return version
