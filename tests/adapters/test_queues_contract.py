"""The contract of queues, which the fake and SQS both keep."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from orchestrator.adapters.sqs import SqsQueues
from orchestrator.reconciling.ports import SurveyedQueues
from orchestrator.tenants.messages import Messages
from orchestrator.tenants.records import Queue
from tests.adapters.conftest import REGION, Account
from tests.fakes import FakeQueues


class InMemory:
    """Queues in memory, and what is in them."""

    def __init__(self) -> None:
        self._fake = FakeQueues()
        self.queues: SurveyedQueues = self._fake

    def make(self, name: str, *, dead_letters: Queue | None = None) -> Queue:
        queue = Queue(f"arn:aws:sqs:{REGION}:000000000000:{name}", f"https://sqs.{REGION}.amazonaws.com/0/{name}")
        self._fake.held[queue.url] = Messages(0, 0, 0)
        if dead_letters:
            self._fake.dead_letter_queues[queue.url] = dead_letters.url
        return queue

    def send(self, queue: Queue, *, delayed: bool = False) -> None:
        held = self._fake.held[queue.url]
        more = {"delayed": held.delayed + 1} if delayed else {"visible": held.visible + 1}
        self._fake.held[queue.url] = replace(held, **more)

    def receive(self, queue: Queue) -> None:
        held = self._fake.held[queue.url]
        self._fake.held[queue.url] = replace(held, visible=held.visible - 1, in_flight=held.in_flight + 1)

    def remove(self, queue: Queue) -> None:
        self._fake.gone.add(queue.url)


class OnAws:
    def __init__(self, account: Account) -> None:
        self._sqs = account.client("sqs")
        self._account = account.number
        self.queues: SurveyedQueues = SqsQueues(self._sqs)

    def make(self, name: str, *, dead_letters: Queue | None = None) -> Queue:
        policy = {"deadLetterTargetArn": dead_letters.arn, "maxReceiveCount": 5} if dead_letters else None
        attributes = {"RedrivePolicy": json.dumps(policy)} if policy else {}
        url = self._sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
        return Queue(f"arn:aws:sqs:{REGION}:{self._account}:{name}", url)

    def send(self, queue: Queue, *, delayed: bool = False) -> None:
        self._sqs.send_message(QueueUrl=queue.url, MessageBody="x", DelaySeconds=900 if delayed else 0)

    def receive(self, queue: Queue) -> None:
        assert self._sqs.receive_message(QueueUrl=queue.url, MaxNumberOfMessages=1)["Messages"]

    def remove(self, queue: Queue) -> None:
        self._sqs.delete_queue(QueueUrl=queue.url)


World = InMemory | OnAws


@pytest.fixture
def world(account: Account | None) -> World:
    return OnAws(account) if account else InMemory()


def test_an_existing_queue_answers(world: World) -> None:
    assert world.queues.answers(world.make("acme")) is True


def test_messages_are_counted_as_visible_in_flight_or_delayed(world: World) -> None:
    queue = world.make("acme")
    assert world.queues.messages(queue.url) == Messages(0, 0, 0)
    for _ in range(3):
        world.send(queue)
    world.send(queue, delayed=True)
    world.receive(queue)
    held = world.queues.messages(queue.url)
    assert held == Messages(visible=2, in_flight=1, delayed=1)
    assert held.total == 4


def test_each_queue_has_its_own_messages(world: World) -> None:
    queue, other = world.make("acme"), world.make("other")
    world.send(queue)
    assert world.queues.messages(other.url) == Messages(0, 0, 0)


def test_a_deleted_queue_does_not_answer_and_is_empty(world: World) -> None:
    queue, dead = world.make("acme", dead_letters=world.make("dead")), world.make("other")
    world.remove(queue)
    assert world.queues.answers(queue) is False
    assert world.queues.messages(queue.url) is None
    assert world.queues.dead_letter_queue(queue.url) is None
    assert world.queues.answers(dead) is True


def test_a_queue_names_its_dead_letter_queue(world: World) -> None:
    dead = world.make("dead")
    queue = world.make("acme", dead_letters=dead)
    assert world.queues.dead_letter_queue(queue.url) == dead.url
    assert world.queues.dead_letter_queue(dead.url) is None


def test_a_deleted_dead_letter_queue_is_none(world: World) -> None:
    dead = world.make("dead")
    queue = world.make("acme", dead_letters=dead)
    world.remove(dead)
    assert world.queues.dead_letter_queue(queue.url) is None


def test_many_queues_are_asked_for_at_once(world: World) -> None:
    queues = [world.make(f"queue-{number}") for number in range(25)]
    world.remove(queues[7])
    expected = {queue.url: queue is not queues[7] for queue in queues}
    assert world.queues.exist([queue.url for queue in queues]) == expected
    assert world.queues.exist([]) == {}
