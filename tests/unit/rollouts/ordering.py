"""Operators' orders in tests of rollouts: their results, and rollouts that they are about."""

from __future__ import annotations

from typing import Any

from orchestrator.rollouts.control import RolloutWithStages
from orchestrator.rollouts.records import Rollout, Share, Spec
from orchestrator.tenants.admission import Refusal, Refused
from tests.unit.rollouts.world import Fleet, a_spec, a_stage_spec, tenant


def refused(response: object) -> Refusal:
    assert isinstance(response, Refused), response
    return response.kind


def underway(response: object) -> Rollout:
    assert isinstance(response, RolloutWithStages), response
    return response.rollout


def naming(*names: str, **more: Any) -> Spec:
    return a_spec(tenants=tuple(tenant(name) for name in names), **more)


def rolled_out(count: int = 3, *, failing: tuple[str, ...] = ()) -> tuple[Fleet, str]:
    world = Fleet(count)
    rollout = world.start(a_spec(a_stage_spec(tolerated=Share(count))))
    world.drive(rollout, failing=failing)
    return world, rollout
