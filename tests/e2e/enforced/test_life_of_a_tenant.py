"""With the deployed permissions, all operations work, and no request is denied."""

from __future__ import annotations

from orchestrator.common.tenant_ids import TenantId
from orchestrator.local.releases import Template
from tests.e2e.deployed import eventually
from tests.e2e.enforced.control_plane import Enforced
from tests.e2e.fleet import over, started
from tests.e2e.operators import a_release, call, create, delete, ended

EXPECTED_ACTIONS = {
    "cloudformation:CreateStack",
    "cloudformation:ExecuteChangeSet",
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:UpdateItem",
    "events:PutEvents",
    "events:PutRule",
    "execute-api:Invoke",
    "iam:PassRole",
    "lambda:InvokeFunction",
    "s3:GetObject",
    "sqs:GetQueueUrl",
    "sqs:SendMessage",
    "states:StartExecution",
    "sts:AssumeRole",
    "sts:SetSourceIdentity",
}
"""Some actions that must be in the log. If one is missing, a part of the enforcement does not work."""


def _slower(template: Template) -> None:
    template["Resources"]["InboundQueue"]["Properties"]["VisibilityTimeout"] = 77


def test_no_request_is_denied_from_the_creation_of_a_tenant_to_its_deletion(enforced: Enforced) -> None:
    root, platform, operator = enforced.root, enforced.platform, enforced.operator
    tenant, other = TenantId("enforced-1"), TenantId("enforced-2")
    before = len(enforced.decisions())

    # A platform asks for a queue, which creates the tenant; an operator creates another tenant.
    assert platform.settled(tenant).status == 200
    assert ended(root, create(operator, other, labels={"fleet": "enforced"})) == "SUCCEEDED"
    assert create(operator, tenant, labels={"fleet": "enforced"}).status == 200

    # Temporary credentials give access to the queue.
    queue = platform.ask(tenant).body["queueUrl"]
    enforced.with_credentials(tenant, "send").send_message(QueueUrl=queue, MessageBody="hello")
    (message,) = enforced.with_credentials(tenant, "receive").receive_message(QueueUrl=queue)["Messages"]
    assert message["Body"] == "hello"

    # A rollout moves both tenants to a release.
    release = a_release(root, "1.90.0", _slower)
    assert over(root, started(operator, "enforced", version=release))["status"] == "SUCCEEDED"
    assert platform.ask(tenant).body["version"] == release

    # An operator compares a tenant with its stack, also with one that was deleted without Berth.
    compared = call(operator, "GET", f"/tenants/{other}/stack")
    assert (compared.status, compared.body["agreement"]) == (200, "AGREES"), compared.body
    assert compared.body["stack"]["version"] == release
    root.delete_stack_by_hand(other, root.stack(other)["StackId"])
    gone = call(operator, "GET", f"/tenants/{other}/stack").body
    assert (gone["agreement"], gone["stack"], gone["finding"]["kind"]) == ("DIFFERS", None, "missing-stack")

    # A reconciliation finds that, and creates the stack again.
    asked = call(operator, "POST", "/reconciliations", body={})
    assert asked.status == 202, asked.body

    def reconciled() -> bool | None:
        reconciliation = call(operator, "GET", f"/reconciliations/{asked.body['reconciliationId']}").body
        return True if reconciliation["status"] not in ("PENDING", "RUNNING") else None

    assert eventually(reconciled, what="the reconciliation has ended")
    assert platform.settled(other).status == 200

    # The message is still in the queue, so the operator deletes by force.
    assert ended(root, delete(operator, tenant, force="true")) == "SUCCEEDED"
    assert platform.ask(tenant).status == 410

    # The command line finds the API in the outputs of the control plane's stack.
    assert operator.client("cloudformation").describe_stacks(StackName="Berth")["Stacks"]

    assert enforced.denials() == []
    assert {each.action for each in enforced.decisions()[before:] if each.allowed} >= EXPECTED_ACTIONS
