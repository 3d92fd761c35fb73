"""getQueue: `GET /tenants/{tenantId}/queue`, or called directly with `{"tenantId": "..."}`."""

from typing import Any

from lambdas.runtime import count, logger, wiring
from orchestrator.answers import Response, answer, come_back_later, no_credentials, refuse
from orchestrator.callers import caller, role_of
from orchestrator.credentials import Access
from orchestrator.decisions import Ready
from orchestrator.errors import InvalidRequest, Throttled, Unsettled
from orchestrator.tenants import TenantId

# Made now, so that the first call does not pay for the client.
get_queue = wiring.get_queue


def handler(event: object, _context: object) -> dict[str, Any]:
    tenant = None
    try:
        asked = event if isinstance(event, dict) else {}
        tenant, access = TenantId.parse(_asked_for(asked)), _access(asked)
        response = _answered(tenant, access, role_of(caller(asked)))
    except InvalidRequest as error:
        response = refuse(error)
    except (Throttled, Unsettled) as error:
        response = come_back_later(str(error))
    return _told(response, tenant)


def _answered(tenant: TenantId, access: Access | None, by: str) -> Response:
    if access and wiring.credentials is None:
        return no_credentials()
    given = get_queue(tenant, by=by)
    if access and wiring.credentials and isinstance(given, Ready):
        return answer(tenant, given, wiring.credentials.issue(tenant, given.queue, access))
    return answer(tenant, given)


def _asked_for(event: dict[str, Any]) -> object:
    if isinstance(event.get("pathParameters"), dict):
        return event["pathParameters"].get("tenantId")
    if "tenantId" in event:
        return event["tenantId"]
    raise InvalidRequest('Name a tenant: GET /tenants/{tenantId}/queue, or call with {"tenantId": "..."}.')


def _access(event: dict[str, Any]) -> Access | None:
    """Which credentials are wished for: in the query, or beside the tenant id."""
    query = event.get("queryStringParameters")
    asked = query.get("credentials") if isinstance(query, dict) else event.get("credentials")
    if asked is None:
        return None
    if asked not in list(Access):
        raise InvalidRequest("credentials: ask for send or receive.")
    return Access(asked)


def _told(response: Response, tenant: TenantId | None) -> dict[str, Any]:
    # Never the body: it may hold credentials.
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
