"""Says how many events of a tenant are unfinished. The control plane asks before it deletes a tenant."""

from typing import Any

from lambdas.event_runtime import use_cases
from lambdas.observing import logger
from orchestrator.common.tenant_ids import TenantId


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    tenant = TenantId.parse(event["tenantId"])
    unfinished = use_cases.counting_unfinished.count(tenant)
    logger.info("Counted", extra={"tenant_id": tenant.value, "unfinished": unfinished})
    return {"unfinished": dict(unfinished)}
