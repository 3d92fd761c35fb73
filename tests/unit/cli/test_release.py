"""`berth release`: promote, withdraw and reinstate a release."""

from __future__ import annotations

import json

import pytest

from orchestrator.cli.errors import ExitCode
from orchestrator.releases.states import PromotionMode
from tests.unit.cli.conftest import Scene
from tests.unit.cli.fake_api import ADA

WHY = "queues lose messages"


@pytest.fixture
def fleet(scene: Scene) -> Scene:
    """acme is at 0.2.0, which is current."""
    scene.has(version="0.2.0")
    return scene


def test_a_withdrawal_says_what_is_current_and_lists_the_tenants(fleet: Scene) -> None:
    result = fleet.berth("release", "withdraw", "0.2.0", "--reason", WHY, "--yes", exits=ExitCode.OK)
    assert result.stdout.splitlines() == [
        "Release 0.2.0 is withdrawn. New tenants get 0.1.0, instead of 0.2.0.",
        "Tenants at 0.2.0, which are served as before: acme",
    ]
    assert result.stderr.splitlines() == [
        "List them: berth tenants --version 0.2.0",
        "Move them back: berth rollout start --to 0.1.0 --allow-downgrade",
    ]


def test_without_a_terminal_a_withdrawal_needs_yes(scene: Scene) -> None:
    result = scene.berth("release", "withdraw", "0.2.0", exits=ExitCode.BAD_USAGE)
    assert "has to be confirmed by --yes. Nothing was done." in result.stderr
    assert not scene.api.world.release_states.now.withdrawn


def test_the_list_says_which_is_current_and_which_is_withdrawn(fleet: Scene) -> None:
    fleet.berth("release", "withdraw", "0.2.0", "--reason", WHY, "--yes")
    result = fleet.berth("releases", exits=ExitCode.OK)
    assert [line.split()[:6] for line in result.stdout.splitlines()[1:]] == [
        ["0.2.0", "2026-11-16", "12:00", "1", "0", "withdrawn"],
        ["0.1.0", "2026-11-16", "12:00", "0", "0", "current"],
    ]
    assert result.stderr == "Release 0.2.0, which is deployed, is withdrawn. See why: berth releases 0.2.0\n"


def test_a_withdrawn_release_in_full(fleet: Scene) -> None:
    fleet.berth("release", "withdraw", "0.2.0", "--reason", WHY, "--yes")
    result = fleet.berth("releases", "0.2.0", exits=ExitCode.OK)
    assert "version:    0.2.0 (withdrawn)" in result.stdout
    assert f"withdrawn:  2026-11-16 12:00:10 UTC by {ADA}: {WHY}" in result.stdout
    assert f"WITHDRAW by {ADA}: {WHY}" in result.stdout
    assert "Move them back: berth rollout start --to 0.1.0 --allow-downgrade" in result.stderr
    assert "berth release reinstate 0.2.0" in result.stderr


def test_a_withdrawal_as_json(fleet: Scene) -> None:
    result = fleet.berth("release", "withdraw", "0.2.0", "--reason", WHY, "--yes", "--json", exits=ExitCode.OK)
    shown = json.loads(result.stdout)
    assert (shown["status"], shown["current"], shown["tenants"]) == ("WITHDRAWN", "0.1.0", ["acme"])
    assert (shown["withdrawn"]["requestedBy"], shown["withdrawn"]["reason"]) == (ADA, WHY)


def test_a_tenant_is_not_created_at_a_withdrawn_release_and_the_way_out_works(scene: Scene) -> None:
    scene.berth("release", "withdraw", "0.2.0", "--yes", exits=ExitCode.OK)
    result = scene.berth("create", "acme", "--version", "0.2.0", exits=ExitCode.REFUSED)
    assert result.stderr.endswith("so tenant acme was not created at it. Use the current release: berth create acme\n")
    scene.berth("create", "acme", exits=ExitCode.OK)
    assert scene.api.run.attempt.version == "0.1.0"


def test_a_withdrawn_release_is_reinstated(fleet: Scene) -> None:
    fleet.berth("release", "withdraw", "0.2.0", "--yes")
    refused = fleet.berth("release", "promote", "0.2.0", exits=ExitCode.REFUSED)
    assert "berth release reinstate 0.2.0" in refused.stderr
    result = fleet.berth("release", "reinstate", "0.2.0", exits=ExitCode.OK)
    assert result.stdout == "Release 0.2.0 is reinstated. New tenants get 0.2.0, instead of 0.1.0.\n"


def test_a_release_is_promoted(scene: Scene) -> None:
    result = scene.berth("release", "promote", "0.1.0", exits=ExitCode.OK)
    assert result.stdout == "Release 0.1.0 is promoted. New tenants get 0.1.0, instead of 0.2.0.\n"
    again = scene.berth("release", "promote", "0.1.0", exits=ExitCode.OK)
    assert again.stdout == "Release 0.1.0 was promoted before. New tenants get 0.1.0.\n"


def test_the_list_says_how_a_deployed_release_becomes_current(scene: Scene) -> None:
    scene.api.world.settings.promotion = PromotionMode.AFTER_ROLLOUT
    scene.berth("release", "promote", "0.1.0")
    assert "berth release promote 0.2.0" in scene.berth("releases").stderr


def test_the_rollouts_that_halt_are_named(fleet: Scene) -> None:
    started = json.loads(fleet.berth("rollout", "start", "--to", "0.1.0", "--allow-downgrade", "--json").stdout)
    result = fleet.berth("release", "withdraw", "0.1.0", "--yes", exits=ExitCode.OK)
    assert f"Rollout {started['rolloutId']} halts: berth rollout status" in result.stdout


def test_the_last_release_is_not_withdrawn(scene: Scene) -> None:
    scene.berth("release", "withdraw", "0.1.0", "--yes", exits=ExitCode.OK)
    result = scene.berth("release", "withdraw", "0.2.0", "--yes", exits=ExitCode.REFUSED)
    assert "no earlier release of the tier standard is left that new tenants could get" in result.stderr


@pytest.mark.parametrize("order", ["promote", "withdraw", "reinstate"])
def test_an_invalid_version_is_refused_before_any_request(scene: Scene, order: str) -> None:
    result = scene.berth("release", order, "newest", exits=ExitCode.BAD_USAGE)
    assert result.stderr.endswith(" is not a version like 1.2.3.\n")
    assert scene.connected_to == []
