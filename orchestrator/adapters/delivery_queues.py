"""The two queues of deliveries in SQS, and the messages in them.

Every message has its tenant as its group, which makes the queues fair: a tenant with many messages, or with slow ones,
does not hold up the others. AWS documents that only FIFO queues refuse a delay per message, and recommends a group for
every message. It does not say in so many words that a message of a standard queue may have both. So a delayed message
that SQS refuses is sent once more without its group: then it is not lost, and only less fair.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from orchestrator.common.errors import BerthError, InvalidRequest
from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.delivery.messages import MAX_DELAY, DeliveryMessage
from orchestrator.events.delivery.records import DISPATCH, DeliveryRef
from orchestrator.events.event_ids import parse_event_id
from orchestrator.events.records import TenantEpoch
from orchestrator.events.resource_ids import IdPrefix, parse_resource_id

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import SendMessageBatchRequestEntryTypeDef

PER_REQUEST = 10
"""SendMessageBatch takes at most this many messages. A message has about 250 bytes, far below SQS's limits of size."""
_VERSION = 1


def to_wire(message: DeliveryMessage) -> str:
    """The body of a message. It names a delivery, and has no content of the event."""
    ref = message.ref
    return json.dumps(
        {
            "version": _VERSION,
            "tenant_id": ref.life.tenant.value,
            "epoch": ref.life.epoch,
            "event_id": ref.event_id,
            "connection_id": ref.connection_id,
            "tries": message.tries,
            "claims": message.claims,
            "quick": message.quick,
        },
        separators=(",", ":"),
    )


def from_wire(body: str) -> DeliveryMessage:
    """Raises :class:`InvalidRequest` for a body that no version of Berth has written. Unknown fields are ignored."""
    try:
        document = json.loads(body)
        if document["version"] != _VERSION:
            raise InvalidRequest(f"The message has the version {str(document['version'])[:20]!a}, not {_VERSION}.")
        connection_id = document["connection_id"]
        if connection_id != DISPATCH:
            parse_resource_id(IdPrefix.CONNECTION, connection_id)
        life = TenantEpoch(TenantId.parse(document["tenant_id"]), _text(document["epoch"]))
        return DeliveryMessage(
            DeliveryRef(life, parse_event_id(document["event_id"]), connection_id),
            tries=_count(document["tries"]),
            claims=document["claims"] is True,
            quick=document["quick"] is True,
        )
    except BerthError:
        raise
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise InvalidRequest(f"The message does not name a delivery: {type(error).__name__}.") from None


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError
    return value


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError
    return value


@dataclass(frozen=True, slots=True)
class Received:
    """A message that Lambda hands over."""

    message_id: str
    body: str


def received(event: object) -> Iterator[Received]:
    """The messages of an invocation, from either queue or from the dead letters of both."""
    records: Sequence[Mapping[str, Any]] = event.get("Records", []) if isinstance(event, dict) else []
    for record in records:
        yield Received(str(record["messageId"]), str(record["body"]))


class SqsDeliveryQueues:
    """Implements :class:`orchestrator.events.delivery.ports.MessageQueue`. The client is made when it is needed."""

    def __init__(self, make_client: Callable[[], SQSClient], *, first: str, later: str) -> None:
        self._make_client = make_client
        self._first = first
        self._later = later

    @cached_property
    def _client(self) -> SQSClient:
        return self._make_client()

    def send(self, messages: Sequence[DeliveryMessage]) -> Sequence[DeliveryMessage]:
        quick = [message for message in messages if message.quick]
        others = [message for message in messages if not message.quick]
        return [*self._send_to(self._first, quick), *self._send_to(self._later, others)]

    def _send_to(self, url: str, messages: Sequence[DeliveryMessage]) -> Iterator[DeliveryMessage]:
        """Yields the messages that could not be sent."""
        for start in range(0, len(messages), PER_REQUEST):
            batch = messages[start : start + PER_REQUEST]
            refused, failed = self._send_batch(url, batch, in_groups=True)
            yield from failed
            delayed = [message for message in refused if message.delay]
            yield from (message for message in refused if not message.delay)
            if delayed:
                still_refused, failed = self._send_batch(url, delayed, in_groups=False)
                yield from (*still_refused, *failed)

    def _send_batch(
        self, url: str, messages: Sequence[DeliveryMessage], *, in_groups: bool
    ) -> tuple[Sequence[DeliveryMessage], Sequence[DeliveryMessage]]:
        """Returns the messages that SQS refuses as they are, and those that failed for any other reason."""
        entries = [_entry(number, message, in_groups=in_groups) for number, message in enumerate(messages)]
        try:
            response = self._client.send_message_batch(QueueUrl=url, Entries=entries)
        except (BotoCoreError, ClientError):
            # Nothing is known of any of them. A message that was sent and is sent again starts no second try.
            return (), messages
        failures = response.get("Failed", [])
        refused = [messages[int(each["Id"])] for each in failures if each["SenderFault"]]
        return refused, [messages[int(each["Id"])] for each in failures if not each["SenderFault"]]


def _entry(number: int, message: DeliveryMessage, *, in_groups: bool) -> SendMessageBatchRequestEntryTypeDef:
    entry: SendMessageBatchRequestEntryTypeDef = {"Id": str(number), "MessageBody": to_wire(message)}
    if message.delay:
        # SQS counts in whole seconds, and a try never comes before its time.
        entry["DelaySeconds"] = ceil(min(message.delay, MAX_DELAY).total_seconds())
    if in_groups:
        entry["MessageGroupId"] = message.ref.life.tenant.value
    return entry
