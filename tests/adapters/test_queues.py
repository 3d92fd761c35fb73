"""Queues on SQS: whether one can be used now, what it holds, and where it puts what nobody could handle."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from orchestrator.adapters.sqs import SqsQueues
from orchestrator.errors import Throttled
from orchestrator.records import Messages, Queue
from tests.adapters.conftest import REGION, client
from tests.fakes import QUEUE

NOWHERE = f"https://sqs.{REGION}.amazonaws.com/123456789012/nowhere"
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


@pytest.fixture
def sqs() -> Iterator[Stubber]:
    """SQS with scripted answers."""
    with Stubber(client("sqs")) as stubber:
        yield stubber
        stubber.assert_no_pending_responses()


def make_queue(name: str, **attributes: str) -> Queue:
    url = client("sqs").create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
    return Queue(f"arn:aws:sqs:{REGION}:123456789012:{name}", url)


@pytest.mark.usefixtures("aws")
def test_a_queue_that_is_there_answers(queues: SqsQueues) -> None:
    assert queues.answers(make_queue("acme"))


@pytest.mark.usefixtures("aws")
def test_a_queue_that_answers_with_another_arn_is_not_the_one(queues: SqsQueues) -> None:
    url = make_queue("acme").url
    assert queues.answers(Queue("arn:aws:sqs:eu-west-1:123456789012:other", url)) is False


@pytest.mark.usefixtures("aws")
def test_a_queue_that_is_not_there_neither_answers_nor_holds_anything(queues: SqsQueues) -> None:
    assert queues.answers(Queue("arn", NOWHERE)) is False
    assert queues.messages(NOWHERE) is None
    assert queues.dead_letter_queue(NOWHERE) is None


@pytest.mark.usefixtures("aws")
def test_messages_are_counted_by_whether_they_can_be_received(queues: SqsQueues) -> None:
    url = make_queue("acme").url
    assert queues.messages(url) == Messages(0, 0, 0)
    for _ in range(3):
        client("sqs").send_message(QueueUrl=url, MessageBody="now")
    for _ in range(2):
        client("sqs").send_message(QueueUrl=url, MessageBody="later", DelaySeconds=900)
    client("sqs").receive_message(QueueUrl=url, MaxNumberOfMessages=1)
    assert queues.messages(url) == Messages(visible=2, in_flight=1, delayed=2)


def test_only_the_counts_are_asked_for_and_one_that_is_not_told_is_nought(queues: SqsQueues, sqs: Stubber) -> None:
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


@pytest.mark.usefixtures("aws")
def test_the_dead_letter_queue_is_the_one_that_the_queue_itself_names(queues: SqsQueues) -> None:
    dead = make_queue("acme-dead")
    policy = json.dumps({"deadLetterTargetArn": dead.arn, "maxReceiveCount": 5})
    assert queues.dead_letter_queue(make_queue("acme", RedrivePolicy=policy).url) == dead.url


@pytest.mark.usefixtures("aws")
def test_a_queue_without_a_dead_letter_queue_has_none(queues: SqsQueues) -> None:
    assert queues.dead_letter_queue(make_queue("acme").url) is None


@for_each_absence
def test_a_dead_letter_queue_that_is_gone_is_none(queues: SqsQueues, sqs: Stubber, code: str) -> None:
    sqs.add_response("get_queue_attributes", {"Attributes": {"RedrivePolicy": REDRIVE}})
    sqs.add_client_error("get_queue_url", code, expected_params={"QueueName": "acme-dead"})
    assert queues.dead_letter_queue(QUEUE.url) is None


@for_each_absence
@for_each_question
def test_both_protocols_say_that_a_queue_is_not_there(
    queues: SqsQueues, sqs: Stubber, ask: Callable[[SqsQueues], object], code: str
) -> None:
    sqs.add_client_error("get_queue_attributes", code)
    assert not ask(queues)


@for_each_question
def test_a_queue_that_may_not_be_asked_is_an_error(
    queues: SqsQueues, sqs: Stubber, ask: Callable[[SqsQueues], object]
) -> None:
    sqs.add_client_error("get_queue_attributes", "AccessDenied")
    with pytest.raises(ClientError):
        ask(queues)


@pytest.mark.parametrize("code", ["RequestThrottled", "ThrottlingException"])
@for_each_question
def test_asking_may_be_throttled(
    queues: SqsQueues, sqs: Stubber, ask: Callable[[SqsQueues], object], code: str
) -> None:
    sqs.add_client_error("get_queue_attributes", code)
    with pytest.raises(Throttled):
        ask(queues)


@pytest.mark.parametrize(("code", "error"), [("ThrottlingException", Throttled), ("AccessDenied", ClientError)])
def test_a_dead_letter_queue_that_cannot_be_found_now_is_not_taken_for_gone(
    queues: SqsQueues, sqs: Stubber, code: str, error: type[Exception]
) -> None:
    sqs.add_response("get_queue_attributes", {"Attributes": {"RedrivePolicy": REDRIVE}})
    sqs.add_client_error("get_queue_url", code)
    with pytest.raises(error):
        queues.dead_letter_queue(QUEUE.url)
