"""The call that platforms make: it returns a tenant's queue, or the reason why there is none yet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.tenants.ready import ready

if TYPE_CHECKING:
    from orchestrator.common.tenant_ids import TenantId
    from orchestrator.tenants.ports import TenantReader
    from orchestrator.tenants.provisioning import Answer, ProvisionQueue


@dataclass(frozen=True, slots=True)
class GetQueue:
    reader: TenantReader
    provision: Callable[[], ProvisionQueue]
    """Returns the use case for tenants without a queue. It is built when a call needs it: most calls never do, and
    getQueue's function must start fast."""

    def __call__(self, tenant: TenantId, *, by: str = "") -> Answer:
        """``by`` is the caller. If the tenant has no queue, its create is started."""
        if tenant.is_warm:
            return _nobody()
        return ready(self.reader.metadata(tenant)) or self.provision()(tenant, by=by)

    def find(self, tenant: TenantId) -> Answer:
        """The same, but nothing is started."""
        if tenant.is_warm:
            return _nobody()
        return ready(self.reader.metadata(tenant)) or self.provision().find(tenant)


def _nobody() -> Answer:
    """The answer about a stack that is kept ready: it is no tenant's, whoever asks for it."""
    from orchestrator.tenants.decisions import Unknown

    return Unknown()
