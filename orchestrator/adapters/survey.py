"""All stacks of the account and region, whether their resources are as their templates have them, and their limit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from orchestrator.adapters.aws import CANNOT_BE_ASKED, error_code, throttling
from orchestrator.adapters.cloudformation import described_stack
from orchestrator.reconciling.ports import Drift, SurveyedStack

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient

_STACK_LIMIT = "StackLimit"


class CloudFormationSurvey:
    """Implements :class:`orchestrator.reconciling.ports.StackSurvey`."""

    def __init__(self, client: CloudFormationClient, *, service_role: Callable[[], str]) -> None:
        self._client = client
        self._service_role = service_role

    def all(self) -> Iterator[SurveyedStack]:
        """Described by the page, not one by one: CloudFormation bears only a few calls a second."""
        with throttling():
            for page in self._client.get_paginator("describe_stacks").paginate():
                for stack in page["Stacks"]:
                    yield SurveyedStack(stack["StackName"], described_stack(stack, service_role=self._service_role()))

    def start_drift_detection(self, stack_id: str) -> str | None:
        try:
            with throttling():
                return self._client.detect_stack_drift(StackName=stack_id)["StackDriftDetectionId"]
        except ClientError as error:
            # It is being changed, being compared already, or gone.
            if error_code(error) == "ValidationError":
                return None
            raise

    def drift(self, detection: str) -> Drift:
        with throttling():
            told = self._client.describe_stack_drift_detection_status(StackDriftDetectionId=detection)
        if told["DetectionStatus"] == "DETECTION_IN_PROGRESS":
            return Drift(done=False)
        drifted = told.get("StackDriftStatus") == "DRIFTED"
        resources = told.get("DriftedStackResourceCount", 0)
        return Drift(done=True, drifted=drifted, detail=f"{resources} of its resources" if drifted else "")

    def stack_limit(self) -> int | None:
        """How many stacks there may be; ``None`` when CloudFormation does not say, or may not be asked."""
        try:
            with throttling():
                limits = self._client.describe_account_limits()["AccountLimits"]
        except ClientError as error:
            if error_code(error) in CANNOT_BE_ASKED:
                return None
            raise
        return next((limit["Value"] for limit in limits if limit["Name"] == _STACK_LIMIT), None)
