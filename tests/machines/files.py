"""The workflows' files."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tests.machines import asl

FOLDER = Path(__file__).parents[2] / "statemachines"
SUFFIX = ".asl.json"

MACHINES = tuple(sorted(file.name.removesuffix(SUFFIX) for file in FOLDER.glob(f"*{SUFFIX}")))
"""Each by its file's stem."""

OPERATIONS = ("create_tenant", "update_tenant", "delete_tenant")
"""Those that bring a tenant's stack about."""


@cache
def machine(stem: str) -> asl.Machine:
    """As the file has it. Shared by all who ask: not to be changed."""
    return asl.parse((FOLDER / f"{stem}{SUFFIX}").read_text(encoding="utf-8"))
