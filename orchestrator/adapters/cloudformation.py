"""Tenants' stacks, and resources in stacks of other owners.

CloudFormation uses one error code for different errors. Only this module tells them apart by their messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from orchestrator.adapters.aws import error_code, error_message, throttling
from orchestrator.common.errors import Conflict, Throttled
from orchestrator.common.stack_arns import StackArn, name_of
from orchestrator.common.tenant_ids import TenantId
from orchestrator.releases import template_contract
from orchestrator.releases.ports import Parameters
from orchestrator.releases.published import digest_of
from orchestrator.releases.records import Release
from orchestrator.releases.template_contract import INBOUND_QUEUE, QUEUE_TYPE, TENANT_PARAMETER
from orchestrator.tenants.names import Names
from orchestrator.tenants.records import Queue
from orchestrator.tenants.stack_ports import (
    Change,
    ChangeSet,
    ChangeSetState,
    Effect,
    ResourceEvent,
    ResourceState,
    Stack,
)
from orchestrator.tenants.stack_resources import StackResource
from orchestrator.tenants.stack_status import StackCondition, condition

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_cloudformation.type_defs import (
        ChangeTypeDef,
        DescribeChangeSetOutputTypeDef,
        ParameterTypeDef,
        StackEventTypeDef,
        StackResourceSummaryTypeDef,
        StackResourceTypeDef,
        StackTypeDef,
    )

    _Resource = StackResourceTypeDef | StackResourceSummaryTypeDef


_ALREADY_EXISTS = frozenset({"AlreadyExistsException", "TokenAlreadyExistsException"})
_NO_CHANGE_SET = frozenset({"ChangeSetNotFound", "ChangeSetNotFoundException"})
_NOT_EXECUTABLE = _NO_CHANGE_SET | {"InvalidChangeSetStatus", "InvalidChangeSetStatusException"}

_CHANGE_SET_STATES = {
    ("CREATE_COMPLETE", "AVAILABLE"): ChangeSetState.READY,
    ("CREATE_COMPLETE", "EXECUTE_IN_PROGRESS"): ChangeSetState.EXECUTED,
    ("CREATE_COMPLETE", "EXECUTE_COMPLETE"): ChangeSetState.EXECUTED,
    ("CREATE_COMPLETE", "EXECUTE_FAILED"): ChangeSetState.EXECUTED,
    ("CREATE_COMPLETE", "OBSOLETE"): ChangeSetState.STALE,
}
# A change set that is being deleted counts as pending: the next look finds it gone, and another one is created.
_PENDING = frozenset({"CREATE_PENDING", "CREATE_IN_PROGRESS", "DELETE_PENDING", "DELETE_IN_PROGRESS"})
_NOTHING_TO_CHANGE = ("didn't contain changes", "No updates are to be performed")


class CloudFormationStacks:
    """Implements :class:`orchestrator.tenants.ports.Stacks`.

    ``on_throttled`` is called whenever CloudFormation throttles.
    """

    def __init__(
        self,
        client: CloudFormationClient,
        *,
        names: Names,
        service_role: str,
        parameters: Parameters = lambda _tenant, _release: {},
        on_throttled: Callable[[], None] = lambda: None,
    ) -> None:
        self.names = names
        self._client = client
        self._service_role = service_role
        self._parameters = parameters
        self._on_throttled = on_throttled

    def find(self, name_or_id: str) -> Stack | None:
        try:
            with self._throttling():
                stacks = self._client.describe_stacks(StackName=name_or_id)["Stacks"]
        except ClientError as error:
            if _does_not_exist(error):
                return None
            raise
        return described_stack(stacks[0], service_role=self._service_role) if stacks else None

    def queue(self, stack_id: str) -> Queue | None:
        def named() -> Iterable[_Resource]:
            return self._client.describe_stack_resources(StackName=stack_id, LogicalResourceId=INBOUND_QUEUE)[
                "StackResources"
            ]

        return self._queues(stack_id, named, excluded_status="DELETE_").get(INBOUND_QUEUE)

    def queues(self, stack_id: str) -> Mapping[str, Queue]:
        def all_of_them() -> Iterable[_Resource]:
            # DescribeStackResources would return only the first 100.
            for page in self._client.get_paginator("list_stack_resources").paginate(StackName=stack_id):
                yield from page["StackResourceSummaries"]

        return self._queues(stack_id, all_of_them, excluded_status="DELETE_COMPLETE", fifo=True)

    def _queues(
        self,
        stack_id: str,
        resources: Callable[[], Iterable[_Resource]],
        *,
        excluded_status: str,
        fifo: bool = False,
    ) -> dict[str, Queue]:
        """The stack's queues by logical id, without those whose status begins with ``excluded_status``."""
        stack = StackArn.parse(stack_id)
        try:
            with self._throttling():
                listed = list(resources())
        except ClientError as error:
            if _does_not_exist(error):
                return {}
            raise
        found = {
            resource["LogicalResourceId"]: self.names.queue_in(stack, resource.get("PhysicalResourceId", ""), fifo=fifo)
            for resource in listed
            if resource["ResourceType"] == QUEUE_TYPE and not resource["ResourceStatus"].startswith(excluded_status)
        }
        return {name: queue for name, queue in found.items() if queue is not None}

    def stack_with(self, queue: Queue) -> Stack | None:
        """The existing stack that has the queue among its resources, whatever the stack's name.

        The queue's URL may be that of an older SDK. CloudFormation lists today's.
        """
        for url in dict.fromkeys((queue.url, _url_today(queue))):
            try:
                with self._throttling():
                    found = self._client.describe_stack_resources(PhysicalResourceId=url)["StackResources"]
            except ClientError as error:
                if error_code(error) != "ValidationError":
                    raise
                continue
            stack = self.find(found[0]["StackId"]) if found else None
            if stack is not None and condition(stack.status) is not StackCondition.GONE:
                return stack
        return None

    def create(self, tenant: TenantId, *, release: Release, client_token: str) -> str | None:
        try:
            with self._throttling():
                response = self._client.create_stack(
                    StackName=self.names.stack_of(tenant),
                    TemplateURL=release.template_url,
                    Parameters=self._stack_parameters(tenant, release),
                    RoleARN=self._service_role,
                    ClientRequestToken=client_token,
                )
        except ClientError as error:
            if error_code(error) in _ALREADY_EXISTS:
                return None
            raise
        return response["StackId"]

    def delete(self, stack_id: str, *, client_token: str) -> None:
        with self._throttling():
            self._client.delete_stack(
                StackName=stack_id,
                RoleARN=self._service_role,
                ClientRequestToken=client_token,
            )

    def update(self, tenant: TenantId, stack_id: str, *, release: Release, template: str, client_token: str) -> bool:
        try:
            with self._throttling():
                self._client.update_stack(
                    StackName=stack_id,
                    TemplateBody=template,
                    Parameters=self._stack_parameters(tenant, release),
                    RoleARN=self._service_role,
                    ClientRequestToken=client_token,
                )
        except ClientError as error:
            if _has_nothing_to_change(error):
                return False
            if _cannot_be_updated(error) or _does_not_exist(error):
                raise Conflict(error_message(error)) from error
            raise
        return True

    def create_change_set(self, tenant: TenantId, stack_id: str, *, release: Release, name: str) -> str | None:
        try:
            with self._throttling():
                response = self._client.create_change_set(
                    StackName=name_of(stack_id),
                    ChangeSetName=name,
                    ChangeSetType="UPDATE",
                    TemplateURL=release.template_url,
                    Parameters=self._stack_parameters(tenant, release),
                    RoleARN=self._service_role,
                    # If the SDK repeats the request because the response was lost, CloudFormation returns the same id.
                    ClientToken=name,
                )
        except ClientError as error:
            if error_code(error) in _ALREADY_EXISTS or _does_not_exist(error):
                return None
            raise
        return response["Id"]

    def find_change_set(self, stack_id: str, change_set: str) -> ChangeSet | None:
        try:
            with self._throttling():
                described = self._client.describe_change_set(StackName=name_of(stack_id), ChangeSetName=change_set)
                changes = described.get("Changes", [])
                # Every page repeats all fields but the changes.
                page = described
                while token := page.get("NextToken"):
                    page = self._client.describe_change_set(
                        StackName=name_of(stack_id), ChangeSetName=change_set, NextToken=token
                    )
                    changes += page.get("Changes", [])
        except ClientError as error:
            if error_code(error) in _NO_CHANGE_SET:
                return None
            raise
        parameters = {p.get("ParameterKey", ""): p.get("ParameterValue", "") for p in described.get("Parameters", [])}
        return ChangeSet(
            id=described.get("ChangeSetId", ""),
            stack_id=described.get("StackId", ""),
            state=_state(described),
            reason=described.get("StatusReason", ""),
            changes=[_change(change) for change in changes],
            parameters=parameters,
            extras=_extras(described, changes),
            attached=_attached(described),
        )

    def template_digest(self, stack_id: str, change_set: str) -> str | None:
        try:
            with self._throttling():
                template = self._client.get_template(
                    StackName=name_of(stack_id), ChangeSetName=change_set, TemplateStage="Original"
                )["TemplateBody"]
        except ClientError as error:
            if error_code(error) in _NO_CHANGE_SET:
                raise Conflict(error_message(error)) from error
            raise
        # The SDK parses JSON templates. A template that is still text is YAML, so it is not a release of Berth.
        return digest_of(template) if isinstance(template, Mapping) else None

    def execute_change_set(self, stack_id: str, change_set: str, *, client_token: str) -> None:
        try:
            with self._throttling():
                self._client.execute_change_set(
                    StackName=name_of(stack_id),
                    ChangeSetName=change_set,
                    ClientRequestToken=client_token,
                    DisableRollback=False,
                )
        except ClientError as error:
            # The change set was executed before, or the stack has changed since, or was deleted with its change sets.
            if error_code(error) in _NOT_EXECUTABLE or _does_not_exist(error):
                raise Conflict(error_message(error)) from error
            raise

    def delete_change_set(self, stack_id: str, change_set: str) -> None:
        with self._throttling():
            self._client.delete_change_set(StackName=name_of(stack_id), ChangeSetName=change_set)

    def roll_back(self, stack_id: str, *, client_token: str) -> None:
        with self._throttling():
            self._client.rollback_stack(StackName=stack_id, RoleARN=self._service_role, ClientRequestToken=client_token)

    def continue_rollback(self, stack_id: str, *, client_token: str) -> None:
        with self._throttling():
            self._client.continue_update_rollback(
                StackName=stack_id, RoleARN=self._service_role, ClientRequestToken=client_token
            )

    def events(self, stack_id: str) -> Iterator[ResourceEvent]:
        """Empty if the stack does not exist: failures are recorded even without events."""
        try:
            with self._throttling():
                for page in self._client.get_paginator("describe_stack_events").paginate(StackName=stack_id):
                    yield from map(_event, page["StackEvents"])
        except ClientError as error:
            if not _does_not_exist(error):
                raise

    def _stack_parameters(self, tenant: TenantId, release: Release) -> list[ParameterTypeDef]:
        parameters = self._parameters(tenant, release)
        return [{"ParameterKey": name, "ParameterValue": value} for name, value in parameters.items()]

    @contextmanager
    def _throttling(self) -> Iterator[None]:
        try:
            with throttling():
                yield
        except Throttled:
            self._on_throttled()
            raise


class CloudFormationResources:
    """Implements :class:`orchestrator.tenants.ports.StackResources`.

    Both methods use the stack's id, because another stack may have the same name by now.
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
        return ResourceState(
            resource_type=found["ResourceType"],
            status=found["ResourceStatus"],
            physical_id=found.get("PhysicalResourceId", ""),
            changed_at=found.get("LastUpdatedTimestamp"),
        )

    def stack_status(self, stack: StackArn) -> str | None:
        described = self._describe(stack)
        return described["StackStatus"] if described else None

    def stack_output(self, stack: StackArn, name: str) -> str | None:
        described = self._describe(stack)
        outputs = described.get("Outputs", []) if described else []
        return next((output["OutputValue"] for output in outputs if output["OutputKey"] == name), None)

    def _describe(self, stack: StackArn) -> StackTypeDef | None:
        try:
            with throttling():
                stacks = self._client.describe_stacks(StackName=str(stack))["Stacks"]
        except ClientError as error:
            if _does_not_exist(error):
                return None
            raise
        return stacks[0] if stacks else None


def _url_today(queue: Queue) -> str:
    partition, _, region, account, name = [*queue.arn.split(":"), *[""] * 6][1:6]
    return f"https://sqs.{region}.amazonaws.com{'.cn' if partition == 'aws-cn' else ''}/{account}/{name}"


def _does_not_exist(error: ClientError) -> bool:
    return error_code(error) == "ValidationError" and "does not exist" in error_message(error)


def _has_nothing_to_change(error: ClientError) -> bool:
    return error_code(error) == "ValidationError" and any(words in error_message(error) for words in _NOTHING_TO_CHANGE)


def _cannot_be_updated(error: ClientError) -> bool:
    """True while somebody else changes the stack, and also if this request was received before."""
    # The message says "can not be updated" or "cannot be updated".
    message = error_message(error).replace("can not", "cannot")
    return error_code(error) in _ALREADY_EXISTS or "cannot be updated" in message


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


def _state(described: DescribeChangeSetOutputTypeDef) -> ChangeSetState:
    status, execution = described.get("Status", ""), described.get("ExecutionStatus", "")
    if status in _PENDING:
        return ChangeSetState.PENDING
    if status == "FAILED" and any(words in described.get("StatusReason", "") for words in _NOTHING_TO_CHANGE):
        return ChangeSetState.EMPTY
    return _CHANGE_SET_STATES.get((status, execution), ChangeSetState.FAILED)


def _extras(described: DescribeChangeSetOutputTypeDef, changes: Sequence[ChangeTypeDef]) -> list[str]:
    imports = any(change.get("ResourceChange", {}).get("Action") == "Import" for change in changes)
    nested = described.get("IncludeNestedStacks") or described.get("ParentChangeSetId")
    features = {
        "capabilities": described.get("Capabilities"),
        "nested stacks": nested,
        "imported resources": imports or described.get("ImportExistingResources"),
        "an action on stack failure": described.get("OnStackFailure"),
    }
    return [name for name, used in features.items() if used]


def _attached(described: DescribeChangeSetOutputTypeDef | StackTypeDef) -> frozenset[str]:
    triggers = described.get("RollbackConfiguration", {}).get("RollbackTriggers", [])
    return frozenset([*described.get("NotificationARNs", []), *(trigger["Arn"] for trigger in triggers)])


def _change(change: ChangeTypeDef) -> Change:
    resource = change.get("ResourceChange", {})
    return Change(
        resource=resource.get("LogicalResourceId", ""),
        resource_type=resource.get("ResourceType", ""),
        physical_id=resource.get("PhysicalResourceId", ""),
        effect=_effect(resource.get("Action"), resource.get("Replacement")),
    )


def _effect(action: str | None, replacement: str | None) -> Effect:
    if action == "Remove":
        return Effect.REMOVE
    if replacement == "True":
        return Effect.REPLACE
    # Both depend on values that are known only later.
    if replacement == "Conditional" or action == "Dynamic":
        return Effect.MAY_REPLACE
    return Effect.ADD if action == "Add" else Effect.CHANGE


def described_stack(described: StackTypeDef, *, service_role: str) -> Stack:
    outputs = {o.get("OutputKey", ""): o.get("OutputValue", "") for o in described.get("Outputs", [])}
    parameters = {p.get("ParameterKey", ""): p.get("ParameterValue", "") for p in described.get("Parameters", [])}
    arn, url = outputs.get(template_contract.QUEUE_ARN), outputs.get(template_contract.QUEUE_URL)
    return Stack(
        stack_id=described.get("StackId", described["StackName"]),
        status=described["StackStatus"],
        status_reason=described.get("StackStatusReason", ""),
        tenant_id=parameters.get(TENANT_PARAMETER),
        queue=Queue(arn, url) if arn and url else None,
        version=outputs.get(template_contract.VERSION),
        ours=described.get("RoleARN") == service_role,
        attached=_attached(described),
        parameters=parameters,
        changed_at=described.get("LastUpdatedTime", described.get("CreationTime")),
        outputs=outputs,
    )
