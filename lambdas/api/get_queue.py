"""getQueue: `GET /tenants/{tenantId}/queue`, or called directly with `{"tenantId": "..."}`.

And temporary credentials for the queue, by a route for each access, which are given through API Gateway only.
"""

from typing import Any

from lambdas.runtime import count, logger, wiring
from orchestrator.api.answers import Response, answer, come_back_later, no_credentials, not_through_the_api, refuse
from orchestrator.common.callers import role_of, source_identity
from orchestrator.common.errors import InvalidRequest, Throttled, Unsettled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.credentials import CREDENTIAL_ROUTES, Access
from orchestrator.tenants.decisions import Ready

# Made now, so that the first call does not pay for the client.
get_queue = wiring.get_queue


def handler(event: object, _context: object) -> dict[str, Any]:
    asked = event if isinstance(event, dict) else {}
    by, access, tenant = wiring.api_gateway.caller(asked), _access(asked), None
    try:
        tenant = TenantId.parse(_asked_for(asked))
        if access is None:
            response = answer(tenant, get_queue(tenant, by=role_of(by)))
        elif wiring.api_gateway.sent(asked):
            response = _with_credentials(tenant, access, by)
        else:
            response = not_through_the_api()
    except InvalidRequest as error:
        response = refuse(error)
    except (Throttled, Unsettled) as error:
        response = come_back_later(str(error))
    return _told(response, tenant, by, access)


def _with_credentials(tenant: TenantId, access: Access, by: str) -> Response:
    """Of a tenant that has a queue. Whoever may only send or receive does not make tenants."""
    if wiring.credentials is None:
        return no_credentials()
    found = get_queue.find(tenant)
    if not isinstance(found, Ready):
        return answer(tenant, found)
    issued = wiring.credentials.issue(tenant, found.queue, access, source_identity=source_identity(by))
    return answer(tenant, found, issued)


def _asked_for(event: dict[str, Any]) -> object:
    query = event.get("queryStringParameters")
    if "credentials" in event or (isinstance(query, dict) and "credentials" in query):
        raise InvalidRequest(f"credentials: they have routes of their own: {' and '.join(CREDENTIAL_ROUTES)}.")
    if isinstance(event.get("pathParameters"), dict):
        return event["pathParameters"].get("tenantId")
    if "tenantId" in event:
        return event["tenantId"]
    raise InvalidRequest('Name a tenant: GET /tenants/{tenantId}/queue, or call with {"tenantId": "..."}.')


def _access(event: dict[str, Any]) -> Access | None:
    """The credentials that are asked for, by the route."""
    route = event.get("routeKey")
    return CREDENTIAL_ROUTES.get(route) if isinstance(route, str) else None


def _told(response: Response, tenant: TenantId | None, by: str, access: Access | None) -> dict[str, Any]:
    given = "credentials" in response.body
    # Never the body: it may hold credentials.
    logger.info(
        "getQueue",
        extra={
            "tenant_id": tenant.value if tenant else None,
            "caller": by,
            "access": access,
            "credentials_given": given,
            "source_identity": source_identity(by) if given else None,
            "status": response.status,
            "execution": response.body.get("execution"),
        },
    )
    if response.status != 200:
        count(f"Answered{response.status}")
    return response.as_proxy_result()
