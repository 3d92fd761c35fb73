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

_PERIOD = Duration.minutes(5)


class Alarms(Construct):
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        machine: sfn.StateMachine,
        functions: Iterable[BerthFunction],
        undelivered_events: sqs.Queue,
        topic_arn: str | None,
    ) -> None:
        super().__init__(scope, construct_id)
        topic = sns.Topic.from_topic_arn(self, "Topic", topic_arn) if topic_arn else None
        self._action = actions.SnsAction(topic) if topic else None

        self._alarm(
            "CreateFailed",
            machine.metric_failed(period=_PERIOD),
            "A tenant could not be provisioned. Its audit row names the resource that failed and CloudFormation's "
            "reason: mend the cause, then create the tenant again.",
        )
        self._alarm(
            "CreateTimedOut",
            machine.metric_timed_out(period=_PERIOD),
            "Provisioning a tenant took longer than the workflow allows, and ended without recording a failure. "
            "Look at the tenant's stack in CloudFormation, then create the tenant again.",
        )
        self._alarm(
            "CreateAborted",
            machine.metric_aborted(period=_PERIOD),
            "Somebody stopped the provisioning of a tenant, so its failure was not recorded. "
            "Find out who and why in CloudTrail, then create the tenant again.",
        )
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
