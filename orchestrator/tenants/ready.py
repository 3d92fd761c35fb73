"""getQueue's decision for a tenant that is served. It is the decision of nearly all calls.

It has a module of its own, because getQueue's function must start fast, and needs nothing else for these calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.tenants.records import Metadata, Queue


@dataclass(frozen=True, slots=True)
class Ready:
    queue: Queue
    version: str
    resources: Mapping[str, str] = field(default_factory=dict)
    """The other outputs of the tenant's stack, by name."""


def ready(metadata: Metadata | None) -> Ready | None:
    """The decision for a tenant that is served. The metadata is enough: a delete withdraws it in its first step."""
    if metadata is None or not metadata.published or metadata.queue is None or metadata.version is None:
        return None
    return Ready(metadata.queue, metadata.version, metadata.resources)
