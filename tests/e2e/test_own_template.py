"""An operator's own template: checked, published, rolled out, used, and taken back (docs/templates.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.common.tenant_ids import TenantId
from tests.e2e.deployed import Deployed
from tests.e2e.fleet import a_fleet, over, rollout_of, started, versions
from tests.e2e.operators import call, delete, ended, run, tenant_of, upgrade
from tests.fakes.templates import EXAMPLE_FILE, example_template

FLEET = "with-files"
VERSION, WITHOUT_ORDERS = "2.1.0", "2.2.0"


def berth_command(berth: Deployed, *arguments: str, exits: int = 0) -> Any:
    done = run(berth, "--local", *arguments, "--json")
    assert done.returncode == exits, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def fleet(berth: Deployed) -> list[TenantId]:
    """Tenants at the release that comes with Berth. Each has a message in its queue."""
    tenants = a_fleet(berth, FLEET, 3)
    for tenant in tenants:
        berth.client("sqs").send_message(QueueUrl=berth.ask(tenant).body["queueUrl"], MessageBody=tenant.value)
    return tenants


@pytest.fixture(scope="module")
def published(berth: Deployed) -> Iterator[str]:
    checked = berth_command(berth, "release", "check", str(EXAMPLE_FILE))
    assert (checked["findings"], checked["comparedWith"]) == ([], berth.release)
    done = berth_command(
        berth, "release", "publish", str(EXAMPLE_FILE), "--version", VERSION, "--notes", "Files and orders."
    )
    assert (done["status"], done["current"]) == ("PUBLISHED", berth.release)
    yield VERSION
    # Other modules share the deployment.
    berth_command(berth, "release", "promote", berth.release)


@pytest.fixture(scope="module")
def rolled_out(berth: Deployed, fleet: list[TenantId], published: str) -> str:
    """The rollout that has moved the fleet from Berth's release to the operator's."""
    plan = over(berth, started(berth, FLEET, version=published, dryRun=True))
    assert plan["status"] == "SUCCEEDED"
    changes = {each["change"] for each in plan["changes"]["resources"]}
    assert {"adds Files (AWS::S3::Bucket)", "adds Orders (AWS::DynamoDB::Table)"} <= changes
    assert not [each for each in changes if "AWS::SQS::Queue)" in each and not each.startswith("changes")]
    rollout = started(berth, FLEET, version=published)
    assert over(berth, rollout)["status"] == "SUCCEEDED"
    assert set(versions(berth, fleet).values()) == {published}
    return rollout


def test_a_published_template_never_changes(berth: Deployed, published: str, tmp_path: Path) -> None:
    again = berth_command(berth, "release", "publish", str(EXAMPLE_FILE), "--version", published)
    assert again["status"] == "UNCHANGED"
    changed = example_template()
    changed["Resources"]["InboundQueue"]["Properties"]["VisibilityTimeout"] = 60
    (tmp_path / "changed.json").write_text(json.dumps(changed))
    refused = berth_command(
        berth, "release", "publish", str(tmp_path / "changed.json"), "--version", published, exits=7
    )
    assert refused["type"] == "urn:berth:problem:release-immutable"
    listed = {each["version"]: each for each in berth_command(berth, "releases")["releases"]}
    assert listed[published]["notes"] == "Files and orders."
    assert listed[published]["publishedBy"]


def test_a_template_that_the_service_role_may_not_create_is_refused(berth: Deployed, tmp_path: Path) -> None:
    template = example_template("2.9.0")
    template["Resources"]["Topic"] = {"Type": "AWS::SNS::Topic"}
    (tmp_path / "topic.json").write_text(json.dumps(template))
    checked = berth_command(berth, "release", "check", str(tmp_path / "topic.json"), exits=8)
    assert [each["rule"] for each in checked["findings"]] == ["resource-types"]
    refused = berth_command(berth, "release", "publish", str(tmp_path / "topic.json"), "--version", "2.9.0", exits=7)
    assert refused["type"] == "urn:berth:problem:template-refused"
    assert "sns:CreateTopic" in refused["findings"][0]["problem"]


@pytest.mark.usefixtures("rolled_out")
def test_every_tenant_has_resources_of_its_own_and_uses_them(berth: Deployed, fleet: list[TenantId]) -> None:
    s3, dynamodb, sqs = berth.client("s3"), berth.client("dynamodb"), berth.client("sqs")
    found: set[str] = set()
    for tenant in fleet:
        answer = berth.ask(tenant)
        assert answer.status == 200
        resources = answer.body["resources"]
        assert set(resources) == {"DeadLetterQueueUrl", "FilesBucket", "FilesBucketArn", "OrdersTable"}
        assert tenant_of(berth, tenant)["resources"] == resources
        found |= {resources["FilesBucket"], resources["OrdersTable"]}
        s3.put_object(Bucket=resources["FilesBucket"], Key="invoice", Body=tenant.value.encode())
        assert s3.get_object(Bucket=resources["FilesBucket"], Key="invoice")["Body"].read().decode() == tenant.value
        key = {"orderId": {"S": "1"}}
        dynamodb.put_item(TableName=resources["OrdersTable"], Item={**key, "tenant": {"S": tenant.value}})
        item = dynamodb.get_item(TableName=resources["OrdersTable"], Key=key)["Item"]
        assert item["tenant"] == {"S": tenant.value}
        # The message from before the rollout is still there.
        messages = sqs.receive_message(QueueUrl=answer.body["queueUrl"], WaitTimeSeconds=5)["Messages"]
        assert [message["Body"] for message in messages] == [tenant.value]
        s3.delete_object(Bucket=resources["FilesBucket"], Key="invoice")
    assert len(found) == 2 * len(fleet)


@pytest.mark.usefixtures("rolled_out")
def test_an_update_that_would_lose_a_table_is_refused(berth: Deployed, fleet: list[TenantId], tmp_path: Path) -> None:
    template = example_template(WITHOUT_ORDERS)
    del template["Resources"]["Orders"], template["Outputs"]["OrdersTable"]
    (tmp_path / "without.json").write_text(json.dumps(template))
    done = berth_command(berth, "release", "publish", str(tmp_path / "without.json"), "--version", WITHOUT_ORDERS)
    assert done["status"] == "PUBLISHED"
    diff = berth_command(berth, "release", "diff", VERSION, WITHOUT_ORDERS)
    assert ("Orders", "removed") in {(each["logicalId"], each["change"]) for each in diff["changes"]}
    tenant = fleet[0]
    assert ended(berth, upgrade(berth, tenant, WITHOUT_ORDERS)) == "FAILED"
    assert "Orders (AWS::DynamoDB::Table) with its data" in tenant_of(berth, tenant)["rootCause"]["reason"]
    assert berth.ask(tenant).body["resources"]["OrdersTable"]
    assert ended(berth, upgrade(berth, tenant, WITHOUT_ORDERS, allowReplacement=True)) == "SUCCEEDED"
    assert "OrdersTable" not in berth.ask(tenant).body["resources"]


@pytest.mark.usefixtures("rolled_out")
def test_a_promoted_template_is_what_new_tenants_get(berth: Deployed, published: str) -> None:
    assert berth_command(berth, "release", "promote", published)["current"] == published
    tenant = TenantId("new-with-files")
    answer = berth.settled(tenant)
    assert (answer.status, answer.body["version"]) == (200, published)
    bucket = answer.body["resources"]["FilesBucket"]
    berth_command(berth, "release", "promote", berth.release)
    assert ended(berth, delete(berth, tenant)) == "SUCCEEDED"
    buckets = {each["Name"] for each in berth.client("s3").list_buckets()["Buckets"]}
    assert bucket not in buckets, "the tenant's other resources are deleted with it"


def test_a_rollout_of_it_can_be_undone(berth: Deployed, fleet: list[TenantId], rolled_out: str) -> None:
    """The tables and buckets would be lost, so an undo moves nobody unless each tenant's loss is allowed."""
    undo = started(berth, FLEET, undo=rolled_out)
    assert over(berth, undo)["status"] in ("HALTED", "FAILED")
    assert "with its data" in json.dumps(rollout_of(berth, undo)["failures"])
    last = fleet[-1]
    own = berth.release
    assert call(berth, "GET", f"/tenants/{last}").body["version"] == VERSION
    done = upgrade(berth, last, own, allowDowngrade=True, allowReplacement=True)
    assert ended(berth, done) == "SUCCEEDED"
    assert set(berth.ask(last).body["resources"]) == {"DeadLetterQueueArn", "DeadLetterQueueUrl"}
