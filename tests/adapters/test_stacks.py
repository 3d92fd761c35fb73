"""Tenants' stacks on CloudFormation: which words mean what, and what is sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.stub import ANY, Stubber

from orchestrator.adapters.cloudformation import CloudFormationStacks
from orchestrator.errors import Throttled
from orchestrator.ports import Stack
from tests.adapters.conftest import client
from tests.fakes import ACME, NOON, QUEUE, VERSION

STACK_ID = f"arn:aws:cloudformation:eu-west-1:000000000000:stack/{ACME.stack_name}/1"
ROLE, SERVICE_TOKEN = "arn:aws:iam::000000000000:role/tenant-stacks", "arn:aws:lambda:eu-west-1:0:function:metadata"
URL = "https://releases.s3.eu-west-1.amazonaws.com/0.1.0.json"


@pytest.fixture
def cloudformation() -> Iterator[Stubber]:
    """CloudFormation with scripted answers."""
    with Stubber(client("cloudformation")) as stubber:
        yield stubber
        stubber.assert_no_pending_responses()


@pytest.fixture
def stacks() -> CloudFormationStacks:
    return CloudFormationStacks(client("cloudformation"), service_role=ROLE, service_token=SERVICE_TOKEN)


def described(**changes: Any) -> dict[str, Any]:
    return {
        "StackName": ACME.stack_name,
        "StackId": STACK_ID,
        "CreationTime": NOON,
        "StackStatus": "CREATE_COMPLETE",
        **changes,
    }


def test_a_stack_is_found_with_its_tenant_queue_and_version(
    stacks: CloudFormationStacks, cloudformation: Stubber
) -> None:
    answer = described(
        StackStatusReason="User Initiated",
        Parameters=[{"ParameterKey": "TenantId", "ParameterValue": "acme"}],
        Outputs=[
            {"OutputKey": "InboundQueueArn", "OutputValue": QUEUE.arn},
            {"OutputKey": "InboundQueueUrl", "OutputValue": QUEUE.url},
            {"OutputKey": "Version", "OutputValue": VERSION},
            {"OutputKey": "Another", "OutputValue": "x"},
        ],
    )
    cloudformation.add_response("describe_stacks", {"Stacks": [answer]}, {"StackName": STACK_ID})
    assert stacks.find(STACK_ID) == Stack(STACK_ID, "CREATE_COMPLETE", "User Initiated", "acme", QUEUE, VERSION)


@pytest.mark.parametrize(
    "outputs",
    [
        [],
        [{"OutputKey": "InboundQueueArn", "OutputValue": QUEUE.arn}],
        [{"OutputKey": "InboundQueueUrl", "OutputValue": QUEUE.url}],
    ],
)
def test_a_stack_that_does_not_say_all_of_its_queue_has_none(
    stacks: CloudFormationStacks, cloudformation: Stubber, outputs: list[Any]
) -> None:
    answer = described(Outputs=outputs, StackStatus="CREATE_IN_PROGRESS")
    cloudformation.add_response("describe_stacks", {"Stacks": [answer]})
    assert stacks.find(ACME.stack_name) == Stack(STACK_ID, "CREATE_IN_PROGRESS", "", None, None, None)


def test_a_stack_that_does_not_exist_is_none(stacks: CloudFormationStacks, cloudformation: Stubber) -> None:
    cloudformation.add_client_error(
        "describe_stacks", "ValidationError", f"Stack with id {ACME.stack_name} does not exist"
    )
    assert stacks.find(ACME.stack_name) is None


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("ValidationError", "1 validation error detected: Value '' at 'stackName' failed to satisfy constraint"),
        ("AccessDenied", "User is not authorized; the resource does not exist or you may not see it"),
    ],
)
def test_any_other_refusal_is_not_taken_for_absence(
    stacks: CloudFormationStacks, cloudformation: Stubber, code: str, message: str
) -> None:
    cloudformation.add_client_error("describe_stacks", code, message)
    with pytest.raises(ClientError):
        stacks.find(ACME.stack_name)


@pytest.mark.parametrize("mode", ["EXPRESS", "STANDARD"])
def test_a_stack_is_created_in_its_mode_with_its_role_its_token_and_rollback(
    cloudformation: Stubber, mode: Any
) -> None:
    stacks = CloudFormationStacks(client("cloudformation"), service_role=ROLE, service_token=SERVICE_TOKEN, mode=mode)
    sent = {
        "StackName": ACME.stack_name,
        "TemplateURL": URL,
        "Parameters": [
            {"ParameterKey": "TenantId", "ParameterValue": "acme"},
            {"ParameterKey": "MetadataServiceToken", "ParameterValue": SERVICE_TOKEN},
        ],
        "RoleARN": ROLE,
        "ClientRequestToken": "token-create",
        "DeploymentConfig": {"Mode": mode, "DisableRollback": False},
    }
    cloudformation.add_response("create_stack", {"StackId": STACK_ID}, sent)
    assert stacks.create(ACME, template_url=URL, client_token="token-create") == STACK_ID


def test_a_stack_that_exists_already_is_not_created(stacks: CloudFormationStacks, cloudformation: Stubber) -> None:
    cloudformation.add_client_error("create_stack", "AlreadyExistsException", f"Stack [{ACME.stack_name}] exists")
    assert stacks.create(ACME, template_url=URL, client_token="token") is None


@pytest.mark.parametrize("code", ["LimitExceededException", "InsufficientCapabilitiesException", "ValidationError"])
def test_a_refused_creation_is_an_error_with_cloudformations_words(
    stacks: CloudFormationStacks, cloudformation: Stubber, code: str
) -> None:
    cloudformation.add_client_error("create_stack", code, "because of this")
    with pytest.raises(ClientError, match="because of this"):
        stacks.create(ACME, template_url=URL, client_token="token")


def test_a_stack_is_deleted_by_its_id_with_its_role(stacks: CloudFormationStacks, cloudformation: Stubber) -> None:
    sent = {"StackName": STACK_ID, "RoleARN": ROLE, "ClientRequestToken": "token-delete"}
    cloudformation.add_response("delete_stack", {}, sent)
    stacks.delete(STACK_ID, client_token="token-delete")


@pytest.mark.parametrize("code", ["Throttling", "ThrottlingException", "RequestLimitExceeded"])
def test_every_call_may_be_throttled(stacks: CloudFormationStacks, cloudformation: Stubber, code: str) -> None:
    for method in ("describe_stacks", "create_stack", "delete_stack", "describe_stack_events"):
        cloudformation.add_client_error(method, code, "Rate exceeded", http_status_code=400)
    for call in (
        lambda: stacks.find(STACK_ID),
        lambda: stacks.create(ACME, template_url=URL, client_token="token"),
        lambda: stacks.delete(STACK_ID, client_token="token"),
        lambda: list(stacks.events(STACK_ID)),
    ):
        with pytest.raises(Throttled, match="Rate exceeded"):
            call()


def an_event(number: int, resource: str, status: str, **changes: Any) -> dict[str, Any]:
    return {
        "StackId": STACK_ID,
        "StackName": ACME.stack_name,
        "EventId": str(number),
        "Timestamp": NOON,
        "LogicalResourceId": resource,
        "PhysicalResourceId": f"physical-{resource}",
        "ResourceType": "AWS::SQS::Queue",
        "ResourceStatus": status,
        **changes,
    }


STACKS_OWN = {"PhysicalResourceId": STACK_ID, "ResourceType": "AWS::CloudFormation::Stack"}
PAGES: list[dict[str, Any]] = [
    {
        "StackEvents": [
            an_event(5, ACME.stack_name, "ROLLBACK_IN_PROGRESS", ResourceStatusReason="Failed: [Q]", **STACKS_OWN),
            an_event(4, "Dead", "CREATE_FAILED", ResourceStatusReason="Resource creation cancelled"),
        ],
        "NextToken": "more",
    },
    {
        "StackEvents": [
            an_event(3, "Q", "CREATE_FAILED", ResourceStatusReason="Access denied"),
            an_event(2, "Nested", "CREATE_IN_PROGRESS", ResourceType="AWS::CloudFormation::Stack"),
            an_event(1, ACME.stack_name, "CREATE_IN_PROGRESS", **STACKS_OWN),
        ],
    },
]


def test_events_are_read_page_by_page_newest_first(stacks: CloudFormationStacks, cloudformation: Stubber) -> None:
    cloudformation.add_response("describe_stack_events", PAGES[0], {"StackName": STACK_ID})
    cloudformation.add_response("describe_stack_events", PAGES[1], {"StackName": STACK_ID, "NextToken": "more"})
    events = list(stacks.events(STACK_ID))
    assert [event.resource for event in events] == [ACME.stack_name, "Dead", "Q", "Nested", ACME.stack_name]
    assert [event.reason for event in events[:3]] == ["Failed: [Q]", "Resource creation cancelled", "Access denied"]
    assert [event.is_stack for event in events] == [True, False, False, False, True]
    assert [event.cancelled for event in events] == [False, True, False, False, False]


def test_a_page_that_is_not_needed_is_not_asked_for(stacks: CloudFormationStacks, cloudformation: Stubber) -> None:
    cloudformation.add_response("describe_stack_events", PAGES[0], {"StackName": ANY})
    assert next(iter(stacks.events(STACK_ID))).status == "ROLLBACK_IN_PROGRESS"
