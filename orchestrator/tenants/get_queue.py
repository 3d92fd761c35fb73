"""The call that platforms make: it returns a tenant's queue, or the reason why there is none yet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.tenants.ready import ready

if TYPE_CHECKING:
    from orchestrator.common.tenant_ids import TenantId
    from orchestrator.tenants.decisions import Unknown
    from orchestrator.tenants.ports import TenantReader
    from orchestrator.tenants.provisioning import Answer, ProvisionQueue
    from orchestrator.tenants.ready import Ready


@dataclass(frozen=True, slots=True)
class GetQueue:
    reader: TenantReader
    provision: Callable[[], ProvisionQueue]
    """Returns the use case for tenants without a queue. It is built when a call needs it: most calls never do, and
    getQueue's function must start fast."""

    def __call__(self, tenant: TenantId, *, by: str = "") -> Answer:
        """``by`` is the caller. If the tenant has no queue, its create is started."""
        found, is_recorded = self._look(tenant)
        return found or self.provision()(tenant, by=by, is_recorded=is_recorded)

    def find(self, tenant: TenantId) -> Answer:
        """The same, but nothing is started."""
        found, _ = self._look(tenant)
        return found or self.provision().find(tenant)

    def _look(self, tenant: TenantId) -> tuple[Ready | Unknown | None, bool]:
        """The answer, if no other row is needed for it, and whether the tenant has metadata."""
        if tenant.is_warm:
            from orchestrator.tenants import decisions

            return decisions.Unknown(), True  # A stack that is kept ready belongs to no tenant.
        metadata = self.reader.metadata(tenant)
        return ready(metadata), metadata is not None
