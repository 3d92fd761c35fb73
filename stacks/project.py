"""Where things are in this repository, and which version it is."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

LAYER = ROOT / "build" / "layer"
"""The functions' dependencies, once ``python -m stacks.build`` has built them."""

CODE = ROOT / "build" / "code"
"""The functions' own code, built in the same way."""

PYTHON_VERSION = "3.13"
"""What the functions run on: a version that the tests run on as well. Code and dependencies are built for it."""

_VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+")


def read_version(file: Path = ROOT / "version.txt") -> str:
    """The version this checkout provisions tenants at."""
    version = file.read_text(encoding="utf-8").strip()
    if not _VERSION.fullmatch(version):
        raise ValueError(f"{file.name} holds {version!r}; a version looks like 1.2.3.")
    return version
