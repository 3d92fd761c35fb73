"""All stacks at a glance: by the page, with their drift, and how many there may be."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from orchestrator.adapters.survey import CloudFormationSurvey
from orchestrator.common.errors import Throttled
from orchestrator.reconciling.ports import Drift, SurveyedStack, TokenRefused
from orchestrator.tenants.stack_ports import Stack
from tests.adapters.conftest import Account, client
from tests.fakes import ACME, NAMES, NOON, QUEUE, VERSION, stack_arn

ROLE = "arn:aws:iam::000000000000:role/tenant-stacks"


@pytest.fixture
def survey() -> CloudFormationSurvey:
    return CloudFormationSurvey(client("cloudformation"), service_role=lambda: ROLE)


def described(name: str, **more: Any) -> dict[str, Any]:
    return {"StackName": name, "StackId": f"arn/{name}", "CreationTime": NOON, "StackStatus": "CREATE_COMPLETE", **more}


def test_all_stacks_are_listed_page_by_page(survey: CloudFormationSurvey, cloudformation: Stubber) -> None:
    cloudformation.add_response("describe_stacks", {"Stacks": [described("a"), described("b")], "NextToken": "2"}, {})
    cloudformation.add_response("describe_stacks", {"Stacks": [described("c")]}, {"NextToken": "2"})
    first = survey.page(None)
    assert ([each.name for each in first.stacks], first.token) == (["a", "b"], "2")
    last = survey.page(first.token)
    assert ([each.name for each in last.stacks], last.token) == (["c"], None)


def test_a_token_that_cloudformation_refuses_is_reported_as_such(
    survey: CloudFormationSurvey, cloudformation: Stubber
) -> None:
    for _ in range(2):
        cloudformation.add_client_error("describe_stacks", "ValidationError", "The token has expired")
    with pytest.raises(TokenRefused, match="The token has expired"):
        survey.page("2")
    with pytest.raises(ClientError):
        survey.page(None)


def test_a_tenants_stack_is_listed_with_all_details(survey: CloudFormationSurvey, cloudformation: Stubber) -> None:
    outputs = {"InboundQueueArn": QUEUE.arn, "InboundQueueUrl": QUEUE.url, "Version": VERSION}
    listed = described(
        NAMES.stack_of(ACME),
        StackId=stack_arn(),
        RoleARN=ROLE,
        Parameters=[{"ParameterKey": "TenantId", "ParameterValue": "acme"}],
        Outputs=[{"OutputKey": name, "OutputValue": value} for name, value in outputs.items()],
    )
    cloudformation.add_response("describe_stacks", {"Stacks": [listed]}, {})
    told_of = {"TenantId": "acme"}
    stack = Stack(
        stack_arn(), "CREATE_COMPLETE", "", "acme", QUEUE, VERSION, ours=True, parameters=told_of, outputs=outputs
    )
    (found,) = survey.page(None).stacks
    assert found == SurveyedStack(NAMES.stack_of(ACME), replace(stack, changed_at=listed["CreationTime"]))


@pytest.mark.parametrize("kind", ["moto", "emulator"], indirect=True)
def test_deleted_stacks_are_not_listed(account: Account) -> None:
    aws = account.client("cloudformation")
    template = json.dumps({"Resources": {"Queue": {"Type": "AWS::SQS::Queue"}}})
    for name in ("one", "another", "gone"):
        aws.create_stack(StackName=name, TemplateBody=template)
        aws.get_waiter("stack_create_complete").wait(StackName=name, WaiterConfig={"Delay": 0})
    aws.delete_stack(StackName="gone")
    aws.get_waiter("stack_delete_complete").wait(StackName="gone", WaiterConfig={"Delay": 0})
    assert {surveyed.name for surveyed in CloudFormationSurvey(aws, service_role=lambda: ROLE).page(None).stacks} == {
        "one",
        "another",
    }


def test_drift_detection_is_started_by_the_stacks_id(survey: CloudFormationSurvey, cloudformation: Stubber) -> None:
    cloudformation.add_response("detect_stack_drift", {"StackDriftDetectionId": "d-1"}, {"StackName": stack_arn()})
    assert survey.start_drift_detection(stack_arn()) == "d-1"


def test_drift_detection_may_be_impossible_now(survey: CloudFormationSurvey, cloudformation: Stubber) -> None:
    cloudformation.add_client_error("detect_stack_drift", "ValidationError", "Drift detection is already in progress")
    assert survey.start_drift_detection(stack_arn()) is None


@pytest.mark.parametrize(
    ("response", "drift"),
    [
        ({"DetectionStatus": "DETECTION_IN_PROGRESS"}, Drift(done=False)),
        # Its findings so far are not the result yet.
        (
            {"DetectionStatus": "DETECTION_IN_PROGRESS", "StackDriftStatus": "DRIFTED"},
            Drift(done=False),
        ),
        ({"DetectionStatus": "DETECTION_COMPLETE", "StackDriftStatus": "IN_SYNC"}, Drift(done=True)),
        (
            {
                "DetectionStatus": "DETECTION_COMPLETE",
                "StackDriftStatus": "DRIFTED",
                "DriftedStackResourceCount": 2,
            },
            Drift(done=True, drifted=True, detail="2 of its resources"),
        ),
        # Some resources could not be compared; of the others some may be known to differ.
        (
            {"DetectionStatus": "DETECTION_FAILED", "DetectionStatusReason": "no permission"},
            Drift(done=True, failure="no permission"),
        ),
        (
            {
                "DetectionStatus": "DETECTION_FAILED",
                "StackDriftStatus": "DRIFTED",
                "DriftedStackResourceCount": 1,
            },
            Drift(done=True, drifted=True, detail="1 of its resources", failure="CloudFormation gives no reason"),
        ),
    ],
    ids=["in progress", "in progress with a first word", "in sync", "drifted", "failed", "failed in part"],
)
def test_the_status_of_a_drift_detection(
    survey: CloudFormationSurvey, cloudformation: Stubber, response: dict[str, Any], drift: Drift
) -> None:
    answer = {"StackId": stack_arn(), "StackDriftDetectionId": "d-1", "Timestamp": NOON, **response}
    cloudformation.add_response("describe_stack_drift_detection_status", answer, {"StackDriftDetectionId": "d-1"})
    assert survey.drift("d-1") == drift


def test_the_limit_is_that_of_stacks(survey: CloudFormationSurvey, cloudformation: Stubber) -> None:
    limits = [{"Name": "StackOutputsLimit", "Value": 200}, {"Name": "StackLimit", "Value": 2000}]
    cloudformation.add_response("describe_account_limits", {"AccountLimits": limits}, {})
    assert survey.stack_limit() == 2000


@pytest.mark.parametrize("limits", [[], [{"Name": "StackOutputsLimit", "Value": 200}]], ids=["none", "another"])
def test_a_missing_limit_is_unknown(
    survey: CloudFormationSurvey, cloudformation: Stubber, limits: list[dict[str, Any]]
) -> None:
    cloudformation.add_response("describe_account_limits", {"AccountLimits": limits}, {})
    assert survey.stack_limit() is None


@pytest.mark.parametrize("code", ["AccessDenied", "AccessDeniedException", "InvalidAction"])
def test_a_limit_without_permission_is_unknown(
    survey: CloudFormationSurvey, cloudformation: Stubber, code: str
) -> None:
    cloudformation.add_client_error("describe_account_limits", code)
    assert survey.stack_limit() is None


@pytest.mark.parametrize("kind", ["emulator"], indirect=True)
def test_without_the_api_the_limit_is_unknown(account: Account) -> None:
    survey = CloudFormationSurvey(account.client("cloudformation"), service_role=lambda: ROLE)
    assert survey.stack_limit() is None


CALLS: dict[str, Callable[[CloudFormationSurvey], object]] = {
    "describe_stacks": lambda survey: survey.page(None),
    "detect_stack_drift": lambda survey: survey.start_drift_detection(stack_arn()),
    "describe_stack_drift_detection_status": lambda survey: survey.drift("d-1"),
    "describe_account_limits": lambda survey: survey.stack_limit(),
}


@pytest.mark.parametrize(("code", "error"), [("Throttling", Throttled), ("InternalFailure", ClientError)])
@pytest.mark.parametrize("method", CALLS)
def test_every_call_may_be_throttled_or_fail(
    survey: CloudFormationSurvey, cloudformation: Stubber, method: str, code: str, error: type[Exception]
) -> None:
    cloudformation.add_client_error(method, code, "not now")
    with pytest.raises(error, match="not now"):
        CALLS[method](survey)
