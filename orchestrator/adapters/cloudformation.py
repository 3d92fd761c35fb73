"""Tenants' stacks. CloudFormation says different things with one error code; only here are its words read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from orchestrator.adapters.aws import error_code, error_message, throttling
from orchestrator.ports import ResourceEvent, Stack
from orchestrator.records import Queue
from orchestrator.tenants import TenantId

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_cloudformation.literals import DeploymentConfigModeType
    from mypy_boto3_cloudformation.type_defs import StackTypeDef

TENANT_PARAMETER = "TenantId"
SERVICE_TOKEN_PARAMETER = "MetadataServiceToken"  # noqa: S105 - a parameter's name
VERSION_OUTPUT = "Version"

_CREATED_BEFORE = frozenset({"AlreadyExistsException", "TokenAlreadyExistsException"})


class CloudFormationStacks:
    """Implements :class:`orchestrator.ports.Stacks`."""

    def __init__(
        self,
        client: CloudFormationClient,
        *,
        service_role: str = "",
        service_token: str = "",
        mode: DeploymentConfigModeType = "EXPRESS",
    ) -> None:
        self._client = client
        self._service_role = service_role
        self._service_token = service_token
        self._mode = mode

    def find(self, name_or_id: str) -> Stack | None:
        try:
            with throttling():
                stacks = self._client.describe_stacks(StackName=name_or_id)["Stacks"]
        except ClientError as error:
            if error_code(error) == "ValidationError" and "does not exist" in error_message(error):
                return None
            raise
        return _stack(stacks[0]) if stacks else None

    def create(self, tenant: TenantId, *, template_url: str, client_token: str) -> str | None:
        try:
            with throttling():
                response = self._client.create_stack(
                    StackName=tenant.stack_name,
                    TemplateURL=template_url,
                    Parameters=[
                        {"ParameterKey": TENANT_PARAMETER, "ParameterValue": tenant.value},
                        {"ParameterKey": SERVICE_TOKEN_PARAMETER, "ParameterValue": self._service_token},
                    ],
                    RoleARN=self._service_role,
                    ClientRequestToken=client_token,
                    # Express returns before resources have stabilised; finish() asks the queue before publishing it.
                    DeploymentConfig={"Mode": self._mode, "DisableRollback": False},
                )
        except ClientError as error:
            if error_code(error) in _CREATED_BEFORE:
                return None
            raise
        return response["StackId"]

    def delete(self, stack_id: str, *, client_token: str) -> None:
        with throttling():
            self._client.delete_stack(StackName=stack_id, RoleARN=self._service_role, ClientRequestToken=client_token)

    def events(self, stack_id: str) -> Iterator[ResourceEvent]:
        with throttling():
            for page in self._client.get_paginator("describe_stack_events").paginate(StackName=stack_id):
                for event in page["StackEvents"]:
                    reason = event.get("ResourceStatusReason", "")
                    yield ResourceEvent(
                        at=event["Timestamp"],
                        resource=event.get("LogicalResourceId", ""),
                        resource_type=event.get("ResourceType", ""),
                        status=event.get("ResourceStatus", ""),
                        reason=reason,
                        is_stack=event.get("PhysicalResourceId") == event["StackId"],
                        cancelled="cancelled" in reason.lower(),
                    )


def _stack(described: StackTypeDef) -> Stack:
    outputs = {o.get("OutputKey", ""): o.get("OutputValue", "") for o in described.get("Outputs", [])}
    parameters = {p.get("ParameterKey", ""): p.get("ParameterValue", "") for p in described.get("Parameters", [])}
    arn, url = outputs.get("InboundQueueArn"), outputs.get("InboundQueueUrl")
    return Stack(
        stack_id=described.get("StackId", described["StackName"]),
        status=described["StackStatus"],
        status_reason=described.get("StackStatusReason", ""),
        tenant_id=parameters.get(TENANT_PARAMETER),
        queue=Queue(arn, url) if arn and url else None,
        version=outputs.get(VERSION_OUTPUT),
    )
