"""The functions behind the states of the tenants' workflows, and their permissions."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import aws_s3 as s3
from constructs import Construct

from stacks.common.functions import BerthFunction, FunctionKit
from stacks.common.permissions import (
    allow,
    allow_asking_for_unfinished_work,
    allow_on_tenant_queues,
    allow_on_tenant_stacks,
    allow_reading_tenant_stacks,
)
from stacks.common.table import (
    CREATE_TURN_ROWS,
    RELEASE_ROWS,
    RELEASE_STATE_ROWS,
    RELISTING_ROWS,
    REVIEW_ROWS,
    TENANT_ROWS,
)
from stacks.releases.publisher import PUBLISHED_FOR_EVER, published_templates
from stacks.settings import Settings
from stacks.tenants.stack_role import TenantStackRole

STACK_SECONDS = 30
"""The timeout of functions that change stacks: CloudFormation's responses may take a while when it throttles."""


class TenantFunctions:
    """The functions of all three operations. :mod:`stacks.tenants.machines` adds the permissions on the machines."""

    def __init__(
        self,
        scope: Construct,
        *,
        kit: FunctionKit,
        settings: Settings,
        stack_role: TenantStackRole,
        releases: s3.Bucket,
    ) -> None:
        self._scope = scope
        self._kit = kit
        self._settings = settings
        self._stack_role = stack_role
        self._releases = releases

        self.begin = self._begin()
        self.await_admission = self._await_admission()
        self.start_stack = self._start_stack()
        self.await_stack = self._await_stack()
        self.inspect_stack = self._inspect_stack()
        self.finish = self._finish()
        self.record_failure = self._record_failure()
        functions = (
            self.begin,
            self.await_admission,
            self.start_stack,
            self.await_stack,
            self.inspect_stack,
            self.finish,
            self.record_failure,
        )
        self.by_name: Mapping[str, BerthFunction] = {function.name: function for function in functions}
        for function in functions:
            kit.table.allow_noting_throttles(function.role)
        stack_role.add_to_environment_of(
            *(self.begin, self.await_stack, self.inspect_stack, self.finish, self.record_failure)
        )

    def _begin(self) -> BerthFunction:
        begin = BerthFunction(
            self._scope, "Begin", kit=self._kit, name="begin", environment=self._stack_role.parameters
        )
        table = self._kit.table
        table.allow(begin.role, "GetItem", "Query", "UpdateItem", "ConditionCheckItem", rows=TENANT_ROWS)
        table.allow_appending(begin.role, along_with=[TENANT_ROWS, RELISTING_ROWS])
        table.allow(begin.role, "GetItem", rows=RELEASE_ROWS)
        table.allow(begin.role, "GetItem", rows=RELEASE_STATE_ROWS)
        table.allow_turns(begin.role)
        # The next operation after a delete that died undoes the delete, if the delete had not touched the stack.
        allow_reading_tenant_stacks(begin.role)
        return begin

    def _await_admission(self) -> BerthFunction:
        await_admission = BerthFunction(self._scope, "AwaitAdmission", kit=self._kit, name="await_admission")
        table = self._kit.table
        table.allow(await_admission.role, "GetItem", "Query", "UpdateItem", "ConditionCheckItem", rows=TENANT_ROWS)
        table.allow(await_admission.role, "PutItem", rows=[TENANT_ROWS, RELISTING_ROWS])
        table.allow_turns(await_admission.role)
        table.allow(await_admission.role, "UpdateItem", rows=CREATE_TURN_ROWS)
        return await_admission

    @property
    def _empty_for(self) -> tuple[str, str]:
        return "BERTH_EMPTY_FOR_SECONDS", str(self._settings.empty_for_seconds)

    def _start_stack(self) -> BerthFunction:
        start_stack = self._function_with_the_stack_role(
            *("StartStack", "start_stack"),
            *("CreateStack", "UpdateStack", "DeleteStack", "CreateChangeSet"),
            *("RollbackStack", "ContinueUpdateRollback"),
        )
        start_stack.function.add_environment(*self._empty_for)
        start_stack.function.add_environment("BERTH_STACK_EVENTS", str(self._settings.stack_events).lower())
        # The task token and the id of the change set are kept with the lock.
        self._kit.table.allow(start_stack.role, "UpdateItem", rows=TENANT_ROWS)
        self._kit.table.allow(start_stack.role, "GetItem", "PutItem", rows=REVIEW_ROWS)
        # These need no condition on the role: a change set is executed with the role that it was created with.
        allow_reading_tenant_stacks(
            start_stack.role,
            "DescribeStackEvents",
            "DescribeChangeSet",
            "GetTemplate",
            "ListStackResources",
            "ExecuteChangeSet",
            "DeleteChangeSet",
        )
        # A delete counts the messages first.
        allow_on_tenant_queues(start_stack.role, "GetQueueAttributes", "GetQueueUrl")
        allow_asking_for_unfinished_work(start_stack.role)
        return start_stack

    def _await_stack(self) -> BerthFunction:
        await_stack = BerthFunction(self._scope, "AwaitStack", kit=self._kit, name="await_stack")
        self._kit.table.allow(await_stack.role, "GetItem", "UpdateItem", rows=TENANT_ROWS)
        allow_on_tenant_stacks(await_stack.role, "DescribeStacks")
        return await_stack

    def _inspect_stack(self) -> BerthFunction:
        inspect_stack = BerthFunction(self._scope, "InspectStack", kit=self._kit, name="inspect_stack")
        # The stack that was started is kept with the lock.
        self._kit.table.allow(inspect_stack.role, "GetItem", rows=TENANT_ROWS)
        allow_reading_tenant_stacks(inspect_stack.role, "DescribeStackEvents")
        allow_on_tenant_queues(inspect_stack.role, "GetQueueAttributes")
        return inspect_stack

    def _finish(self) -> BerthFunction:
        finish = BerthFunction(
            self._scope, "Finish", kit=self._kit, name="finish", environment=self._stack_role.parameters
        )
        table = self._kit.table
        table.allow(finish.role, "GetItem", "UpdateItem", "DeleteItem", rows=TENANT_ROWS)
        table.allow_appending(finish.role, along_with=[TENANT_ROWS, RELISTING_ROWS])
        table.allow(finish.role, "GetItem", rows=RELEASE_ROWS)
        table.allow_turns(finish.role)
        # A queue that the stack has not recorded is looked up in the stack before it is published.
        allow_reading_tenant_stacks(finish.role)
        return finish

    def _record_failure(self) -> BerthFunction:
        record_failure = BerthFunction(self._scope, "RecordFailure", kit=self._kit, name="record_failure")
        table = self._kit.table
        table.allow(
            record_failure.role,
            *("GetItem", "Query", "UpdateItem", "DeleteItem", "ConditionCheckItem"),
            rows=TENANT_ROWS,
        )
        table.allow_appending(record_failure.role, along_with=[TENANT_ROWS, RELISTING_ROWS])
        table.allow_turns(record_failure.role)
        allow_reading_tenant_stacks(record_failure.role, "DescribeStackEvents")
        return record_failure

    def _function_with_the_stack_role(self, construct_id: str, name: str, *operations: str) -> BerthFunction:
        return function_with_the_stack_role(
            self._scope,
            construct_id,
            *operations,
            name=name,
            kit=self._kit,
            stack_role=self._stack_role,
            releases=self._releases,
        )


def function_with_the_stack_role(
    scope: Construct,
    construct_id: str,
    *operations: str,
    name: str,
    kit: FunctionKit,
    stack_role: TenantStackRole,
    releases: s3.Bucket,
) -> BerthFunction:
    """A function that changes tenants' stacks through CloudFormation, only with the permissions of the stack role."""
    role_arn = stack_role.role.role_arn
    function = BerthFunction(
        scope,
        construct_id,
        kit=kit,
        name=name,
        timeout_seconds=STACK_SECONDS,
        environment={**stack_role.environment, **stack_role.parameters},
    )
    kit.table.allow(function.role, "GetItem", rows=TENANT_ROWS)
    kit.table.allow(function.role, "GetItem", rows=RELEASE_ROWS)
    # Without the condition, the function could make CloudFormation use other permissions than those of the role.
    allow_on_tenant_stacks(
        function.role, *operations, conditions={"StringEquals": {"cloudformation:RoleArn": role_arn}}
    )
    allow(
        function.role,
        ["iam:PassRole"],
        role_arn,
        conditions={"StringEquals": {"iam:PassedToService": "cloudformation.amazonaws.com"}},
    )
    # CloudFormation reads the template with the permissions of the caller that creates the stack or the change set.
    # For an update without a change set, the function reads the template itself.
    allow(function.role, ["s3:GetObject"], published_templates(releases), wildcard_because=PUBLISHED_FOR_EVER)
    kit.encryption.allow_objects(function.role, writing=False)
    # A deployment stores Berth's own releases again with another key, but not those of operators.
    kit.encryption.allow_reading_objects_with_former_keys(function.role)
    return function
