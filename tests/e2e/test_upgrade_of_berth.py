"""The release before is deployed and at work. This one is deployed over it, and everything ends as it should."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from orchestrator.common.tenant_ids import TenantId
from orchestrator.local import deployment
from orchestrator.local.deployment import deploy
from orchestrator.local.emulator import Emulator, free_port
from stacks.project import read_version
from tests.e2e.deployed import Deployed
from tests.e2e.fleet import a_fleet, over, stages, started, until, versions
from tests.e2e.operators import a_tenant, call, create, delete, ended, run, tenant_of, upgrade
from tests.previous import unpack

BEFORE_THAT = "0.5.0"
FLEET = "fleet"


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("sources"))


@pytest.fixture(scope="module")
def previous(tmp_path_factory: pytest.TempPathFactory, sources: Path) -> Iterator[Deployed]:
    emulator = Emulator(port=free_port(), home=tmp_path_factory.mktemp("previous"))
    emulator.start()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(deployment, "CHECKOUT", sources)
            outputs = deploy(emulator, lambda _step: None)
        yield Deployed(emulator, outputs)
    finally:
        emulator.stop()


def test_what_the_release_before_has_begun_is_ended_by_this_one(previous: Deployed, sources: Path) -> None:
    then = read_version(sources / "version.txt")
    assert previous.outputs["Version"] == then
    served, moving, going = (a_tenant(previous, name, BEFORE_THAT) for name in ("served", "moving", "going"))
    fleet = a_fleet(previous, FLEET, 3, BEFORE_THAT)
    queue = previous.ask(served).body["queueUrl"]

    with ExitStack() as held:
        # Every operation comes to a state that it cannot pass, one of them before it owns its tenant.
        held.enter_context(previous.held_up("inspect_stack"))
        rollout = started(previous, FLEET, version=then, stages=stages("1", "rest", concurrency=1))
        accepted = [create(previous, TenantId("coming")), upgrade(previous, moving, then), delete(previous, going)]
        until(previous, rollout, "RUNNING")
        held.enter_context(previous.held_up("begin"))
        accepted.append(create(previous, TenantId("late")))
        now = Deployed(previous.emulator, deploy(previous.emulator, lambda _step: None))

    assert [ended(now, each) for each in accepted] == ["SUCCEEDED"] * 4
    told = over(now, rollout)
    assert (told["status"], told["succeeded"]) == ("SUCCEEDED", 3)
    assert set(versions(now, [*fleet, moving]).values()) == {then}
    assert now.ask(going).status == 410
    for name in ("coming", "late"):
        assert now.ask(TenantId(name)).status == 200

    # What was there before is served all the same, and follows the new release.
    assert now.ask(served).body["queueUrl"] == queue
    assert ended(now, upgrade(now, served, now.outputs["Version"])) == "SUCCEEDED"
    assert tenant_of(now, served)["state"] == "READY"
    assert now.ask(served).body["queueUrl"] == queue
    rest = started(now, FLEET, version=now.outputs["Version"], stages=stages("rest"))
    assert over(now, rest)["status"] == "SUCCEEDED"
    found = run(now, "--local", "reconcile", "--dry-run", "--json")
    assert found.returncode == 0, found.stdout
    assert call(now, "GET", "/diagnosis").status == 200
