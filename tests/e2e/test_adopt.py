"""Tenants from before Berth are adopted with `berth adopt`, and then upgraded and deleted like any other.

The tests depend on each other, in this order.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from orchestrator.common.tenant_ids import TenantId
from orchestrator.local.deployment import deploy
from orchestrator.local.emulator import Emulator, free_port
from orchestrator.tenants.history import ChangeKind, RecordedChange
from orchestrator.tenants.names import Names
from tests.e2e.deployed import Deployed
from tests.e2e.fleet import over, stages, start
from tests.e2e.legacy import (
    PREFIX,
    VERSION,
    a_legacy_fleet,
    a_legacy_tenant,
    an_old_stack,
    old_audit,
    old_metadata,
    stack_named,
)
from tests.e2e.operators import a_release, create, delete, ended, run, tenant_of, upgrade

SERVED = [TenantId(f"customer-{number}") for number in range(1, 4)]
"""Tenants in stacks with other names."""
NAMED = TenantId("named")
"""A tenant in a stack with the name that Berth derives."""
OUT_OF_REACH = TenantId("out-of-reach")
NEVER_ENDED = TenantId("never-ended")
"""A tenant whose create began, and of which nothing else is recorded."""
STILL_STARTED = TenantId("still-started")
"""A tenant whose create never ended, but which is in service."""
NO_STACK = TenantId("no-stack")
"""A tenant whose queue is in no stack."""
DELETED = TenantId("deleted")
EVERYBODY = {*SERVED, NAMED, OUT_OF_REACH, NEVER_ENDED, STILL_STARTED, NO_STACK, DELETED}
UPGRADED = [*SERVED, NAMED, STILL_STARTED]


@pytest.fixture(scope="module")
def berth(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    emulator = Emulator(port=free_port(), home=tmp_path_factory.mktemp("adopt"))
    emulator.start()
    try:
        outputs = deploy(emulator, lambda _step: None, legacyStackPrefixes=PREFIX)
        yield Deployed(emulator, outputs, names=Names("Berth", (PREFIX,)))
    finally:
        emulator.stop()


@pytest.fixture(scope="module", autouse=True)
def _fleet(berth: Deployed) -> None:
    a_legacy_fleet(berth, [tenant.value for tenant in SERVED])
    a_legacy_tenant(berth, NAMED.value)
    a_legacy_tenant(berth, OUT_OF_REACH.value, "billing-of-long-ago")
    old_audit(berth, NEVER_ENDED, status="Started")
    old_metadata(berth, STILL_STARTED, an_old_stack(berth, STILL_STARTED, f"{PREFIX}{STILL_STARTED}"))
    old_audit(berth, STILL_STARTED, status="Started")
    sqs = berth.client("sqs")
    url = sqs.create_queue(QueueName=f"{PREFIX}{NO_STACK}-InboundQueue-1")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    old_metadata(berth, NO_STACK, {"InboundQueueUrl": url, "InboundQueueArn": arn})
    old_audit(berth, NO_STACK)
    old_audit(berth, DELETED)
    old_audit(berth, DELETED, "DELETE")


def adopted(berth: Deployed, *options: str) -> tuple[int, int, dict[str, dict[str, Any]]]:
    """The exit code, the number of tenants that were adopted, and what is shown about each."""
    done = run(berth, "adopt", "--json", *options)
    shown = json.loads(done.stdout)
    return done.returncode, shown["adopted"], {tenant["tenantId"]: tenant for tenant in shown["tenants"]}


def listed(berth: Deployed) -> dict[str, str]:
    shown = json.loads(run(berth, "tenants", "--json").stdout)
    return {tenant["tenantId"]: tenant["state"] for tenant in shown["tenants"]}


def test_tenants_that_are_not_adopted_are_served_but_not_listed(berth: Deployed) -> None:
    assert berth.ask(SERVED[0]).body["version"] == VERSION
    assert listed(berth) == {}
    before = berth.rows_of_tenants()
    shown = json.loads(run(berth, "reconcile", "--json").stdout)
    assert {(each["kind"], each["subject"]) for each in shown["findings"]} == {("not-adopted", NAMED.value)}
    assert berth.rows_of_tenants() == before


def test_a_dry_run_lists_the_tenants_and_changes_nothing(berth: Deployed) -> None:
    before = berth.rows_of_tenants()
    for options in (["--dry-run"], []):
        code, count, found = adopted(berth, *options)
        assert (code, count, set(found)) == (8, 0, {tenant.value for tenant in EVERYBODY})
    for tenant in SERVED:
        detail = found[tenant.value]["detail"]
        stack = stack_named(berth, f"{PREFIX}{tenant}")["StackId"]
        assert detail == f"READY at version {VERSION}; stack {stack}; its next upgrade removes its outbound queue"
    assert "billing-of-long-ago" in found[OUT_OF_REACH.value]["detail"]
    assert "berth:legacyStackPrefixes" in found[OUT_OF_REACH.value]["detail"]
    assert found[NEVER_ENDED.value]["detail"] == "FAILED; CREATE that never ended becomes Failure"
    assert "CREATE that never ended becomes Success" in found[STILL_STARTED.value]["detail"]
    assert "No stack has its queue" in found[NO_STACK.value]["detail"]
    assert found[DELETED.value]["detail"] == "DELETED"
    assert [name for name, each in found.items() if not each["adoptable"]] == [OUT_OF_REACH.value]
    assert berth.rows_of_tenants() == before


def test_an_adoption_adopts_each_tenant_once(berth: Deployed) -> None:
    done = run(berth, "adopt", "--yes", "--reason", "Ticket 4711")
    assert done.returncode == 8, done.stderr
    assert done.stdout.splitlines()[-1] == "Adopted 8 of 9 tenants."
    before = berth.rows_of_tenants()
    code, count, found = adopted(berth, "--yes")
    assert (code, count, set(found)) == (8, 0, {OUT_OF_REACH.value, NO_STACK.value})
    assert berth.rows_of_tenants() == before
    for tenant in EVERYBODY - {OUT_OF_REACH}:
        (entry,) = berth.table.history(tenant)
        assert isinstance(entry, RecordedChange)
        assert (entry.kind, entry.request.reason) == (ChangeKind.ADOPT, "Ticket 4711")


def test_adopted_tenants_are_listed_with_their_stacks(berth: Deployed) -> None:
    states = listed(berth)
    assert {name for name, state in states.items() if state == "READY"} == {
        tenant.value for tenant in (*UPGRADED, NO_STACK)
    }
    assert states[NEVER_ENDED.value] == "FAILED"
    for tenant in SERVED:
        row = berth.rows_of(tenant)["METADATA"]
        assert row["StackId"]["S"] == stack_named(berth, f"{PREFIX}{tenant}")["StackId"]
        assert "UpdateAt" not in row
        assert "OutboundQueueUrl" in row
    shown = json.loads(run(berth, "reconcile", "--json").stdout)
    assert {(each["kind"], each["subject"]) for each in shown["findings"]} == {("not-adopted", NO_STACK.value)}


def test_a_rollout_moves_adopted_tenants_and_removes_their_outbound_queues(berth: Deployed) -> None:
    before = {tenant: berth.ask(tenant).body for tenant in UPGRADED}
    names = [tenant.value for tenant in UPGRADED]
    answer = start(berth, "", labels={}, tenants=names, stages=stages("2", "rest", concurrency=8))
    shown = over(berth, answer.body["rolloutId"])
    assert (shown["status"], shown["succeeded"]) == ("SUCCEEDED", len(UPGRADED))
    for tenant in UPGRADED:
        after = berth.ask(tenant).body
        assert set(after.pop("resources")) == {"DeadLetterQueueArn", "DeadLetterQueueUrl"}
        assert {**after, "resources": {}} == {**before[tenant], "version": berth.release}
        row = berth.rows_of(tenant)["METADATA"]
        assert not {"OutboundQueueArn", "OutboundQueueUrl"} & set(row)
        queues = {each["LogicalResourceId"] for each in resources(berth, row["StackId"]["S"])}
        assert queues == {"InboundQueue", "DeadLetterQueue"}


def resources(berth: Deployed, stack_id: str) -> list[dict[str, str]]:
    shown = berth.client("cloudformation").describe_stack_resources(StackName=stack_id)["StackResources"]
    return [each for each in shown if each["ResourceType"] == "AWS::SQS::Queue"]


def test_a_failed_update_of_an_adopted_tenant_is_reported_and_rolled_back(berth: Deployed) -> None:
    tenant = SERVED[1]
    before = berth.ask(tenant).body

    def fails(template: dict[str, Any]) -> None:
        template["Resources"]["InboundQueue"]["Properties"]["VisibilityTimeout"] = 999_999

    assert ended(berth, upgrade(berth, tenant, a_release(berth, "9.0.0", fails))) == "FAILED"
    cause = tenant_of(berth, tenant)["rootCause"]
    assert cause["resource"] == "InboundQueue"
    assert berth.ask(tenant).body == before


def test_an_adopted_tenant_that_is_deleted_and_created_again_gets_a_stack_with_berths_name(berth: Deployed) -> None:
    tenant = SERVED[2]
    assert ended(berth, delete(berth, tenant)) == "SUCCEEDED"
    assert berth.ask(tenant).status == 410
    assert ended(berth, create(berth, tenant)) == "SUCCEEDED"
    assert berth.rows_of(tenant)["METADATA"]["StackId"]["S"] == berth.stack(tenant)["StackId"]
    assert berth.ask(tenant).body["queueUrl"].rpartition("/")[2].startswith(berth.names.stack_of(tenant))
