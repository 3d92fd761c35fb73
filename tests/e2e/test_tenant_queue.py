"""Other teams' stacks: a tenant's queue as a resource in them."""

from __future__ import annotations

import json
from typing import Any

from orchestrator.local.deployment import response_url_prefix
from orchestrator.records import Status
from orchestrator.resource_requests import OnDelete
from orchestrator.tenants import TenantId
from tests.e2e.deployed import Deployed, eventually
from tests.e2e.operators import a_tenant, tenant_of

Template = dict[str, Any]


def example(tenant: str, on_delete: OnDelete = OnDelete.RETAIN) -> Template:
    """The example stack's template, synthesised as its team would."""
    from aws_cdk import App

    from stacks.example import ExampleStack

    app = App(analytics_reporting=False)
    stack = ExampleStack(app, "Example", tenant_id=tenant, on_delete=on_delete)
    template: Template = app.synth().get_stack_artifact(stack.artifact_id).template
    # The CDK's check for a bootstrapped account reads a parameter of Systems Manager, which is beside the point.
    template.pop("Rules", None)
    template.pop("Parameters", None)
    return template


def with_failure(template: Template) -> Template:
    """The same, with a resource that fails once the tenant's queue is there."""
    (queue,) = (name for name, resource in template["Resources"].items() if resource["Type"] == "Custom::TenantQueue")
    broken = {"Type": "AWS::SQS::Queue", "DependsOn": queue, "Properties": {"VisibilityTimeout": 999_999}}
    return {**template, "Resources": {**template["Resources"], "Broken": broken}}


class Team:
    """A team with a stack of its own."""

    def __init__(self, berth: Deployed, stack: str) -> None:
        self.stack = stack
        self._cloudformation = berth.client("cloudformation")
        self._id = ""

    def deploy(self, template: Template) -> str:
        """Deploy, and say how that ended."""
        arguments = {
            "StackName": self.stack,
            "TemplateBody": json.dumps(template),
            "Capabilities": ["CAPABILITY_IAM"],
        }
        if self._id:
            self._cloudformation.update_stack(**arguments)
        else:
            self._id = self._cloudformation.create_stack(**arguments)["StackId"]
        return self._settled()

    def delete(self) -> str:
        self._cloudformation.delete_stack(StackName=self._id)
        return self._settled()

    def outputs(self) -> dict[str, str]:
        return {output["OutputKey"]: output["OutputValue"] for output in self._described().get("Outputs", [])}

    def reasons(self) -> str:
        events = self._cloudformation.describe_stack_events(StackName=self._id)["StackEvents"]
        return " ".join(event.get("ResourceStatusReason", "") for event in events)

    def _described(self) -> Any:
        return self._cloudformation.describe_stacks(StackName=self._id)["Stacks"][0]

    def _settled(self) -> str:
        def look() -> str | None:
            status = str(self._described()["StackStatus"])
            return None if status.endswith("_IN_PROGRESS") else status

        return eventually(look, what=f"the stack {self.stack} has settled")


def test_a_stack_gets_a_tenants_queue_and_leaves_the_tenant_behind_when_it_goes(berth: Deployed) -> None:
    tenant, team = TenantId("for-a-team"), Team(berth, "team-retain")

    assert team.deploy(example(tenant.value)) == "CREATE_COMPLETE", team.reasons()

    queue = berth.ask(tenant).body
    assert team.outputs() == {"QueueUrl": queue["queueUrl"], "QueueArn": queue["queueArn"]}
    told = tenant_of(berth, tenant)
    assert told["labels"] == {"team": "example"}
    assert "/team-retain/" in told["history"][0]["requestedBy"]

    assert team.delete() == "DELETE_COMPLETE", team.reasons()
    assert berth.ask(tenant).status == 200


def test_another_tenant_is_another_queue_and_the_old_tenant_is_deleted_if_that_was_wished_for(berth: Deployed) -> None:
    first, second = TenantId("team-first"), TenantId("team-second")
    team = Team(berth, "team-delete")
    assert team.deploy(example(first.value, OnDelete.DELETE)) == "CREATE_COMPLETE", team.reasons()

    assert team.deploy(example(second.value, OnDelete.DELETE)) == "UPDATE_COMPLETE", team.reasons()

    assert team.outputs()["QueueUrl"] == berth.ask(second).body["queueUrl"]
    eventually(lambda: True if berth.ask(first).status == 410 else None, what="the first tenant is deleted")
    assert team.delete() == "DELETE_COMPLETE", team.reasons()
    assert berth.ask(second).status == 410


def test_the_rollback_of_a_stack_takes_along_only_what_the_stack_itself_had_created(berth: Deployed) -> None:
    there_before, new = a_tenant(berth, "there-before"), TenantId("new-with-stack")
    for tenant, status in ((there_before, 200), (new, 410)):
        team = Team(berth, f"team-{tenant}")
        assert team.deploy(with_failure(example(tenant.value, OnDelete.DELETE))) == "ROLLBACK_COMPLETE"
        assert berth.ask(tenant).status == status


def test_why_there_is_no_queue_is_told_to_the_stack(berth: Deployed) -> None:
    team = Team(berth, "team-invalid")
    assert team.deploy(example("not/an/id")) == "ROLLBACK_COMPLETE"
    assert "InvalidRequest" in team.reasons()
    assert team.delete() == "DELETE_COMPLETE"


def test_messages_in_the_queue_keep_the_stack_from_deleting_the_tenant(berth: Deployed) -> None:
    tenant, team = TenantId("team-messages"), Team(berth, "team-messages")
    assert team.deploy(example(tenant.value, OnDelete.DELETE)) == "CREATE_COMPLETE", team.reasons()
    url = team.outputs()["QueueUrl"]
    berth.client("sqs").send_message(QueueUrl=url, MessageBody="hello")

    assert team.delete() == "DELETE_FAILED"
    assert "1 visible" in team.reasons()
    assert berth.ask(tenant).status == 200

    berth.client("sqs").purge_queue(QueueUrl=url)
    assert team.delete() == "DELETE_COMPLETE", team.reasons()
    assert berth.ask(tenant).status == 410


def test_the_same_event_twice_has_the_effect_of_one(berth: Deployed) -> None:
    tenant = TenantId("twice")
    event = {
        "RequestType": "Create",
        "StackId": "arn:aws:cloudformation:us-east-1:000000000000:stack/a-team/1",
        "RequestId": "3b0f7a52-0000-4000-8000-000000000001",
        "LogicalResourceId": "Queue",
        "ResponseURL": f"{response_url_prefix(berth.emulator)}nobody-waits",
        "ResourceProperties": {"TenantId": tenant.value},
    }
    for _ in range(3):
        berth.invoke("berth-tenant-queue", event)

    assert berth.settled(tenant).status == 200
    assert [entry.status for entry in berth.table.history(tenant)] == [Status.STARTED, Status.SUCCESS]
