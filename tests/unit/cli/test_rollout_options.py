"""The commands that are suggested after a rollout can be run unchanged, and repeat its options."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from orchestrator.cli.errors import ExitCode
from orchestrator.common.tenant_ids import TenantId
from orchestrator.rollouts.records import Result, RolloutStatus
from tests.fakes import QUEUE_TABOO
from tests.unit.cli.conftest import Scene

TENANTS = [TenantId.parse(f"t{number:02}") for number in range(12)]


@pytest.fixture
def fleet(scene: Scene) -> Scene:
    for tenant in TENANTS:
        scene.has(tenant)
        scene.api.create(tenant, labels={"tier": "free for all"})
    return scene


def advised(scene: Scene, beginning: str) -> list[str]:
    """The arguments of the command that the status of the newest rollout advises, in the line that begins so."""
    (line,) = [line for line in scene.berth("rollout", "status").stderr.splitlines() if line.startswith(beginning)]
    _, *arguments = shlex.split(line[line.index("berth rollout") :])
    scene.api.clock.advance(timedelta(minutes=1))
    return arguments


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--to", "0.2.0"],
        ["--tenant", "t01", "--tenant", "t02"],
        ["--label", "tier=free for all", "--share", "50%"],
        ["--stages", "1,5,rest"],
        ["--stages", "rest"],
        ["--stages", "rest", "--tolerate", "2"],
        ["--concurrency", "2", "--tolerate", "10%", "--bake", "0", "--alarm", "errors", "--approval"],
        ["--concurrency", "50", "--approval-last"],
        ["--stages", "2,rest", "--bake", "60", "--allow-replacement", "--yes"],
        ["--to", "0.1.0", "--allow-downgrade"],
    ],
    ids=lambda given: " ".join(given) or "nothing",
)
class TestTheSameOptions:
    def test_a_plan_ends_with_the_command_that_does_it(self, fleet: Scene, arguments: list[str]) -> None:
        if "--allow-downgrade" in arguments:
            fleet.has(TenantId.parse("newer"), version="0.2.0")
        fleet.berth("rollout", "plan", "--no-wait", *[each for each in arguments if each != "--yes"])
        planned = fleet.api.newest.spec
        fleet.api.is_now(status=RolloutStatus.SUCCEEDED)
        assert fleet.berth(*advised(fleet, "Start it"), "--yes").exit_code == ExitCode.OK
        assert fleet.api.newest.spec == replace(planned, dry_run=False, sample=None)

    def test_starting_the_rest_after_an_abort_asks_in_the_same_way(self, fleet: Scene, arguments: list[str]) -> None:
        if "--allow-downgrade" in arguments:
            fleet.has(TenantId.parse("newer"), version="0.2.0")
        fleet.berth("rollout", "start", *arguments)
        first = fleet.api.newest
        fleet.api.is_now(status=RolloutStatus.ABORTED)
        assert fleet.berth(*advised(fleet, "Move the remaining tenants"), "--yes").exit_code == ExitCode.OK
        assert fleet.api.newest.id != first.id
        assert fleet.api.newest.spec == first.spec


def test_after_an_abort_that_came_too_late_nobody_is_left(fleet: Scene) -> None:
    fleet.berth("rollout", "start", "--tenant", "t01")
    fleet.api.came_to(TENANTS[1], Result.SUCCEEDED, from_version="0.1.0")
    fleet.api.is_now(status=RolloutStatus.ABORTED)
    assert "that are left" not in fleet.berth("rollout", "status").stderr


def test_an_undo_that_was_aborted_is_not_followed_by_a_move_forward(fleet: Scene) -> None:
    fleet.berth("rollout", "start", "--stages", "rest")
    original = fleet.api.newest.id
    for tenant in TENANTS:
        fleet.api.came_to(tenant, Result.SUCCEEDED, from_version="0.1.0")
        fleet.api.upgrade(tenant, "0.2.0")
        fleet.api.begin()
        fleet.api.succeed()
    fleet.api.is_now(status=RolloutStatus.SUCCEEDED)
    fleet.api.clock.advance(timedelta(minutes=1))
    fleet.berth("rollout", "start", "--undo", original)
    first = fleet.api.newest
    fleet.api.is_now(status=RolloutStatus.ABORTED)
    arguments = advised(fleet, "Move the remaining tenants back")
    assert arguments[:4] == ["rollout", "start", "--undo", original]
    fleet.berth(*arguments)
    assert fleet.api.newest.id != first.id
    assert fleet.api.newest.spec == first.spec


def test_a_retry_that_was_aborted_is_retried(fleet: Scene) -> None:
    fleet.berth("rollout", "start", "--stages", "rest")
    original = fleet.api.newest.id
    fleet.api.came_to(TENANTS[0], Result.FAILED, cause=QUEUE_TABOO)
    fleet.api.is_now(status=RolloutStatus.FAILED)
    fleet.api.clock.advance(timedelta(minutes=1))
    fleet.berth("rollout", "retry", original)
    fleet.api.is_now(status=RolloutStatus.ABORTED)
    assert advised(fleet, "Retry the remaining tenants") == ["rollout", "retry", original]


def test_a_dry_run_of_those_that_would_have_failed_leads_back_to_the_whole(fleet: Scene) -> None:
    fleet.berth("rollout", "plan", "--no-wait")
    original = fleet.api.newest.id
    fleet.api.came_to(TENANTS[0], Result.FAILED, cause=QUEUE_TABOO)
    fleet.api.is_now(status=RolloutStatus.FAILED)
    fleet.api.clock.advance(timedelta(minutes=1))
    fleet.berth("rollout", "retry", original)
    fleet.api.is_now(status=RolloutStatus.SUCCEEDED)
    assert advised(fleet, "See how to move all") == ["rollout", "status", original]


def test_selections_from_a_file_stay_in_the_file(fleet: Scene, tmp_path: Path) -> None:
    listed, stages = tmp_path / "tenants", tmp_path / "stages"
    listed.write_text("\n".join(tenant.value for tenant in TENANTS))
    stages.write_text(json.dumps([{"size": "1", "tolerated": "1"}, {"size": "rest"}]))
    fleet.berth("rollout", "plan", "--no-wait", "--tenants-from", str(listed), "--stages-file", str(stages))
    fleet.api.is_now(status=RolloutStatus.SUCCEEDED)
    assert advised(fleet, "Start it")[4:] == ["--tenants-from", "FILE", "--stages-file", "FILE"]
