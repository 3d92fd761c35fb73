"""`berth rollout start` and `list`, when nobody waits for the end."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from orchestrator.cli.errors import ExitCode
from orchestrator.cli.rollout_view import doing
from orchestrator.client.transport import ApiAnswer
from orchestrator.common.tenant_ids import TenantId
from orchestrator.rollouts.records import Result, RolloutStatus, StageStatus
from tests.fakes import ACME, NOON
from tests.unit.cli.conftest import TERMINAL, Scene

NEW = TenantId.parse("new")
PINNED = TenantId.parse("pinned")


@pytest.fixture
def fleet(scene: Scene) -> Scene:
    """Twelve tenants at 0.1.0, of which one is pinned there; one at 0.2.0."""
    for number in range(11):
        scene.has(TenantId.parse(f"t{number:02}"))
    scene.has(PINNED)
    scene.api.pin(PINNED, "0.1.0")
    scene.has(NEW, version="0.2.0")
    return scene


class TestStart:
    def test_a_terminal_shows_that_the_rollout_is_being_planned(self, fleet: Scene) -> None:
        fleet.environment |= TERMINAL
        assert "planning the rollout, 0 s" in fleet.berth("rollout", "start", exits=ExitCode.OK).stderr

    def test_many_skipped_tenants_are_not_all_named(self, scene: Scene) -> None:
        for number in range(7):
            scene.has(TenantId.parse(f"t{number}"))
            scene.api.pin(TenantId.parse(f"t{number}"), "0.1.0")
            scene.has(TenantId.parse(f"n{number}"), version="0.2.0")
        assert scene.berth("rollout", "start").stdout.splitlines()[-2:] == [
            "     7 are already at the release",
            "     7 are pinned to another release: t0, t1, t2, t3, t4 and 2 more",
        ]

    def test_an_interrupt_before_the_response(self, fleet: Scene) -> None:
        fleet.trouble_asleep = KeyboardInterrupt()
        fleet.api.interjections = [ApiAnswer(429, {"message": "Too Many Requests"})]
        result = fleet.berth("rollout", "start", exits=ExitCode.INTERRUPTED)
        assert result.stderr.endswith("If the rollout was started, it continues. See: berth rollout list\n")

    @pytest.mark.parametrize("typed", ["y\n", "\n", ""])
    def test_the_loss_of_messages_is_confirmed(self, fleet: Scene, typed: str) -> None:
        fleet.typed = typed
        result = fleet.berth("rollout", "start", "--allow-replacement", "--no-watch", exits=ExitCode.REFUSED)
        assert "with their data. To see which first: berth rollout plan, with the same options." in result.stderr
        assert fleet.api.asked == []

    @pytest.mark.parametrize(("typed", "arguments"), [("yes\n", []), ("", ["--yes"]), (None, ["--yes"])])
    def test_confirmation_by_prompt_or_option(self, fleet: Scene, typed: str | None, arguments: list[str]) -> None:
        fleet.typed = typed
        fleet.berth("rollout", "start", "--allow-replacement", "--no-watch", *arguments, exits=ExitCode.OK)
        assert fleet.api.newest.spec.allow_replacement


class TestUndoAndRetry:
    def test_an_undo_shows_the_undone_rollout(self, scene: Scene) -> None:
        scene.has()
        scene.berth("rollout", "start")
        first = scene.api.newest.id
        scene.api.came_to(ACME, Result.SUCCEEDED, from_version="0.1.0")
        scene.api.is_now(status=RolloutStatus.SUCCEEDED, ended_at=scene.api.clock.now())
        scene.api.upgrade(ACME)
        scene.api.begin()
        scene.api.succeed()
        result = scene.berth("rollout", "start", "--undo", first, exits=ExitCode.OK)
        assert f"rollout:    {scene.api.newest.id} (undoes {first})\n" in result.stdout
        assert "to:         each tenant's earlier release\n" in result.stdout
        assert scene.berth("rollout", "list").stdout.splitlines()[1].split()[1:6] == [
            "PENDING",
            "earlier",
            "0",
            "0",
            "1",
        ]


class TestList:
    @pytest.fixture
    def three(self, fleet: Scene) -> Scene:
        fleet.berth("rollout", "plan", "--no-wait")
        fleet.api.is_now(status=RolloutStatus.SUCCEEDED)
        fleet.api.clock.advance(timedelta(minutes=1))
        fleet.berth("rollout", "start")
        fleet.api.came_to(TenantId.parse("t00"), Result.SUCCEEDED)
        fleet.api.came_to(TenantId.parse("t01"), Result.FAILED, stage=2)
        fleet.api.is_now(status=RolloutStatus.HALTED, ended_at=fleet.api.clock.now())
        fleet.api.clock.advance(timedelta(minutes=1))
        fleet.berth("rollout", "retry")
        fleet.api.asked.clear()
        return fleet

    def test_rollouts_are_listed_newest_first_with_progress(self, three: Scene) -> None:
        result = three.berth("rollout", "list", exits=ExitCode.OK)
        ids = [rollout.id for rollout in three.api.ledger.rollouts(limit=3)]
        assert [line.rstrip() for line in result.stdout.splitlines()] == [
            "Rollout              Status    Version OK Failed Of Started (UTC)            By",
            f"{ids[0]} PENDING   0.2.0    0      0  1 2026-11-16 12:04 retry   ada",
            f"{ids[1]} HALTED at 0.2.0    1      1 11 2026-11-16 12:03         ada",
            "                     stage 1",
            f"{ids[2]} SUCCEEDED 0.2.0    0      0 11 2026-11-16 12:02 dry run ada",
        ]
        assert result.stderr == ""
        assert three.api.asked == ["GET /rollouts?limit=20"]

    @pytest.mark.parametrize(
        ("rollout", "stage", "shown"),
        [
            ({"status": RolloutStatus.RUNNING}, {"status": StageStatus.RUNNING}, "RUNNING stage 2 of 3"),
            ({"status": RolloutStatus.PAUSED}, {"status": StageStatus.RUNNING}, "PAUSED in stage 2"),
            ({"status": RolloutStatus.HALTED}, {"status": StageStatus.RUNNING}, "HALTED at stage 2"),
            ({"status": RolloutStatus.ABORTING}, {"status": StageStatus.RUNNING}, "ABORTING"),
            (
                {"status": RolloutStatus.RUNNING},
                {"status": StageStatus.BAKING, "baked_until": NOON},
                "BAKING until 12:00 UTC",
            ),
            (
                {"status": RolloutStatus.RUNNING},
                {"status": StageStatus.AWAITING_APPROVAL},
                "AWAITING APPROVAL of stage 2",
            ),
            (
                {"status": RolloutStatus.RUNNING},
                {"status": StageStatus.AWAITING_APPROVAL, "approved_by": "ada"},
                "RUNNING stage 2 of 3",
            ),
        ],
    )
    def test_the_list_says_what_a_rollout_waits_for(
        self, fleet: Scene, rollout: dict[str, Any], stage: dict[str, Any], shown: str
    ) -> None:
        fleet.berth("rollout", "start")
        fleet.api.is_now(current_stage=2, **rollout)
        fleet.api.stage_is_now(2, **stage)
        (brief,) = json.loads(fleet.berth("rollout", "list", "--json").stdout)["rollouts"]
        assert doing(brief).plain == shown

    def test_more_than_a_page(self, three: Scene) -> None:
        three.berth("rollout", "list", "--limit", "501", "--json")
        assert three.api.asked == ["GET /rollouts?limit=500"]
