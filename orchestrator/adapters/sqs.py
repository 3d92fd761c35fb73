"""Tenants' queues, and a queue of our own for records that cannot be processed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from orchestrator.adapters.aws import ACCESS_DENIED, error_code, error_message, throttling
from orchestrator.common.errors import QueueOutOfReach
from orchestrator.tenants.messages import Messages
from orchestrator.tenants.records import Queue

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.literals import QueueAttributeNameType

# The same error in the JSON protocol and in the older query protocol.
_NO_SUCH_QUEUE = frozenset({"AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"})

_REQUESTS_AT_ONCE = 10
"""The number of connections that a client keeps open."""

_PARKED_PER_MESSAGE = 50
"""The keys of a row have at most 3,072 bytes, and a message 256 KB."""


class SqsQueues:
    """Implements :class:`orchestrator.tenants.ports.Queues`."""

    def __init__(self, client: SQSClient) -> None:
        self._client = client

    def answers(self, queue: Queue) -> bool:
        return (self._attributes(queue.url, "QueueArn") or {}).get("QueueArn") == queue.arn

    def messages(self, url: str) -> Messages | None:
        found = self._attributes(
            url,
            "ApproximateNumberOfMessages",
            "ApproximateNumberOfMessagesNotVisible",
            "ApproximateNumberOfMessagesDelayed",
        )
        if found is None:
            return None
        return Messages(
            visible=int(found.get("ApproximateNumberOfMessages", 0)),
            in_flight=int(found.get("ApproximateNumberOfMessagesNotVisible", 0)),
            delayed=int(found.get("ApproximateNumberOfMessagesDelayed", 0)),
        )

    def exist(self, urls: Sequence[str]) -> dict[str, bool | QueueOutOfReach]:
        if not urls:
            return {}
        # Imported here, because only a survey asks for many queues.
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(_REQUESTS_AT_ONCE) as pool:
            return dict(zip(urls, pool.map(self._exists, urls), strict=True))

    def _exists(self, url: str) -> bool | QueueOutOfReach:
        try:
            return self._attributes(url, "QueueArn") is not None
        except QueueOutOfReach as out_of_reach:
            return out_of_reach

    def dead_letter_queue(self, url: str) -> str | None:
        policy = json.loads((self._attributes(url, "RedrivePolicy") or {}).get("RedrivePolicy", "{}"))
        if "deadLetterTargetArn" not in policy:
            return None
        name = str(policy["deadLetterTargetArn"]).rpartition(":")[2]
        try:
            with throttling():
                return self._client.get_queue_url(QueueName=name)["QueueUrl"]
        except ClientError as error:
            if error_code(error) in _NO_SUCH_QUEUE:
                return None
            if error_code(error) in ACCESS_DENIED:
                raise _out_of_reach(name, error) from error
            raise

    def _attributes(self, url: str, *names: QueueAttributeNameType) -> dict[QueueAttributeNameType, str] | None:
        """``None`` if the queue does not exist."""
        try:
            with throttling():
                response = self._client.get_queue_attributes(QueueUrl=url, AttributeNames=list(names))
        except ClientError as error:
            if error_code(error) in _NO_SUCH_QUEUE:
                return None
            if error_code(error) in ACCESS_DENIED:
                raise _out_of_reach(url, error) from error
            raise
        return response.get("Attributes", {})


def _out_of_reach(queue: str, error: ClientError) -> QueueOutOfReach:
    return QueueOutOfReach(f"Berth has no permission to read queue {queue}: {error_message(error)}")


class SqsParkedRecords:
    """Implements :class:`orchestrator.events.ports.ParkedRecords`. The client is made when it is first needed."""

    def __init__(self, make_client: Callable[[], SQSClient], url: str) -> None:
        self._make_client = make_client
        self._url = url

    @cached_property
    def _client(self) -> SQSClient:
        return self._make_client()

    def park(self, records: Sequence[Mapping[str, str]]) -> None:
        # One message for many records, so that parking takes no time even if a whole batch is bad.
        for start in range(0, len(records), _PARKED_PER_MESSAGE):
            body = json.dumps({"records": list(records[start : start + _PARKED_PER_MESSAGE])}, sort_keys=True)
            with throttling():
                self._client.send_message(QueueUrl=self._url, MessageBody=body)
