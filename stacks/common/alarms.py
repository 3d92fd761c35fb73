"""How an operator is woken: alarms that say what they mean, what to do, and where the runbook says more."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from constructs import Construct

PERIOD = Duration.minutes(5)


class Alarms(Construct):
    """What is watched is in :mod:`stacks.common.watching`."""

    def __init__(self, scope: Construct, construct_id: str, *, topic_arn: str | None) -> None:
        super().__init__(scope, construct_id)
        topic = sns.Topic.from_topic_arn(self, "Topic", topic_arn) if topic_arn else None
        self._action = actions.SnsAction(topic) if topic else None

    def add(
        self,
        name: str,
        metric: cloudwatch.Metric,
        description: str,
        *,
        runbook: str | None = None,
        threshold: int = 1,
        periods: int = 1,
    ) -> None:
        """Goes off when the metric has reached the threshold in each of so many periods, one after the other.

        ``runbook`` is the heading of its entry there, where that is not the alarm's own name.
        """
        alarm = cloudwatch.Alarm(
            self,
            name,
            alarm_description=f"{description} Runbook: {runbook or name}.",
            metric=metric,
            threshold=threshold,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            evaluation_periods=periods,
            # Nothing ran, or nothing went wrong.
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )
        if self._action:
            alarm.add_alarm_action(self._action)
