"""Queues on SQS: what is asked, and which words mean what. What they hold is in the contract."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from orchestrator.adapters.sqs import SqsQueues
from orchestrator.common.errors import QueueOutOfReach, Throttled
from orchestrator.tenants.messages import Messages
from orchestrator.tenants.records import Queue
from tests.adapters.conftest import client
from tests.fakes import QUEUE

DEAD_LETTERS = "arn:aws:sqs:eu-west-1:000000000000:acme-dead"
REDRIVE = json.dumps({"deadLetterTargetArn": DEAD_LETTERS, "maxReceiveCount": 5})

# The JSON protocol's name and the older query protocol's name of the same error.
for_each_absence = pytest.mark.parametrize("code", ["AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"])

ASKING: dict[str, Callable[[SqsQueues], object]] = {
    "answers": lambda queues: queues.answers(QUEUE),
    "messages": lambda queues: queues.messages(QUEUE.url),
    "dead_letter_queue": lambda queues: queues.dead_letter_queue(QUEUE.url),
}
for_each_question = pytest.mark.parametrize("ask", ASKING.values(), ids=ASKING)


@pytest.fixture
def queues() -> SqsQueues:
    return SqsQueues(client("sqs"))


@pytest.mark.usefixtures("aws")
def test_a_queue_with_another_arn_does_not_answer(queues: SqsQueues) -> None:
    url = client("sqs").create_queue(QueueName="acme")["QueueUrl"]
    assert queues.answers(Queue("arn:aws:sqs:eu-west-1:123456789012:other", url)) is False


def test_a_missing_count_is_zero(queues: SqsQueues, sqs: Stubber) -> None:
    counts = [
        "ApproximateNumberOfMessages",
        "ApproximateNumberOfMessagesNotVisible",
        "ApproximateNumberOfMessagesDelayed",
    ]
    sqs.add_response(
        "get_queue_attributes",
        {"Attributes": {"ApproximateNumberOfMessages": "7"}},
        {"QueueUrl": QUEUE.url, "AttributeNames": counts},
    )
    assert queues.messages(QUEUE.url) == Messages(7, 0, 0)


@for_each_absence
def test_a_deleted_dead_letter_queue_is_none(queues: SqsQueues, sqs: Stubber, code: str) -> None:
    sqs.add_response("get_queue_attributes", {"Attributes": {"RedrivePolicy": REDRIVE}})
    sqs.add_client_error("get_queue_url", code, expected_params={"QueueName": "acme-dead"})
    assert queues.dead_letter_queue(QUEUE.url) is None


@for_each_absence
@for_each_question
def test_a_missing_queue_is_recognised_in_both_protocols(
    queues: SqsQueues, sqs: Stubber, ask: Callable[[SqsQueues], object], code: str
) -> None:
    sqs.add_client_error("get_queue_attributes", code)
    assert not ask(queues)


@for_each_question
def test_a_queue_without_permission_is_an_error(
    queues: SqsQueues, sqs: Stubber, ask: Callable[[SqsQueues], object]
) -> None:
    sqs.add_client_error("get_queue_attributes", "AccessDenied", "Not authorized.")
    with pytest.raises(QueueOutOfReach, match=r"no permission to read queue https://.*Not authorized"):
        ask(queues)


@pytest.mark.parametrize("code", ["RequestThrottled", "ThrottlingException"])
@for_each_question
def test_every_call_may_be_throttled(
    queues: SqsQueues, sqs: Stubber, ask: Callable[[SqsQueues], object], code: str
) -> None:
    sqs.add_client_error("get_queue_attributes", code)
    with pytest.raises(Throttled):
        ask(queues)


@pytest.mark.parametrize(
    ("code", "error"),
    [("ThrottlingException", Throttled), ("AccessDenied", QueueOutOfReach), ("InternalError", ClientError)],
)
def test_a_dead_letter_queue_that_cannot_be_found_now_is_an_error(
    queues: SqsQueues, sqs: Stubber, code: str, error: type[Exception]
) -> None:
    sqs.add_response("get_queue_attributes", {"Attributes": {"RedrivePolicy": REDRIVE}})
    sqs.add_client_error("get_queue_url", code)
    with pytest.raises(error):
        queues.dead_letter_queue(QUEUE.url)
