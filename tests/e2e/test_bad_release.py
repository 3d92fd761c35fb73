"""The runbook's page "A bad release", step by step, with the command line and the deployed API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from orchestrator.common.tenant_ids import TenantId
from orchestrator.local.releases import Template
from tests.e2e.deployed import Deployed
from tests.e2e.fleet import a_fleet, once_begun, order, over, stages, started, versions
from tests.e2e.operators import a_release, a_tenant, call, create, ended, retry, run, tenant_of, upgrade

FLEET = "canaries"
WHY = "queues lose messages"


def next_patch(version: str) -> str:
    major, minor, patch = version.split(".")
    return f"{major}.{minor}.{int(patch) + 1}"


def berth_command(berth: Deployed, *arguments: str) -> Any:
    done = run(berth, "--local", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def bad_change(template: Template) -> None:
    template["Resources"]["InboundQueue"]["Properties"]["VisibilityTimeout"] = 1


@pytest.fixture(scope="module")
def good(berth: Deployed) -> str:
    return str(berth.release)


@pytest.fixture(scope="module")
def bad(berth: Deployed, good: str) -> Iterator[str]:
    """A release that became current before anybody knew that it is bad. Each test starts where the last one ended."""
    version = a_release(berth, next_patch(good), bad_change)
    assert berth_command(berth, "release", "promote", version)["current"] == version
    yield version
    # Other modules share the deployment.
    berth_command(berth, "release", "promote", good)


@pytest.fixture(scope="module")
def fleet(berth: Deployed, good: str, bad: str) -> list[TenantId]:
    assert good != bad
    return a_fleet(berth, FLEET, 4, good)


@pytest.fixture(scope="module")
def created(berth: Deployed, bad: str) -> TenantId:
    """A tenant that got the bad release because it was current."""
    tenant = a_tenant(berth, "got-the-bad-one")
    assert tenant_of(berth, tenant)["version"] == bad
    return tenant


@pytest.fixture(scope="module")
def rollout(berth: Deployed, bad: str, fleet: list[TenantId], created: TenantId) -> str:
    """The withdrawal of the release, in the middle of a rollout to it."""
    moving = started(berth, FLEET, version=bad, stages=[*stages("1"), *stages("rest", approval=True)])
    once_begun(berth, moving)  # The second stage waits for an approval, which nobody gives.
    withdrawn = berth_command(berth, "release", "withdraw", bad, "--reason", WHY, "--yes")
    assert (withdrawn["status"], withdrawn["currentBefore"]) == ("WITHDRAWN", bad)
    assert withdrawn["withdrawn"]["reason"] == WHY
    assert moving in withdrawn["rollouts"]
    assert created.value in withdrawn["tenants"]
    assert len(fleet) == len(versions(berth, fleet))
    return moving


def test_withdrawing_halts_the_rollout_and_makes_the_earlier_release_current(
    berth: Deployed, good: str, bad: str, fleet: list[TenantId], rollout: str
) -> None:
    halted = over(berth, rollout)
    assert halted["status"] == "HALTED"
    assert f"Release {bad} was withdrawn by" in halted["reason"]
    assert WHY in halted["reason"]
    assert good in versions(berth, fleet).values(), "some tenants were not moved any more"
    assert order(berth, rollout, "resume").body["type"] == "urn:berth:problem:release-withdrawn"

    listed = berth_command(berth, "releases")
    found = {each["version"]: each for each in listed["releases"]}
    assert listed["current"] == good
    assert found[good]["current"]
    assert found[bad]["withdrawn"]["reason"] == WHY
    assert listed["history"][0]["order"] == "WITHDRAW"
    assert listed["history"][0]["requestedBy"] == found[bad]["withdrawn"]["requestedBy"]


def test_nothing_chooses_it_any_more(berth: Deployed, good: str, bad: str, created: TenantId, rollout: str) -> None:
    assert rollout
    new = TenantId("after-the-withdrawal")
    assert berth.settled(new).body["version"] == good, "getQueue creates at the current release"
    for refused in (
        create(berth, TenantId("by-name"), version=bad),
        upgrade(berth, new, bad),
        call(berth, "PUT", f"/tenants/{new}/pin", body={"version": bad}),
        call(berth, "POST", "/rollouts", body={"version": bad}),
        call(berth, "POST", f"/releases/{bad}/promote"),
    ):
        assert (refused.status, refused.body["type"]) == (409, "urn:berth:problem:release-withdrawn")
        assert WHY in refused.body["detail"]
    assert berth.ask(created).status == 200, "tenants at it are served"


def test_the_tenants_go_back(
    berth: Deployed, good: str, bad: str, fleet: list[TenantId], created: TenantId, rollout: str
) -> None:
    undo = started(berth, FLEET, undo=rollout)
    assert over(berth, undo)["status"] == "SUCCEEDED"
    assert set(versions(berth, fleet).values()) == {good}

    offered = retry(berth, created)
    assert offered.status == 409
    assert offered.body["detail"].endswith(f"berth upgrade {created} --allow-downgrade")
    accepted = call(berth, "POST", f"/tenants/{created}/upgrade", body={"allowDowngrade": True})
    assert ended(berth, accepted) == "SUCCEEDED"
    assert tenant_of(berth, created)["version"] == good
    assert berth_command(berth, "releases", bad)["tenants"]["total"] == 0


def test_a_release_that_was_good_after_all_is_reinstated(berth: Deployed, bad: str, rollout: str) -> None:
    assert rollout
    reinstated = berth_command(berth, "release", "reinstate", bad, "--reason", "they do not")
    assert (reinstated["status"], reinstated["current"]) == ("REINSTATED", bad)
