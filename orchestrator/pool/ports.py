"""The interface that adapters implement for the pool, besides those of :mod:`orchestrator.tenants.ports`."""

from __future__ import annotations

from typing import Protocol

from orchestrator.pool.records import Pool


class PoolRows(Protocol):
    def pool(self) -> Pool: ...

    def store(self, pool: Pool) -> bool:
        """Write the pool, unless it has changed: its ``revision`` is the one that was read."""
