"""What commands ask of Berth's API. :class:`orchestrator.adapters.berth_api.BerthApi` asks it over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.credentials import Access
from orchestrator.tenants.records import TenantState

if TYPE_CHECKING:
    from orchestrator.adapters.berth_api import ApiAnswer

Document = Mapping[str, Any]
"""What is in an answer."""


class Api(Protocol):
    def get_queue(self, tenant: TenantId) -> ApiAnswer: ...

    def get_credentials(self, tenant: TenantId, access: Access) -> ApiAnswer: ...

    def create(
        self, tenant: TenantId, *, pin: str | None, unpin: bool, labels: Mapping[str, str] | None, reason: str | None
    ) -> ApiAnswer: ...

    def upgrade(
        self,
        tenant: TenantId,
        version: str | None,
        *,
        allow_downgrade: bool,
        allow_replacement: bool,
        reason: str | None,
    ) -> ApiAnswer: ...

    def retry(self, tenant: TenantId, *, reason: str | None) -> ApiAnswer: ...

    def delete(self, tenant: TenantId, *, force: bool, drain_seconds: int | None, reason: str | None) -> ApiAnswer: ...

    def tenant(self, tenant: TenantId) -> ApiAnswer: ...

    def tenants(
        self, *, state: TenantState | None, version: str | None, cursor: str | None, limit: int
    ) -> ApiAnswer: ...

    def pin(self, tenant: TenantId, version: str, *, reason: str | None) -> ApiAnswer: ...

    def unpin(self, tenant: TenantId, *, reason: str | None) -> ApiAnswer: ...

    def releases(self) -> ApiAnswer: ...

    def start_rollout(self, wish: Document) -> ApiAnswer: ...

    def rollouts(self, *, cursor: str | None, limit: int) -> ApiAnswer: ...

    def rollout(self, rollout: str) -> ApiAnswer: ...

    def order_rollout(self, rollout: str, verb: str, *, reason: str | None) -> ApiAnswer: ...

    def approve_stage(self, rollout: str, stage: int, *, reason: str | None) -> ApiAnswer: ...

    def reconcile(self, *, dry_run: bool, detect_drift: bool, reason: str | None) -> ApiAnswer: ...

    def reconciliation(self, reconciliation: str) -> ApiAnswer: ...

    def adopt(self, *, dry_run: bool, cursor: str | None, reason: str | None) -> ApiAnswer: ...

    def adoption(self, adoption: str) -> ApiAnswer: ...

    def health(self) -> ApiAnswer: ...
