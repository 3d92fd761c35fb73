"""`berth status`."""

from __future__ import annotations

import json
from datetime import timedelta

from orchestrator.cli.errors import ExitCode
from orchestrator.common.tenant_ids import TenantId
from orchestrator.rollouts.records import RolloutStatus
from tests.unit.cli.conftest import Scene
from tests.unit.cli.fake_api import ADA


def test_one_screen(scene: Scene) -> None:
    scene.has()
    scene.has(TenantId("bob"), version="0.2.0")
    scene.api.upgrade(TenantId("bob"), "0.2.0")
    scene.api.create(TenantId("carol"))
    scene.api.begin()
    scene.api.fail()
    result = scene.berth("status", exits=ExitCode.OK)
    where, who, versions, fleet, releases, _, *waiting = result.stdout.splitlines()
    assert where == "where:      Berth in eu-west-1, account 111122223333 (UPDATE_COMPLETE)"
    assert who == f"who:        {ADA}"
    assert versions.endswith("current release 0.2.0")
    assert fleet == "fleet:      3 tenants: 1 FAILED, 2 READY"
    assert releases == "releases:   1 at 0.2.0, 1 at 0.1.0, 1 at no version"
    assert waiting == [
        "1 tenant is FAILED: berth tenants --state FAILED",
        "1 tenant is at an earlier release than 0.2.0: berth rollout plan",
    ]


def test_a_rollout_waits_instead_of_the_tenants_that_it_moves(scene: Scene) -> None:
    scene.has()
    scene.berth("rollout", "start", exits=ExitCode.OK)
    name = scene.api.newest.id
    for status in (RolloutStatus.PAUSED, RolloutStatus.HALTED):
        scene.api.is_now(status=status)
        assert scene.berth("status").stdout.splitlines()[-1] == (
            f"Rollout {name} is {status}: berth rollout status {name}"
        )


def test_a_rollout_that_halted_before_another_one_does_not_wait(scene: Scene) -> None:
    scene.has()
    for status in (RolloutStatus.HALTED, RolloutStatus.SUCCEEDED):
        scene.berth("rollout", "start", exits=ExitCode.OK)
        scene.api.is_now(status=status)
        scene.api.world.clock.advance(timedelta(minutes=1))
    assert json.loads(scene.berth("status", "--json").stdout)["rollouts"] == []


def test_only_open_rollouts_are_asked_for_unless_one_has_halted(scene: Scene) -> None:
    scene.has()
    scene.berth("rollout", "start", exits=ExitCode.OK)
    asked = []
    for status in (RolloutStatus.RUNNING, RolloutStatus.HALTED, RolloutStatus.SUCCEEDED):
        scene.api.is_now(status=status)
        scene.api.asked.clear()
        scene.berth("status", exits=ExitCode.OK)
        asked.append([each for each in scene.api.asked if "rollouts" in each])
    only_open = "GET /rollouts?open=true"
    assert asked == [[only_open], [only_open, "GET /rollouts?limit=20"], [only_open]]


def test_nothing_waits(scene: Scene) -> None:
    result = scene.berth("status", exits=ExitCode.OK)
    assert "fleet:      no tenants yet\n" in result.stdout
    assert result.stdout.endswith("Nothing waits for you. Check the health: berth doctor\n")


def test_as_json(scene: Scene) -> None:
    scene.has(version="0.2.0")
    shown = json.loads(scene.berth("status", "--json", exits=ExitCode.OK).stdout)
    assert shown["controlPlane"]["place"] == "Berth in eu-west-1, account 111122223333"
    assert (shown["caller"], shown["rollouts"], shown["waiting"]) == (ADA, [], [])
    assert shown["fleet"]["byVersion"] == {"0.2.0": 1}
