"""Dead-letter queues: messages that could not be delivered or processed, kept for an operator to look at."""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from stacks.common.alarms import PERIOD, Alarm
from stacks.common.encryption import Encryption


@dataclass(frozen=True, slots=True)
class DeadLetters:
    queue: sqs.Queue
    holds: str
    """The subject of the messages, as `berth doctor` and the dashboard show it."""
    alarm_name: str
    alarm_description: str

    @property
    def alarm(self) -> Alarm:
        return Alarm(self.alarm_name, self.metric_held(period=PERIOD), self.alarm_description)

    def metric_held(self, *, period: Duration | None = None, label: str | None = None) -> cloudwatch.Metric:
        return self.queue.metric_approximate_number_of_messages_visible(period=period, label=label, statistic="Maximum")


def dead_letter_queue(scope: Construct, construct_id: str, *, encryption: Encryption) -> sqs.Queue:
    # The maximum that SQS allows.
    return encryption.queue(scope, construct_id, retention_period=Duration.days(14))
