"""Two control planes in one account and region, each with a tenant acme. One's name begins with the other's.

The tests depend on each other, in this order. No operation on one acme affects the other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from orchestrator.common.tenant_ids import TenantId
from orchestrator.local.deployment import deploy
from orchestrator.local.emulator import Emulator, free_port
from orchestrator.tenants.names import Names
from tests.e2e.deployed import Deployed
from tests.e2e.operators import a_release, a_tenant, delete, ended, run, tenant_of, upgrade
from tests.e2e.test_tenant_queue import Team, example

ACME = TenantId("acme")
NEXT = "9.0.0"


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Deployed, Deployed]]:
    emulator = Emulator(port=free_port(), home=tmp_path_factory.mktemp("side-by-side"))
    emulator.start()
    try:
        berth = Deployed(emulator, deploy(emulator, lambda _step: None))
        dev = Deployed(emulator, deploy(emulator, lambda _step: None, name="Berth-dev"), names=Names("Berth-dev"))
        yield berth, dev
    finally:
        emulator.stop()


@pytest.fixture(scope="module")
def berth(both: tuple[Deployed, Deployed]) -> Deployed:
    return both[0]


@pytest.fixture(scope="module")
def dev(both: tuple[Deployed, Deployed]) -> Deployed:
    return both[1]


@pytest.fixture(scope="module")
def created(berth: Deployed, dev: Deployed) -> tuple[Any, Any]:
    """Both tenants' queues, from getQueue."""
    a_tenant(berth, ACME.value)
    a_tenant(dev, ACME.value)
    return berth.ask(ACME).body, dev.ask(ACME).body


def everything_of(berth: Deployed) -> tuple[Any, ...]:
    """The rows of acme in a control plane, its stack, and the messages in its queue."""
    stack = berth.stack(ACME)
    url = berth.ask(ACME).body["queueUrl"]
    counted = berth.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages"])
    rows = [row for row in berth.rows() if row["pk"]["S"].endswith(f"#{ACME}")]
    return rows, stack["StackId"], stack["StackStatus"], stack.get("LastUpdatedTime"), counted["Attributes"]


def surveyed(berth: Deployed, *arguments: str) -> dict[str, Any]:
    done = run(berth, "reconcile", "--json", *arguments)
    shown: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == 0, shown
    return shown


def test_each_tenant_has_its_own_stack_and_queue(
    berth: Deployed, dev: Deployed, created: tuple[dict[str, str], dict[str, str]]
) -> None:
    here, there = created
    assert here["queueArn"] != there["queueArn"]
    assert ":berth-tenant-acme-" in here["queueArn"]
    assert ":berth-dev-tenant-acme-" in there["queueArn"]
    assert berth.stack(ACME)["StackId"] != dev.stack(ACME)["StackId"]
    assert berth.outputs["TableName"] != dev.outputs["TableName"]
    berth.client("sqs").send_message(QueueUrl=here["queueUrl"], MessageBody="for one of them")
    assert "Messages" not in dev.client("sqs").receive_message(QueueUrl=there["queueUrl"])


@pytest.mark.usefixtures("created")
def test_the_command_line_finds_each_by_its_name_and_lists_both_for_an_unknown_name(
    berth: Deployed, dev: Deployed
) -> None:
    for each in (berth, dev):
        shown = json.loads(run(each, "--local", "tenant", "acme", "--json").stdout)
        assert shown["queueUrl"] == each.ask(ACME).body["queueUrl"]
    option = run(berth, "--local", "--stack", "Berth-dev", "tenant", "acme", "--json")
    assert json.loads(option.stdout)["queueUrl"] == dev.ask(ACME).body["queueUrl"]
    nobody = run(berth, "--local", "tenants", "--stack", "Berth-prod")
    assert nobody.returncode == 6
    assert "No control plane named Berth-prod" in nobody.stderr
    assert "Existing control planes: Berth, Berth-dev." in nobody.stderr


@pytest.mark.usefixtures("created")
def test_a_reconciliation_ignores_the_other_control_planes_stacks(berth: Deployed, dev: Deployed) -> None:
    for mine, others in ((berth, dev), (dev, berth)):
        before = everything_of(others)
        shown = surveyed(mine, "--detect-drift")
        assert (shown["findings"], shown["lookedAt"]["tenants"], shown["lookedAt"]["stacks"]) == ([], 1, 1)
        assert everything_of(others) == before


@pytest.mark.usefixtures("created")
def test_a_team_chooses_the_control_plane_of_its_tenant(berth: Deployed, dev: Deployed) -> None:
    team = Team(dev, "team-of-dev")
    assert team.deploy(example("of-a-team", control_plane="Berth-dev")) == "CREATE_COMPLETE", team.reasons()
    tenant = TenantId("of-a-team")
    assert team.outputs()["QueueArn"] == dev.ask(tenant).body["queueArn"]
    assert berth.api().request("GET", f"/tenants/{tenant}", query={}, body=None).status == 404
    assert ended(dev, delete(dev, tenant)) == "SUCCEEDED"


@pytest.mark.usefixtures("created")
def test_an_upgrade_does_not_change_the_other_control_planes_tenant(berth: Deployed, dev: Deployed) -> None:
    a_release(dev, NEXT, lambda template: template["Resources"]["InboundQueue"]["Properties"].update(DelaySeconds=1))
    before = everything_of(berth)
    assert ended(dev, upgrade(dev, ACME, NEXT)) == "SUCCEEDED"
    assert tenant_of(dev, ACME)["version"] == NEXT
    assert everything_of(berth) == before
    assert tenant_of(berth, ACME)["version"] == berth.release


@pytest.mark.usefixtures("created")
def test_a_stack_deleted_by_hand_is_repaired_by_its_own_control_plane_only(berth: Deployed, dev: Deployed) -> None:
    before = everything_of(berth)
    dev.delete_stack_by_hand(ACME, dev.stack(ACME)["StackId"])
    assert surveyed(berth)["findings"] == []
    (finding,) = json.loads(run(dev, "reconcile", "--json").stdout)["findings"]
    assert (finding["subject"], finding["kind"]) == ("acme", "missing-stack")
    assert dev.settled(ACME).status == 200
    assert everything_of(berth) == before


@pytest.mark.usefixtures("created")
def test_a_delete_leaves_the_other_control_planes_tenant_and_its_messages(berth: Deployed, dev: Deployed) -> None:
    before = everything_of(berth)
    assert ended(dev, delete(dev, ACME)) == "SUCCEEDED"
    assert dev.ask(ACME).status == 410
    assert everything_of(berth) == before
    assert before[-1] == {"ApproximateNumberOfMessages": "1"}
    assert surveyed(berth)["findings"] == []
