"""Tenants' stacks, and resources in the stacks of others.

CloudFormation says different things with one error code; only here are its words read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from orchestrator.adapters.aws import error_code, error_message, throttling
from orchestrator.errors import Conflict, Throttled
from orchestrator.ports import Change, ChangeSet, ChangeSetState, ResourceEvent, ResourceState, Stack
from orchestrator.records import Queue
from orchestrator.releases import TENANT_PARAMETER, stack_parameters
from orchestrator.stack_arns import StackArn
from orchestrator.stack_resources import StackResource
from orchestrator.tenants import TenantId

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_cloudformation.literals import DeploymentConfigModeType
    from mypy_boto3_cloudformation.type_defs import (
        ChangeTypeDef,
        DeploymentConfigTypeDef,
        DescribeChangeSetOutputTypeDef,
        ParameterTypeDef,
        StackEventTypeDef,
        StackTypeDef,
    )

VERSION_OUTPUT = "Version"

_CREATED_BEFORE = frozenset({"AlreadyExistsException", "TokenAlreadyExistsException"})
_NO_CHANGE_SET = frozenset({"ChangeSetNotFound", "ChangeSetNotFoundException"})
_NOT_EXECUTABLE = _NO_CHANGE_SET | {"InvalidChangeSetStatus", "InvalidChangeSetStatusException"}

_CHANGE_SET_STATES = {
    ("CREATE_COMPLETE", "AVAILABLE"): ChangeSetState.READY,
    ("CREATE_COMPLETE", "EXECUTE_IN_PROGRESS"): ChangeSetState.EXECUTED,
    ("CREATE_COMPLETE", "EXECUTE_COMPLETE"): ChangeSetState.EXECUTED,
    ("CREATE_COMPLETE", "EXECUTE_FAILED"): ChangeSetState.EXECUTED,
    ("CREATE_COMPLETE", "OBSOLETE"): ChangeSetState.STALE,
}
# One that is being deleted is gone when it is next looked at, and is drawn up anew.
_NOT_SETTLED = frozenset({"CREATE_PENDING", "CREATE_IN_PROGRESS", "DELETE_PENDING", "DELETE_IN_PROGRESS"})
_NOTHING_TO_CHANGE = ("didn't contain changes", "No updates are to be performed")


class CloudFormationStacks:
    """Implements :class:`orchestrator.ports.Stacks`. ``on_throttled`` is called whenever CloudFormation throttles."""

    def __init__(
        self,
        client: CloudFormationClient,
        *,
        service_role: str = "",
        service_token: str = "",
        mode: DeploymentConfigModeType = "EXPRESS",
        on_throttled: Callable[[], None] = lambda: None,
    ) -> None:
        self._client = client
        self._service_role = service_role
        self._service_token = service_token
        self._mode = mode
        self._on_throttled = on_throttled

    def find(self, name_or_id: str) -> Stack | None:
        try:
            with self._throttling():
                stacks = self._client.describe_stacks(StackName=name_or_id)["Stacks"]
        except ClientError as error:
            if _does_not_exist(error):
                return None
            raise
        return described_stack(stacks[0]) if stacks else None

    def create(self, tenant: TenantId, *, template_url: str, client_token: str) -> str | None:
        try:
            with self._throttling():
                response = self._client.create_stack(
                    StackName=tenant.stack_name,
                    TemplateURL=template_url,
                    Parameters=self._parameters(tenant),
                    RoleARN=self._service_role,
                    ClientRequestToken=client_token,
                    DeploymentConfig=self._deployment,
                )
        except ClientError as error:
            if error_code(error) in _CREATED_BEFORE:
                return None
            raise
        return response["StackId"]

    def delete(self, stack_id: str, *, client_token: str) -> None:
        with self._throttling():
            self._client.delete_stack(
                StackName=stack_id,
                RoleARN=self._service_role,
                ClientRequestToken=client_token,
                DeploymentConfig=self._deployment,
            )

    def draw_up_changes(self, tenant: TenantId, *, template_url: str, name: str) -> None:
        try:
            with self._throttling():
                self._client.create_change_set(
                    StackName=tenant.stack_name,
                    ChangeSetName=name,
                    ChangeSetType="UPDATE",
                    TemplateURL=template_url,
                    Parameters=self._parameters(tenant),
                    RoleARN=self._service_role,
                    DeploymentConfig=self._deployment,
                )
        except ClientError as error:
            if error_code(error) not in _CREATED_BEFORE:
                raise

    def changes(self, stack_id: str, name: str) -> ChangeSet | None:
        try:
            with self._throttling():
                described = self._client.describe_change_set(StackName=_name_in(stack_id), ChangeSetName=name)
                changes = [_change(change) for change in described.get("Changes", [])]
                # The later pages repeat everything but the changes.
                page = described
                while token := page.get("NextToken"):
                    page = self._client.describe_change_set(
                        StackName=_name_in(stack_id), ChangeSetName=name, NextToken=token
                    )
                    changes += [_change(change) for change in page.get("Changes", [])]
        except ClientError as error:
            if error_code(error) in _NO_CHANGE_SET:
                return None
            raise
        return ChangeSet(_state(described), described.get("StatusReason", ""), changes)

    def make_changes(self, stack_id: str, name: str, *, client_token: str) -> None:
        try:
            with self._throttling():
                self._client.execute_change_set(
                    StackName=_name_in(stack_id),
                    ChangeSetName=name,
                    ClientRequestToken=client_token,
                    DisableRollback=False,
                )
        except ClientError as error:
            # It has been executed before, or the stack has changed since, or has gone and has taken it along.
            if error_code(error) in _NOT_EXECUTABLE or _does_not_exist(error):
                raise Conflict(error_message(error)) from error
            raise

    def forget_changes(self, stack_id: str, name: str) -> None:
        with self._throttling():
            self._client.delete_change_set(StackName=_name_in(stack_id), ChangeSetName=name)

    def roll_back(self, stack_id: str, *, client_token: str) -> None:
        with self._throttling():
            self._client.rollback_stack(StackName=stack_id, RoleARN=self._service_role, ClientRequestToken=client_token)

    def continue_rollback(self, stack_id: str, *, client_token: str) -> None:
        with self._throttling():
            self._client.continue_update_rollback(
                StackName=stack_id, RoleARN=self._service_role, ClientRequestToken=client_token
            )

    def events(self, stack_id: str) -> Iterator[ResourceEvent]:
        """None of a stack that nobody knows: a failure is recorded also without them."""
        try:
            with self._throttling():
                for page in self._client.get_paginator("describe_stack_events").paginate(StackName=stack_id):
                    yield from map(_event, page["StackEvents"])
        except ClientError as error:
            if not _does_not_exist(error):
                raise

    def _parameters(self, tenant: TenantId) -> list[ParameterTypeDef]:
        parameters = stack_parameters(tenant, service_token=self._service_token)
        return [{"ParameterKey": name, "ParameterValue": value} for name, value in parameters.items()]

    @contextmanager
    def _throttling(self) -> Iterator[None]:
        try:
            with throttling():
                yield
        except Throttled:
            self._on_throttled()
            raise

    @property
    def _deployment(self) -> DeploymentConfigTypeDef:
        # Express returns before resources have stabilised: the queue itself is asked before it is published.
        return {"Mode": self._mode, "DisableRollback": False}


class CloudFormationResources:
    """Implements :class:`orchestrator.ports.StackResources`.

    Both are asked for by the stack's id: a stack of the same name may be another one.
    """

    def __init__(self, client: CloudFormationClient) -> None:
        self._client = client

    def resource(self, resource: StackResource) -> ResourceState | None:
        try:
            with throttling():
                found = self._client.describe_stack_resource(
                    StackName=str(resource.stack), LogicalResourceId=resource.logical_id
                )["StackResourceDetail"]
        except ClientError as error:
            if _does_not_exist(error):
                return None
            raise
        return ResourceState(found["ResourceType"], found["ResourceStatus"], found.get("PhysicalResourceId", ""))

    def stack_status(self, stack: StackArn) -> str | None:
        try:
            with throttling():
                stacks = self._client.describe_stacks(StackName=str(stack))["Stacks"]
        except ClientError as error:
            if _does_not_exist(error):
                return None
            raise
        return stacks[0]["StackStatus"] if stacks else None


def _does_not_exist(error: ClientError) -> bool:
    return error_code(error) == "ValidationError" and "does not exist" in error_message(error)


def _event(event: StackEventTypeDef) -> ResourceEvent:
    reason = event.get("ResourceStatusReason", "")
    return ResourceEvent(
        at=event["Timestamp"],
        resource=event.get("LogicalResourceId", ""),
        resource_type=event.get("ResourceType", ""),
        status=event.get("ResourceStatus", ""),
        reason=reason,
        is_stack=event.get("PhysicalResourceId") == event["StackId"],
        cancelled="cancelled" in reason.lower(),
        client_token=event.get("ClientRequestToken", ""),
    )


def _name_in(stack_id: str) -> str:
    """The stack's name: change sets belong to a stack that lives, and those have names."""
    return stack_id.split("/")[1] if stack_id.startswith("arn:") else stack_id


def _state(described: DescribeChangeSetOutputTypeDef) -> ChangeSetState:
    status, execution = described.get("Status", ""), described.get("ExecutionStatus", "")
    if status in _NOT_SETTLED:
        return ChangeSetState.PENDING
    if status == "FAILED" and any(words in described.get("StatusReason", "") for words in _NOTHING_TO_CHANGE):
        return ChangeSetState.EMPTY
    return _CHANGE_SET_STATES.get((status, execution), ChangeSetState.FAILED)


def _change(change: ChangeTypeDef) -> Change:
    resource = change.get("ResourceChange", {})
    return Change(
        resource=resource.get("LogicalResourceId", ""),
        resource_type=resource.get("ResourceType", ""),
        physical_id=resource.get("PhysicalResourceId", ""),
        # What depends on values known only later may be replaced, too: taken for the worse.
        removes=resource.get("Action") == "Remove" or resource.get("Replacement") in ("True", "Conditional"),
    )


def described_stack(described: StackTypeDef) -> Stack:
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
