"""A fleet from before Berth is adopted: 25 tenants, most of them in stacks with names that Berth does not derive.

The tests depend on each other, in this order: the fleet is found, adopted, and then used like any other.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from orchestrator.common.tenant_ids import TenantId
from orchestrator.local.deployment import deploy
from orchestrator.local.emulator import Emulator, free_port
from orchestrator.reconciling.records import SURVEY
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
from tests.e2e.operators import a_release, command, create, delete, ended, run, tenant_of, upgrade

SERVED = [TenantId(f"customer-{number:02}") for number in range(1, 19)]
"""Tenants in stacks with other names."""
NAMED = [TenantId("named-01"), TenantId("named-02")]
"""Tenants in stacks with the names that Berth derives."""
OUT_OF_REACH = TenantId("out-of-reach")
NEVER_ENDED = TenantId("never-ended")
"""A tenant whose create began, and of which nothing else is recorded."""
STILL_STARTED = TenantId("still-started")
"""A tenant whose create never ended, but which is in service."""
NO_STACK = TenantId("no-stack")
"""A tenant whose queue is in no stack."""
DELETED = TenantId("deleted")
EVERYBODY = {*SERVED, *NAMED, OUT_OF_REACH, NEVER_ENDED, STILL_STARTED, NO_STACK, DELETED}
UPGRADED = [*SERVED, *NAMED, STILL_STARTED]


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
    for tenant in NAMED:
        a_legacy_tenant(berth, tenant.value)
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
    assert len(EVERYBODY) == 25


def adopted(berth: Deployed, *options: str) -> tuple[int, dict[str, Any], dict[str, dict[str, Any]]]:
    """The exit code, the whole document, and its entries by tenant."""
    done = run(berth, "adopt", "--json", *options)
    shown = json.loads(done.stdout)
    return done.returncode, shown, {tenant["tenantId"]: tenant for tenant in shown["tenants"]}


def listed(berth: Deployed) -> dict[str, str]:
    shown = json.loads(run(berth, "tenants", "--json").stdout)
    return {tenant["tenantId"]: tenant["state"] for tenant in shown["tenants"]}


def doctors_word(berth: Deployed) -> tuple[str, str]:
    shown = json.loads(run(berth, "doctor", "--json").stdout)
    (check,) = (check for check in shown["checks"] if check["name"] == "adoption")
    return check["verdict"], check["advice"]


def test_older_tenants_are_served_but_not_listed_and_survey_and_doctor_advise_to_adopt_them(
    berth: Deployed,
) -> None:
    assert berth.ask(SERVED[0]).body["version"] == VERSION
    assert listed(berth) == {}
    before = berth.rows_of_tenants()

    done = run(berth, "reconcile", "--json")

    shown = json.loads(done.stdout)
    assert done.returncode == 8
    assert {(each["kind"], each["subject"]) for each in shown["findings"]} == {
        ("unlisted-tenant", tenant.value) for tenant in EVERYBODY
    }
    assert all("berth adopt" in each["advice"] for each in shown["findings"])
    berth.invoke(berth.function("reconcile"), {"reconciliationId": SURVEY})  # The schedule does the same.
    verdict, advice = doctors_word(berth)
    assert verdict == "warning"
    assert "berth adopt --dry-run" in advice
    assert berth.rows_of_tenants() == before


def test_a_dry_run_lists_the_tenants_and_changes_nothing(berth: Deployed) -> None:
    before = berth.rows_of_tenants()
    code, shown, found = adopted(berth, "--dry-run")
    assert (code, shown["total"], shown["adopted"]) == (8, 25, 0)
    assert set(found) == {tenant.value for tenant in EVERYBODY}
    for tenant in SERVED:
        each = found[tenant.value]
        assert each["adoptable"]
        assert f"READY at version {VERSION}" in each["detail"]
        assert stack_named(berth, f"{PREFIX}{tenant}")["StackId"] in each["detail"]
        assert "with an outbound queue" in each["detail"]
    assert not found[OUT_OF_REACH.value]["adoptable"]
    assert "billing-of-long-ago" in found[OUT_OF_REACH.value]["detail"]
    assert "berth:legacyStackPrefixes" in found[OUT_OF_REACH.value]["advice"]
    assert found[NEVER_ENDED.value]["detail"] == "FAILED, CREATE that never ended becomes Failure"
    assert "CREATE that never ended becomes Success" in found[STILL_STARTED.value]["detail"]
    assert "no stack has its queue" in found[NO_STACK.value]["detail"]
    assert "DELETED" in found[DELETED.value]["detail"]
    assert berth.rows_of_tenants() == before


def _heed_interrupts() -> None:
    """Restore the default handler: tests in the background ignore Ctrl-C, and their processes inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_an_interrupted_adoption_can_be_repeated_and_each_tenant_is_adopted_once(berth: Deployed) -> None:
    with (
        berth.held_up("reconcile"),
        subprocess.Popen(
            **command(berth, "adopt"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=_heed_interrupts
        ) as first,
    ):
        assert first.stderr is not None
        assert any("is about to start" in line for line in first.stderr)
        first.send_signal(signal.SIGINT)
        assert "The adoption continues in the control plane" in first.stderr.read()
    assert first.returncode == 130

    again = run(berth, "adopt")

    assert again.returncode == 8
    assert re.search(r"Adopted \d+, not adopted 1\.", again.stdout)
    code, shown, found = adopted(berth)
    assert (code, shown["adopted"]) == (8, 0)
    assert set(found) == {OUT_OF_REACH.value, NO_STACK.value}
    assert "delete the queue by hand" in found[NO_STACK.value]["advice"]
    for tenant in EVERYBODY - {OUT_OF_REACH}:
        (entry,) = berth.table.history(tenant)
        assert isinstance(entry, RecordedChange)
        assert entry.kind is ChangeKind.ADOPT


def test_adopted_tenants_are_tenants_like_any_other(berth: Deployed) -> None:
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
    assert {each["subject"] for each in shown["findings"]} == {OUT_OF_REACH.value, NO_STACK.value}


def test_a_rollout_moves_adopted_tenants_and_removes_their_outbound_queues(berth: Deployed) -> None:
    before = {tenant: berth.ask(tenant).body for tenant in UPGRADED}
    names = [tenant.value for tenant in UPGRADED]
    answer = start(berth, "", labels={}, tenants=names, stages=stages("2", "rest", concurrency=8))
    shown = over(berth, answer.body["rolloutId"])
    assert (shown["status"], shown["succeeded"]) == ("SUCCEEDED", 21)
    for tenant in UPGRADED:
        after = berth.ask(tenant).body
        assert set(after.pop("resources")) == {"DeadLetterQueueArn", "DeadLetterQueueUrl"}
        assert {**after, "resources": {}} == {**before[tenant], "version": berth.outputs["Version"]}
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
