"""What gives operations their end whose executions died, and looks for what is not as it is recorded.

An execution that failed, timed out or was aborted is told by EventBridge, and looked at a little later. Behind that,
and in case an event is lost, the whole fleet is looked at on a schedule, or when an operator asks for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from aws_cdk.aws_lambda_event_sources import SqsEventSource
from constructs import Construct

from orchestrator.reconciling.health import SETTLING_EVERY, SURVEY_EVERY
from orchestrator.reconciling.records import SETTLING, SURVEY
from orchestrator.tenants.credentials import Access
from stacks.common.dead_letters import dead_letter_queue
from stacks.common.functions import BerthFunction, FunctionKit
from stacks.common.permissions import (
    allow,
    allow_looking_at_tenant_stacks,
    allow_on_tenant_queues,
    allow_on_tenant_stacks,
)
from stacks.common.table import RECONCILIATION_ROWS, RELEASE_ROWS, TENANT_ROWS
from stacks.rollouts.machine import RolloutMachine
from stacks.tenants.machines import TenantMachines
from stacks.tenants.stack_role import TenantStackRole

_CLOSE_SECONDS = 60
_RECONCILE_SECONDS = 900
"""As long as a function can run. What is left then is told, and looked at next time."""
_TO_SPARE_SECONDS = 5
"""Clocks differ, and Step Functions says to the millisecond when an execution ended."""
# A few at once: DescribeExecution and DescribeStacks bear only a few calls a second.
_CLOSED_AT_ONCE = 5
_RECEIVED_AT_MOST = 5

_ALL_STACKS = (
    "CloudFormation lists stacks only to those who may describe all of them, and tells of a drift detection by its own "
    "id, which is no resource."
)


class Reconciliation(Construct):
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        kit: FunctionKit,
        machines: TenantMachines,
        rollouts: RolloutMachine,
        stack_role: TenantStackRole,
    ) -> None:
        super().__init__(scope, construct_id)
        self._kit = kit
        self._machines = machines
        self._stacks = {**stack_role.parameters, **stack_role.environment}

        self.not_closed = dead_letter_queue(self, "NotClosed", encryption=kit.encryption)
        self.ended = self._ended_executions()
        self.close_execution = self._close_execution()

        self.not_run = dead_letter_queue(self, "NotRun", encryption=kit.encryption)
        self.reconcile = self._reconcile(rollouts)
        self._schedule("Settling", SETTLING, SETTLING_EVERY, "Operations whose executions died are given their end.")
        self._schedule("Survey", SURVEY, SURVEY_EVERY, "Every tenant and every stack is looked at.")

    @property
    def environment(self) -> Mapping[str, str]:
        """What a function is told that has the fleet reconciled."""
        return {"BERTH_RECONCILE_FUNCTION": self.reconcile.arn}

    def allow_asking(self, role: iam.Role) -> None:
        """Let a role have the fleet reconciled, and see what came of it."""
        self._kit.table.allow(role, "GetItem", "PutItem", rows=RECONCILIATION_ROWS)
        allow(role, ["lambda:InvokeFunction"], self.reconcile.arn)

    # Executions that ended

    def _ended_executions(self) -> sqs.Queue:
        queue = self._kit.encryption.queue(
            self,
            "Ended",
            # Until then the last function of an execution that was cut short may still be at work.
            delivery_delay=Duration.seconds(self._kit.linger_seconds + _TO_SPARE_SECONDS),
            # As Lambda advises: time for its own retries, when it has no room for another call.
            visibility_timeout=Duration.seconds(6 * _CLOSE_SECONDS),
            dead_letter_queue=sqs.DeadLetterQueue(queue=self.not_closed, max_receive_count=_RECEIVED_AT_MOST),
        )
        events.Rule(
            self,
            "WithoutSuccess",
            description="An operation's execution has ended, and may not have said how the operation did.",
            event_pattern=events.EventPattern(
                source=["aws.states"],
                detail_type=["Step Functions Execution Status Change"],
                detail={
                    "status": ["FAILED", "TIMED_OUT", "ABORTED"],
                    "stateMachineArn": self._machines.arns,
                },
            ),
            targets=[
                targets.SqsQueue(
                    queue,
                    dead_letter_queue=self.not_closed,
                    retry_attempts=8,
                    # Long after this, the schedule has seen to it.
                    max_event_age=Duration.hours(1),
                )
            ],
        )
        return queue

    def _close_execution(self) -> BerthFunction:
        function = BerthFunction(
            self,
            "CloseExecution",
            kit=self._kit,
            name="close_execution",
            timeout_seconds=_CLOSE_SECONDS,
            environment=self._stacks,
        )
        self._allow_settling(function.role)
        self._machines.allow_describing(function.role)
        self._kit.encryption.allow_queues(function.role, Access.RECEIVE)
        self._kit.encryption.allow_queues_of_before(function.role, Access.RECEIVE)
        function.function.add_event_source(
            SqsEventSource(
                self.ended,
                # One by one: a message that cannot be understood takes no other with it.
                batch_size=1,
                max_concurrency=_CLOSED_AT_ONCE,
                report_batch_item_failures=True,
            )
        )
        return function

    # The whole fleet

    def _reconcile(self, rollouts: RolloutMachine) -> BerthFunction:
        function = BerthFunction(
            self,
            "Reconcile",
            kit=self._kit,
            name="reconcile",
            timeout_seconds=_RECONCILE_SECONDS,
            memory_megabytes=512,
            # Nobody waits for its answer: Lambda calls it twice again, and puts here what still failed.
            dead_letters=self.not_run,
            environment={**self._machines.environment, **self._stacks},
        )
        role, machines, table = function.role, self._machines, self._kit.table
        self._kit.encryption.allow_queues(role, Access.SEND)
        self._allow_settling(role)
        machines.allow_orders(role, table, (machines.create, machines.update, machines.delete))
        table.allow_listing(role)
        table.allow_listing_unfinished(role)
        table.allow(role, "Query", rows=RELEASE_ROWS)
        table.allow(role, "GetItem", "PutItem", rows=RECONCILIATION_ROWS)
        table.allow_scanning(role)
        rollouts.allow_watching(role)
        self._allow_surveying(role)
        return function

    def _schedule(self, name: str, reconciliation: str, every: timedelta, description: str) -> None:
        events.Rule(
            self,
            name,
            description=description,
            schedule=events.Schedule.rate(Duration.seconds(int(every.total_seconds()))),
            targets=[
                targets.LambdaFunction(
                    self.reconcile.function,
                    event=events.RuleTargetInput.from_object({"reconciliationId": reconciliation}),
                    dead_letter_queue=self.not_run,
                    # The next one is soon enough.
                    retry_attempts=2,
                    max_event_age=Duration.minutes(5),
                )
            ],
        )

    # What each of them may do

    def _allow_settling(self, role: iam.Role) -> None:
        """What ``orchestrator.reconciling.settling`` does: look at the stack, and record the end of the operation."""
        table = self._kit.table
        table.allow(role, "GetItem", "Query", "UpdateItem", "DeleteItem", "ConditionCheckItem", rows=TENANT_ROWS)
        table.allow_appending(role, along_with=[TENANT_ROWS])
        table.allow(role, "GetItem", rows=RELEASE_ROWS)
        table.allow_noting_throttles(role)
        allow_looking_at_tenant_stacks(role, "DescribeStackEvents")
        allow_on_tenant_queues(role, "GetQueueAttributes")

    def _allow_surveying(self, role: iam.Role) -> None:
        allow(
            role,
            [
                "cloudformation:DescribeStacks",
                # DescribeStacks without a name needs it as well.
                "cloudformation:ListStacks",
                "cloudformation:DescribeStackDriftDetectionStatus",
                "cloudformation:BatchDescribeTypeConfigurations",
            ],
            "*",
            wildcard_because=_ALL_STACKS,
        )
        # CloudFormation compares a stack with its resources by the rights of whoever asks it to.
        allow_on_tenant_stacks(role, "DetectStackDrift", "DetectStackResourceDrift")
        allow_on_tenant_queues(role, "GetQueueAttributes", "ListQueueTags")
