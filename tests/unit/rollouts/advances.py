"""Rollouts that have started, and their turns, in tests of their steps."""

from __future__ import annotations

from orchestrator.rollouts.gate import Admitted
from orchestrator.rollouts.records import Share, Spec, Turn
from tests.unit.rollouts.world import Fleet, a_spec, a_stage_spec

TEN_PERCENT = Share(10, percent=True)
THREE_STAGES = a_spec(
    a_stage_spec(Share(1), bake_seconds=60),
    a_stage_spec(TEN_PERCENT, bake_seconds=120, tolerated=Share(1)),
    a_stage_spec(at_once=20, tolerated=Share(5, percent=True)),
)
TWO_STAGES = a_spec(a_stage_spec(Share(1)), a_stage_spec())


def started(count: int = 3, spec: Spec | None = None) -> tuple[Fleet, str]:
    world = Fleet(count)
    return world, world.start(spec)


def first_turn(world: Fleet, rollout: str, *, child: str = "child") -> Turn:
    return Turn(rollout, 1, world.items(rollout)[0], child)


def admitted(world: Fleet, turn: Turn) -> Admitted:
    admission = world.gate.admit(turn)
    assert isinstance(admission, Admitted), admission
    return admission
