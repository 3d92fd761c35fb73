"""Messages to tenants' own queues."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from orchestrator.adapters.aws import ACCESS_DENIED, error_code, error_message, throttling
from orchestrator.common.errors import QueueOutOfReach
from orchestrator.events.delivery.answers import Failure
from orchestrator.events.delivery.queue_message import QueueMessage

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

# The same error in the JSON protocol and in the older query protocol.
_NO_SUCH_QUEUE = frozenset({"AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"})
_REFUSED = "InvalidParameterValue"


class SqsQueueMessages:
    """Implements :class:`orchestrator.events.delivery.ports.QueueMessages`. The client is made when it is needed.

    Tenants' queues are standard queues. Each has one consumer, so messages to it have no group.
    """

    def __init__(self, make_client: Callable[[], SQSClient]) -> None:
        self._make_client = make_client

    @cached_property
    def _client(self) -> SQSClient:
        return self._make_client()

    def send(self, url: str, message: QueueMessage) -> Failure | None:
        try:
            with throttling():
                self._client.send_message(
                    QueueUrl=url,
                    MessageBody=message.body,
                    MessageAttributes={
                        name: {"DataType": "String", "StringValue": value} for name, value in message.attributes.items()
                    },
                )
        except ClientError as error:
            if error_code(error) in _NO_SUCH_QUEUE:
                return Failure("The tenant's queue does not exist. It may be being replaced.")
            if error_code(error) == _REFUSED:
                return Failure("SQS refused the message. It may be larger than the queue's MaximumMessageSize.")
            if error_code(error) in ACCESS_DENIED:
                # The operators have to give the permission. The tenant can do nothing.
                raise QueueOutOfReach(
                    f"Berth has no permission to send to queue {url}: {error_message(error)}"
                ) from error
            raise
        return None
