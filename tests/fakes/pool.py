"""The members of the pool, in memory."""

from __future__ import annotations

from dataclasses import replace

from orchestrator.pool.records import Pool


class InMemoryPool:
    """Implements :class:`orchestrator.pool.ports.PoolRows`."""

    def __init__(self) -> None:
        self._pool = Pool()

    def pool(self) -> Pool:
        return self._pool

    def store(self, pool: Pool) -> bool:
        if pool.revision != self._pool.revision:
            return False
        self._pool = replace(pool, revision=pool.revision + 1)
        return True
