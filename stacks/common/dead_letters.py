"""Queues of what could not be delivered or done, kept for somebody to look at."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from stacks.common.encryption import Encryption


def dead_letter_queue(scope: Construct, construct_id: str, *, encryption: Encryption) -> sqs.Queue:
    # As long as SQS can.
    return encryption.queue(scope, construct_id, retention_period=Duration.days(14))
