"""The files of the state machines."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tests.machines import asl

FOLDER = Path(__file__).parents[2] / "statemachines"
SUFFIX = ".asl.json"

MACHINES = tuple(sorted(file.name.removesuffix(SUFFIX) for file in FOLDER.glob(f"*{SUFFIX}")))
"""The stems of the files."""

OPERATIONS = ("create_tenant", "update_tenant", "delete_tenant")
"""The machines that change a tenant's stack."""

ROLLOUT = "rollout"
TURN = "rollout/RunStage"
"""The machine that the rollout's map runs for each tenant, in the same file."""

CHILDREN = (TURN,)
PARTS = (*MACHINES, *CHILDREN)


@cache
def machine(part: str) -> asl.Machine:
    """The machine from the file. It is cached, so it must not be changed."""
    stem = part.partition("/")[0]
    return part_of(asl.parse((FOLDER / f"{stem}{SUFFIX}").read_text(encoding="utf-8")), part)


def part_of(whole: asl.Machine, part: str) -> asl.Machine:
    child = part.partition("/")[2]
    return asl.children(whole)[child] if child else whole
