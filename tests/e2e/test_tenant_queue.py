"""A tenant's queue as a resource in other teams' stacks."""

from __future__ import annotations

import json
from typing import Any

from orchestrator.common.tenant_ids import TenantId
from orchestrator.local.deployment import response_url_prefix
from orchestrator.tenants.names import DEFAULT_NAME
from orchestrator.tenants.resource_requests import OnDelete
from tests.e2e.deployed import Deployed, eventually
from tests.e2e.operators import a_tenant, tenant_of

Template = dict[str, Any]
RESOURCE = "TenantQueueF2B52764"
"""The logical id of the tenant's queue in the example."""


def example(tenant: str, on_delete: OnDelete = OnDelete.RETAIN, control_plane: str = DEFAULT_NAME) -> Template:
    """The example stack's template, synthesised as its team would."""
    from aws_cdk import App

    from stacks.example import ExampleStack

    app = App(analytics_reporting=False)
    stack = ExampleStack(app, "Example", tenant_id=tenant, on_delete=on_delete, control_plane=control_plane)
    template: Template = app.synth().get_stack_artifact(stack.artifact_id).template
    # The CDK's check for a bootstrapped account reads a parameter of Systems Manager, which this test does not need.
    template.pop("Rules", None)
    template.pop("Parameters", None)
    return template


def with_failure(template: Template) -> Template:
    """The same template with a resource that fails after the tenant's queue was created."""
    broken = {"Type": "AWS::SQS::Queue", "DependsOn": RESOURCE, "Properties": {"VisibilityTimeout": 999_999}}
    return {**template, "Resources": {**template["Resources"], "Broken": broken}}


def without_labels(template: Template) -> Template:
    """The same template without labels, for a team that does not own the tenant."""
    del template["Resources"][RESOURCE]["Properties"]["Labels"]
    return template


class Team:
    """A team with its own stack."""

    def __init__(self, berth: Deployed, stack: str) -> None:
        self.stack = stack
        self._cloudformation, self._emulator = berth.client("cloudformation"), berth.emulator
        self._id = ""

    def deploy(self, template: Template) -> str:
        """Deploy the stack, and return its final status."""
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

    def event(self, request_type: str, tenant: TenantId, **properties: object) -> dict[str, Any]:
        """An event like CloudFormation's for the resource in this stack."""
        return {
            "RequestType": request_type,
            "StackId": self._id,
            "LogicalResourceId": RESOURCE,
            "PhysicalResourceId": tenant.value,
            "ResponseURL": f"{response_url_prefix(self._emulator)}nobody-waits",
            "ResourceProperties": {"TenantId": tenant.value, **properties},
        }

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


def test_a_stack_gets_a_tenants_queue_and_retains_the_tenant_when_it_is_deleted(berth: Deployed) -> None:
    tenant, team = TenantId("for-a-team"), Team(berth, "team-retain")

    assert team.deploy(example(tenant.value)) == "CREATE_COMPLETE", team.reasons()

    queue = berth.ask(tenant).body
    assert team.outputs() == {"QueueUrl": queue["queueUrl"], "QueueArn": queue["queueArn"]}
    shown = tenant_of(berth, tenant)
    assert shown["labels"] == {"team": "example"}
    assert "/team-retain/" in shown["history"][0]["requestedBy"]

    assert team.delete() == "DELETE_COMPLETE", team.reasons()
    assert berth.ask(tenant).status == 200


def test_another_tenant_id_is_another_queue_and_the_old_tenant_is_deleted_if_configured(berth: Deployed) -> None:
    first, second = TenantId("team-first"), TenantId("team-second")
    team = Team(berth, "team-delete")
    assert team.deploy(example(first.value, OnDelete.DELETE)) == "CREATE_COMPLETE", team.reasons()

    assert team.deploy(example(second.value, OnDelete.DELETE)) == "UPDATE_COMPLETE", team.reasons()

    assert team.outputs()["QueueUrl"] == berth.ask(second).body["queueUrl"]
    eventually(lambda: True if berth.ask(first).status == 410 else None, what="the first tenant is deleted")
    assert team.delete() == "DELETE_COMPLETE", team.reasons()
    assert berth.ask(second).status == 410


def test_the_rollback_of_a_stack_deletes_only_tenants_that_the_stack_created(berth: Deployed) -> None:
    there_before, new = a_tenant(berth, "there-before"), TenantId("new-with-stack")
    for tenant, status in ((there_before, 200), (new, 410)):
        team = Team(berth, f"team-{tenant}")
        template = with_failure(without_labels(example(tenant.value, OnDelete.DELETE)))
        assert team.deploy(template) == "ROLLBACK_COMPLETE"
        assert "cannot change" not in team.reasons()
        assert berth.ask(tenant).status == status


def test_the_stack_shows_why_there_is_no_queue(berth: Deployed) -> None:
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


def test_a_stack_can_be_destroyed_and_deployed_again_and_no_other_stack_revives_its_tenant(berth: Deployed) -> None:
    tenant = TenantId("deployed-again")
    template = example(tenant.value, OnDelete.DELETE)
    first = Team(berth, "team-again")
    assert first.deploy(template) == "CREATE_COMPLETE", first.reasons()
    assert first.delete() == "DELETE_COMPLETE", first.reasons()
    assert berth.ask(tenant).status == 410

    rival = Team(berth, "team-rival")
    assert rival.deploy(template) == "ROLLBACK_COMPLETE"
    assert "Ask an operator" in rival.reasons()
    assert berth.ask(tenant).status == 410

    again = Team(berth, "team-again")
    assert again.deploy(template) == "CREATE_COMPLETE", again.reasons()
    assert berth.ask(tenant).status == 200
    assert again.delete() == "DELETE_COMPLETE", again.reasons()
    assert berth.ask(tenant).status == 410


def test_another_teams_stack_does_not_relabel_a_tenant(berth: Deployed) -> None:
    tenant = a_tenant(berth, "labelled-by-nobody")
    team = Team(berth, "team-relabels")
    assert team.deploy(example(tenant.value)) == "ROLLBACK_COMPLETE"
    assert "cannot change its Labels" in team.reasons()
    assert tenant_of(berth, tenant)["labels"] == {}


def test_a_forged_event_has_no_effect(berth: Deployed) -> None:
    """An attacker invokes the function directly, in the name of the resources that own the tenants."""
    owned, deleted = TenantId("owned-by-a-team"), TenantId("deleted-by-a-team")
    owner, deleter = Team(berth, "team-owner"), Team(berth, "team-deleter")
    assert owner.deploy(example(owned.value, OnDelete.DELETE)) == "CREATE_COMPLETE", owner.reasons()
    assert deleter.deploy(example(deleted.value, OnDelete.DELETE)) == "CREATE_COMPLETE", deleter.reasons()
    assert deleter.delete() == "DELETE_COMPLETE", deleter.reasons()
    before = berth.table.metadata(owned)

    forged = {
        "delete": owner.event("Delete", owned, OnDelete="delete"),
        "relabel": owner.event("Update", owned, Labels={"team": "another"}),
        "revive": deleter.event("Create", deleted),
    }
    for request_id, event in forged.items():
        # Each execution waits for CloudFormation's confirmation, all at the same time.
        berth.invoke("berth-tenant-queue", event | {"RequestId": request_id})

    for request_id in forged:
        assert how_it_ended(berth, f"tenant-queue-{request_id}") == "Berth.NotConfirmed"
    assert berth.table.metadata(owned) == before
    assert berth.ask(owned).status == 200
    assert berth.ask(deleted).status == 410


def how_it_ended(berth: Deployed, name: str) -> str:
    """The error with which the execution of this name ended."""
    pages = berth.client("stepfunctions").get_paginator("list_state_machines").paginate()
    machines = [machine["stateMachineArn"] for page in pages for machine in page["stateMachines"]]
    (machine,) = (each for each in machines if "TenantQueueProvider" in each)
    return str(berth.ended(f"{machine.replace(':stateMachine:', ':execution:')}:{name}")["error"])
