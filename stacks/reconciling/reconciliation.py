"""Close the operations whose executions died, and find differences between the table and what exists.

EventBridge reports every execution that failed, timed out or was aborted, and a function checks its operation a little
later. In case an event is lost, a schedule checks the whole fleet, and an operator can start that check, too.
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

from orchestrator.reconciling.health import POOL_EVERY, SETTLING_EVERY, SURVEY_EVERY
from orchestrator.reconciling.records import POOL, SETTLING, SURVEY
from orchestrator.tenants.credentials import Access
from stacks.common.alarms import Alarm
from stacks.common.capability import Capability, Output
from stacks.common.dead_letters import DeadLetters, dead_letter_queue
from stacks.common.functions import BerthFunction, FunctionKit
from stacks.common.graphs import graph
from stacks.common.limits import limit_tenants
from stacks.common.permissions import (
    allow,
    allow_on_tenant_queues,
    allow_on_tenant_stacks,
    allow_reading_tenant_stacks,
    names_of,
)
from stacks.common.table import POOL_ROWS, RECONCILIATION_ROWS, RELEASE_ROWS, RELISTING_ROWS, TENANT_ROWS
from stacks.rollouts.machine import RolloutMachine
from stacks.settings import Settings
from stacks.tenants.machines import TenantMachines
from stacks.tenants.stack_role import TenantStackRole

_CLOSE_SECONDS = 60
_RECONCILE_SECONDS = 900
"""The maximum for a function. The next scheduled reconciliation continues a survey that takes longer."""
_CLOCK_DIFFERENCE_SECONDS = 5
"""Added to the delay, because the clocks of Step Functions and SQS may differ."""
# AWS allows only a few calls of DescribeExecution and DescribeStacks per second.
_MAX_CONCURRENCY = 5
_MAX_RECEIVES = 5

# At least the time between two runs, so that an alarm lasts until the next run finds nothing.
_STUCK_PERIOD = Duration.minutes(10)
_FINDINGS_PERIOD = Duration.seconds(int(SURVEY_EVERY.total_seconds()))

_ALL_STACKS = (
    "CloudFormation lists stacks only to callers that may describe all of them, and the id of a drift detection is not "
    "a resource."
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
        settings: Settings,
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
        # The reconciliation creates the stacks that are kept ready, below the limit on tenants.
        limit_tenants(self._reconcile, kit=kit, settings=settings)
        for name, value in settings.warm_pool_environment.items():
            self._reconcile.function.add_environment(name, value)
        self._schedule("Settling", SETTLING, SETTLING_EVERY, "Closes operations whose executions died.")
        self._schedule("Survey", SURVEY, SURVEY_EVERY, "Compares the table with all tenants' stacks.")
        if settings.warm_pool:
            self._schedule("Pool", POOL, POOL_EVERY, "Refills the pool of stacks that are kept ready.")

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
                self._reconcile.counted("OperationsStuck", period=_STUCK_PERIOD, statistic="Maximum"),
                "An operation is past its deadline and could not be closed: its execution is still running, or AWS "
                "throttles. `berth doctor` names the tenants. Stop the execution in Step Functions; the operation is "
                "then closed automatically.",
            ),
            Alarm(
                "FindingsLeft",
                self._reconcile.counted("FindingsLeft", period=_FINDINGS_PERIOD, statistic="Maximum"),
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
        prefixes = names_of(self).legacy_prefixes
        return (
            Output("ReconcileFunctionName", self._reconcile.function.function_name),
            Output("EndedExecutionsQueueUrl", self._ended.queue_url),
            # `berth adopt` reads them.
            *([Output("LegacyStackPrefixes", ",".join(prefixes))] if prefixes else []),
        )

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables of a function that starts reconciliations."""
        return {"BERTH_RECONCILE_FUNCTION": self._reconcile.arn}

    def allow_asking(self, role: iam.Role) -> None:
        """Let a role start a reconciliation, read its result, and list the newest ones."""
        self._kit.table.allow(role, "GetItem", "PutItem", "Query", rows=RECONCILIATION_ROWS)
        allow(role, ["lambda:InvokeFunction"], self._reconcile.arn)

    # Executions that ended

    def _ended_executions(self) -> sqs.Queue:
        queue = self._kit.encryption.queue(
            self,
            "Ended",
            # Until then, the last function of an aborted execution may still be running.
            delivery_delay=Duration.seconds(self._kit.linger_seconds + _CLOCK_DIFFERENCE_SECONDS),
            # Six times the timeout of the function, as Lambda advises: it needs time to retry when it is throttled.
            visibility_timeout=Duration.seconds(6 * _CLOSE_SECONDS),
            dead_letter_queue=sqs.DeadLetterQueue(queue=self._not_closed, max_receive_count=_MAX_RECEIVES),
        )
        events.Rule(
            self,
            "WithoutSuccess",
            description="The execution of an operation has ended without success.",
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
                    # By then the schedule has long closed the operation.
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
        self._allow_closing_operations(function.role)
        self._machines.allow_describing(function.role)
        self._kit.encryption.allow_queues(function.role, Access.RECEIVE)
        self._kit.encryption.allow_queues_with_former_keys(function.role, Access.RECEIVE)
        function.function.add_event_source(
            SqsEventSource(
                self._ended,
                # One message per call, so that a message that cannot be processed does not affect others.
                batch_size=1,
                max_concurrency=_MAX_CONCURRENCY,
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
            # The function is called asynchronously: Lambda retries it twice, and then sends the event to this queue.
            dead_letters=self._not_run,
            environment={**self._machines.environment, **self._stacks},
        )
        role, machines, table = function.role, self._machines, self._kit.table
        self._kit.encryption.allow_queues(role, Access.SEND)
        self._allow_closing_operations(role)
        machines.allow_operations(role, table, (machines.create, machines.update, machines.delete))
        table.allow_listing(role)
        table.allow_listing_unfinished(role)
        table.allow(role, "GetItem", "PutItem", "UpdateItem", rows=RECONCILIATION_ROWS)
        table.allow_keeping_the_count(role)
        table.allow(role, "GetItem", "PutItem", rows=POOL_ROWS)
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
                    # No more retries are needed: the next scheduled run comes soon.
                    retry_attempts=2,
                    max_event_age=Duration.minutes(5),
                )
            ],
        )

    # The permissions

    def _allow_closing_operations(self, role: iam.Role) -> None:
        """Let a role close operations, as ``orchestrator.reconciling.settling`` does."""
        table = self._kit.table
        table.allow(role, "GetItem", "Query", "UpdateItem", "DeleteItem", "ConditionCheckItem", rows=TENANT_ROWS)
        table.allow_appending(role, along_with=[TENANT_ROWS, RELISTING_ROWS])
        table.allow(role, "GetItem", rows=RELEASE_ROWS)
        table.allow_noting_throttles(role)
        table.allow_turns(role)
        self._machines.allow_waking_creates(role)
        allow_reading_tenant_stacks(role, "DescribeStackEvents")
        allow_on_tenant_queues(role, "GetQueueAttributes")

    def _allow_surveying(self, role: iam.Role) -> None:
        allow(
            role,
            [
                "cloudformation:DescribeStacks",
                # DescribeStacks without a stack's name needs this permission, too.
                "cloudformation:ListStacks",
                "cloudformation:DescribeStackDriftDetectionStatus",
                "cloudformation:BatchDescribeTypeConfigurations",
            ],
            "*",
            wildcard_because=_ALL_STACKS,
        )
        # A comparison may look for a tenant's queue among all queues of its stack. To detect drift,
        # CloudFormation reads the resources with the permissions of the caller.
        allow_on_tenant_stacks(role, "ListStackResources", "DetectStackDrift", "DetectStackResourceDrift")
        allow_on_tenant_queues(role, "GetQueueAttributes", "ListQueueTags")
