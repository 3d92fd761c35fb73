"""The members of the pool. The list is only a hint of where to look: the record of each stack decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.records import Metadata


@dataclass(frozen=True, slots=True)
class Member:
    since: datetime
    """When the stack was requested."""
    version: str | None = None
    """The release at which the stack was last seen ready; ``None`` if it was not ready, or a tenant has taken it."""


@dataclass(frozen=True, slots=True)
class Pool:
    members: Mapping[str, Member] = field(default_factory=dict)
    """By the ids of the stacks, also of those that a tenant has taken and that have not learned it yet."""
    revision: int = 0

    def ready_at(self, version: str) -> list[TenantId]:
        return [TenantId(name) for name, member in self.members.items() if member.version == version]

    def with_member(self, name: str, member: Member) -> Pool:
        return replace(self, members={**self.members, name: member})

    def without(self, name: str) -> Pool:
        return replace(self, members={each: member for each, member in self.members.items() if each != name})


def is_free(metadata: Metadata | None) -> bool:
    """True if the stack is ready and no tenant has taken it."""
    return metadata is not None and metadata.published and metadata.given_to is None
