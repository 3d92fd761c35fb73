"""Where a tenant's own queue is. It is looked up, and never stored with a connection."""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.common.times import Clock
from orchestrator.events.delivery.ports import TenantQueues
from orchestrator.events.delivery.records import ServedQueue
from orchestrator.events.ports import Configuration
from orchestrator.events.records import TenantEpoch
from orchestrator.events.remembering import Remembered

REMEMBERED_SECONDS = 60.0
"""An update may replace a tenant's queue. A delivery to the former one fails, and the next try looks again."""


class QueueAddresses:
    def __init__(
        self,
        *,
        configuration: Configuration,
        queues: TenantQueues,
        clock: Clock,
        monotonic: Callable[[], float],
    ) -> None:
        self._configuration = configuration
        self._queues = queues
        self._found: Remembered[ServedQueue] = Remembered(monotonic, clock, seconds=REMEMBERED_SECONDS)

    def queue(self, life: TenantEpoch) -> ServedQueue | None:
        """The queue. ``None`` if the tenant has no queue now, or lives again as another."""
        return self._found.get(life, lambda: self._read(life))

    def forget(self, life: TenantEpoch) -> None:
        self._found.forget(life)

    def _read(self, life: TenantEpoch) -> ServedQueue | None:
        settings = self._configuration.settings(life.tenant)
        if settings is None or settings.life != life:
            return None
        queue = self._queues.served_queue(life.tenant)
        return queue if queue is not None and queue.incarnation == settings.incarnation else None
