"""`berth releases`: the published releases, newest first, and the number of tenants at each."""

from __future__ import annotations

import pytest

from orchestrator.cli.errors import ExitCode
from orchestrator.client.transport import ApiAnswer
from orchestrator.common.tenant_ids import TenantId
from tests.fakes import a_release
from tests.unit.cli.conftest import Scene

NOTES = "The whole life of a tenant.\n\n- Updates.\n- Deletes."


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


@pytest.fixture
def fleet(scene: Scene) -> Scene:
    """One tenant is at 0.1.0, the upgrade of one from there failed, and one was never provisioned."""
    scene.has()
    scene.has(TenantId.parse("globex"))
    scene.api.upgrade(TenantId.parse("globex"))
    scene.api.begin()
    scene.api.fail()
    scene.api.table.record_release(a_release("0.10.0", digest="0123456789abcdef", notes=NOTES))
    return scene


def test_notes_that_begin_with_a_list(scene: Scene) -> None:
    scene.api.table.record_release(a_release("0.3.0", notes="- [x] Shorter names\n- More"))
    assert lines(scene.berth("releases").stdout)[1].endswith(" [x] Shorter names")


def test_one_release_in_full(fleet: Scene) -> None:
    result = fleet.berth("releases", "0.10.0", exits=ExitCode.OK)
    assert result.stdout.splitlines() == [
        "version:    0.10.0",
        "tier:       standard",
        "published:  2026-11-16 12:00:00 UTC",
        "digest:     0123456789abcdef",
        f"template:   {a_release('0.10.0').template_url}",
        "tenants:    none",
        "",
        *NOTES.splitlines(),
    ]
    assert result.stderr == ""


@pytest.mark.parametrize("version", ["newest", "1.2", "1.2.3\n", ""])
def test_an_invalid_version_is_refused_before_any_request(scene: Scene, version: str) -> None:
    result = scene.berth("releases", version, exits=ExitCode.BAD_USAGE)
    assert result.stderr.endswith(" is not a version like 1.2.3.\n")
    assert scene.connected_to == []


class TestElsewhere:
    @pytest.fixture(autouse=True)
    def _in_use(self, scene: Scene) -> None:
        elsewhere = {
            "": {"total": 2, "byState": {"FAILED": 1, "PROVISIONING": 1}},
            "0.0.9": {"total": 1, "byState": {"READY": 1}},
        }
        scene.api.interjections = [ApiAnswer(200, {"current": "0.3.0", "releases": [], "elsewhere": elsewhere})]

    def test_versions_in_use_that_were_never_published_are_shown(self, scene: Scene) -> None:
        assert scene.berth("releases").stderr.splitlines()[:2] == [
            "2 tenants are not at any version yet: 1 FAILED, 1 PROVISIONING. See: berth tenants",
            "1 tenant is at 0.0.9, which was never published: berth tenants --version 0.0.9",
        ]

    def test_tenants_at_an_unpublished_version_are_counted_when_it_is_requested(self, scene: Scene) -> None:
        result = scene.berth("releases", "0.0.9", exits=ExitCode.BAD_USAGE)
        assert "Version 0.0.9 was never published. 1 tenant is at it." in result.stderr

    def test_the_current_version_is_not_published_yet(self, scene: Scene) -> None:
        result = scene.berth("releases")
        assert (result.exit_code, result.stdout) == (ExitCode.OK, "")
        assert result.stderr.endswith(
            "The current version, 0.3.0, is not published yet: wait until its deployment has ended.\n"
        )


def test_the_commands_that_move_tenants_to_a_current_release_name_its_tier(scene: Scene) -> None:
    scene.api.table.record_release(a_release("2.0.0", tier="gold"))
    assert scene.berth("releases", "2.0.0").stderr.splitlines()[-1] == (
        "Move the other tenants to it: berth rollout plan --tier gold, then berth rollout start --tier gold"
    )
    assert scene.berth("releases", "0.2.0").stderr.splitlines()[-1] == (
        "Move the other tenants to it: berth rollout plan, then berth rollout start"
    )
