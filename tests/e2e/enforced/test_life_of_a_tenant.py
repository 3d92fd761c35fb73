"""With the permissions that are deployed, and no others, all that has to work does, and nothing is denied meanwhile."""

from __future__ import annotations

from orchestrator.common.tenant_ids import TenantId
from orchestrator.local.releases import Template
from tests.e2e.deployed import eventually
from tests.e2e.enforced.control_plane import Enforced
from tests.e2e.fleet import over, started
from tests.e2e.operators import a_release, call, create, delete, ended

DECIDED = {
    "cloudformation:CreateStack",
    "cloudformation:ExecuteChangeSet",
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:UpdateItem",
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
"""Some of what has to be decided on the way, and is not if a part of the enforcement is missing."""


def _slower(template: Template) -> None:
    template["Resources"]["InboundQueue"]["Properties"]["VisibilityTimeout"] = 77


def test_from_the_first_question_to_the_last_nothing_is_denied(enforced: Enforced) -> None:
    root, platform, operator = enforced.root, enforced.platform, enforced.operator
    tenant, other = TenantId("enforced-1"), TenantId("enforced-2")
    before = len(enforced.decisions())

    # A platform asks for a queue, which makes the tenant; an operator makes another one.
    assert platform.settled(tenant).status == 200
    assert ended(root, create(operator, other, labels={"fleet": "enforced"})) == "SUCCEEDED"
    assert create(operator, tenant, labels={"fleet": "enforced"}).status == 200

    # The platform uses the queue with the credentials that it is given.
    queue = platform.ask(tenant).body["queueUrl"]
    enforced.with_credentials(tenant, "send").send_message(QueueUrl=queue, MessageBody="hello")
    (message,) = enforced.with_credentials(tenant, "receive").receive_message(QueueUrl=queue)["Messages"]
    assert message["Body"] == "hello"

    # A release moves both.
    release = a_release(root, "0.90.0", _slower)
    assert over(root, started(operator, "enforced", version=release))["status"] == "SUCCEEDED"
    assert platform.ask(tenant).body["version"] == release

    # What was deleted past Berth is found and made again.
    root.delete_stack_by_hand(other, root.stack(other)["StackId"])
    asked = call(operator, "POST", "/reconciliations", body={})
    assert asked.status == 202, asked.body

    def reconciled() -> bool | None:
        told = call(operator, "GET", f"/reconciliations/{asked.body['reconciliationId']}").body
        return True if told["status"] not in ("PENDING", "RUNNING") else None

    assert eventually(reconciled, what="the reconciliation has ended")
    assert platform.settled(other).status == 200

    # The message was never deleted from the queue, so the operator insists.
    assert ended(root, delete(operator, tenant, force="true")) == "SUCCEEDED"
    assert platform.ask(tenant).status == 410

    # An operator's command line finds the API by the control plane's stack.
    assert operator.client("cloudformation").describe_stacks(StackName="Berth")["Stacks"]

    assert enforced.denials() == []
    assert {each.action for each in enforced.decisions()[before:] if each.allowed} >= DECIDED
