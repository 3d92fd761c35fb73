"""Tenants' stacks on CloudFormation: which words mean what, and what is sent."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.stub import ANY, Stubber

from orchestrator.adapters.cloudformation import CloudFormationStacks
from orchestrator.common.errors import Conflict, Throttled
from orchestrator.common.own_versions import template_version
from orchestrator.releases.published import canonical, stack_parameters
from orchestrator.tenants.records import Queue
from orchestrator.tenants.stack_ports import Change, ChangeSet, ChangeSetState, Effect, Stack
from stacks.releases.committed import digest, release_file
from tests.adapters.conftest import client
from tests.fakes import A_KEY, ACME, NAMES, NOON, QUEUE, VERSION, a_release
from tests.present import present

STACK_ID = f"arn:aws:cloudformation:eu-west-1:000000000000:stack/{NAMES.stack_of(ACME)}/1"
ROLE, SERVICE_TOKEN = "arn:aws:iam::000000000000:role/tenant-stacks", "arn:aws:lambda:eu-west-1:0:function:metadata"
RELEASE = a_release(VERSION)
URL = RELEASE.template_url
PARAMETERS = [
    {"ParameterKey": "TenantId", "ParameterValue": "acme"},
    {"ParameterKey": "MetadataServiceToken", "ParameterValue": SERVICE_TOKEN},
]
CHANGES = "berth-name"
"""The name of a change set."""
CHANGE_SET = f"arn:aws:cloudformation:eu-west-1:000000000000:changeSet/{CHANGES}/1"

given = partial(stack_parameters, service_token=SERVICE_TOKEN)


@pytest.fixture
def stacks() -> CloudFormationStacks:
    return CloudFormationStacks(client("cloudformation"), names=NAMES, service_role=ROLE, parameters=given)


def described(**changes: Any) -> dict[str, Any]:
    return {
        "StackName": NAMES.stack_of(ACME),
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
        RoleARN=ROLE,
        Parameters=[{"ParameterKey": "TenantId", "ParameterValue": "acme"}],
        Outputs=[
            {"OutputKey": "InboundQueueArn", "OutputValue": QUEUE.arn},
            {"OutputKey": "InboundQueueUrl", "OutputValue": QUEUE.url},
            {"OutputKey": "Version", "OutputValue": VERSION},
            {"OutputKey": "Another", "OutputValue": "x"},
        ],
    )
    cloudformation.add_response("describe_stacks", {"Stacks": [answer]}, {"StackName": STACK_ID})
    assert stacks.find(STACK_ID) == Stack(
        *(STACK_ID, "CREATE_COMPLETE", "User Initiated", "acme", QUEUE, VERSION),
        ours=True,
        parameters={"TenantId": "acme"},
        changed_at=NOON,
        outputs={"InboundQueueArn": QUEUE.arn, "InboundQueueUrl": QUEUE.url, "Version": VERSION, "Another": "x"},
    )


def test_the_time_of_the_last_update_counts_more_than_that_of_the_creation(
    stacks: CloudFormationStacks, cloudformation: Stubber
) -> None:
    later = NOON + timedelta(hours=1)
    cloudformation.add_response("describe_stacks", {"Stacks": [described(LastUpdatedTime=later)]})
    assert present(stacks.find(STACK_ID)).changed_at == later


@pytest.mark.parametrize(
    "outputs",
    [
        [],
        [{"OutputKey": "InboundQueueArn", "OutputValue": QUEUE.arn}],
        [{"OutputKey": "InboundQueueUrl", "OutputValue": QUEUE.url}],
    ],
)
def test_a_stack_with_an_incomplete_queue_has_none(
    stacks: CloudFormationStacks, cloudformation: Stubber, outputs: list[Any]
) -> None:
    answer = described(Outputs=outputs, StackStatus="CREATE_IN_PROGRESS")
    cloudformation.add_response("describe_stacks", {"Stacks": [answer]})
    found = present(stacks.find(NAMES.stack_of(ACME)))
    assert replace(found, outputs={}) == Stack(
        STACK_ID, "CREATE_IN_PROGRESS", "", None, None, None, ours=False, changed_at=NOON
    )


@pytest.mark.parametrize("role", [{}, {"RoleARN": f"{ROLE}-2"}], ids=["none", "another"])
def test_a_stack_of_another_role_is_not_ours(
    stacks: CloudFormationStacks, cloudformation: Stubber, role: dict[str, str]
) -> None:
    cloudformation.add_response("describe_stacks", {"Stacks": [described(**role)]})
    stack = present(stacks.find(NAMES.stack_of(ACME)))
    assert not stack.ours


# The stack that has a queue among its resources

OWN_QUEUE = f"https://sqs.eu-west-1.amazonaws.com/000000000000/{NAMES.stack_of(ACME)}-InboundQueue-ABC"
OWN_ARN = f"arn:aws:sqs:eu-west-1:000000000000:{NAMES.stack_of(ACME)}-InboundQueue-ABC"


def listed(**changes: Any) -> dict[str, Any]:
    resource = {
        "StackId": STACK_ID,
        "LogicalResourceId": "InboundQueue",
        "PhysicalResourceId": OWN_QUEUE,
        "ResourceType": "AWS::SQS::Queue",
        "ResourceStatus": "CREATE_COMPLETE",
        "Timestamp": NOON,
    }
    return {"StackResources": [resource | changes]}


def test_the_stack_of_a_queue_is_found_by_its_url(stacks: CloudFormationStacks, cloudformation: Stubber) -> None:
    cloudformation.add_response("describe_stack_resources", listed(), {"PhysicalResourceId": OWN_QUEUE})
    cloudformation.add_response("describe_stacks", {"Stacks": [described()]}, {"StackName": STACK_ID})
    assert present(stacks.stack_with(Queue(OWN_ARN, OWN_QUEUE))).stack_id == STACK_ID


@pytest.mark.parametrize(("partition", "domain"), [("aws", "amazonaws.com"), ("aws-cn", "amazonaws.com.cn")])
def test_the_stack_of_a_queue_is_found_by_todays_url_if_the_row_has_that_of_an_older_sdk(
    stacks: CloudFormationStacks, cloudformation: Stubber, partition: str, domain: str
) -> None:
    old, today = "https://eu-west-1.queue.amazonaws.com/0/in", f"https://sqs.eu-west-1.{domain}/0/in"
    missing = f"Stack for {old} does not exist"
    cloudformation.add_client_error(
        "describe_stack_resources", "ValidationError", missing, expected_params={"PhysicalResourceId": old}
    )
    cloudformation.add_response("describe_stack_resources", listed(), {"PhysicalResourceId": today})
    cloudformation.add_response("describe_stacks", {"Stacks": [described()]})
    assert stacks.stack_with(Queue(f"arn:{partition}:sqs:eu-west-1:0:in", old)) is not None


@pytest.mark.parametrize("arn", [OWN_ARN, "no ARN"])
def test_a_queue_may_be_in_no_stack(stacks: CloudFormationStacks, cloudformation: Stubber, arn: str) -> None:
    for _ in range(1 if arn == OWN_ARN else 2):
        cloudformation.add_client_error("describe_stack_resources", "ValidationError", "Stack does not exist")
    assert stacks.stack_with(Queue(arn, OWN_QUEUE)) is None


def test_a_queue_that_outlived_its_stack_is_in_no_stack(stacks: CloudFormationStacks, cloudformation: Stubber) -> None:
    cloudformation.add_response("describe_stack_resources", listed())
    cloudformation.add_response("describe_stacks", {"Stacks": [described(StackStatus="DELETE_COMPLETE")]})
    assert stacks.stack_with(Queue(OWN_ARN, OWN_QUEUE)) is None


def test_a_denied_request_for_the_stack_of_a_queue_is_an_error(
    stacks: CloudFormationStacks, cloudformation: Stubber
) -> None:
    cloudformation.add_client_error("describe_stack_resources", "AccessDenied", "no")
    with pytest.raises(ClientError):
        stacks.stack_with(Queue(OWN_ARN, OWN_QUEUE))


# The queue among a stack's resources


@pytest.mark.parametrize("status", ["CREATE_IN_PROGRESS", "CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_FAILED"])
def test_the_queue_of_a_stack_has_the_arn_of_its_url(
    stacks: CloudFormationStacks, cloudformation: Stubber, status: str
) -> None:
    sent = {"StackName": STACK_ID, "LogicalResourceId": "InboundQueue"}
    cloudformation.add_response("describe_stack_resources", listed(ResourceStatus=status), sent)
    arn = f"arn:aws:sqs:eu-west-1:000000000000:{NAMES.stack_of(ACME)}-InboundQueue-ABC"
    assert stacks.queue(STACK_ID) == Queue(arn, OWN_QUEUE)


@pytest.mark.parametrize(
    "answer",
    [
        {"StackResources": []},
        listed(ResourceType="AWS::SNS::Topic"),
        listed(LogicalResourceId="DeadLetterQueue"),
        listed(PhysicalResourceId=""),
        listed(PhysicalResourceId=OWN_QUEUE.replace("000000000000", "111111111111")),
        listed(PhysicalResourceId=OWN_QUEUE.replace(NAMES.stack_of(ACME), "billing")),
        listed(PhysicalResourceId=OWN_QUEUE.replace(NAMES.stack_of(ACME), f"x/{NAMES.stack_of(ACME)}")),
        listed(PhysicalResourceId=f"{OWN_QUEUE}\n"),
        listed(ResourceStatus="DELETE_COMPLETE"),
        listed(ResourceStatus="DELETE_IN_PROGRESS"),
    ],
    ids=[
        *("no resource", "no queue", "another resource", "not made yet", "of another account", "of another name"),
        *("of another path", "with a newline", "deleted", "going"),
    ],
)
def test_no_other_resource_is_the_queue_of_a_stack(
    stacks: CloudFormationStacks, cloudformation: Stubber, answer: dict[str, Any]
) -> None:
    cloudformation.add_response("describe_stack_resources", answer)
    assert stacks.queue(STACK_ID) is None


@pytest.mark.parametrize(
    "message", [f"Stack '{STACK_ID}' does not exist", "Resource InboundQueue does not exist for stack x"]
)
def test_a_stack_that_does_not_exist_has_no_queue(
    stacks: CloudFormationStacks, cloudformation: Stubber, message: str
) -> None:
    cloudformation.add_client_error("describe_stack_resources", "ValidationError", message)
    assert stacks.queue(STACK_ID) is None


def test_the_queues_of_a_stack_are_listed_until_they_are_deleted(
    stacks: CloudFormationStacks, cloudformation: Stubber
) -> None:
    going = {"LogicalResourceId": "DeadLetterQueue", "PhysicalResourceId": f"{OWN_QUEUE}-2"}
    resources = [
        listed(ResourceStatus="DELETE_COMPLETE"),
        listed(**going, ResourceStatus="DELETE_FAILED"),
        listed(LogicalResourceId="Other", PhysicalResourceId=f"{OWN_QUEUE}-3", ResourceStatus="DELETE_IN_PROGRESS"),
        listed(LogicalResourceId="Topic", ResourceType="AWS::SNS::Topic"),
    ]
    cloudformation.add_response("list_stack_resources", _summaries(*resources), {"StackName": STACK_ID})
    assert {name: queue.url for name, queue in stacks.queues(STACK_ID).items()} == {
        "DeadLetterQueue": f"{OWN_QUEUE}-2",
        "Other": f"{OWN_QUEUE}-3",
    }


def test_the_queues_of_a_stack_are_listed_from_all_pages(stacks: CloudFormationStacks, cloudformation: Stubber) -> None:
    other = listed(LogicalResourceId="Orders", PhysicalResourceId=f"{OWN_QUEUE}-2")
    cloudformation.add_response(
        "list_stack_resources", _summaries(listed()) | {"NextToken": "more"}, {"StackName": STACK_ID}
    )
    cloudformation.add_response("list_stack_resources", _summaries(other), {"StackName": STACK_ID, "NextToken": "more"})
    assert list(stacks.queues(STACK_ID)) == ["InboundQueue", "Orders"]


def test_the_queues_of_a_stack_include_fifo_queues_but_no_tenant_is_served_from_one(
    stacks: CloudFormationStacks, cloudformation: Stubber
) -> None:
    """A template of an operator may have FIFO queues besides the inbound queue, and they may hold messages."""
    orders = listed(LogicalResourceId="Orders", PhysicalResourceId=f"{OWN_QUEUE}-2.fifo")
    cloudformation.add_response("list_stack_resources", _summaries(orders))
    assert [queue.url for queue in stacks.queues(STACK_ID).values()] == [f"{OWN_QUEUE}-2.fifo"]
    cloudformation.add_response("describe_stack_resources", listed(PhysicalResourceId=f"{OWN_QUEUE}.fifo"))
    assert stacks.queue(STACK_ID) is None


def test_a_stack_that_does_not_exist_has_no_queues(stacks: CloudFormationStacks, cloudformation: Stubber) -> None:
    message = f"Stack with id {STACK_ID} does not exist"
    cloudformation.add_client_error("list_stack_resources", "ValidationError", message)
    assert stacks.queues(STACK_ID) == {}


def _summaries(*resources: dict[str, Any]) -> dict[str, Any]:
    """The same resources as ListStackResources returns them."""
    found = [dict(each["StackResources"][0]) for each in resources]
    summaries = [each | {"LastUpdatedTimestamp": each.pop("Timestamp")} for each in found]
    return {"StackResourceSummaries": [{k: v for k, v in each.items() if k != "StackId"} for each in summaries]}


@pytest.mark.parametrize(("code", "error"), [("Throttling", Throttled), ("AccessDenied", ClientError)])
def test_a_queue_that_cannot_be_read_is_an_error(
    stacks: CloudFormationStacks, cloudformation: Stubber, code: str, error: type[Exception]
) -> None:
    cloudformation.add_client_error("describe_stack_resources", code, "not now")
    with pytest.raises(error, match="not now"):
        stacks.queue(STACK_ID)


def test_a_stack_that_does_not_exist_is_none(stacks: CloudFormationStacks, cloudformation: Stubber) -> None:
    cloudformation.add_client_error(
        "describe_stacks", "ValidationError", f"Stack with id {NAMES.stack_of(ACME)} does not exist"
    )
    assert stacks.find(NAMES.stack_of(ACME)) is None


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("ValidationError", "1 validation error detected: Value '' at 'stackName' failed to satisfy constraint"),
        ("AccessDenied", "User is not authorized; the resource does not exist or you may not see it"),
    ],
)
def test_any_other_refusal_is_an_error(
    stacks: CloudFormationStacks, cloudformation: Stubber, code: str, message: str
) -> None:
    cloudformation.add_client_error("describe_stacks", code, message)
    with pytest.raises(ClientError):
        stacks.find(NAMES.stack_of(ACME))


def test_a_stack_is_created_in_the_default_mode_with_role_and_token(
    stacks: CloudFormationStacks, cloudformation: Stubber
) -> None:
    """CloudFormation rolls back by default. The stubber refuses any parameter that is not expected."""
    sent = {
        "StackName": NAMES.stack_of(ACME),
        "TemplateURL": URL,
        "Parameters": PARAMETERS,
        "RoleARN": ROLE,
        "ClientRequestToken": "token-create",
    }
    cloudformation.add_response("create_stack", {"StackId": STACK_ID}, sent)
    assert stacks.create(ACME, release=RELEASE, client_token="token-create") == STACK_ID


def test_a_release_with_a_key_parameter_gets_the_key(cloudformation: Stubber) -> None:
    release = a_release(parameters=["KmsKeyArn"])
    stacks = CloudFormationStacks(
        client("cloudformation"), names=NAMES, service_role=ROLE, parameters=partial(given, kms_key=A_KEY)
    )
    with_key = [*PARAMETERS, {"ParameterKey": "KmsKeyArn", "ParameterValue": A_KEY}]
    sent = {"Parameters": with_key, "TemplateURL": URL, "StackName": NAMES.stack_of(ACME), "RoleARN": ROLE}
    rest = {"ClientRequestToken": ANY}
    cloudformation.add_response("create_stack", {"StackId": STACK_ID}, sent | rest)
    stacks.create(ACME, release=release, client_token="token")
    rest = {"ChangeSetName": ANY, "ChangeSetType": "UPDATE", "ClientToken": ANY}
    cloudformation.add_response("create_change_set", {"Id": CHANGE_SET}, sent | rest)
    stacks.create_change_set(ACME, STACK_ID, release=release, name=CHANGES)


@pytest.mark.parametrize("code", ["AlreadyExistsException", "TokenAlreadyExistsException"])
def test_an_existing_stack_is_not_created(stacks: CloudFormationStacks, cloudformation: Stubber, code: str) -> None:
    cloudformation.add_client_error("create_stack", code, f"Stack [{NAMES.stack_of(ACME)}] exists")
    assert stacks.create(ACME, release=RELEASE, client_token="token") is None


def test_a_stack_that_somebody_deletes_meanwhile_gets_no_change_set(
    stacks: CloudFormationStacks, cloudformation: Stubber
) -> None:
    gone = f"Stack [{NAMES.stack_of(ACME)}] does not exist"
    cloudformation.add_client_error("create_change_set", "ValidationError", gone)
    assert stacks.create_change_set(ACME, STACK_ID, release=RELEASE, name=CHANGES) is None


@pytest.mark.parametrize("code", ["LimitExceededException", "InsufficientCapabilitiesException", "ValidationError"])
def test_a_refused_creation_is_an_error_with_the_reason(
    stacks: CloudFormationStacks, cloudformation: Stubber, code: str
) -> None:
    cloudformation.add_client_error("create_stack", code, "because of this")
    with pytest.raises(ClientError, match="because of this"):
        stacks.create(ACME, release=RELEASE, client_token="token")


def test_a_stack_is_deleted_by_its_id_with_token_and_role(
    stacks: CloudFormationStacks, cloudformation: Stubber
) -> None:
    sent = {
        "StackName": STACK_ID,
        "RoleARN": ROLE,
        "ClientRequestToken": "token-delete",
    }
    cloudformation.add_response("delete_stack", {}, sent)
    stacks.delete(STACK_ID, client_token="token-delete")


def test_a_change_set_is_created_with_role_and_parameters(
    stacks: CloudFormationStacks, cloudformation: Stubber
) -> None:
    sent = {
        "StackName": NAMES.stack_of(ACME),
        "ChangeSetName": CHANGES,
        "ChangeSetType": "UPDATE",
        "TemplateURL": URL,
        "Parameters": PARAMETERS,
        "RoleARN": ROLE,
        "ClientToken": CHANGES,
    }
    cloudformation.add_response("create_change_set", {"Id": CHANGE_SET}, sent)
    assert stacks.create_change_set(ACME, STACK_ID, release=RELEASE, name=CHANGES) == CHANGE_SET


def test_an_existing_change_set_of_that_name_is_not_ours(stacks: CloudFormationStacks, cloudformation: Stubber) -> None:
    cloudformation.add_client_error("create_change_set", "AlreadyExistsException", f"ChangeSet {CHANGES} exists")
    assert stacks.create_change_set(ACME, STACK_ID, release=RELEASE, name=CHANGES) is None


@pytest.mark.parametrize("code", ["LimitExceededException", "InsufficientCapabilitiesException", "ValidationError"])
def test_a_refused_change_set_is_an_error_with_the_reason(
    stacks: CloudFormationStacks, cloudformation: Stubber, code: str
) -> None:
    cloudformation.add_client_error("create_change_set", code, "because of this")
    with pytest.raises(ClientError, match="because of this"):
        stacks.create_change_set(ACME, STACK_ID, release=RELEASE, name=CHANGES)


def a_change(resource: str = "Queue", action: str = "Modify", **changes: Any) -> dict[str, Any]:
    change = {
        "Action": action,
        "LogicalResourceId": resource,
        "PhysicalResourceId": QUEUE.url,
        "ResourceType": "AWS::SQS::Queue",
        **changes,
    }
    return {"Type": "Resource", "ResourceChange": change}


def drawn_up(
    *changes: dict[str, Any], status: str = "CREATE_COMPLETE", execution_status: str = "AVAILABLE", **more: Any
) -> dict[str, Any]:
    return {
        "ChangeSetId": CHANGE_SET,
        "StackId": STACK_ID,
        "Status": status,
        "ExecutionStatus": execution_status,
        "Changes": list(changes),
        **more,
    }


@pytest.mark.parametrize(
    ("status", "execution_status", "reason", "state"),
    [
        ("CREATE_PENDING", "UNAVAILABLE", "", ChangeSetState.PENDING),
        ("DELETE_IN_PROGRESS", "UNAVAILABLE", "", ChangeSetState.PENDING),
        ("CREATE_IN_PROGRESS", "UNAVAILABLE", "", ChangeSetState.PENDING),
        ("CREATE_COMPLETE", "AVAILABLE", "", ChangeSetState.READY),
        ("CREATE_COMPLETE", "EXECUTE_IN_PROGRESS", "", ChangeSetState.EXECUTED),
        ("CREATE_COMPLETE", "EXECUTE_COMPLETE", "", ChangeSetState.EXECUTED),
        ("CREATE_COMPLETE", "EXECUTE_FAILED", "", ChangeSetState.EXECUTED),
        ("CREATE_COMPLETE", "OBSOLETE", "", ChangeSetState.STALE),
        (
            "FAILED",
            "UNAVAILABLE",
            "The submitted information didn't contain changes. Submit different information to create a change set.",
            ChangeSetState.EMPTY,
        ),
        ("FAILED", "UNAVAILABLE", "No updates are to be performed.", ChangeSetState.EMPTY),
        ("FAILED", "UNAVAILABLE", "Template error: unresolved reference", ChangeSetState.FAILED),
        ("FAILED", "UNAVAILABLE", "", ChangeSetState.FAILED),
        ("DELETE_FAILED", "UNAVAILABLE", "", ChangeSetState.FAILED),
        # Words that would mean nothing to change are read only where CloudFormation has failed to draw up changes.
        ("CREATE_COMPLETE", "AVAILABLE", "No updates are to be performed.", ChangeSetState.READY),
    ],
)
def test_every_status_of_a_change_set_has_a_state(
    stacks: CloudFormationStacks,
    cloudformation: Stubber,
    status: str,
    execution_status: str,
    reason: str,
    state: ChangeSetState,
) -> None:
    answer = drawn_up(status=status, execution_status=execution_status, StatusReason=reason)
    cloudformation.add_response(
        "describe_change_set", answer, {"StackName": NAMES.stack_of(ACME), "ChangeSetName": CHANGES}
    )
    assert stacks.find_change_set(STACK_ID, CHANGES) == ChangeSet(CHANGE_SET, STACK_ID, state, reason, [], {}, [])


def test_a_change_set_has_its_parameters(stacks: CloudFormationStacks, cloudformation: Stubber) -> None:
    cloudformation.add_response("describe_change_set", drawn_up(a_change(), Parameters=PARAMETERS))
    change_set = present(stacks.find_change_set(STACK_ID, CHANGE_SET))
    assert change_set.parameters == {"TenantId": "acme", "MetadataServiceToken": SERVICE_TOKEN}
    assert change_set.extras == []


@pytest.mark.parametrize(
    ("more", "extra"),
    [
        ({"Capabilities": ["CAPABILITY_IAM"]}, "capabilities"),
        ({"IncludeNestedStacks": True}, "nested stacks"),
        ({"ParentChangeSetId": CHANGE_SET}, "nested stacks"),
        ({"ImportExistingResources": True}, "imported resources"),
        ({"Changes": [a_change(action="Import")]}, "imported resources"),
        ({"OnStackFailure": "DO_NOTHING"}, "an action on stack failure"),
    ],
)
def test_other_options_of_a_change_set_are_listed(
    stacks: CloudFormationStacks, cloudformation: Stubber, more: dict[str, Any], extra: str
) -> None:
    cloudformation.add_response("describe_change_set", drawn_up(**more))
    change_set = present(stacks.find_change_set(STACK_ID, CHANGE_SET))
    assert change_set.extras == [extra]


ATTACHED = {
    "NotificationARNs": ["arn:aws:sns:eu-west-1:0:ops"],
    "RollbackConfiguration": {"RollbackTriggers": [{"Arn": "arn:aws:cloudwatch:eu-west-1:0:alarm:x", "Type": "x"}]},
}


def test_topics_and_alarms_of_stacks_and_change_sets_are_read(
    stacks: CloudFormationStacks, cloudformation: Stubber
) -> None:
    cloudformation.add_response("describe_change_set", drawn_up(**ATTACHED))
    cloudformation.add_response("describe_stacks", {"Stacks": [described(**ATTACHED)]})
    response, stack = stacks.find_change_set(STACK_ID, CHANGE_SET), stacks.find(STACK_ID)
    assert response is not None
    assert stack is not None
    assert response.extras == []
    assert response.attached == stack.attached
    assert response.attached == {"arn:aws:sns:eu-west-1:0:ops", "arn:aws:cloudwatch:eu-west-1:0:alarm:x"}


@pytest.mark.parametrize("spell", [json.dumps, lambda template: canonical(template).decode()], ids=["short", "ours"])
def test_the_format_of_a_template_does_not_change_its_digest(
    stacks: CloudFormationStacks, cloudformation: Stubber, spell: Callable[[Any], str]
) -> None:
    template = json.loads(release_file(template_version()).read_bytes())
    sent = {"StackName": NAMES.stack_of(ACME), "ChangeSetName": CHANGE_SET, "TemplateStage": "Original"}
    cloudformation.add_response("get_template", {"TemplateBody": spell(dict(reversed(template.items())))}, sent)
    assert stacks.template_digest(STACK_ID, CHANGE_SET) == digest(release_file(template_version()))


@pytest.mark.parametrize("body", ["Resources:\n  Queue: {Type: x}\n", "[]", "7"], ids=["YAML", "list", "number"])
def test_a_template_that_is_not_an_object_has_no_digest(
    stacks: CloudFormationStacks, cloudformation: Stubber, body: str
) -> None:
    cloudformation.add_response("get_template", {"TemplateBody": body})
    assert stacks.template_digest(STACK_ID, CHANGE_SET) is None


@pytest.mark.parametrize(
    ("code", "error"), [("ChangeSetNotFound", Conflict), ("Throttling", Throttled), ("AccessDenied", ClientError)]
)
def test_a_template_that_cannot_be_read_is_an_error(
    stacks: CloudFormationStacks, cloudformation: Stubber, code: str, error: type[Exception]
) -> None:
    cloudformation.add_client_error("get_template", code, "not now")
    with pytest.raises(error, match="not now"):
        stacks.template_digest(STACK_ID, CHANGE_SET)


@pytest.mark.parametrize(
    ("action", "replacement", "effect", "removes"),
    [
        ("Add", None, Effect.ADD, False),
        ("Modify", "False", Effect.CHANGE, False),
        ("Modify", "True", Effect.REPLACE, True),
        ("Modify", "Conditional", Effect.MAY_REPLACE, True),
        ("Dynamic", None, Effect.MAY_REPLACE, True),
        ("Remove", None, Effect.REMOVE, True),
    ],
)
def test_a_change_that_may_replace_a_resource_removes_it(
    stacks: CloudFormationStacks,
    cloudformation: Stubber,
    action: str,
    replacement: str | None,
    effect: Effect,
    removes: bool,
) -> None:
    change = a_change(action=action, **({"Replacement": replacement} if replacement else {}))
    cloudformation.add_response("describe_change_set", drawn_up(change))
    change_set = present(stacks.find_change_set(STACK_ID, CHANGES))
    assert change_set.changes == [Change("Queue", "AWS::SQS::Queue", QUEUE.url, effect)]
    assert effect.removes is removes


def test_an_added_resource_has_no_physical_id_yet(stacks: CloudFormationStacks, cloudformation: Stubber) -> None:
    change = a_change(action="Add")
    del change["ResourceChange"]["PhysicalResourceId"]
    cloudformation.add_response("describe_change_set", drawn_up(change))
    change_set = present(stacks.find_change_set(STACK_ID, CHANGES))
    assert [change.physical_id for change in change_set.changes] == [""]


def test_all_pages_of_a_change_set_are_read(stacks: CloudFormationStacks, cloudformation: Stubber) -> None:
    pages = {None: "second", "second": "third", "third": None}
    for number, (token, following) in enumerate(pages.items()):
        asked = {"StackName": NAMES.stack_of(ACME), "ChangeSetName": CHANGES}
        cloudformation.add_response(
            "describe_change_set",
            drawn_up(a_change(f"Queue{number}"), **({"NextToken": following} if following else {})),
            asked | ({"NextToken": token} if token else {}),
        )
    change_set = present(stacks.find_change_set(STACK_ID, CHANGES))
    assert [change.resource for change in change_set.changes] == ["Queue0", "Queue1", "Queue2"]


@pytest.mark.parametrize("code", ["ChangeSetNotFound", "ChangeSetNotFoundException"])
def test_an_unknown_change_set_is_none(stacks: CloudFormationStacks, cloudformation: Stubber, code: str) -> None:
    cloudformation.add_client_error("describe_change_set", code, f"ChangeSet [{CHANGES}] does not exist")
    assert stacks.find_change_set(STACK_ID, CHANGES) is None


def test_a_change_set_that_cannot_be_read_is_an_error(stacks: CloudFormationStacks, cloudformation: Stubber) -> None:
    cloudformation.add_client_error("describe_change_set", "AccessDenied", "not authorized")
    with pytest.raises(ClientError, match="not authorized"):
        stacks.find_change_set(STACK_ID, CHANGES)


def test_a_change_set_is_executed_with_a_token_and_rollback(
    stacks: CloudFormationStacks, cloudformation: Stubber
) -> None:
    sent = {
        "StackName": NAMES.stack_of(ACME),
        "ChangeSetName": CHANGES,
        "ClientRequestToken": "token-update",
        "DisableRollback": False,
    }
    cloudformation.add_response("execute_change_set", {}, sent)
    stacks.execute_change_set(STACK_ID, CHANGES, client_token="token-update")


# Updates without a change set


def update(stacks: CloudFormationStacks) -> bool:
    return stacks.update(ACME, STACK_ID, release=a_release(), template="{}", client_token="token-update")


def test_an_update_has_the_template_the_role_and_a_token(stacks: CloudFormationStacks, cloudformation: Stubber) -> None:
    sent = {
        "StackName": STACK_ID,
        "TemplateBody": "{}",
        "Parameters": [
            {"ParameterKey": name, "ParameterValue": value} for name, value in given(ACME, a_release()).items()
        ],
        "RoleARN": ROLE,
        "ClientRequestToken": "token-update",
    }
    cloudformation.add_response("update_stack", {"StackId": STACK_ID}, sent)
    assert update(stacks)


def test_no_updates_to_be_performed_is_not_an_error(stacks: CloudFormationStacks, cloudformation: Stubber) -> None:
    cloudformation.add_client_error("update_stack", "ValidationError", "No updates are to be performed.")
    assert not update(stacks)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("ValidationError", f"Stack:{STACK_ID} is in UPDATE_IN_PROGRESS state and can not be updated."),
        ("ValidationError", "Stack [berth-tenant-acme] is in DELETE_IN_PROGRESS state and cannot be updated"),
        ("ValidationError", f"Stack [{STACK_ID}] does not exist"),
        ("TokenAlreadyExistsException", "The token was used before"),
    ],
)
def test_a_stack_that_cannot_be_updated_now_is_a_conflict(
    stacks: CloudFormationStacks, cloudformation: Stubber, code: str, words: str
) -> None:
    cloudformation.add_client_error("update_stack", code, words)
    with pytest.raises(Conflict, match=re.escape(words)):
        update(stacks)


@pytest.mark.parametrize("code", ["InsufficientCapabilitiesException", "ValidationError", "AccessDenied"])
def test_any_other_refusal_to_update_is_an_error(
    stacks: CloudFormationStacks, cloudformation: Stubber, code: str
) -> None:
    cloudformation.add_client_error("update_stack", code, "because of this")
    with pytest.raises(ClientError, match="because of this"):
        update(stacks)


@pytest.mark.parametrize("code", ["InvalidChangeSetStatus", "InvalidChangeSetStatusException"])
def test_an_obsolete_change_set_is_a_conflict(stacks: CloudFormationStacks, cloudformation: Stubber, code: str) -> None:
    cloudformation.add_client_error("execute_change_set", code, "ChangeSet is in OBSOLETE status")
    with pytest.raises(Conflict, match="OBSOLETE"):
        stacks.execute_change_set(STACK_ID, CHANGES, client_token="token")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("ChangeSetNotFound", "ChangeSet [changes] does not exist"),
        ("ChangeSetNotFoundException", "ChangeSet [changes] does not exist"),
        ("ValidationError", "Stack [berth-tenant-acme] does not exist"),
    ],
)
def test_a_change_set_of_a_deleted_stack_is_a_conflict(
    stacks: CloudFormationStacks, cloudformation: Stubber, code: str, words: str
) -> None:
    """Somebody has deleted the stack by hand. The next step sees that there is none."""
    cloudformation.add_client_error("execute_change_set", code, words)
    with pytest.raises(Conflict, match="does not exist"):
        stacks.execute_change_set(STACK_ID, CHANGES, client_token="token")


@pytest.mark.parametrize("code", ["InsufficientCapabilitiesException", "ValidationError"])
def test_any_other_refusal_to_execute_is_an_error(
    stacks: CloudFormationStacks, cloudformation: Stubber, code: str
) -> None:
    cloudformation.add_client_error("execute_change_set", code, "because of this")
    with pytest.raises(ClientError, match="because of this"):
        stacks.execute_change_set(STACK_ID, CHANGES, client_token="token")


def test_a_change_set_is_deleted_by_its_name(stacks: CloudFormationStacks, cloudformation: Stubber) -> None:
    sent = {"StackName": NAMES.stack_of(ACME), "ChangeSetName": CHANGES}
    cloudformation.add_response("delete_change_set", {}, sent)
    stacks.delete_change_set(STACK_ID, CHANGES)


def test_a_failed_update_is_rolled_back_with_the_role(stacks: CloudFormationStacks, cloudformation: Stubber) -> None:
    sent = {"StackName": STACK_ID, "RoleARN": ROLE, "ClientRequestToken": "token-undo-1"}
    cloudformation.add_response("rollback_stack", {}, sent)
    stacks.roll_back(STACK_ID, client_token="token-undo-1")


def test_a_rollback_is_continued_with_the_role_and_skips_no_resource(
    stacks: CloudFormationStacks, cloudformation: Stubber
) -> None:
    sent = {"StackName": STACK_ID, "RoleARN": ROLE, "ClientRequestToken": "token-undo-2"}
    cloudformation.add_response("continue_update_rollback", {}, sent)
    stacks.continue_rollback(STACK_ID, client_token="token-undo-2")


CALLS: dict[str, Callable[[CloudFormationStacks], object]] = {
    "describe_stacks": lambda stacks: stacks.find(STACK_ID),
    "create_stack": lambda stacks: stacks.create(ACME, release=RELEASE, client_token="token"),
    "delete_stack": lambda stacks: stacks.delete(STACK_ID, client_token="token"),
    "create_change_set": lambda stacks: stacks.create_change_set(ACME, STACK_ID, release=RELEASE, name=CHANGES),
    "describe_change_set": lambda stacks: stacks.find_change_set(STACK_ID, CHANGES),
    "execute_change_set": lambda stacks: stacks.execute_change_set(STACK_ID, CHANGES, client_token="token"),
    "delete_change_set": lambda stacks: stacks.delete_change_set(STACK_ID, CHANGES),
    "rollback_stack": lambda stacks: stacks.roll_back(STACK_ID, client_token="token"),
    "continue_update_rollback": lambda stacks: stacks.continue_rollback(STACK_ID, client_token="token"),
    "describe_stack_events": lambda stacks: list(stacks.events(STACK_ID)),
}


@pytest.mark.parametrize("code", ["Throttling", "ThrottlingException", "RequestLimitExceeded"])
@pytest.mark.parametrize("method", CALLS)
def test_every_call_may_be_throttled(
    stacks: CloudFormationStacks, cloudformation: Stubber, method: str, code: str
) -> None:
    cloudformation.add_client_error(method, code, "Rate exceeded", http_status_code=400)
    with pytest.raises(Throttled, match="Rate exceeded"):
        CALLS[method](stacks)


@pytest.mark.parametrize("method", CALLS)
def test_every_throttled_call_is_reported(cloudformation: Stubber, method: str) -> None:
    reported: list[str] = []
    stacks = CloudFormationStacks(
        client("cloudformation"), names=NAMES, service_role=ROLE, on_throttled=lambda: reported.append(method)
    )
    cloudformation.add_client_error(method, "Throttling", "Rate exceeded", http_status_code=400)
    cloudformation.add_client_error(method, "AccessDenied", "not authorized")
    for error in (Throttled, ClientError):
        with pytest.raises(error):
            CALLS[method](stacks)
    assert reported == [method]


def test_later_pages_of_a_change_set_may_be_throttled(stacks: CloudFormationStacks, cloudformation: Stubber) -> None:
    cloudformation.add_response("describe_change_set", drawn_up(a_change(), NextToken="more"))
    cloudformation.add_client_error("describe_change_set", "Throttling", "Rate exceeded")
    with pytest.raises(Throttled, match="Rate exceeded"):
        stacks.find_change_set(STACK_ID, CHANGES)


def an_event(number: int, resource: str, status: str, **changes: Any) -> dict[str, Any]:
    return {
        "StackId": STACK_ID,
        "StackName": NAMES.stack_of(ACME),
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
            an_event(5, NAMES.stack_of(ACME), "ROLLBACK_IN_PROGRESS", ResourceStatusReason="Failed: [Q]", **STACKS_OWN),
            an_event(4, "Dead", "CREATE_FAILED", ResourceStatusReason="Resource creation cancelled"),
        ],
        "NextToken": "more",
    },
    {
        "StackEvents": [
            an_event(3, "Q", "CREATE_FAILED", ResourceStatusReason="Access denied"),
            an_event(2, "Nested", "CREATE_IN_PROGRESS", ResourceType="AWS::CloudFormation::Stack"),
            an_event(1, NAMES.stack_of(ACME), "CREATE_IN_PROGRESS", **STACKS_OWN),
        ],
    },
]


def test_events_are_read_page_by_page_newest_first(stacks: CloudFormationStacks, cloudformation: Stubber) -> None:
    cloudformation.add_response("describe_stack_events", PAGES[0], {"StackName": STACK_ID})
    cloudformation.add_response("describe_stack_events", PAGES[1], {"StackName": STACK_ID, "NextToken": "more"})
    events = list(stacks.events(STACK_ID))
    assert [event.resource for event in events] == [NAMES.stack_of(ACME), "Dead", "Q", "Nested", NAMES.stack_of(ACME)]
    assert [event.reason for event in events[:3]] == ["Failed: [Q]", "Resource creation cancelled", "Access denied"]
    assert [event.is_stack for event in events] == [True, False, False, False, True]
    assert [event.cancelled for event in events] == [False, True, False, False, False]


def test_an_unknown_stack_has_no_events(stacks: CloudFormationStacks, cloudformation: Stubber) -> None:
    cloudformation.add_client_error("describe_stack_events", "ValidationError", f"Stack [{STACK_ID}] does not exist")
    assert list(stacks.events(STACK_ID)) == []


def test_events_that_cannot_be_read_are_an_error(stacks: CloudFormationStacks, cloudformation: Stubber) -> None:
    cloudformation.add_client_error("describe_stack_events", "AccessDenied", "You may not.")
    with pytest.raises(ClientError):
        list(stacks.events(STACK_ID))


def test_an_event_has_the_token_of_its_request(stacks: CloudFormationStacks, cloudformation: Stubber) -> None:
    events = [
        an_event(2, "Q", "UPDATE_FAILED", ClientRequestToken="token-update"),
        an_event(1, "Q", "CREATE_COMPLETE"),
    ]
    cloudformation.add_response("describe_stack_events", {"StackEvents": events})
    assert [event.client_token for event in stacks.events(STACK_ID)] == ["token-update", ""]


def test_an_unneeded_page_is_not_requested(stacks: CloudFormationStacks, cloudformation: Stubber) -> None:
    cloudformation.add_response("describe_stack_events", PAGES[0], {"StackName": ANY})
    assert next(iter(stacks.events(STACK_ID))).status == "ROLLBACK_IN_PROGRESS"
