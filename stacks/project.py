"""Paths of this repository."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

LAYER = ROOT / "build" / "layer"
"""The functions' dependencies, once ``python -m stacks.build`` has built them."""

CODE = ROOT / "build" / "code"
"""The functions' code, built by the same command."""

PYTHON_VERSION = "3.13"
"""The Python version of the functions' runtime, which the tests run on, too. Code and dependencies are built for it."""
