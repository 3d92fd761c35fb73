"""Tenants' queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from orchestrator.adapters.aws import error_code, throttling
from orchestrator.records import Queue

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

# The JSON protocol's name and the older query protocol's name of the same error.
_NOT_THERE = frozenset({"AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"})


class SqsQueues:
    """Implements :class:`orchestrator.ports.Queues`."""

    def __init__(self, client: SQSClient) -> None:
        self._client = client

    def answers(self, queue: Queue) -> bool:
        try:
            with throttling():
                response = self._client.get_queue_attributes(QueueUrl=queue.url, AttributeNames=["QueueArn"])
        except ClientError as error:
            if error_code(error) in _NOT_THERE:
                return False
            raise
        return response["Attributes"].get("QueueArn") == queue.arn
