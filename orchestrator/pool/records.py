"""The members of the pool. The list is only a hint of where to look: the record of each stack decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.tiers import STANDARD
from orchestrator.tenants.records import Metadata


class MemberState(StrEnum):
    """The state in which a stack was last seen."""

    READY = "ready"
    COMING = "coming"
    """The stack is being created."""
    FAILED = "failed"
    """The stack could not be created."""
    LEAVING = "leaving"
    """The stack is out of date, or more than are wanted, and is being deleted."""
    LEARNING = "learning"
    """A tenant has taken the stack, and the stack does not name the tenant yet."""


@dataclass(frozen=True, slots=True)
class Member:
    since: datetime
    """When the stack was requested."""
    version: str | None = None
    """The release at which the stack was last seen ready; ``None`` if it was not ready, or a tenant has taken it."""
    tier: str = STANDARD
    state: MemberState = MemberState.COMING


@dataclass(frozen=True, slots=True)
class TierOfPool:
    """The remembered state of one tier of the pool, besides its stacks."""

    empty_since: datetime | None = None
    """Since when no stack of the tier is ready, though some are wanted."""
    problem: str | None = None
    """Why the latest stack could not be created; ``None`` once one was created since, or none is missing."""
    failed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Pool:
    members: Mapping[str, Member] = field(default_factory=dict)
    """The members by the ids of their stacks, also of those that a tenant has taken and that did not learn it yet."""
    tiers: Mapping[str, TierOfPool] = field(default_factory=dict)
    revision: int = 0

    def ready_at(self, version: str) -> list[TenantId]:
        return [TenantId(name) for name, member in self.members.items() if member.version == version]

    def tier(self, tier: str) -> TierOfPool:
        return self.tiers.get(tier, TierOfPool())

    def with_tier(self, tier: str, remembered: TierOfPool) -> Pool:
        others = {name: each for name, each in self.tiers.items() if name != tier}
        return replace(self, tiers=others if remembered == TierOfPool() else {**others, tier: remembered})

    def with_member(self, name: str, member: Member) -> Pool:
        return replace(self, members={**self.members, name: member})

    def without(self, name: str) -> Pool:
        return replace(self, members={each: member for each, member in self.members.items() if each != name})


def is_free(metadata: Metadata | None) -> bool:
    """True if the stack is ready and no tenant has taken it."""
    return metadata is not None and metadata.published and metadata.given_to is None
