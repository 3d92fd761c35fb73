"""What gives operations their end whose executions died, and looks for what is not as it is recorded.

An execution that failed, timed out or was aborted is told by EventBridge, and looked at a little later. Behind that,
and in case an event is lost, the whole fleet is looked at on a schedule, or when an operator asks for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from aws_cdk.aws_lambda_event_sources import SqsEventSource
from constructs import Construct

from orchestrator.reconciling.health import SETTLING_EVERY, SURVEY_EVERY
from orchestrator.reconciling.records import SETTLING, SURVEY
from orchestrator.tenants.credentials import Access
from stacks.common.alarms import PERIOD, Alarm
from stacks.common.capability import Capability, Output
from stacks.common.dead_letters import DeadLetters, dead_letter_queue
from stacks.common.functions import BerthFunction, FunctionKit
from stacks.common.graphs import graph
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

# Longer than the time between two of them, so that the alarm lasts for as long as there is something to tell.
_UNTIL_THE_NEXT_SETTLING = Duration.minutes(10)
_UNTIL_THE_NEXT_SURVEY = Duration.seconds(int(SURVEY_EVERY.total_seconds()))

_ALL_STACKS = (
    "CloudFormation lists stacks only to those who may describe all of them, and tells of a drift detection by its own "
    "id, which is no resource."
)


class Reconciliation(Capability):
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

        self._not_closed = dead_letter_queue(self, "NotClosed", encryption=kit.encryption)
        self._ended = self._ended_executions()
        self._close_execution = self._make_close_execution()

        self._not_run = dead_letter_queue(self, "NotRun", encryption=kit.encryption)
        self._reconcile = self._make_reconcile(rollouts)
        machines.publish_releases_before(self._reconcile)
        self._schedule("Settling", SETTLING, SETTLING_EVERY, "Operations whose executions died are given their end.")
        self._schedule("Survey", SURVEY, SURVEY_EVERY, "Every tenant and every stack is looked at.")

    @property
    def functions(self) -> Sequence[BerthFunction]:
        return (self._close_execution, self._reconcile)

    @property
    def dead_letters(self) -> Sequence[DeadLetters]:
        return (
            DeadLetters(
                self._not_closed,
                "executions that ended",
                "EndedExecutionsUndelivered",
                "Events about executions that ended did not reach the function close_execution, or the function "
                "failed. The next scheduled reconciliation closes the operations, some minutes later. Fix the cause, "
                "then purge the queue.",
            ),
            DeadLetters(
                self._not_run,
                "reconciliations",
                "ReconciliationsUndelivered",
                "A reconciliation did not run, or failed on every try. The next scheduled reconciliation makes up for "
                "it. If an operator asked for the reconciliation, repeat it. Look at the log of the function "
                "reconcile, then purge the queue.",
            ),
        )

    @property
    def alarms(self) -> Sequence[Alarm]:
        return (
            Alarm(
                "OperationsStuck",
                self._reconcile.counted("OperationsStuck", period=_UNTIL_THE_NEXT_SETTLING, statistic="Maximum"),
                "An operation is past its deadline and could not be closed: its execution is still running, or AWS "
                "throttles. `berth doctor` names the tenants. Stop the execution in Step Functions; the operation is "
                "then closed automatically.",
            ),
            Alarm(
                "OperationsSettled",
                self._close_execution.counted("OperationSettled", period=PERIOD, statistic="Sum"),
                "An execution ended without recording the result of its operation, so Berth closed the operation. "
                "Nothing is stuck. The log of close_execution names the tenant and the result. Find out what stopped "
                "the execution. If the operation failed, run `berth retry ID`.",
            ),
            Alarm(
                "Repairs",
                self._reconcile.counted("Repairs", period=PERIOD, statistic="Sum"),
                "A reconciliation closed an operation whose event was lost, or corrected rows that differed from a "
                "stack. The log of reconcile has what it found and changed. If this happens again, events are being "
                "lost: see EndedExecutionsUndelivered.",
            ),
            Alarm(
                "FindingsLeft",
                self._reconcile.counted("FindingsLeft", period=_UNTIL_THE_NEXT_SURVEY, statistic="Maximum"),
                "The table differs from the stacks of some tenants, or a rollout has stalled. Nothing was changed. "
                "`berth reconcile --dry-run` shows every finding and its repair; `berth reconcile` repairs what it "
                "can.",
            ),
        )

    @property
    def widgets(self) -> Sequence[cloudwatch.IWidget]:
        reconcile, close_execution = self._reconcile, self._close_execution
        return (
            graph("Operations past their deadline", reconcile.counted("OperationsStuck", statistic="Maximum")),
            graph(
                "Repairs",
                close_execution.counted("OperationSettled", statistic="Sum", label="operations closed"),
                reconcile.counted("Repairs", statistic="Sum", label="repairs by reconciliations"),
            ),
            graph("Findings not repaired", reconcile.counted("FindingsLeft", statistic="Maximum")),
        )

    @property
    def outputs(self) -> Sequence[Output]:
        return (
            Output("ReconcileFunctionName", self._reconcile.function.function_name),
            Output("EndedExecutionsQueueUrl", self._ended.queue_url),
        )

    @property
    def environment(self) -> Mapping[str, str]:
        """What a function is told that has the fleet reconciled."""
        return {"BERTH_RECONCILE_FUNCTION": self._reconcile.arn}

    def allow_asking(self, role: iam.Role) -> None:
        """Let a role have the fleet reconciled, and see what came of it."""
        self._kit.table.allow(role, "GetItem", "PutItem", rows=RECONCILIATION_ROWS)
        allow(role, ["lambda:InvokeFunction"], self._reconcile.arn)

    # Executions that ended

    def _ended_executions(self) -> sqs.Queue:
        queue = self._kit.encryption.queue(
            self,
            "Ended",
            # Until then the last function of an execution that was cut short may still be at work.
            delivery_delay=Duration.seconds(self._kit.linger_seconds + _TO_SPARE_SECONDS),
            # As Lambda advises: time for its own retries, when it has no room for another call.
            visibility_timeout=Duration.seconds(6 * _CLOSE_SECONDS),
            dead_letter_queue=sqs.DeadLetterQueue(queue=self._not_closed, max_receive_count=_RECEIVED_AT_MOST),
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
                    dead_letter_queue=self._not_closed,
                    retry_attempts=8,
                    # Long after this, the schedule has seen to it.
                    max_event_age=Duration.hours(1),
                )
            ],
        )
        return queue

    def _make_close_execution(self) -> BerthFunction:
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
                self._ended,
                # One by one: a message that cannot be understood takes no other with it.
                batch_size=1,
                max_concurrency=_CLOSED_AT_ONCE,
                report_batch_item_failures=True,
            )
        )
        return function

    # The whole fleet

    def _make_reconcile(self, rollouts: RolloutMachine) -> BerthFunction:
        function = BerthFunction(
            self,
            "Reconcile",
            kit=self._kit,
            name="reconcile",
            timeout_seconds=_RECONCILE_SECONDS,
            memory_megabytes=512,
            # Nobody waits for its answer: Lambda calls it twice again, and puts here what still failed.
            dead_letters=self._not_run,
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
                    self._reconcile.function,
                    event=events.RuleTargetInput.from_object({"reconciliationId": reconciliation}),
                    dead_letter_queue=self._not_run,
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
