"""getQueue: `GET /tenants/{tenantId}/queue`, or called directly with `{"tenantId": "..."}`."""

from typing import Any

from lambdas.runtime import count, logger, wiring
from orchestrator.answers import Response, answer, come_back_later, refuse
from orchestrator.errors import InvalidRequest, Throttled, Unsettled
from orchestrator.tenants import TenantId

# Made now, so that the first call does not pay for the client.
get_queue = wiring.get_queue


def handler(event: object, _context: object) -> dict[str, Any]:
    try:
        tenant = TenantId.parse(_asked_for(event))
    except InvalidRequest as error:
        return _told(refuse(error), None)
    try:
        response = answer(tenant, get_queue(tenant))
    except (Throttled, Unsettled) as error:
        response = come_back_later(str(error))
    return _told(response, tenant)


def _asked_for(event: object) -> object:
    if isinstance(event, dict):
        if isinstance(event.get("pathParameters"), dict):
            return event["pathParameters"].get("tenantId")
        if "tenantId" in event:
            return event["tenantId"]
    raise InvalidRequest('Name a tenant: GET /tenants/{tenantId}/queue, or call with {"tenantId": "..."}.')


def _told(response: Response, tenant: TenantId | None) -> dict[str, Any]:
    logger.info(
        "getQueue",
        extra={
            "tenant_id": tenant.value if tenant else None,
            "status": response.status,
            "execution": response.body.get("execution"),
        },
    )
    if response.status != 200:
        count(f"Answered{response.status}")
    return response.as_proxy_result()
