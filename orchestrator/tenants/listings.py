"""Tenants as the index of the fleet lists them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.tiers import STANDARD
from orchestrator.tenants.records import Queue, RootCause, TenantState


@dataclass(frozen=True, slots=True)
class ListedTenant:
    """A tenant as the index lists it."""

    tenant: TenantId
    state: TenantState
    version: str | None
    pinned_version: str | None
    labels: Mapping[str, str]
    queue: Queue | None
    updated_at: datetime | None
    root_cause: RootCause | None
    position: str
    """The tenant's position among the tenants of the same state."""
    stack_id: str | None = None
    readable: bool = True
    """False if the tenant's row cannot be read. The root cause then has the reason."""
    tier: str | None = None
    """``None`` if the tenant was deleted, or if its row cannot be read."""


@dataclass(frozen=True, slots=True)
class VersionsInUse:
    by_version: Mapping[str, Mapping[TenantState, int]]
    """The number of tenants by version and state. The version of tenants without one is empty."""
    warm: int = 0
    """The number of stacks that are kept ready, and are no tenant's yet."""


@dataclass(frozen=True, slots=True)
class Relisting:
    """A change of a tenant's place in the index: of the state or the version at which it is listed.

    Each place is a key of the index, so a list that is read at that moment may miss the tenant.
    """

    tenant: TenantId
    at: datetime
    deleted: bool = False
    """True if the tenant is listed as deleted from then on."""


@dataclass(frozen=True, slots=True)
class TenantInBrief:
    """The properties of a tenant that decide whether a rollout moves it."""

    tenant: TenantId
    state: TenantState
    version: str | None
    pinned_version: str | None
    labels: Mapping[str, str]
    tier: str = STANDARD
