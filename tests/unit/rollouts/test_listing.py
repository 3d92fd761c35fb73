"""Which rollouts are listed for an operator."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from orchestrator.rollouts.listing import MAX_SEARCHED, list_rollouts, open_rollouts
from orchestrator.rollouts.records import RolloutStatus
from tests.fakes import NOON
from tests.unit.rollouts.world import Fleet, a_rollout, a_spec, a_stage

OPEN = (
    RolloutStatus.PENDING,
    RolloutStatus.RUNNING,
    RolloutStatus.PAUSED,
    RolloutStatus.ABORTING,
    RolloutStatus.HALTED,
)


def plant(world: Fleet, number: int, status: RolloutStatus, *, dry_run: bool = False) -> str:
    created_at = NOON + timedelta(seconds=number)
    name = f"{created_at:%Y%m%d-%H%M%S}-abcd"
    rollout = replace(a_rollout(a_spec(dry_run=dry_run), status=status), id=name, created_at=created_at)
    world.plant(rollout, [replace(a_stage(), rollout=name)])
    if not rollout.status.active:
        # Planting registers every rollout, but only active ones stay registered.
        world.touch(name, status=RolloutStatus.RUNNING)
        world.touch(name, status=status)
    return name


@pytest.mark.parametrize("status", RolloutStatus)
def test_active_and_halted_rollouts_are_open(status: RolloutStatus) -> None:
    world = Fleet()
    name = plant(world, 1, status)
    assert [each.rollout.id for each in open_rollouts(world.rollout_table)] == ([name] if status in OPEN else [])


def test_a_dry_run_is_never_open() -> None:
    world = Fleet()
    plant(world, 1, RolloutStatus.RUNNING, dry_run=True)
    plant(world, 2, RolloutStatus.HALTED, dry_run=True)
    assert open_rollouts(world.rollout_table) == []


def test_an_active_rollout_is_found_even_if_the_index_does_not_list_it(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Fleet()
    name = plant(world, 1, RolloutStatus.RUNNING)
    monkeypatch.setattr(world.rollout_table, "rollouts", lambda **_how: [])
    assert [each.rollout.id for each in open_rollouts(world.rollout_table)] == [name]


def test_only_old_halted_rollouts_are_not_found() -> None:
    world = Fleet()
    active = plant(world, 1, RolloutStatus.PAUSED)
    plant(world, 2, RolloutStatus.HALTED)
    for number in range(MAX_SEARCHED):
        plant(world, 3 + number, RolloutStatus.SUCCEEDED)
    assert [each.rollout.id for each in open_rollouts(world.rollout_table)] == [active]


def test_rollouts_come_newest_first_with_their_stages() -> None:
    world = Fleet()
    first, second = plant(world, 1, RolloutStatus.HALTED), plant(world, 2, RolloutStatus.RUNNING)
    for found in (open_rollouts(world.rollout_table), list_rollouts(world.rollout_table, limit=9)):
        assert [each.rollout.id for each in found] == [second, first]
        assert all([stage.rollout for stage in each.stages] == [each.rollout.id] for each in found)
