"""getQueue's decision for a tenant that is served. It is the decision of nearly all calls.

It has a module of its own, because getQueue's function must start fast, and needs nothing else for these calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from orchestrator.tenants.records import Metadata, Queue


@dataclass(frozen=True, slots=True)
class FormerQueue:
    """A queue of the pool that the tenant has left. Its messages there stay readable until they expire."""

    queue: Queue
    until: datetime


@dataclass(frozen=True, slots=True)
class Ready:
    queue: Queue
    version: str | None
    """``None`` if the tenant shares the queue of a pool."""
    resources: Mapping[str, str] = field(default_factory=dict)
    """The other outputs of the tenant's stack, by name."""
    message_group: str | None = None
    """The message group of the tenant's messages, if the tenant shares the queue."""
    former: FormerQueue | None = None


def ready(metadata: Metadata | None) -> Ready | None:
    """The decision for a tenant that is served. The metadata is enough: a delete withdraws it in its first step."""
    if metadata is None or not metadata.published or metadata.queue is None:
        return None
    former = None
    if metadata.former_queue is not None and metadata.former_queue_until is not None:
        former = FormerQueue(metadata.former_queue, metadata.former_queue_until)
    group = metadata.tenant.value if metadata.is_pooled else None
    return Ready(metadata.queue, metadata.version, metadata.resources, group, former)
