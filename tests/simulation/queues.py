"""Queues that count as SQS does, with platforms that send into them and receive from them.

A count may show how many messages there were up to a minute ago. Whoever was given a queue goes on sending for a while
after a delete has withdrawn it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.records import Messages
from tests.fakes import FakeClock, FakeQueues

if TYPE_CHECKING:
    from tests.simulation.harbour import Harbour

COUNTS_LAG_BY = timedelta(seconds=55)
"""The oldest count that a queue may show: a minute, less the seconds by which the clocks of functions differ."""


@dataclass
class Message:
    sent_at: datetime
    received_at: datetime | None = None


class LaggingQueues(FakeQueues):
    """Queues whose counts may be old. ``lag`` is how likely that is."""

    def __init__(self, clock: FakeClock, chance: random.Random) -> None:
        super().__init__()
        self._clock, self._chance = clock, chance
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
        if self._chance.random() < self.lag:
            seen_at -= COUNTS_LAG_BY * self._chance.random()
        there = [
            message
            for message in self._sent[url]
            if message.sent_at <= seen_at and not (message.received_at and message.received_at <= seen_at)
        ]
        return Messages(len(there), 0, 0)

    def sent_before(self, moment: datetime, url: str) -> int:
        """How many messages are in the queue that were sent before then, and that nobody has received."""
        return sum(message.sent_at < moment and message.received_at is None for message in self._sent.get(url, ()))


class Platforms:
    """Platforms send to the queues that they were last given, and receive from them."""

    def __init__(self, harbour: Harbour) -> None:
        self._harbour = harbour
        self._given: dict[TenantId, str] = {}

    def is_given(self, tenant: TenantId, url: str) -> None:
        self._given[tenant] = url

    def send_for_a_while(self, tenant: TenantId) -> None:
        """Send a few messages, one now and then, whatever becomes of the queue meanwhile.

        A tenant of old sends into its outbound queue.
        """
        chance = self._harbour.chance
        urls = self._urls(tenant)
        if not urls:
            return
        url = chance.choice(urls)
        lasts = chance.choice((5.0, 60.0, 300.0))
        for _ in range(chance.randint(1, 4)):
            self._harbour.later(chance.uniform(0, lasts), lambda: self._send(url))

    def _send(self, url: str) -> None:
        self._harbour.guard.seen["sent"] += 1
        self._harbour.queues.send(url)

    def receive(self, tenant: TenantId) -> None:
        for url in self._urls(tenant):
            self._harbour.queues.receive(url)

    def _urls(self, tenant: TenantId) -> list[str]:
        stacks = self._harbour.stacks
        outbound = [
            queue.url for id_, queue in stacks.outbound.items() if stacks.all[id_].stack.tenant_id == tenant.value
        ]
        return [*outbound, *([self._given[tenant]] if tenant in self._given else [])]
