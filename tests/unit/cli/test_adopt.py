"""`berth adopt`: what it shows, asks and does, and its exit codes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from botocore.exceptions import ClientError

from orchestrator.cli.errors import ExitCode
from orchestrator.common.errors import Throttled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.history import RecordedChange
from orchestrator.tenants.records import Audit, Operation, Queue, Status
from orchestrator.tenants.writes import Transition
from tests.fakes import ACME, NAMES, an_audit, some_metadata
from tests.fakes.migration import InMemoryMigration
from tests.unit.cli.conftest import Scene
from tests.unit.cli.fake_api import ADA

GLOBEX = TenantId("globex")
FAILED = an_audit(Status.FAILURE, Operation.CREATE, version=None)


@pytest.fixture
def old(scene: Scene) -> Scene:
    """Two tenants of the earlier system: one can be adopted, the other has an operation that has just begun."""
    table = scene.api.table
    table.plant_audit(FAILED, numbered=False)
    table.plant_audit(_just_begun(scene), numbered=False)
    return scene


def _just_begun(scene: Scene) -> Audit:
    return an_audit(Status.STARTED, Operation.CREATE, version=None, tenant=GLOBEX, at=scene.api.clock.now())


def adopted(scene: Scene, tenant: TenantId = ACME) -> bool:
    return bool(scene.api.table.history(tenant))


@pytest.mark.parametrize("options", [[], ["--dry-run"], ["--dry-run", "--yes"], ["--json"]], ids=" ".join)
def test_without_a_confirmation_the_tenants_are_only_shown(old: Scene, options: list[str]) -> None:
    result = old.berth("adopt", *options, exits=ExitCode.ATTENTION)
    assert "FAILED" in result.stdout
    assert "less than an hour ago" in " ".join(result.stdout.split())
    assert not adopted(old)


def test_tenants_are_adopted_with_the_name_of_the_operator_and_the_reason(old: Scene) -> None:
    result = old.berth("adopt", "--yes", "--reason", "Ticket 4711", exits=ExitCode.ATTENTION)
    assert result.stdout.splitlines()[-1] == "Adopted 1 of 2 tenants."
    assert "berth rollout plan" in result.stderr
    (change,) = old.api.table.history(ACME)
    assert isinstance(change, RecordedChange)
    assert (change.request.by, change.request.reason) == (f"berth adopt, requested by {ADA}", "Ticket 4711")
    assert not adopted(old, GLOBEX)


def test_without_the_right_to_write_history_the_adoption_ends_and_names_the_setting(
    old: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(_migration: object, _writes: object) -> bool:
        raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "TransactWriteItems")

    monkeypatch.setattr(InMemoryMigration, "apply", denied)
    result = old.berth("adopt", "--yes", exits=ExitCode.NO_CONTROL_PLANE)
    assert "berth:adopterArn" in result.stderr


def test_the_exit_code_is_zero_once_every_tenant_is_adopted(scene: Scene) -> None:
    scene.api.table.plant_audit(FAILED, numbered=False)
    scene.berth("adopt", "--yes", exits=ExitCode.OK)
    scene.berth("adopt", exits=ExitCode.OK)


def test_a_tenant_without_a_stack_is_adopted_but_needs_attention(scene: Scene) -> None:
    queue = Queue("arn:aws:sqs:eu-west-1:000000000000:in", "https://sqs.eu-west-1.amazonaws.com/000000000000/in")
    scene.api.table.plant_metadata(replace(some_metadata(queue=queue), stack_id=None), listed=False)
    for _ in range(2):
        result = scene.berth("adopt", "--yes", exits=ExitCode.ATTENTION)
        assert "No stack has its queue" in " ".join(result.stdout.split())
    assert adopted(scene)


@pytest.mark.parametrize(("typed", "is_adopted"), [("yes\n", True), ("no\n", False), ("", False)])
def test_a_terminal_asks_and_names_the_control_plane(old: Scene, typed: str, *, is_adopted: bool) -> None:
    old.typed = typed
    result = old.berth("adopt")
    assert f"Control plane {NAMES.control_plane} in eu-west-1" in result.stderr
    assert "This adopts 1 tenant. Type yes to continue:" in result.stderr
    assert adopted(old) is is_adopted


def test_a_tenant_that_cannot_be_written_is_reported_and_the_others_are_adopted(
    old: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = old.api.table
    table.plant_audit(replace(FAILED, tenant=TenantId("zeta")), numbered=False)
    adopt = table.adopt

    def fail_once(_writes: Transition) -> bool:
        monkeypatch.setattr(table, "adopt", adopt)
        raise Throttled("Rate exceeded")

    monkeypatch.setattr(table, "adopt", fail_once)
    result = old.berth("adopt", "--yes", exits=ExitCode.ATTENTION)
    assert "Error: acme was not adopted: Rate exceeded" in result.stderr
    assert (adopted(old), adopted(old, TenantId("zeta"))) == (False, True)


def test_an_interrupt_leaves_what_was_adopted(old: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_writes: Transition) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(old.api.table, "adopt", interrupted)
    assert "Interrupted. Adopt the others: berth adopt" in old.berth("adopt", "--yes").stderr
