"""The operators' API: tenants created, upgraded, retried, pinned, deleted and looked at; releases and rollouts."""

from collections.abc import Callable, Mapping
from typing import Any

from lambdas.runtime import count, logger, wiring
from orchestrator.api.answers import Response, come_back_later, not_through_the_api, refuse
from orchestrator.api.operator_answers import tell_order, tell_releases, tell_tenant, tell_tenants
from orchestrator.api.operator_requests import (
    parse_create,
    parse_delete,
    parse_list,
    parse_nothing,
    parse_pin,
    parse_retry,
    parse_tenant,
    parse_unpin,
    parse_upgrade,
)
from orchestrator.api.reconciliation_answers import (
    tell_adoption,
    tell_adoption_started,
    tell_health,
    tell_reconciliation,
    tell_reconciliation_started,
)
from orchestrator.api.reconciliation_requests import parse_adopt, parse_adoption, parse_reconcile, parse_reconciliation
from orchestrator.api.rollout_answers import tell_changed, tell_rollout, tell_rollouts, tell_started
from orchestrator.api.rollout_requests import (
    parse_approval,
    parse_rollout,
    parse_rollout_order,
    parse_rollouts,
    parse_start,
)
from orchestrator.common.errors import InvalidRequest, Throttled, Unsettled
from orchestrator.rollouts.control import unknown_rollout
from orchestrator.tenants.fleet import list_tenants, tenant_detail

Event = Mapping[str, Any]


def _create(event: Event) -> Response:
    order = parse_create(event)
    return tell_order(order.tenant, wiring.lifecycle.create(order.tenant, order.request, unpin=order.unpin))


def _upgrade(event: Event) -> Response:
    order = parse_upgrade(event)
    return tell_order(order.tenant, wiring.lifecycle.upgrade(order.tenant, order.version, order.request))


def _retry(event: Event) -> Response:
    order = parse_retry(event)
    return tell_order(order.tenant, wiring.lifecycle.retry(order.tenant, order.request.by, reason=order.request.reason))


def _pin(event: Event) -> Response:
    order = parse_pin(event)
    return tell_order(order.tenant, wiring.lifecycle.pin(order.tenant, order.version, order.request))


def _unpin(event: Event) -> Response:
    order = parse_unpin(event)
    return tell_order(order.tenant, wiring.lifecycle.unpin(order.tenant, order.request))


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
    parse_nothing(event)
    return tell_releases(wiring.table.releases(), wiring.settings.version, wiring.table.versions_in_use())


def _start_rollout(event: Event) -> Response:
    order = parse_start(event, max_concurrency=wiring.settings.rollout_concurrency)
    return tell_started(wiring.rollouts.start(order.wish, order.by, reason=order.reason))


def _pause_rollout(event: Event) -> Response:
    order = parse_rollout_order(event)
    return tell_changed(wiring.rollouts.pause(order.rollout, order.by, reason=order.reason))


def _resume_rollout(event: Event) -> Response:
    order = parse_rollout_order(event)
    return tell_changed(wiring.rollouts.resume(order.rollout, order.by, reason=order.reason))


def _abort_rollout(event: Event) -> Response:
    order = parse_rollout_order(event)
    return tell_changed(wiring.rollouts.abort(order.rollout, order.by, reason=order.reason))


def _approve_rollout(event: Event) -> Response:
    asked = parse_approval(event)
    return tell_changed(wiring.rollouts.approve(asked.rollout, asked.stage, asked.by, reason=asked.reason))


def _retry_rollout(event: Event) -> Response:
    order = parse_rollout_order(event)
    return tell_started(wiring.rollouts.retry(order.rollout, order.by, reason=order.reason))


def _rollout(event: Event) -> Response:
    table, rollout_id = wiring.rollout_table, parse_rollout(event)
    rollout = table.rollout(rollout_id)
    if rollout is None:
        return tell_changed(unknown_rollout(rollout_id))
    # Every tenant's row is read only where that is the answer: a fleet may have thousands of them.
    looked_at = table.outcomes(rollout_id) if rollout.wish.dry_run else ()
    return tell_rollout(
        rollout, table.stages(rollout_id), table.failures(rollout_id), looked_at, table.orders(rollout_id)
    )


def _rollouts(event: Event) -> Response:
    asked = parse_rollouts(event)
    return tell_rollouts(wiring.rollout_table.rollouts(limit=asked.limit, after=asked.cursor), asked.limit)


def _reconcile(event: Event) -> Response:
    order = parse_reconcile(event)
    return tell_reconciliation_started(wiring.reconciliations.start(order.wish, order.by))


def _reconciliation(event: Event) -> Response:
    return tell_reconciliation(wiring.reconciliations.find(parse_reconciliation(event)))


def _adopt(event: Event) -> Response:
    order = parse_adopt(event)
    return tell_adoption_started(wiring.reconciliations.start(order.wish, order.by))


def _adoption(event: Event) -> Response:
    return tell_adoption(wiring.reconciliations.find_adoption(parse_adoption(event)))


def _health(event: Event) -> Response:
    parse_nothing(event)
    return tell_health(wiring.settings.version, wiring.health.examine())


def _no_such_route(event: Event) -> Response:
    raise InvalidRequest(f"There is no route {_route(event)[:100]!a}.")


ROUTES: Mapping[str, Callable[[Event], Response]] = {
    "PUT /tenants/{tenantId}": _create,
    "GET /tenants/{tenantId}": _tenant,
    "DELETE /tenants/{tenantId}": _delete,
    "POST /tenants/{tenantId}/upgrade": _upgrade,
    "POST /tenants/{tenantId}/retry": _retry,
    "PUT /tenants/{tenantId}/pin": _pin,
    "DELETE /tenants/{tenantId}/pin": _unpin,
    "GET /tenants": _tenants,
    "GET /releases": _releases,
    "POST /rollouts": _start_rollout,
    "GET /rollouts": _rollouts,
    "GET /rollouts/{rolloutId}": _rollout,
    "POST /rollouts/{rolloutId}/pause": _pause_rollout,
    "POST /rollouts/{rolloutId}/resume": _resume_rollout,
    "POST /rollouts/{rolloutId}/abort": _abort_rollout,
    "POST /rollouts/{rolloutId}/approve": _approve_rollout,
    "POST /rollouts/{rolloutId}/retry": _retry_rollout,
    "POST /reconciliations": _reconcile,
    "GET /reconciliations/{reconciliationId}": _reconciliation,
    "POST /adoptions": _adopt,
    "GET /adoptions/{adoptionId}": _adoption,
    "GET /diagnosis": _health,
}


def _route(event: Event) -> str:
    route = event.get("routeKey")
    return route if isinstance(route, str) else ""


def handler(event: object, _context: object) -> dict[str, Any]:
    asked = event if isinstance(event, dict) else {}
    route = _route(asked)
    try:
        # What follows takes the event's word for who the caller is.
        by_api = wiring.api_gateway.sent(asked)
        response = ROUTES.get(route, _no_such_route)(asked) if by_api else not_through_the_api()
    except InvalidRequest as error:
        response = refuse(error)
    except (Throttled, Unsettled) as error:
        response = come_back_later(str(error))
    logger.info(
        "Asked by an operator",
        extra={
            "route": route if route in ROUTES else None,
            "caller": wiring.api_gateway.caller(asked),
            "tenant_id": response.body.get("tenantId"),
            "rollout_id": response.body.get("rolloutId"),
            "status": response.status,
            "execution": response.body.get("execution"),
        },
    )
    if response.status >= 400:
        count(f"Answered{response.status}")
    return response.as_proxy_result()
