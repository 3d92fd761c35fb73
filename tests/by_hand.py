"""A client that tests call by hand: with raw requests, and with short names for what operators ask for."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.api import reconciliation_routes, rollout_requests, rollout_routes, tenant_models, tenant_routes
from orchestrator.api.fields import EmptyRequest, TenantIdRequest, or_unset
from orchestrator.api.queue_routes import GET_QUEUE
from orchestrator.api.requesting import HttpRequest
from orchestrator.client.client import Client
from orchestrator.client.transport import ApiAnswer
from orchestrator.common.tenant_ids import TenantId


class ClientByHand(Client):
    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, object] | None = None,
        body: Mapping[str, object] | None = None,
    ) -> ApiAnswer:
        """Any request, also one that no route is declared for."""
        text = {name: str(value) for name, value in (query or {}).items()}
        return self._transport.send(HttpRequest(method, path, text, body))

    def queue(self, tenant: TenantId) -> ApiAnswer:
        return self.send_request(GET_QUEUE, TenantIdRequest(tenant_id=tenant.value))

    def create(
        self,
        tenant: TenantId,
        *,
        pin: str | None = None,
        unpin: bool = False,
        labels: dict[str, str] | None = None,
        reason: str | None = None,
    ) -> ApiAnswer:
        version = None if unpin else or_unset(pin)
        asked = tenant_models.CreateTenant(
            tenant_id=tenant.value, version=version, labels=or_unset(labels), reason=or_unset(reason)
        )
        return self.send_request(tenant_routes.CREATE_TENANT, asked)

    def upgrade(self, tenant: TenantId, version: str | None = None) -> ApiAnswer:
        asked = tenant_models.UpgradeTenant(tenant_id=tenant.value, version=or_unset(version))
        return self.send_request(tenant_routes.UPGRADE_TENANT, asked)

    def retry(self, tenant: TenantId) -> ApiAnswer:
        return self.send_request(tenant_routes.RETRY_TENANT, tenant_models.RetryTenant(tenant_id=tenant.value))

    def delete(self, tenant: TenantId, *, force: bool = False, reason: str | None = None) -> ApiAnswer:
        asked = tenant_models.DeleteTenant(tenant_id=tenant.value, force=force, reason=or_unset(reason))
        return self.send_request(tenant_routes.DELETE_TENANT, asked)

    def label(self, tenant: TenantId, sets: dict[str, str]) -> ApiAnswer:
        return self.send_request(
            tenant_routes.LABEL_TENANT, tenant_models.LabelTenant(tenant_id=tenant.value, set=sets)
        )

    def pin(self, tenant: TenantId, version: str) -> ApiAnswer:
        return self.send_request(
            tenant_routes.PIN_TENANT, tenant_models.PinTenant(tenant_id=tenant.value, version=version)
        )

    def rollout(self, rollout: str) -> ApiAnswer:
        return self.send_request(rollout_routes.GET_ROLLOUT, rollout_requests.RolloutIdRequest(rollout_id=rollout))

    def reconciliation(self, reconciliation: str) -> ApiAnswer:
        asked = reconciliation_routes.ReconciliationIdRequest(reconciliation_id=reconciliation)
        return self.send_request(reconciliation_routes.GET_RECONCILIATION, asked)

    def health(self) -> ApiAnswer:
        return self.send_request(reconciliation_routes.GET_DIAGNOSIS, EmptyRequest())
