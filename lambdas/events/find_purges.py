"""Finds deleted tenants whose events are still kept, and has them purged.

Called hourly, and when the machine that deletes tenants has succeeded. Then only that tenant is looked at.
"""

import json

from lambdas.event_runtime import use_cases
from lambdas.observing import count, logger
from orchestrator.common.errors import BerthError
from orchestrator.common.tenant_ids import TenantId


def handler(event: object, _context: object) -> None:
    tenant = _deleted_tenant(event)
    found = use_cases.finding_purges.find(tenant)
    logger.info(
        "Looked for purges",
        extra={
            "tenant_id": tenant.value if tenant else None,
            "ended": [str(life) for life in found.ended],
            "started": [str(life) for life in found.started],
            "stuck": found.stuck,
        },
    )
    if found.stuck:
        count("PurgesStuck", found.stuck)
    if found.unreadable:
        logger.error("Rows cannot be read", extra={"rows": [each.row for each in found.unreadable]})
        count("UnreadableRows", len(found.unreadable), by_service=False)


def _deleted_tenant(event: object) -> TenantId | None:
    """The tenant whose delete has succeeded. ``None`` for any other event: then all tenants are looked at."""
    detail = event.get("detail") if isinstance(event, dict) else None
    given = detail.get("input") if isinstance(detail, dict) else None
    try:
        # EventBridge leaves out a long input.
        document = json.loads(given) if isinstance(given, str) else None
        return TenantId.parse(document["tenantId"]) if isinstance(document, dict) and "tenantId" in document else None
    except (BerthError, ValueError, RecursionError):
        return None
