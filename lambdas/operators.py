"""The operators' API: tenants created, upgraded, retried, deleted and looked at, and the releases."""

from collections.abc import Callable, Mapping
from typing import Any

from lambdas.runtime import count, logger, wiring
from orchestrator.answers import Response, come_back_later, refuse
from orchestrator.callers import caller
from orchestrator.errors import InvalidRequest, Throttled, Unsettled
from orchestrator.fleet import list_tenants, tenant_detail
from orchestrator.operator_answers import tell_order, tell_releases, tell_tenant, tell_tenants
from orchestrator.operator_requests import (
    parse_create,
    parse_delete,
    parse_list,
    parse_releases,
    parse_retry,
    parse_tenant,
    parse_upgrade,
)

Event = Mapping[str, Any]


def _create(event: Event) -> Response:
    order = parse_create(event)
    return tell_order(order.tenant, wiring.lifecycle.create(order.tenant, order.request, unpin=order.unpin))


def _upgrade(event: Event) -> Response:
    order = parse_upgrade(event)
    return tell_order(order.tenant, wiring.lifecycle.upgrade(order.tenant, order.version, order.request))


def _retry(event: Event) -> Response:
    order = parse_retry(event)
    return tell_order(order.tenant, wiring.lifecycle.retry(order.tenant, order.request.by))


def _delete(event: Event) -> Response:
    order = parse_delete(event)
    return tell_order(order.tenant, wiring.lifecycle.delete(order.tenant, order.request))


def _tenant(event: Event) -> Response:
    return tell_tenant(tenant_detail(parse_tenant(event), wiring.table))


def _tenants(event: Event) -> Response:
    asked = parse_list(event)
    page = list_tenants(wiring.table, state=asked.state, version=asked.version, cursor=asked.cursor, limit=asked.limit)
    return tell_tenants(page)


def _releases(event: Event) -> Response:
    parse_releases(event)
    return tell_releases(wiring.table.releases(), wiring.settings.version)


def _no_such_route(event: Event) -> Response:
    raise InvalidRequest(f"There is no route {event.get('routeKey')!a}: call the operators' API through API Gateway.")


ROUTES: Mapping[str, Callable[[Event], Response]] = {
    "PUT /tenants/{tenantId}": _create,
    "GET /tenants/{tenantId}": _tenant,
    "DELETE /tenants/{tenantId}": _delete,
    "POST /tenants/{tenantId}/upgrade": _upgrade,
    "POST /tenants/{tenantId}/retry": _retry,
    "GET /tenants": _tenants,
    "GET /releases": _releases,
}


def handler(event: object, _context: object) -> dict[str, Any]:
    asked = event if isinstance(event, dict) else {}
    route = str(asked.get("routeKey", ""))
    try:
        response = ROUTES.get(route, _no_such_route)(asked)
    except InvalidRequest as error:
        response = refuse(error)
    except (Throttled, Unsettled) as error:
        response = come_back_later(str(error))
    logger.info(
        "Asked by an operator",
        extra={
            "route": route,
            "caller": caller(asked),
            "tenant_id": response.body.get("tenantId"),
            "status": response.status,
            "execution": response.body.get("execution"),
        },
    )
    if response.status >= 400:
        count(f"Answered{response.status}")
    return response.as_proxy_result()
