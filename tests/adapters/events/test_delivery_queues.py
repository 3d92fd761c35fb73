"""The queues of deliveries: messages reach the right queue with their group and their delay, or are returned."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ConnectTimeoutError

from orchestrator.adapters.delivery_queues import SqsDeliveryQueues, from_wire, received, to_wire
from orchestrator.common.errors import InvalidRequest
from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.delivery.messages import MAX_DELAY, DeliveryMessage
from orchestrator.events.delivery.records import DISPATCH, DeliveryRef
from orchestrator.events.event_ids import new_event_id
from orchestrator.events.records import TenantEpoch
from tests.adapters.conftest import client
from tests.fakes import NOON
from tests.fakes.events import ACME_LIFE

if TYPE_CHECKING:
    from botocore.stub import Stubber
    from mypy_boto3_sqs import SQSClient

CONNECTION = f"conn_{'0' * 24}"
FIRST, LATER = (f"https://sqs.eu-west-1.amazonaws.com/123456789012/{name}" for name in ("first", "later"))


def a_message(life: TenantEpoch = ACME_LIFE, connection_id: str = CONNECTION, **changes: Any) -> DeliveryMessage:
    return DeliveryMessage(DeliveryRef(life, new_event_id(NOON, 3), connection_id), **changes)


def entry(message: DeliveryMessage, number: int = 0, **more: Any) -> dict[str, Any]:
    return {"Id": str(number), "MessageBody": to_wire(message), **more}


def in_group(message: DeliveryMessage, number: int = 0, **more: Any) -> dict[str, Any]:
    return entry(message, number, MessageGroupId="acme", **more)


def succeeded(number: int) -> dict[str, str]:
    return {"Id": str(number), "MessageId": str(number), "MD5OfMessageBody": ""}


def failed(number: int, *, refused: bool) -> dict[str, Any]:
    return {"Id": str(number), "SenderFault": refused, "Code": "InternalError"}


@pytest.fixture
def queue_urls(aws: None) -> dict[str, str]:  # noqa: ARG001 - the account they are in
    return {name: client("sqs").create_queue(QueueName=name)["QueueUrl"] for name in ("first", "later")}


@pytest.fixture
def queues(queue_urls: dict[str, str]) -> SqsDeliveryQueues:
    return SqsDeliveryQueues(lambda: client("sqs"), **queue_urls)


@pytest.fixture
def stubbed(sqs: Stubber) -> SqsDeliveryQueues:
    assert sqs
    return SqsDeliveryQueues(lambda: client("sqs"), first=FIRST, later=LATER)


def taken_from(url: str) -> list[dict[str, Any]]:
    answer = client("sqs").receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, MessageSystemAttributeNames=["MessageGroupId"]
    )
    messages: list[dict[str, Any]] = answer.get("Messages", [])
    return messages


# Sending


def test_a_first_try_of_a_healthy_connection_has_a_queue_apart_from_all_others(
    queues: SqsDeliveryQueues, queue_urls: dict[str, str]
) -> None:
    quick, slow = a_message(), a_message(tries=2, claims=True, quick=False)
    assert queues.send([slow, quick]) == []
    assert [from_wire(each["Body"]) for each in taken_from(queue_urls["first"])] == [quick]
    assert [from_wire(each["Body"]) for each in taken_from(queue_urls["later"])] == [slow]


def test_the_group_of_a_message_is_its_tenant(queues: SqsDeliveryQueues, queue_urls: dict[str, str]) -> None:
    umbrella = TenantEpoch(TenantId("umbrella"), "e2")
    queues.send([a_message(), a_message(umbrella), a_message(TenantEpoch(TenantId("acme"), "another"))])
    groups = [each["Attributes"]["MessageGroupId"] for each in taken_from(queue_urls["first"])]
    assert sorted(groups) == ["acme", "acme", "umbrella"]


def test_many_messages_are_sent_in_requests_of_ten(stubbed: SqsDeliveryQueues, sqs: Stubber) -> None:
    messages = [a_message() for _ in range(23)]
    for batch in (messages[:10], messages[10:20], messages[20:]):
        entries = [in_group(message, number) for number, message in enumerate(batch)]
        answer = {"Successful": [succeeded(number) for number in range(len(batch))], "Failed": []}
        sqs.add_response("send_message_batch", answer, {"QueueUrl": FIRST, "Entries": entries})
    assert stubbed.send(messages) == []


def test_nothing_to_send_makes_no_request_and_no_client() -> None:
    def no_client() -> SQSClient:
        raise AssertionError

    assert SqsDeliveryQueues(no_client, first=FIRST, later=LATER).send([]) == []


@pytest.mark.parametrize(
    ("delay", "seconds"),
    [
        (timedelta(seconds=1), 1),
        (timedelta(milliseconds=1_200), 2),
        (MAX_DELAY, 900),
        (timedelta(hours=2), 900),
    ],
)
def test_a_delay_is_in_whole_seconds_never_shorter_and_never_more_than_sqs_takes(
    stubbed: SqsDeliveryQueues, sqs: Stubber, delay: timedelta, seconds: int
) -> None:
    message = a_message(delay=delay, quick=False)
    sqs.add_response(
        "send_message_batch",
        {"Successful": [succeeded(0)], "Failed": []},
        {"QueueUrl": LATER, "Entries": [in_group(message, DelaySeconds=seconds)]},
    )
    assert stubbed.send([message]) == []


# Messages that could not be sent


def test_messages_that_sqs_reports_as_failed_are_returned(stubbed: SqsDeliveryQueues, sqs: Stubber) -> None:
    messages = [a_message() for _ in range(3)]
    answer = {"Successful": [succeeded(1)], "Failed": [failed(0, refused=False), failed(2, refused=True)]}
    sqs.add_response("send_message_batch", answer)
    assert sorted(stubbed.send(messages), key=messages.index) == [messages[0], messages[2]]


def test_after_a_request_that_failed_the_other_requests_are_made(stubbed: SqsDeliveryQueues, sqs: Stubber) -> None:
    messages = [a_message() for _ in range(11)]
    other = a_message(quick=False)
    sqs.add_client_error("send_message_batch", "RequestThrottled")
    sqs.add_response("send_message_batch", {"Successful": [succeeded(0)], "Failed": []})
    sqs.add_client_error("send_message_batch", "KmsThrottled")
    assert stubbed.send([*messages, other]) == [*messages[:10], other]


def test_messages_of_a_request_without_an_answer_are_returned() -> None:
    class Silent:
        def send_message_batch(self, **_: object) -> None:
            raise ConnectTimeoutError(endpoint_url=FIRST)

    silent: Any = Silent()
    message = a_message()
    assert SqsDeliveryQueues(lambda: silent, first=FIRST, later=LATER).send([message]) == [message]


def test_a_delayed_message_that_sqs_refuses_is_sent_again_without_its_group(
    stubbed: SqsDeliveryQueues, sqs: Stubber
) -> None:
    messages = [a_message(quick=False, delay=timedelta(seconds=5)) for _ in range(2)]
    sqs.add_response("send_message_batch", {"Successful": [succeeded(0)], "Failed": [failed(1, refused=True)]})
    sqs.add_response(
        "send_message_batch",
        {"Successful": [succeeded(0)], "Failed": []},
        {"QueueUrl": LATER, "Entries": [entry(messages[1], DelaySeconds=5)]},
    )
    assert stubbed.send(messages) == []


def test_a_message_that_sqs_refuses_twice_is_returned(stubbed: SqsDeliveryQueues, sqs: Stubber) -> None:
    message = a_message(quick=False, delay=timedelta(seconds=5))
    for _ in range(2):
        sqs.add_response("send_message_batch", {"Successful": [], "Failed": [failed(0, refused=True)]})
    assert stubbed.send([message]) == [message]


# The messages


@pytest.mark.parametrize(
    "message",
    [
        a_message(),
        a_message(tries=11, claims=True, quick=False),
        a_message(connection_id=DISPATCH, claims=True),
    ],
)
def test_a_message_is_read_as_it_was_written(message: DeliveryMessage) -> None:
    assert from_wire(to_wire(message)) == message


def test_fields_that_a_later_version_adds_are_ignored() -> None:
    message = a_message()
    assert from_wire(json.dumps({**json.loads(to_wire(message)), "more": [1]})) == message


def test_a_message_names_a_delivery_and_says_nothing_of_the_event() -> None:
    assert set(json.loads(to_wire(a_message()))) == {
        *("version", "tenant_id", "epoch", "event_id", "connection_id"),
        *("tries", "claims", "quick"),
    }


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"tenant_id": "a#b"},
        {"tenant_id": None},
        {"epoch": ""},
        {"epoch": 1},
        {"event_id": "1"},
        {"connection_id": "conn_1"},
        {"connection_id": 1},
        {"tries": -1},
        {"tries": True},
        {"tries": "1"},
    ],
)
def test_a_message_with_a_field_that_makes_no_sense_is_unreadable(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        from_wire(json.dumps(json.loads(to_wire(a_message())) | change))


@pytest.mark.parametrize("body", ["", "{", "[]", "null", "{}", '"text"', "[" * 100_000])
def test_a_body_that_is_no_message_is_unreadable(body: str) -> None:
    with pytest.raises(InvalidRequest):
        from_wire(body)


def test_the_messages_of_an_invocation_have_the_ids_by_which_failures_are_reported() -> None:
    event = {"Records": [{"messageId": "1", "body": "a", "eventSource": "aws:sqs"}, {"messageId": "2", "body": "b"}]}
    assert [(each.message_id, each.body) for each in received(event)] == [("1", "a"), ("2", "b")]
    assert list(received({"source": "aws.events"})) == []
