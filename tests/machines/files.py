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

ROLLOUT = "rollout"
TURN = "rollout/RunStage"
"""What the rollout's map runs for each tenant: a machine of its own, in the same file."""

CHILDREN = (TURN,)
PARTS = (*MACHINES, *CHILDREN)


@cache
def machine(part: str) -> asl.Machine:
    """As the file has it. Shared by all who ask: not to be changed."""
    stem = part.partition("/")[0]
    return part_of(asl.parse((FOLDER / f"{stem}{SUFFIX}").read_text(encoding="utf-8")), part)


def part_of(whole: asl.Machine, part: str) -> asl.Machine:
    child = part.partition("/")[2]
    return asl.children(whole)[child] if child else whole
