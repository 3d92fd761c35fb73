"""getQueue: `GET /tenants/{tenantId}/queue`, or invoked directly with `{"tenantId": "..."}`.

The function also issues temporary credentials for the queue, on one route per access, through API Gateway only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lambdas.observing import logger
from lambdas.runtime import ports, use_cases
from orchestrator.api.answers import answer
from orchestrator.api.responses import (
    Response,
    no_credentials,
    refuse,
    try_again_later,
    unknown_caller,
)
from orchestrator.common.callers import role_of, source_identity
from orchestrator.common.errors import InvalidRequest, Throttled, Unsettled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.credentials import CREDENTIAL_ROUTES, Access
from orchestrator.tenants.ready import Ready

if TYPE_CHECKING:
    from orchestrator.tenants.credentials import Credentials
    from orchestrator.tenants.provisioning import Answer

# Built and connected at import, so that the first call waits neither for the client nor for the connection.
get_queue = use_cases.get_queue
ports.open_connection()


def handler(event: object, _context: object) -> dict[str, Any]:
    request = event if isinstance(event, dict) else {}
    by, access, tenant = use_cases.api_gateway.caller(request), _access(request), None
    try:
        tenant = TenantId.parse(_tenant_id(request))
        if access is None:
            response = _answer(tenant, get_queue(tenant, by=role_of(by)))
        elif use_cases.api_gateway.sent(request):
            response = _with_credentials(tenant, access, by)
        else:
            response = unknown_caller()
    except InvalidRequest as error:
        response = refuse(error)
    except (Throttled, Unsettled) as error:
        response = try_again_later(str(error))
    return _logged(response, tenant, by, access)


def _answer(tenant: TenantId, given: Answer, issued: Credentials | None = None) -> Response:
    return answer(tenant, given, issued, retry_after=use_cases.ports.settings.retry_after_seconds)


def _with_credentials(tenant: TenantId, access: Access, by: str) -> Response:
    """Credentials for a tenant that has a queue. Senders and receivers do not create tenants."""
    if use_cases.ports.credentials is None:
        return no_credentials()
    found = get_queue.find(tenant)
    if not isinstance(found, Ready):
        return _answer(tenant, found)
    issued = use_cases.ports.credentials.issue(tenant, found.queue, access, source_identity=source_identity(by))
    return _answer(tenant, found, issued)


def _tenant_id(event: dict[str, Any]) -> object:
    query = event.get("queryStringParameters")
    if "credentials" in event or (isinstance(query, dict) and "credentials" in query):
        raise InvalidRequest(f"credentials: use the routes for credentials: {' and '.join(CREDENTIAL_ROUTES)}.")
    if isinstance(event.get("pathParameters"), dict):
        return event["pathParameters"].get("tenantId")
    if "tenantId" in event:
        return event["tenantId"]
    raise InvalidRequest(
        'Name a tenant: GET /tenants/{tenantId}/queue, or invoke the function with {"tenantId": "..."}.'
    )


def _access(event: dict[str, Any]) -> Access | None:
    """The access of the requested credentials, from the route. ``None`` for getQueue."""
    route = event.get("routeKey")
    return CREDENTIAL_ROUTES.get(route) if isinstance(route, str) else None


def _logged(response: Response, tenant: TenantId | None, by: str, access: Access | None) -> dict[str, Any]:
    has_credentials = "credentials" in response.body
    # Nearly all calls are answered with the queue. The access log has them, with their callers, so that a second line
    # per call would only cost money. Credentials are always logged.
    log = logger.debug if response.status == 200 and not has_credentials else logger.info
    # The body is not logged, because it may hold credentials.
    log(
        "getQueue",
        extra={
            "tenant_id": tenant.value if tenant else None,
            "caller": by,
            "access": access,
            "credentials_given": has_credentials,
            "source_identity": source_identity(by) if has_credentials else None,
            "status": response.status,
            "execution": response.body.get("execution"),
        },
    )
    return response.as_proxy_result()
