"""Alarms. Each description says what happened, what to do, and which entry of the runbook has the details.

There is an alarm only for what a person has to act on, because each costs something every month.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from constructs import Construct

from stacks.common.log_groups import EXECUTIONS_DIED, FUNCTION_ERRORS
from stacks.common.permissions import names_of

PERIOD = Duration.minutes(5)


@dataclass(frozen=True, slots=True)
class Alarm:
    """Goes off when the metric has reached the threshold in each of ``periods`` consecutive periods."""

    name: str
    metric: cloudwatch.Metric
    description: str
    """A sentence about what happened, and what the operator should do."""
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
            alarm_description=f"{alarm.description} Runbook: {alarm.name}.",
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


def alarms_of_all(scope: Construct) -> Sequence[Alarm]:
    """The alarms about all functions and machines of a control plane, those in its other stacks included."""
    return (
        Alarm(
            FUNCTION_ERRORS,
            counted_by_all(scope, FUNCTION_ERRORS),
            "A function failed: by an unexpected error, a timeout or a lack of memory. The metric Errors of Lambda "
            "says which function. Look in its log group for level ERROR: the line has the tenant, the execution and "
            "the stack trace.",
        ),
        Alarm(
            "FunctionThrottles",
            # Without a dimension, Lambda counts all functions of the account and region.
            cloudwatch.Metric(namespace="AWS/Lambda", metric_name="Throttles", statistic="Sum", period=PERIOD),
            "Lambda throttled calls of a function of this account, of Berth or of somebody else: a reserved "
            "concurrency or the account's is used up. The metric Throttles of Lambda says which function. Find out "
            "what calls it, or have AWS raise the account's quota.",
        ),
        Alarm(
            EXECUTIONS_DIED,
            counted_by_all(scope, EXECUTIONS_DIED),
            "An execution timed out, or somebody stopped it in Step Functions. An operation on a tenant is closed "
            "automatically, within minutes, and a purge goes on within the hour; a rollout has to be resumed, and a "
            "team's stack waits for a response. The logs of the machines name the execution; CloudTrail says who "
            "stopped it.",
        ),
    )


def counted_by_all(scope: Construct, metric: str) -> cloudwatch.Metric:
    """A metric of the whole control plane, without the dimension that says which function counted."""
    return cloudwatch.Metric(namespace=names_of(scope).metrics, metric_name=metric, statistic="Sum", period=PERIOD)
