"""Operators' routes for what tenants can do themselves.

A route of tenants is declared once. The operators' route has the same path below ``/tenants/{tenantId}``, and the same
request with the tenant's id.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import msgspec

from orchestrator.api.event_problems import MISSING_SCOPE, NO_SETTINGS, NO_SUCH_TENANT, OVER_PLAN, UNKNOWN_KEY
from orchestrator.api.fields import TenantIdText
from orchestrator.api.route import AnswerT, AnyRoute, Audience, RequestT, Route
from orchestrator.common.tenant_ids import TenantId

OPERATORS_SUFFIX = "OfTenant"
"""The end of the name of each operators' route, and of its request."""

_OF_KEYS = (UNKNOWN_KEY, MISSING_SCOPE, OVER_PLAN)
_OF_TENANTS = (NO_SUCH_TENANT, NO_SETTINGS)

_routes: dict[str, AnyRoute] = {}
_requests: dict[type, type] = {}


def for_operators(route: Route[RequestT, AnswerT]) -> Route[RequestT, AnswerT]:
    """The operators' route for a route of tenants. The same route always gives the same one."""
    if route.name not in _routes:
        problems = [each for each in route.problems if each not in _OF_KEYS]
        _routes[route.name] = replace(
            route,
            name=f"{route.name}{OPERATORS_SUFFIX}",
            path=f"/tenants/{{tenantId}}{route.path}",
            audience=Audience.OPERATOR,
            scope=None,
            request=_request_of_operators(route.request),
            problems=(*problems, *_OF_TENANTS),
        )
    return cast("Route[RequestT, AnswerT]", _routes[route.name])


def _request_of_operators(request: type[RequestT]) -> type[RequestT]:
    """A subclass of the tenants' request, so that one function answers both."""
    if request not in _requests:
        made = msgspec.defstruct(
            f"{request.__name__}{OPERATORS_SUFFIX}",
            [("tenant_id", TenantIdText, msgspec.field(name="tenantId"))],
            bases=cast("tuple[type[msgspec.Struct], ...]", (request,)),
            namespace={"__doc__": request.__doc__},
            frozen=True,
            kw_only=True,
        )
        _requests[request] = made
    return cast("type[RequestT]", _requests[request])


def of_tenant(route: Route[RequestT, AnswerT], request: RequestT, tenant: TenantId) -> RequestT:
    """The request for the operators' route, from the request that the tenant would make itself."""
    fields: dict[str, Any] = msgspec.structs.asdict(cast("msgspec.Struct", request))
    make: Any = for_operators(route).request
    return cast("RequestT", make(**fields, tenant_id=tenant.value))


def tenant_in(request: object) -> TenantId:
    """The tenant that an operator's request names."""
    tenant_id: str = cast("Any", request).tenant_id
    return TenantId.parse(tenant_id)
