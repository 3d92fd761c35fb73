"""What an operator is woken for, each with what it means and what to do."""

from __future__ import annotations

from collections.abc import Iterable

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from stacks.functions import BerthFunction
from stacks.tenant_machines import TenantMachines

_PERIOD = Duration.minutes(5)


class Alarms(Construct):
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        machines: TenantMachines,
        tenant_queue_machine: sfn.StateMachine,
        rollout_machine: sfn.StateMachine,
        functions: Iterable[BerthFunction],
        undelivered_events: sqs.Queue,
        topic_arn: str | None,
    ) -> None:
        super().__init__(scope, construct_id)
        topic = sns.Topic.from_topic_arn(self, "Topic", topic_arn) if topic_arn else None
        self._action = actions.SnsAction(topic) if topic else None

        self._operation_alarms("Create", machines.create, "create", "provisioned")
        self._operation_alarms("Update", machines.update, "update", "updated")
        self._operation_alarms("Delete", machines.delete, "delete", "deleted")
        # It fails whenever another team's stack asks for what cannot be: that team is told, by CloudFormation.
        for name, metric in (
            ("TenantQueueTimedOut", tenant_queue_machine.metric_timed_out(period=_PERIOD)),
            ("TenantQueueAborted", tenant_queue_machine.metric_aborted(period=_PERIOD)),
        ):
            self._alarm(
                name,
                metric,
                "A request for a tenant's queue by another team's stack ended without an answer, so that stack waits "
                "for an hour. The execution's input names the stack: tell that team, and have its operation repeated.",
            )
        self._rollout_alarms(rollout_machine)
        for function in functions:
            self._alarm(
                f"{function.node.id}Errors",
                function.function.metric_errors(period=_PERIOD),
                f"The function {function.name} raised an error, which no expected outcome does. "
                "Its log group has the error with the tenant and the execution: look for the level ERROR.",
            )
            self._alarm(
                f"{function.node.id}Throttles",
                function.function.metric_throttles(period=_PERIOD),
                f"Lambda turned calls of {function.name} away: the account's concurrency is used up. "
                "Find what uses it, or have the account's limit raised.",
            )
        self._alarm(
            "EventsUndelivered",
            undelivered_events.metric_approximate_number_of_messages_visible(period=_PERIOD, statistic="Maximum"),
            "CloudFormation's events did not reach the function stack_event. Operations still end, a little later: "
            "each looks for itself in time. Mend the cause named in the messages' attributes, then purge the queue.",
        )

    def _operation_alarms(self, name: str, machine: sfn.StateMachine, verb: str, done: str) -> None:
        self._alarm(
            f"{name}Failed",
            machine.metric_failed(period=_PERIOD),
            f"A tenant could not be {done}. Its audit row names the resource that failed and CloudFormation's "
            "reason, or what else was in the way: mend the cause, then retry the tenant.",
        )
        self._alarm(
            f"{name}TimedOut",
            machine.metric_timed_out(period=_PERIOD),
            f"An operation to {verb} a tenant took longer than the workflow allows, and ended without recording a "
            "failure. Look at the tenant's stack in CloudFormation, then retry the tenant.",
        )
        self._alarm(
            f"{name}Aborted",
            machine.metric_aborted(period=_PERIOD),
            f"Somebody stopped an operation to {verb} a tenant, so its failure was not recorded. "
            "Find out who and why in CloudTrail, then retry the tenant.",
        )

    def _rollout_alarms(self, machine: sfn.StateMachine) -> None:
        self._alarm(
            "RolloutFailed",
            machine.metric_failed(period=_PERIOD),
            "A rollout halted, was aborted, or ended with tenants that failed. `berth rollout list` says which one, "
            "`berth rollout status` why, with the failed tenants by cause: mend the cause, then resume or retry it.",
        )
        self._alarm(
            "RolloutTimedOut",
            machine.metric_timed_out(period=_PERIOD),
            "A rollout took longer than an execution may. No further tenant is started, and it still keeps others off "
            "its tenants. `berth rollout status` says how far it came: resume it, which goes on from there, or abort "
            "it.",
        )
        self._alarm(
            "RolloutAborted",
            machine.metric_aborted(period=_PERIOD),
            "Somebody stopped a rollout's execution in Step Functions, so the rollout did not end. Find out who and "
            "why in CloudTrail, then `berth rollout resume` or `berth rollout abort` it.",
        )

    def _alarm(self, name: str, metric: cloudwatch.Metric, description: str) -> None:
        alarm = cloudwatch.Alarm(
            self,
            name,
            alarm_description=description,
            metric=metric,
            threshold=1,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            evaluation_periods=1,
            # Nothing ran, or nothing went wrong.
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )
        if self._action:
            alarm.add_alarm_action(self._action)
