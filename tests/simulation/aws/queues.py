"""Queues that count as SQS does, with platforms that send into them and receive from them.

A count may show how many messages there were up to a minute ago. Whoever was given a queue goes on sending for a while
after a delete has withdrawn it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime, timedelta

from orchestrator.tenants.messages import Messages
from tests.fakes import FakeClock, FakeQueues

COUNTS_LAG_BY = timedelta(seconds=55)
"""The oldest count that a queue may show: a minute, less the seconds by which the clocks of functions differ."""


@dataclass
class Message:
    sent_at: datetime
    received_at: datetime | None = None


class LaggingQueues(FakeQueues):
    """Queues whose counts may be old. ``lag`` is how likely that is."""

    def __init__(self, clock: FakeClock, rng: random.Random) -> None:
        super().__init__()
        self._clock, self._rng = clock, rng
        self._sent: dict[str, list[Message]] = {}
        self.lag = 0.0

    def send(self, url: str) -> None:
        if url not in self.gone:
            self._sent.setdefault(url, []).append(Message(self._clock.now()))

    def receive(self, url: str) -> None:
        """Receive all messages in the queue."""
        for message in self._sent.get(url, ()):
            message.received_at = message.received_at or self._clock.now()

    def messages(self, url: str) -> Messages | None:
        if url in self.gone:
            return None
        if url not in self._sent:
            return Messages(0, 0, 0)
        seen_at = self._clock.now()
        if self._rng.random() < self.lag:
            seen_at -= COUNTS_LAG_BY * self._rng.random()
        there = [
            message
            for message in self._sent[url]
            if message.sent_at <= seen_at and not (message.received_at and message.received_at <= seen_at)
        ]
        return Messages(len(there), 0, 0)

    def sent_before(self, moment: datetime, url: str) -> int:
        """How many messages are in the queue that were sent before then, and that nobody has received."""
        return sum(message.sent_at < moment and message.received_at is None for message in self._sent.get(url, ()))
