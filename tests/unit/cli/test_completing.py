"""The completions of a shell: commands, ids and versions."""

from __future__ import annotations

import pytest

from orchestrator.cli.control_plane import Options
from orchestrator.cli.errors import ControlPlaneNotFound, ExitCode
from orchestrator.common.tenant_ids import TenantId
from tests.unit.cli.conftest import Scene


def completed(scene: Scene, words: str, shell: str = "bash") -> list[str]:
    scene.environment |= {"_BERTH_COMPLETE": f"complete_{shell}"}
    if shell == "bash":
        scene.environment |= {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    else:
        scene.environment |= {"_TYPER_COMPLETE_ARGS": words, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    result = scene.berth()
    assert (result.exit_code, result.stderr) == (ExitCode.OK, "")
    return result.stdout.split()


@pytest.fixture
def fleet(scene: Scene) -> Scene:
    for name in ("acme", "apex", "bob"):
        scene.has(TenantId(name))
    return scene


@pytest.mark.parametrize("shell", ["bash", "fish"])
@pytest.mark.parametrize("command", ["tenant", "upgrade", "retry", "delete", "label", "pin", "get-queue"])
def test_commands_about_tenants_complete_tenant_ids(fleet: Scene, command: str, shell: str) -> None:
    assert completed(fleet, f"berth {command} a", shell) == ["acme", "apex"]


def test_tenants_in_zsh(fleet: Scene) -> None:
    shown = " ".join(completed(fleet, "berth tenant a", "zsh"))
    assert "acme" in shown
    assert "bob" not in shown


@pytest.mark.parametrize(
    "command",
    ["upgrade acme --to", "pin acme", "create acme --version", "tenants --version", "releases", "release diff 0.1.0"],
)
def test_commands_and_options_about_releases_complete_versions(fleet: Scene, command: str) -> None:
    assert completed(fleet, f"berth {command} 0") == ["0.2.0", "0.1.0"]


@pytest.mark.parametrize(
    ("command", "versions"),
    [
        ("upgrade acme --to", ["0.1.0"]),
        ("pin acme", ["0.1.0"]),
        ("create acme --version", ["0.1.0"]),
        ("rollout start --to", ["0.1.0"]),
        ("tenants --version", ["0.2.0", "0.1.0"]),
        ("release reinstate", ["0.2.0", "0.1.0"]),
    ],
)
def test_no_command_offers_to_move_a_tenant_to_a_withdrawn_release(
    fleet: Scene, command: str, versions: list[str]
) -> None:
    fleet.berth("release", "withdraw", "0.2.0", "--yes", exits=ExitCode.OK)
    assert completed(fleet, f"berth {command} 0") == versions


@pytest.mark.parametrize("command", ["status", "watch", "pause", "abort", "start --undo"])
def test_commands_about_rollouts_complete_rollout_ids(fleet: Scene, command: str) -> None:
    fleet.berth("rollout", "start", exits=ExitCode.OK)
    assert completed(fleet, f"berth rollout {command} 2") == [fleet.api.newest.id]


def test_the_control_plane_is_the_one_that_the_options_select(fleet: Scene) -> None:
    fleet.connected_to.clear()
    completed(fleet, "berth --region eu-west-1 --stack Other tenant a")
    assert fleet.connected_to == [Options(region="eu-west-1", stack="Other")]


def test_without_a_control_plane_nothing_is_completed(scene: Scene) -> None:
    scene.trouble = ControlPlaneNotFound("Nothing there.")
    assert completed(scene, "berth tenant a") == []


def test_commands_are_completed_without_a_request(scene: Scene) -> None:
    assert completed(scene, "berth tena") == ["tenant", "tenants"]
    assert scene.connected_to == []
