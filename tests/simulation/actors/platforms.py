"""Platforms that send messages into the queues that they were given, and receive from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.common.tenant_ids import TenantId

if TYPE_CHECKING:
    from tests.simulation.environment import Environment


class Platforms:
    """Platforms send to the queues that they were last given, and receive from them."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._given: dict[TenantId, str] = {}

    def is_given(self, tenant: TenantId, url: str) -> None:
        self._given[tenant] = url

    def send_for_a_while(self, tenant: TenantId) -> None:
        """Send a few messages, one now and then, whatever becomes of the queue meanwhile.

        A tenant of old sends into its outbound queue, and some into a queue that was added to the stack by hand.
        """
        rng = self._env.rng
        urls = self._urls(tenant)
        if not urls:
            return
        url = rng.choice(urls)
        lasts = rng.choice((5.0, 60.0, 300.0))
        for _ in range(rng.randint(1, 4)):
            self._env.later(rng.uniform(0, lasts), lambda: self._send(url))

    def _send(self, url: str) -> None:
        self._env.checks.seen["sent"] += 1
        self._env.queues.send(url)

    def receive(self, tenant: TenantId) -> None:
        for url in self._urls(tenant):
            self._env.queues.receive(url)

    def _urls(self, tenant: TenantId) -> list[str]:
        stacks = self._env.stacks
        others = [
            queue.url
            for id_, queue in [*stacks.outbound.items(), *stacks.added.items()]
            if stacks.all[id_].stack.tenant_id == tenant.value
        ]
        return [*others, *([self._given[tenant]] if tenant in self._given else [])]
