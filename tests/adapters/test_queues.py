"""Whether a queue can be used now."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from orchestrator.adapters.sqs import SqsQueues
from orchestrator.errors import Throttled
from orchestrator.records import Queue
from tests.adapters.conftest import client
from tests.fakes import QUEUE


@pytest.fixture
def queues() -> SqsQueues:
    return SqsQueues(client("sqs"))


@pytest.mark.usefixtures("aws")
def test_a_queue_that_is_there_answers(queues: SqsQueues) -> None:
    url = client("sqs").create_queue(QueueName="acme")["QueueUrl"]
    assert queues.answers(Queue("arn:aws:sqs:eu-west-1:123456789012:acme", url))


@pytest.mark.usefixtures("aws")
def test_a_queue_that_answers_with_another_arn_is_not_the_one(queues: SqsQueues) -> None:
    url = client("sqs").create_queue(QueueName="acme")["QueueUrl"]
    assert queues.answers(Queue("arn:aws:sqs:eu-west-1:123456789012:other", url)) is False


@pytest.mark.usefixtures("aws")
def test_a_queue_that_is_not_there_yet_does_not_answer(queues: SqsQueues) -> None:
    assert queues.answers(Queue("arn", "https://sqs.eu-west-1.amazonaws.com/123456789012/nowhere")) is False


@pytest.mark.parametrize("code", ["AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"])
def test_both_protocols_say_that_a_queue_is_not_there(queues: SqsQueues, code: str) -> None:
    with Stubber(client("sqs")) as sqs:
        sqs.add_client_error("get_queue_attributes", code)
        assert queues.answers(QUEUE) is False


def test_a_queue_that_may_not_be_asked_is_an_error(queues: SqsQueues) -> None:
    with Stubber(client("sqs")) as sqs:
        sqs.add_client_error("get_queue_attributes", "AccessDenied")
        with pytest.raises(ClientError):
            queues.answers(QUEUE)


@pytest.mark.parametrize("code", ["RequestThrottled", "ThrottlingException"])
def test_asking_may_be_throttled(queues: SqsQueues, code: str) -> None:
    with Stubber(client("sqs")) as sqs:
        sqs.add_client_error("get_queue_attributes", code)
        with pytest.raises(Throttled):
            queues.answers(QUEUE)
