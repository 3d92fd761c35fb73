"""Two control planes in one account and region, each with a tenant acme. One name goes on where the other ends.

The tests tell one story, in order: what becomes of one acme is nothing to the other.
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
    """Both tenants' queues, as a platform is told of them."""
    a_tenant(berth, ACME.value)
    a_tenant(dev, ACME.value)
    return berth.ask(ACME).body, dev.ask(ACME).body


def everything_of(berth: Deployed) -> tuple[Any, ...]:
    """All that a control plane has recorded about acme, its stack, and what is in its queue."""
    stack = berth.stack(ACME)
    url = berth.ask(ACME).body["queueUrl"]
    counted = berth.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages"])
    rows = [row for row in berth.rows() if row["pk"]["S"].endswith(f"#{ACME}")]
    return rows, stack["StackId"], stack["StackStatus"], stack.get("LastUpdatedTime"), counted["Attributes"]


def surveyed(berth: Deployed, *arguments: str) -> dict[str, Any]:
    done = run(berth, "reconcile", "--json", *arguments)
    told: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == 0, told
    return told


def test_each_has_a_stack_and_a_queue_of_its_own(
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
def test_the_command_line_finds_each_by_its_name_and_tells_of_both_where_there_is_none(
    berth: Deployed, dev: Deployed
) -> None:
    for each in (berth, dev):
        told = json.loads(run(each, "--local", "tenant", "acme", "--json").stdout)
        assert told["queueUrl"] == each.ask(ACME).body["queueUrl"]
    option = run(berth, "--local", "--stack", "Berth-dev", "tenant", "acme", "--json")
    assert json.loads(option.stdout)["queueUrl"] == dev.ask(ACME).body["queueUrl"]
    nobody = run(berth, "--local", "tenants", "--stack", "Berth-prod")
    assert nobody.returncode == 6
    assert "No control plane named Berth-prod" in nobody.stderr
    assert "Existing control planes: Berth, Berth-dev." in nobody.stderr


@pytest.mark.usefixtures("created")
def test_a_reconciliation_of_one_neither_reports_nor_touches_what_is_the_others(berth: Deployed, dev: Deployed) -> None:
    for mine, others in ((berth, dev), (dev, berth)):
        before = everything_of(others)
        told = surveyed(mine, "--detect-drift")
        assert (told["findings"], told["lookedAt"]["tenants"], told["lookedAt"]["stacks"]) == ([], 1, 1)
        assert everything_of(others) == before


@pytest.mark.usefixtures("created")
def test_a_team_says_in_which_of_them_its_tenant_is(berth: Deployed, dev: Deployed) -> None:
    team = Team(dev, "team-of-dev")
    assert team.deploy(example("of-a-team", control_plane="Berth-dev")) == "CREATE_COMPLETE", team.reasons()
    tenant = TenantId("of-a-team")
    assert team.outputs()["QueueArn"] == dev.ask(tenant).body["queueArn"]
    assert berth.api().request("GET", f"/tenants/{tenant}", query={}, body=None).status == 404
    assert ended(dev, delete(dev, tenant)) == "SUCCEEDED"


@pytest.mark.usefixtures("created")
def test_upgrading_the_tenant_of_one_leaves_the_others_as_it_was(berth: Deployed, dev: Deployed) -> None:
    a_release(dev, NEXT, lambda template: template["Resources"]["InboundQueue"]["Properties"].update(DelaySeconds=1))
    before = everything_of(berth)
    assert ended(dev, upgrade(dev, ACME, NEXT)) == "SUCCEEDED"
    assert tenant_of(dev, ACME)["version"] == NEXT
    assert everything_of(berth) == before
    assert tenant_of(berth, ACME)["version"] == berth.outputs["Version"]


@pytest.mark.usefixtures("created")
def test_what_befalls_the_stack_of_one_is_repaired_there_and_not_noticed_by_the_other(
    berth: Deployed, dev: Deployed
) -> None:
    before = everything_of(berth)
    dev.delete_stack_by_hand(ACME, dev.stack(ACME)["StackId"])
    assert surveyed(berth)["findings"] == []
    (finding,) = json.loads(run(dev, "reconcile", "--json").stdout)["findings"]
    assert (finding["subject"], finding["kind"]) == ("acme", "missing-stack")
    assert dev.settled(ACME).status == 200
    assert everything_of(berth) == before


@pytest.mark.usefixtures("created")
def test_deleting_the_tenant_of_one_leaves_the_others_with_what_is_in_its_queue(berth: Deployed, dev: Deployed) -> None:
    before = everything_of(berth)
    assert ended(dev, delete(dev, ACME)) == "SUCCEEDED"
    assert dev.ask(ACME).status == 410
    assert everything_of(berth) == before
    assert before[-1] == {"ApproximateNumberOfMessages": "1"}
    assert surveyed(berth)["findings"] == []
