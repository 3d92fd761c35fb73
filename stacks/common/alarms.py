"""How an operator is woken: alarms that say what they mean, what to do, and where the runbook says more."""

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
    """What it means, and what to do."""
    runbook: str | None = None
    """The heading of its entry in the runbook, where that is not the alarm's own name."""
    threshold: int = 1
    periods: int = 1


class Alarms(Construct):
    """The alarms of one stack, which notify one topic. Each capability says which alarms it has."""

    def __init__(self, scope: Construct, construct_id: str, *, topic_arn: str | None) -> None:
        super().__init__(scope, construct_id)
        topic = sns.Topic.from_topic_arn(self, "Topic", topic_arn) if topic_arn else None
        self._action = actions.SnsAction(topic) if topic else None

    def add(self, alarm: Alarm) -> None:
        made = cloudwatch.Alarm(
            self,
            alarm.name,
            alarm_description=f"{alarm.description} Runbook: {alarm.runbook or alarm.name}.",
            metric=alarm.metric,
            threshold=alarm.threshold,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            evaluation_periods=alarm.periods,
            # Nothing ran, or nothing went wrong.
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )
        if self._action:
            made.add_alarm_action(self._action)


def alarms_of_function(function: BerthFunction) -> Iterator[Alarm]:
    """The alarms that every function has."""
    yield Alarm(
        f"{function.node.id}Errors",
        function.function.metric_errors(period=PERIOD),
        f"The function {function.name} raised an error, which no expected outcome does. "
        "Its log group has the error with the tenant and the execution: look for the level ERROR.",
        runbook="...Errors",
    )
    yield Alarm(
        f"{function.node.id}Throttles",
        function.function.metric_throttles(period=PERIOD),
        f"Lambda turned calls of {function.name} away: the account's concurrency is used up. "
        "Find what uses it, or have the account's limit raised.",
        runbook="...Throttles",
    )
