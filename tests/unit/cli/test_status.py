"""`berth status`."""

from __future__ import annotations

import json
from datetime import timedelta

from orchestrator.api.requesting import HttpRequest
from orchestrator.cli.errors import ExitCode
from orchestrator.client.transport import ApiAnswer
from orchestrator.common.tenant_ids import TenantId
from orchestrator.rollouts.records import RolloutStatus
from tests.fakes import a_release
from tests.unit.cli.conftest import Scene
from tests.unit.cli.fake_api import ScriptedEventsApi


def test_tenants_behind_are_those_behind_the_current_release_of_their_own_tier(scene: Scene) -> None:
    scene.api.table.record_release(a_release("2.0.0", tier="gold"))
    scene.api.table.record_release(a_release("2.1.0", tier="gold"))
    scene.has(version="0.2.0")
    scene.has(TenantId("vip"), version="2.1.0")
    assert scene.berth("status").stdout.splitlines()[-1] == "Nothing waits for you. Check the health: berth doctor"
    scene.has(TenantId("late"), version="2.0.0")
    assert scene.berth("status").stdout.splitlines()[-1] == (
        "1 tenant of the tier gold is at an earlier release than 2.1.0 (pinned ones included): "
        "berth rollout plan --tier gold"
    )


def test_a_rollout_waits_instead_of_the_tenants_that_it_moves(scene: Scene) -> None:
    scene.has()
    scene.berth("rollout", "start", exits=ExitCode.OK)
    name = scene.api.newest.id
    for status, words in (
        (RolloutStatus.PAUSED, "PAUSED in stage 1"),
        (RolloutStatus.HALTED, "HALTED at stage 1"),
    ):
        scene.api.is_now(status=status)
        assert (
            scene.berth("status").stdout.splitlines()[-1] == f"Rollout {name} is {words}: berth rollout status {name}"
        )


def test_a_rollout_that_goes_on_by_itself_waits_for_nobody_and_is_shown(scene: Scene) -> None:
    scene.has()
    scene.berth("rollout", "start", exits=ExitCode.OK)
    name = scene.api.newest.id
    for status in (RolloutStatus.PENDING, RolloutStatus.ABORTING):
        scene.api.is_now(status=status)
        assert scene.berth("status").stdout.splitlines()[-2:] == [
            "Nothing waits for you. Check the health: berth doctor",
            f"Rollout {name} is {status}: berth rollout status {name}",
        ]
        shown = json.loads(scene.berth("status", "--json").stdout)
        assert (shown["waiting"], [each["rolloutId"] for each in shown["rollouts"]]) == ([], [name])


def test_a_halted_rollout_waits_also_if_a_later_one_has_ended(scene: Scene) -> None:
    scene.has()
    scene.has(TenantId("bob"), version="0.1.0")
    scene.berth("rollout", "start", "--tenant", "acme", exits=ExitCode.OK)
    halted = scene.api.newest.id
    scene.api.is_now(status=RolloutStatus.HALTED)
    scene.api.clock.advance(timedelta(minutes=1))
    scene.berth("rollout", "start", "--tenant", "bob", exits=ExitCode.OK)
    assert scene.api.newest.id != halted
    scene.api.is_now(status=RolloutStatus.SUCCEEDED)
    assert f"Rollout {halted} is HALTED at stage 1: berth rollout status {halted}\n" in scene.berth("status").stdout


def test_only_open_rollouts_are_asked_for(scene: Scene) -> None:
    scene.has()
    scene.berth("rollout", "start", exits=ExitCode.OK)
    scene.api.asked.clear()
    scene.berth("status", exits=ExitCode.OK)
    assert [each for each in scene.api.asked if "rollouts" in each] == ["GET /rollouts?open=true"]


class Forbidden(ScriptedEventsApi):
    def send(self, request: HttpRequest) -> ApiAnswer:
        super().send(request)
        return ApiAnswer(403, {"message": "Forbidden"})


def test_an_event_plane_that_cannot_be_asked_does_not_hide_the_rest(scene: Scene) -> None:
    scene.events = Forbidden()
    shown = scene.berth("status", exits=ExitCode.OK).stdout
    assert "fleet:      no tenants yet\n" in shown
    assert shown.splitlines()[-1].startswith("The event plane cannot be asked: The API answered 403: Forbidden.")
