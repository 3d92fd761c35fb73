"""Attackers who may create stacks and call functions, but not pass Berth's role, cannot replace a tenant's queue."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestrator.common.tenant_ids import TenantId
from tests.e2e.deployed import Deployed, eventually
from tests.e2e.operators import EARLIER, a_release, a_tenant, ended, run, tenant_of, upgrade
from tests.fakes import NAMES

EVIL_ROLE = "arn:aws:iam::000000000000:role/evil"
EVIL_QUEUE = {
    "InboundQueueArn": "arn:aws:sqs:us-east-1:111111111111:evil",
    "InboundQueueUrl": "http://sqs.us-east-1.localhost/111111111111/evil",
}


def forge(berth: Deployed, tenant: TenantId, stack_id: str, kind: str = "Update") -> None:
    """Call the function as CloudFormation does. Its response goes to a URL where nobody waits for it."""
    event = {
        "RequestType": kind,
        "StackId": stack_id,
        "RequestId": "forged",
        "LogicalResourceId": "TenantMetadata",
        "PhysicalResourceId": "tenant-metadata",
        "ResponseURL": f"http://localhost:{berth.emulator.port}/_ministack/cfn-response/forged",
        "ResourceProperties": {"TenantId": tenant.value, **EVIL_QUEUE},
    }
    berth.client("lambda").invoke(FunctionName="berth-tenant-metadata", Payload=json.dumps(event))["Payload"].read()


def plant(berth: Deployed, tenant: TenantId, **outputs: str) -> str:
    """A stack that claims to be the tenant's, with a queue without Berth's policies."""
    template: dict[str, Any] = {
        "Parameters": {"TenantId": {"Type": "String"}},
        "Resources": {"InboundQueue": {"Type": "AWS::SQS::Queue"}},
        "Outputs": {
            "InboundQueueArn": {"Value": {"Fn::GetAtt": ["InboundQueue", "Arn"]}},
            "InboundQueueUrl": {"Value": {"Ref": "InboundQueue"}},
            "Version": {"Value": berth.release},
            **{name: {"Value": value} for name, value in outputs.items()},
        },
    }
    stack_id = berth.client("cloudformation").create_stack(
        StackName=NAMES.stack_of(tenant),
        TemplateBody=json.dumps(template),
        Parameters=[{"ParameterKey": "TenantId", "ParameterValue": tenant.value}],
        RoleARN=EVIL_ROLE,
    )["StackId"]
    eventually(
        lambda: True if berth.stack(tenant)["StackStatus"] == "CREATE_COMPLETE" else None, what="the stack is there"
    )
    return str(stack_id)


@pytest.mark.parametrize("kind", ["Create", "Update", "Delete"])
def test_a_forged_event_does_not_change_the_queue_of_a_tenant(berth: Deployed, kind: str) -> None:
    tenant = a_tenant(berth, f"forged-{kind.lower()}")
    before = berth.ask(tenant).body
    forge(berth, tenant, berth.stack(tenant)["StackId"], kind)
    assert berth.ask(tenant).body == before


def test_a_foreign_stack_with_the_tenants_name_is_reported_and_not_adopted(berth: Deployed) -> None:
    tenant = TenantId("squatted")
    stack_id = plant(berth, tenant)
    forge(berth, tenant, stack_id, "Create")
    assert "METADATA" not in berth.rows_of(tenant)

    refused = berth.settled(tenant)

    assert refused.status == 424
    assert "Berth did not make it" in refused.body["detail"]
    assert berth.stack(tenant)["StackStatus"] == "CREATE_COMPLETE"
    shown = json.loads(run(berth, "reconcile", "--json").stdout)
    (finding,) = [each for each in shown["findings"] if each["subject"] == NAMES.stack_of(tenant)]
    assert (finding["kind"], finding["repaired"]) == ("foreign-stack", False)
    assert berth.ask(tenant).status == 424

    berth.delete_stack_by_hand(tenant, stack_id)


def test_the_old_queue_is_served_again_when_an_update_that_replaced_it_is_rolled_back(berth: Deployed) -> None:
    """The update is made without Berth, so that only the stack's custom resource records the queue."""
    tenant = a_tenant(berth, "replaced-and-undone")
    before = berth.ask(tenant).body

    def replaced_then_fails(template: dict[str, Any]) -> None:
        resources = template["Resources"]
        resources["InboundQueue"]["Properties"]["QueueName"] = {"Fn::Sub": "${AWS::StackName}-another"}
        resources["TooLate"] = {
            "Type": "AWS::SQS::Queue",
            "DependsOn": "TenantMetadata",
            "Properties": {"VisibilityTimeout": 999_999},
        }

    version = a_release(berth, "1.7.1", replaced_then_fails)
    assert ended(berth, upgrade(berth, tenant, version, allowReplacement=True)) == "FAILED"

    after = berth.ask(tenant).body
    assert after == before
    berth.client("sqs").send_message(QueueUrl=after["queueUrl"], MessageBody="it is there")
    assert tenant_of(berth, tenant)["state"] == "UPDATE_FAILED"


def test_a_foreign_change_set_is_not_executed(berth: Deployed) -> None:
    """The change set has the name that 0.5.0 would have used."""
    tenant = a_tenant(berth, "drawn-up", EARLIER)
    evil = {"Resources": {"InboundQueue": {"Type": "AWS::SQS::Queue"}}, "Parameters": {"TenantId": {"Type": "String"}}}
    version = berth.release
    berth.client("cloudformation").create_change_set(
        StackName=NAMES.stack_of(tenant),
        ChangeSetName=f"update-{tenant.slug}-{version.replace('.', '-')}-1",
        TemplateBody=json.dumps(evil),
        Parameters=[{"ParameterKey": "TenantId", "ParameterValue": tenant.value}],
        RoleARN=EVIL_ROLE,
    )

    assert ended(berth, upgrade(berth, tenant, version)) == "SUCCEEDED"

    made = berth.client("cloudformation").get_template(StackName=NAMES.stack_of(tenant))["TemplateBody"]
    assert made["Outputs"]["Version"]["Value"] == version
    assert berth.stack(tenant)["RoleARN"] == berth.stack_role
