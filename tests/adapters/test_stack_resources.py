"""Resources in the stacks of other teams, on CloudFormation: what is asked, and what the answers mean."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from orchestrator.adapters.cloudformation import CloudFormationResources
from orchestrator.common.errors import Throttled
from orchestrator.common.stack_arns import StackArn
from orchestrator.tenants.stack_ports import ResourceState
from orchestrator.tenants.stack_resources import StackResource
from tests.adapters.conftest import Account, client
from tests.fakes import NOON, a_resource

RESOURCE = a_resource()
DETAIL = {
    "StackName": "billing",
    "StackId": str(RESOURCE.stack),
    "LogicalResourceId": "Queue",
    "ResourceType": "Custom::TenantQueue",
    "ResourceStatus": "CREATE_IN_PROGRESS",
    "LastUpdatedTimestamp": NOON,
}
ASKED = {"StackName": str(RESOURCE.stack), "LogicalResourceId": "Queue"}
CALLS: dict[str, Callable[[CloudFormationResources], object]] = {
    "describe_stack_resource": lambda resources: resources.resource(RESOURCE),
    "describe_stacks": lambda resources: resources.stack_status(RESOURCE.stack),
}


@pytest.fixture
def resources() -> CloudFormationResources:
    return CloudFormationResources(client("cloudformation"))


@pytest.mark.parametrize(("response", "physical_id"), [({}, ""), ({"PhysicalResourceId": "acme"}, "acme")])
def test_a_resource_is_described_by_the_id_of_its_stack(
    resources: CloudFormationResources, cloudformation: Stubber, response: dict[str, str], physical_id: str
) -> None:
    cloudformation.add_response("describe_stack_resource", {"StackResourceDetail": {**DETAIL, **response}}, ASKED)
    assert resources.resource(RESOURCE) == ResourceState("Custom::TenantQueue", "CREATE_IN_PROGRESS", physical_id, NOON)


def test_a_stack_is_described_by_its_id(resources: CloudFormationResources, cloudformation: Stubber) -> None:
    stack = {"StackName": "billing", "CreationTime": NOON, "StackStatus": "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"}
    cloudformation.add_response("describe_stacks", {"Stacks": [stack]}, {"StackName": str(RESOURCE.stack)})
    assert resources.stack_status(RESOURCE.stack) == "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"


@pytest.mark.parametrize(("outputs", "found"), [([], None), ([("Version", "0.8.0"), ("Name", "x")], "0.8.0")])
def test_an_output_of_a_stack(
    resources: CloudFormationResources, cloudformation: Stubber, outputs: list[tuple[str, str]], found: str | None
) -> None:
    stack = {
        "StackName": "billing",
        "CreationTime": NOON,
        "StackStatus": "UPDATE_IN_PROGRESS",
        **({"Outputs": [{"OutputKey": key, "OutputValue": value} for key, value in outputs]} if outputs else {}),
    }
    cloudformation.add_response("describe_stacks", {"Stacks": [stack]}, {"StackName": str(RESOURCE.stack)})
    assert resources.stack_output(RESOURCE.stack, "Version") == found


@pytest.mark.parametrize("words", ["Stack 'billing' does not exist", "Resource Queue does not exist for stack billing"])
@pytest.mark.parametrize("method", CALLS)
def test_a_missing_resource_or_stack_is_none(
    resources: CloudFormationResources, cloudformation: Stubber, method: str, words: str
) -> None:
    cloudformation.add_client_error(method, "ValidationError", words)
    assert CALLS[method](resources) is None


@pytest.mark.parametrize("code", ["AccessDenied", "ValidationError"])
@pytest.mark.parametrize("method", CALLS)
def test_a_denied_call_is_an_error(
    resources: CloudFormationResources, cloudformation: Stubber, method: str, code: str
) -> None:
    cloudformation.add_client_error(method, code, "not authorized")
    with pytest.raises(ClientError):
        CALLS[method](resources)


@pytest.mark.parametrize("method", CALLS)
def test_every_call_may_be_throttled(resources: CloudFormationResources, cloudformation: Stubber, method: str) -> None:
    cloudformation.add_client_error(method, "Throttling", "Rate exceeded", http_status_code=400)
    with pytest.raises(Throttled, match="Rate exceeded"):
        CALLS[method](resources)


@pytest.mark.parametrize("kind", ["moto", "emulator"], indirect=True)
class TestOnAws:
    @pytest.fixture
    def stack(self, account: Account) -> StackArn:
        template = json.dumps({"Resources": {"Queue": {"Type": "AWS::SQS::Queue"}}})
        cloudformation = account.client("cloudformation")
        stack_id = cloudformation.create_stack(StackName="billing", TemplateBody=template)["StackId"]
        cloudformation.get_waiter("stack_create_complete").wait(StackName=stack_id, WaiterConfig={"Delay": 1})
        return StackArn.parse(stack_id)

    def test_an_existing_resource_is_found(self, account: Account, stack: StackArn) -> None:
        resources = CloudFormationResources(account.client("cloudformation"))
        found = resources.resource(StackResource(stack, "Queue"))
        assert found
        assert (found.resource_type, found.status) == ("AWS::SQS::Queue", "CREATE_COMPLETE")
        assert resources.stack_status(stack) == "CREATE_COMPLETE"

    def test_no_other_resource_is_found(self, account: Account, stack: StackArn) -> None:
        resources = CloudFormationResources(account.client("cloudformation"))
        assert resources.resource(StackResource(stack, "Queue2")) is None
        assert resources.resource(RESOURCE) is None
        assert resources.stack_status(RESOURCE.stack) is None
