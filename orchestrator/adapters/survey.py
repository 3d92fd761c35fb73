"""All stacks of the account and region, drift detection, and the limit on the number of stacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from orchestrator.adapters.aws import DENIED_OR_UNSUPPORTED, error_code, error_message, throttling
from orchestrator.adapters.cloudformation import described_stack
from orchestrator.reconciling.ports import Drift, StackPage, SurveyedStack, TokenRefused

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient

_STACK_LIMIT = "StackLimit"


class CloudFormationSurvey:
    """Implements :class:`orchestrator.reconciling.ports.StackSurvey`."""

    def __init__(self, client: CloudFormationClient, *, service_role: Callable[[], str]) -> None:
        self._client = client
        self._service_role = service_role

    def page(self, token: str | None) -> StackPage:
        """Described in pages rather than one by one, because CloudFormation allows only a few calls per second."""
        try:
            with throttling():
                found = self._client.describe_stacks(**({"NextToken": token} if token else {}))
        except ClientError as error:
            if token and error_code(error) == "ValidationError":
                raise TokenRefused(error_message(error)) from error
            raise
        role = self._service_role()
        stacks = [
            SurveyedStack(stack["StackName"], described_stack(stack, service_role=role)) for stack in found["Stacks"]
        ]
        return StackPage(stacks, found.get("NextToken"))

    def start_drift_detection(self, stack_id: str) -> str | None:
        try:
            with throttling():
                return self._client.detect_stack_drift(StackName=stack_id)["StackDriftDetectionId"]
        except ClientError as error:
            # The stack is being changed, or drift detection is already running, or the stack is gone.
            if error_code(error) == "ValidationError":
                return None
            raise

    def drift(self, detection: str) -> Drift:
        with throttling():
            status = self._client.describe_stack_drift_detection_status(StackDriftDetectionId=detection)
        if status["DetectionStatus"] == "DETECTION_IN_PROGRESS":
            return Drift(done=False)
        drifted = status.get("StackDriftStatus") == "DRIFTED"
        resources = status.get("DriftedStackResourceCount", 0)
        failed = status["DetectionStatus"] == "DETECTION_FAILED"
        return Drift(
            done=True,
            drifted=drifted,
            detail=f"{resources} of its resources" if drifted else "",
            failure=status.get("DetectionStatusReason", "CloudFormation gives no reason") if failed else "",
        )

    def stack_limit(self) -> int | None:
        """The maximum number of stacks; ``None`` if CloudFormation does not return it, or denies the call."""
        try:
            with throttling():
                limits = self._client.describe_account_limits()["AccountLimits"]
        except ClientError as error:
            if error_code(error) in DENIED_OR_UNSUPPORTED:
                return None
            raise
        return next((limit["Value"] for limit in limits if limit["Name"] == _STACK_LIMIT), None)
