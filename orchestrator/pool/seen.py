"""The stacks that a process has seen to be ready, so that most calls need not look for one.

They are only hints: another process may have taken a stack since, and the pool may have deleted it. The transaction
that gives the stack to a tenant decides, whatever is kept here and however old it is.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from orchestrator.common.tenant_ids import TenantId
from orchestrator.pool.records import is_free
from orchestrator.tenants.records import Metadata

KEPT_FOR = timedelta(minutes=5)
"""Stacks that were seen longer ago are read again: most of them may be gone by then."""


@dataclass(slots=True)
class SeenStacks:
    _free: dict[TenantId, Metadata] = field(default_factory=dict)
    _seen_at: datetime | None = None
    _gone: set[TenantId] = field(default_factory=set)
    """Stacks of the list that will never be free again, so that they are not read again and again."""

    def free(self, version: str, now: datetime) -> dict[TenantId, Metadata]:
        """The stacks at this release that were free when they were seen, a short time ago."""
        if self._seen_at is None or now - self._seen_at >= KEPT_FOR:
            return {}
        return {warm: metadata for warm, metadata in self._free.items() if metadata.version == version}

    def worth_reading(self, listed: Collection[TenantId]) -> list[TenantId]:
        """Those of the listed stacks that may still be free."""
        self._gone.intersection_update(listed)
        return [warm for warm in listed if warm not in self._gone]

    def saw(self, asked: Sequence[TenantId], found: Sequence[Metadata], now: datetime) -> None:
        """These stacks were read. Those without a record were deleted."""
        still = {metadata.tenant for metadata in found if metadata.given_to is None}
        self._gone.update(warm for warm in asked if warm not in still)
        self._free = {metadata.tenant: metadata for metadata in found if is_free(metadata)}
        self._seen_at = now

    def tried(self, warm: TenantId) -> None:
        """The stack is this tenant's now, or was not as it was seen. In both cases nobody else should try it."""
        self._free.pop(warm, None)
