"""`berth release`: promote, withdraw and reinstate a release."""

from __future__ import annotations

import json

import pytest

from orchestrator.cli.errors import ExitCode
from orchestrator.releases.states import PromotionMode
from tests.unit.cli.conftest import Scene


@pytest.fixture
def fleet(scene: Scene) -> Scene:
    """acme is at 0.2.0, which is current."""
    scene.has(version="0.2.0")
    return scene


def test_a_tenant_is_not_created_at_a_withdrawn_release_and_the_way_out_works(scene: Scene) -> None:
    scene.berth("release", "withdraw", "0.2.0", "--yes", exits=ExitCode.OK)
    result = scene.berth("create", "acme", "--version", "0.2.0", exits=ExitCode.REFUSED)
    assert result.stderr.endswith("so tenant acme was not created at it. Use the current release: berth create acme\n")
    scene.berth("create", "acme", exits=ExitCode.OK)
    assert scene.api.run.attempt.version == "0.1.0"


def test_the_list_says_how_a_deployed_release_becomes_current(scene: Scene) -> None:
    scene.api.world.settings.promotion = PromotionMode.AFTER_ROLLOUT
    scene.berth("release", "promote", "0.1.0")
    assert "berth release promote 0.2.0" in scene.berth("releases").stderr


def test_the_rollouts_that_halt_are_named(fleet: Scene) -> None:
    started = json.loads(fleet.berth("rollout", "start", "--to", "0.1.0", "--allow-downgrade", "--json").stdout)
    result = fleet.berth("release", "withdraw", "0.1.0", "--yes", exits=ExitCode.OK)
    assert f"Rollout {started['rolloutId']} halts: berth rollout status" in result.stdout


@pytest.mark.parametrize("order", ["promote", "withdraw", "reinstate"])
def test_an_invalid_version_is_refused_before_any_request(scene: Scene, order: str) -> None:
    result = scene.berth("release", order, "newest", exits=ExitCode.BAD_USAGE)
    assert result.stderr.endswith(" is not a version like 1.2.3.\n")
    assert scene.connected_to == []
