"""Alarms. Each description says what happened, what to do, and which entry of the runbook has the details."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from constructs import Construct

if TYPE_CHECKING:
    from stacks.common.functions import BerthFunction

PERIOD = Duration.minutes(5)


@dataclass(frozen=True, slots=True)
class Alarm:
    """Goes off when the metric has reached the threshold in each of ``periods`` consecutive periods."""

    name: str
    metric: cloudwatch.Metric
    description: str
    """What happened, and what the operator should do."""
    runbook: str | None = None
    """The heading of the alarm's entry in the runbook, if the heading is not the alarm's name."""
    threshold: int = 1
    periods: int = 1
    is_heartbeat: bool = False
    """True if the alarm goes off when the metric is below the threshold, or has no data."""


class Alarms(Construct):
    """The alarms of one stack. All of them notify the same topic."""

    def __init__(self, scope: Construct, construct_id: str, *, topic_arn: str | None) -> None:
        super().__init__(scope, construct_id)
        topic = sns.Topic.from_topic_arn(self, "Topic", topic_arn) if topic_arn else None
        self._action = actions.SnsAction(topic) if topic else None

    def add(self, alarm: Alarm) -> None:
        comparisons, missing = cloudwatch.ComparisonOperator, cloudwatch.TreatMissingData
        created = cloudwatch.Alarm(
            self,
            alarm.name,
            alarm_description=f"{alarm.description} Runbook: {alarm.runbook or alarm.name}.",
            metric=alarm.metric,
            threshold=alarm.threshold,
            comparison_operator=(
                comparisons.LESS_THAN_THRESHOLD
                if alarm.is_heartbeat
                else comparisons.GREATER_THAN_OR_EQUAL_TO_THRESHOLD
            ),
            evaluation_periods=alarm.periods,
            # Except for a heartbeat, no data means that nothing ran, or that nothing went wrong.
            treat_missing_data=missing.BREACHING if alarm.is_heartbeat else missing.NOT_BREACHING,
        )
        if self._action:
            created.add_alarm_action(self._action)


def alarms_of_function(function: BerthFunction) -> Iterator[Alarm]:
    """The alarms that every function has."""
    yield Alarm(
        f"{function.node.id}Errors",
        function.function.metric_errors(period=PERIOD),
        f"The function {function.name} raised an unexpected error. "
        "Look in its log group for level ERROR: the line has the tenant, the execution and the stack trace.",
        runbook="...Errors",
    )
    yield Alarm(
        f"{function.node.id}Throttles",
        function.function.metric_throttles(period=PERIOD),
        f"Lambda throttled calls of {function.name}: its reserved concurrency or the account's is used up. "
        "Find out which function uses it, or have AWS raise the account's quota.",
        runbook="...Throttles",
    )
