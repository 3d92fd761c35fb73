"""This release is deployed over the previous one while operations are running, and all of them finish.

It is deployed with berth:promotion=afterRollout, so the previous release stays current until the fleet has been moved.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.statuses import EventStatus
from orchestrator.local import deployment
from orchestrator.local.deployment import deploy
from orchestrator.local.emulator import Emulator, free_port
from stacks.project import read_version
from tests.e2e.deliveries import Delivering
from tests.e2e.deployed import Deployed
from tests.e2e.fleet import a_fleet, over, stages, started, until, versions
from tests.e2e.operators import a_tenant, call, create, delete, ended, run, tenant_of, upgrade
from tests.previous import unpack

BEFORE_THAT = "0.7.0"
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
            patch.setattr(deployment, "CONTEXT", known_settings(sources))
            outputs = deploy(emulator, lambda _step: None)
        yield Deployed(emulator, outputs)
    finally:
        emulator.stop()


def known_settings(sources: Path) -> dict[str, str]:
    """The local settings that the previous release has, too. It refuses those that it does not know."""
    known = (sources / "stacks" / "settings.py").read_text(encoding="utf-8")
    return {name: value for name, value in deployment.CONTEXT.items() if f'"{name}"' in known}


def current(berth: Deployed) -> str:
    return str(call(berth, "GET", "/releases").body["current"])


def version_of_new_tenant(berth: Deployed, name: str) -> str:
    return str(tenant_of(berth, a_tenant(berth, name))["version"])


def test_operations_that_the_previous_release_began_are_finished_by_this_one(previous: Deployed, sources: Path) -> None:
    then = read_version(sources / "version.txt")
    assert previous.outputs["Version"] == then
    served, moving, going = (a_tenant(previous, name, BEFORE_THAT) for name in ("served", "moving", "going"))
    fleet = a_fleet(previous, FLEET, 3, BEFORE_THAT)
    queue = previous.ask(served).body["queueUrl"]
    events = Delivering(previous, served)
    earlier = events.send({"order": 1})

    with ExitStack() as held:
        # Every operation stops at a state whose function is throttled, one of them before it holds its tenant's lock.
        held.enter_context(previous.held_up("inspect_stack"))
        rollout = started(previous, FLEET, version=then, stages=stages("1", "rest", concurrency=1))
        accepted = [create(previous, TenantId("coming")), upgrade(previous, moving, then), delete(previous, going)]
        until(previous, rollout, "RUNNING")
        held.enter_context(previous.held_up("begin"))
        accepted.append(create(previous, TenantId("late")))
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(deployment.CONTEXT, "berth:promotion", "afterRollout")
            now = Deployed(previous.emulator, deploy(previous.emulator, lambda _step: None))

    assert [ended(now, each) for each in accepted] == ["SUCCEEDED"] * 4
    shown = over(now, rollout)
    assert (shown["status"], shown["succeeded"]) == ("SUCCEEDED", 3)
    assert set(versions(now, [*fleet, moving]).values()) == {then}
    assert now.ask(going).status == 410
    for name in ("coming", "late"):
        assert now.ask(TenantId(name)).status == 200

    # Keys and events of the previous release are still there. Events that come in from now on are delivered.
    connection = events.connect("own queue")
    order = events.send({"order": 2})
    assert events.ended(order).event.status is EventStatus.DELIVERED
    assert [message["event_id"] for message in events.from_own_queue(1)] == [order]
    assert events.event(earlier).event.status is EventStatus.FILTERED, "nobody was connected when it came in"
    events.disconnect(connection)

    # The new release is published, but new tenants get the one before until the fleet has been moved.
    assert now.outputs["Version"] != then
    assert (current(now), version_of_new_tenant(now, "early")) == (then, then)

    # Existing tenants stay in service, and can be moved to the new release.
    assert now.ask(served).body["queueUrl"] == queue
    assert ended(now, upgrade(now, served, now.outputs["Version"])) == "SUCCEEDED"
    assert tenant_of(now, served)["state"] == "READY"
    assert now.ask(served).body["queueUrl"] == queue
    rest = started(now, FLEET, version=now.outputs["Version"], stages=stages("rest"))
    assert over(now, rest)["status"] == "SUCCEEDED"
    assert current(now) == then, "a rollout of a part of the fleet says little about new tenants"
    everybody = call(now, "POST", "/rollouts", body={"version": now.outputs["Version"], "stages": stages("1", "rest")})
    assert over(now, everybody.body["rolloutId"])["status"] == "SUCCEEDED"
    assert (current(now), version_of_new_tenant(now, "newcomer")) == (now.outputs["Version"],) * 2

    found = run(now, "--local", "reconcile", "--dry-run", "--json")
    assert found.returncode == 0, found.stdout
    assert call(now, "GET", "/diagnosis").status == 200
