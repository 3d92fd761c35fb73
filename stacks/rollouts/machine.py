"""The rollout machine, which moves the fleet to a release, its functions, and permissions to use it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from orchestrator.releases.states import PromotionMode
from stacks.common.alarms import PERIOD, Alarm
from stacks.common.capability import Capability, Output
from stacks.common.functions import WHOLE_FLEET_MEGABYTES, BerthFunction, FunctionKit
from stacks.common.graphs import executions_graph
from stacks.common.permissions import (
    acknowledge_wildcard,
    allow,
    allow_on_tenant_queues,
    allow_reading_tenant_stacks,
    statement,
)
from stacks.common.table import (
    PACE_ROWS,
    REGISTRY_ROWS,
    RELEASE_STATE_ROWS,
    RELISTING_ROWS,
    REVIEW_ROWS,
    ROLLOUT_ROWS,
    TENANT_ROWS,
)
from stacks.releases.publisher import MAP_RESULTS
from stacks.settings import Settings
from stacks.tenants.functions import function_with_the_stack_role
from stacks.tenants.machines import EXECUTIONS_ARE_MANY, TenantMachines, executions_of, machine
from stacks.tenants.stack_role import TenantStackRole

LISTS = "rollouts/*"
"""The objects with the tenants of each stage, in the bucket of releases."""
RESULTS = f"{MAP_RESULTS}*"
"""The objects to which the map state writes its results."""
MAP_LABEL = "Turn"
"""The label of the map state in the workflow's file, which is part of the names of its executions."""

_LISTS_ARE_MANY = "Every stage of every rollout has its own list of tenants, all of them under this prefix."
_RESULTS_ARE_MANY = "Every run of the map state has its own results, all of them under this prefix."
_NO_NARROWER = "CloudWatch describes composite alarms only to callers that may describe all alarms."

# AdvanceRollout reads the rows of all tenants of a rollout.
_ADVANCE_SECONDS = 120


class RolloutMachine(Capability):
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        kit: FunctionKit,
        settings: Settings,
        machines: TenantMachines,
        stack_role: TenantStackRole,
        releases: s3.Bucket,
    ) -> None:
        super().__init__(scope, construct_id)
        self._kit = kit
        self._settings = settings
        self._releases = releases
        await_operator = self._await()
        self._functions = (self._advance(), await_operator, self._admit(), self._record(), self._review(stack_role))
        self.machine = machine(
            self,
            "Machine",
            stem="rollout",
            functions={function.name: function for function in self._functions},
            kit=kit,
            settings=settings,
            others={
                "UpdateTenantMachineArn": machines.update.state_machine_arn,
                "ReleaseBucketName": releases.bucket_name,
            },
        )
        role = self.machine.role
        assert isinstance(role, iam.Role)  # noqa: S101 - made by machine()
        self._allow_upgrading(role, machines.update)
        self._allow_lists_and_results(role)
        self._allow_mapping(role)
        # The machine refers to this function, so the function's permission on the machine is a separate policy.
        iam.Policy(
            self,
            "AwaitOperatorOnMachine",
            statements=[statement(["states:SendTaskSuccess"], [self.machine.state_machine_arn])],
            roles=[await_operator.role],
        )

    @property
    def functions(self) -> Sequence[BerthFunction]:
        return self._functions

    @property
    def alarms(self) -> Sequence[Alarm]:
        return (
            Alarm(
                "RolloutFailed",
                self.machine.metric_failed(period=PERIOD),
                "A rollout halted, was aborted, or ended with failed tenants. Every tenant's queue still works. "
                "`berth rollout list` shows which rollout, `berth rollout status` the failed tenants grouped by cause. "
                "Fix the cause, then run `berth rollout resume` or `berth rollout retry`.",
            ),
        )

    @property
    def widgets(self) -> Sequence[cloudwatch.IWidget]:
        return (executions_graph("Rollouts", self.machine),)

    @property
    def outputs(self) -> Sequence[Output]:
        return (Output("RolloutMachineArn", self.machine.state_machine_arn),)

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables of a function that starts rollouts."""
        return {
            "BERTH_ROLLOUT_MACHINE": self.machine.state_machine_arn,
            "BERTH_ROLLOUT_CONCURRENCY": str(self._settings.rollout_concurrency),
            **self._bucket_environment,
        }

    def allow_starting(self, role: iam.Role) -> None:
        """Let a role record a rollout, claim its tenants, and start its execution."""
        table = self._kit.table
        # One statement, because the policy of the operators' function is almost as long as a policy may be.
        table.allow(role, "Query", rows=[ROLLOUT_ROWS, RELISTING_ROWS])
        table.allow_appending(role, along_with=[ROLLOUT_ROWS])
        table.allow(role, "GetItem", "UpdateItem", rows=REGISTRY_ROWS)
        table.allow_choosing_releases(role)
        table.allow_listing(role)
        # The lists are deleted again if another rollout claimed one of the tenants first.
        self._allow_lists(role, "s3:DeleteObject")
        allow(role, ["states:StartExecution"], self.machine.state_machine_arn)
        self._allow_describing(role)

    def allow_operating(self, role: iam.Role) -> None:
        """Let a role start rollouts, read them, and resume their executions."""
        self.allow_starting(role)
        self._kit.table.allow(role, "GetItem", rows=ROLLOUT_ROWS)
        self._kit.table.allow_listing_rollouts(role)
        _allow_alarms(role, "DescribeAlarms")
        allow(role, ["states:SendTaskSuccess"], self.machine.state_machine_arn)
        # The function says whether the move of a plan was reviewed.
        self._kit.table.allow(role, "GetItem", rows=REVIEW_ROWS)

    def allow_watching(self, role: iam.Role) -> None:
        """Let a role see the unfinished rollouts, and whether their executions are still running."""
        self._kit.table.allow(role, "GetItem", rows=ROLLOUT_ROWS)
        self._kit.table.allow(role, "GetItem", rows=REGISTRY_ROWS)
        self._allow_describing(role)

    def _allow_describing(self, role: iam.Role) -> None:
        allow(role, ["states:DescribeExecution"], executions_of(self.machine), wildcard_because=EXECUTIONS_ARE_MANY)

    # The functions

    def _advance(self) -> BerthFunction:
        function = BerthFunction(
            self,
            "AdvanceRollout",
            kit=self._kit,
            name="advance_rollout",
            timeout_seconds=_ADVANCE_SECONDS,
            memory_megabytes=WHOLE_FLEET_MEGABYTES,
            environment=self._bucket_environment,
        )
        table = self._kit.table
        table.allow(function.role, "GetItem", "Query", "PutItem", "UpdateItem", rows=ROLLOUT_ROWS)
        table.allow(function.role, "UpdateItem", rows=REGISTRY_ROWS)
        if self._settings.promotion is PromotionMode.AFTER_ROLLOUT:
            table.allow_promoting_releases(function.role)
        else:
            table.allow(function.role, "GetItem", rows=RELEASE_STATE_ROWS)
        self._allow_reading_tenants(function)
        self._allow_lists(function.role)
        _allow_alarms(function.role, "DescribeAlarms", "DescribeAlarmHistory")
        return function

    def _await(self) -> BerthFunction:
        # Its use case needs to know the bucket of the lists, but this function reads no list, so it has no permission
        # to.
        function = BerthFunction(
            self, "AwaitOperator", kit=self._kit, name="await_operator", environment=self._bucket_environment
        )
        self._kit.table.allow(function.role, "GetItem", "Query", "PutItem", rows=ROLLOUT_ROWS)
        self._kit.table.allow(function.role, "GetItem", rows=RELEASE_STATE_ROWS)
        return function

    def _admit(self) -> BerthFunction:
        function = BerthFunction(self, "AdmitTenant", kit=self._kit, name="admit_tenant")
        self._kit.table.allow(
            function.role, "GetItem", "PutItem", "UpdateItem", "ConditionCheckItem", rows=ROLLOUT_ROWS
        )
        self._kit.table.allow(function.role, "GetItem", rows=RELEASE_STATE_ROWS)
        self._allow_reading_tenants(function)
        return function

    def _record(self) -> BerthFunction:
        function = BerthFunction(self, "RecordOutcome", kit=self._kit, name="record_outcome")
        self._kit.table.allow(function.role, "GetItem", "PutItem", "UpdateItem", rows=ROLLOUT_ROWS)
        self._allow_reading_tenants(function)
        return function

    def _review(self, stack_role: TenantStackRole) -> BerthFunction:
        function = function_with_the_stack_role(
            self,
            "ReviewTenant",
            "CreateChangeSet",
            name="review_tenant",
            kit=self._kit,
            stack_role=stack_role,
            releases=self._releases,
        )
        table = self._kit.table
        table.allow(function.role, "GetItem", "PutItem", "UpdateItem", rows=ROLLOUT_ROWS)
        table.allow_noting_throttles(function.role)
        # The function creates change sets and deletes them. It may not execute them.
        allow_reading_tenant_stacks(function.role, "DescribeChangeSet", "GetTemplate", "DeleteChangeSet")
        allow_on_tenant_queues(function.role, "GetQueueAttributes")
        return function

    def _allow_reading_tenants(self, function: BerthFunction) -> None:
        """Let a function read the rows of tenants, and how much CloudFormation throttles."""
        self._kit.table.allow(function.role, "GetItem", "Query", rows=TENANT_ROWS)
        self._kit.table.allow(function.role, "GetItem", rows=PACE_ROWS)

    # The lists of tenants

    @property
    def _bucket_environment(self) -> dict[str, str]:
        return {"BERTH_RELEASE_BUCKET": self._releases.bucket_name}

    def _allow_lists(self, role: iam.Role, *further_actions: str) -> None:
        allow(
            role,
            ["s3:GetObject", "s3:PutObject", *further_actions],
            self._releases.arn_for_objects(LISTS),
            wildcard_because=_LISTS_ARE_MANY,
        )
        self._kit.encryption.allow_objects(role, writing=True)

    # The machine

    def _allow_upgrading(self, role: iam.Role, update: sfn.StateMachine) -> None:
        """Let the machine start an operation and wait for its end."""
        allow(role, ["states:StartExecution"], update.state_machine_arn)
        allow(
            role,
            ["states:DescribeExecution", "states:StopExecution"],
            executions_of(update),
            wildcard_because=EXECUTIONS_ARE_MANY,
        )
        # Step Functions creates a rule of this name, by which it learns that an execution has ended.
        rule = Stack.of(self).format_arn(
            service="events", resource="rule", resource_name="StepFunctionsGetEventsForStepFunctionsExecutionRule"
        )
        allow(role, ["events:PutTargets", "events:PutRule", "events:DescribeRule"], rule)

    def _allow_lists_and_results(self, role: iam.Role) -> None:
        allow(role, ["s3:GetObject"], self._releases.arn_for_objects(LISTS), wildcard_because=_LISTS_ARE_MANY)
        allow(
            role,
            ["s3:PutObject", "s3:ListMultipartUploadParts", "s3:AbortMultipartUpload"],
            self._releases.arn_for_objects(RESULTS),
            wildcard_because=_RESULTS_ARE_MANY,
        )
        self._kit.encryption.allow_objects(role, writing=True)

    def _allow_mapping(self, role: iam.Role) -> None:
        """Let the map state start an execution of the machine itself for every tenant.

        The machine depends on its role's main policy, so that policy cannot name the machine: this policy is separate.
        """
        executions = [executions_of(self.machine), executions_of(self.machine, label=MAP_LABEL)]
        policy = iam.Policy(
            self,
            "MapOnMachine",
            statements=[
                statement(["states:StartExecution"], [self.machine.state_machine_arn]),
                statement(["states:DescribeExecution", "states:StopExecution"], executions),
            ],
            roles=[role],
        )
        for each in executions:
            acknowledge_wildcard(policy, each, EXECUTIONS_ARE_MANY)


def _allow_alarms(role: iam.Role, *actions: str) -> None:
    allow(role, [f"cloudwatch:{action}" for action in actions], "*", wildcard_because=_NO_NARROWER)
