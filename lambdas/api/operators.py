"""The operators' API: tenants created, upgraded, retried, pinned, deleted and looked at; releases and rollouts."""

from collections.abc import Callable, Mapping
from typing import Any

from lambdas.runtime import count, logger, wiring
from orchestrator.api import reconciliation_routes as reconciliations
from orchestrator.api import rollout_routes as rollouts
from orchestrator.api import tenant_routes as tenants
from orchestrator.api.answers import Response, come_back_later, not_through_the_api, refuse
from orchestrator.api.fields import NothingMore, OfTenant, given
from orchestrator.api.operator_answers import tell_order, tell_releases, tell_tenant, tell_tenants
from orchestrator.api.reading import read
from orchestrator.api.reconciliation_answers import (
    tell_adoption,
    tell_adoption_started,
    tell_health,
    tell_reconciliation,
    tell_reconciliation_started,
)
from orchestrator.api.rollout_answers import tell_changed, tell_rollout, tell_rollouts, tell_started
from orchestrator.api.route import Asked, Route
from orchestrator.common.callers import caller
from orchestrator.common.errors import InvalidRequest, Throttled, Unsettled
from orchestrator.rollouts.control import unknown_rollout
from orchestrator.tenants.fleet import list_tenants, tenant_detail

Event = Mapping[str, Any]

ROUTES: dict[str, Callable[[Event], Response]] = {}
"""What each route is answered by, by the route's key."""


def _serve(route: Route[Asked, Any], answer: Callable[[Asked, str], Response]) -> None:
    """``answer`` gets the request in the route's own model, and the caller's ARN."""
    ROUTES[route.key] = lambda event: answer(read(route, event), caller(event))


def _create(asked: tenants.CreateTenant, by: str) -> Response:
    return tell_order(asked.tenant, wiring.lifecycle.create(asked.tenant, asked.asked(by), unpin=asked.unpin))


def _tenant(asked: OfTenant, _by: str) -> Response:
    return tell_tenant(tenant_detail(asked.tenant, wiring.table))


def _delete(asked: tenants.DeleteTenant, by: str) -> Response:
    return tell_order(asked.tenant, wiring.lifecycle.delete(asked.tenant, asked.asked(by)))


def _upgrade(asked: tenants.UpgradeTenant, by: str) -> Response:
    return tell_order(asked.tenant, wiring.lifecycle.upgrade(asked.tenant, given(asked.version), asked.asked(by)))


def _retry(asked: tenants.RetryTenant, by: str) -> Response:
    return tell_order(asked.tenant, wiring.lifecycle.retry(asked.tenant, by, reason=given(asked.reason, "")))


def _pin(asked: tenants.PinTenant, by: str) -> Response:
    return tell_order(asked.tenant, wiring.lifecycle.pin(asked.tenant, asked.version, asked.asked(by)))


def _unpin(asked: tenants.UnpinTenant, by: str) -> Response:
    return tell_order(asked.tenant, wiring.lifecycle.unpin(asked.tenant, asked.asked(by)))


def _tenants(asked: tenants.ListTenants, _by: str) -> Response:
    page = list_tenants(
        wiring.table,
        state=asked.wanted_state,
        version=given(asked.version),
        cursor=given(asked.cursor),
        limit=asked.limit,
    )
    return tell_tenants(page)


def _releases(_asked: NothingMore, _by: str) -> Response:
    return tell_releases(wiring.table.releases(), wiring.settings.version, wiring.table.versions_in_use())


def _start_rollout(asked: rollouts.StartRollout, by: str) -> Response:
    wish = asked.wish(max_concurrency=wiring.settings.rollout_concurrency)
    return tell_started(wiring.rollouts.start(wish, by, reason=given(asked.reason, "")))


def _rollouts(asked: rollouts.ListRollouts, _by: str) -> Response:
    return tell_rollouts(wiring.rollout_table.rollouts(limit=asked.limit, after=given(asked.cursor)), asked.limit)


def _rollout(asked: rollouts.OfRollout, _by: str) -> Response:
    table, rollout_id = wiring.rollout_table, asked.rollout_id
    rollout = table.rollout(rollout_id)
    if rollout is None:
        return tell_changed(unknown_rollout(rollout_id))
    # Every tenant's row is read only where that is the answer: a fleet may have thousands of them.
    looked_at = table.outcomes(rollout_id) if rollout.wish.dry_run else ()
    return tell_rollout(
        rollout, table.stages(rollout_id), table.failures(rollout_id), looked_at, table.orders(rollout_id)
    )


def _pause_rollout(asked: rollouts.OrderRollout, by: str) -> Response:
    return tell_changed(wiring.rollouts.pause(asked.rollout_id, by, reason=given(asked.reason, "")))


def _resume_rollout(asked: rollouts.OrderRollout, by: str) -> Response:
    return tell_changed(wiring.rollouts.resume(asked.rollout_id, by, reason=given(asked.reason, "")))


def _abort_rollout(asked: rollouts.OrderRollout, by: str) -> Response:
    return tell_changed(wiring.rollouts.abort(asked.rollout_id, by, reason=given(asked.reason, "")))


def _approve_rollout(asked: rollouts.ApproveStage, by: str) -> Response:
    return tell_changed(wiring.rollouts.approve(asked.rollout_id, asked.stage, by, reason=given(asked.reason, "")))


def _retry_rollout(asked: rollouts.OrderRollout, by: str) -> Response:
    return tell_started(wiring.rollouts.retry(asked.rollout_id, by, reason=given(asked.reason, "")))


def _reconcile(asked: reconciliations.StartReconciliation, by: str) -> Response:
    return tell_reconciliation_started(wiring.reconciliations.start(asked.wish, by))


def _reconciliation(asked: reconciliations.OfReconciliation, _by: str) -> Response:
    return tell_reconciliation(wiring.reconciliations.find(asked.reconciliation_id))


def _adopt(asked: reconciliations.StartAdoption, by: str) -> Response:
    return tell_adoption_started(wiring.reconciliations.start(asked.wish, by))


def _adoption(asked: reconciliations.OfAdoption, _by: str) -> Response:
    return tell_adoption(wiring.reconciliations.find_adoption(asked.adoption_id))


def _health(_asked: NothingMore, _by: str) -> Response:
    return tell_health(wiring.settings.version, wiring.health.examine())


_serve(tenants.CREATE_TENANT, _create)
_serve(tenants.GET_TENANT, _tenant)
_serve(tenants.DELETE_TENANT, _delete)
_serve(tenants.UPGRADE_TENANT, _upgrade)
_serve(tenants.RETRY_TENANT, _retry)
_serve(tenants.PIN_TENANT, _pin)
_serve(tenants.UNPIN_TENANT, _unpin)
_serve(tenants.LIST_TENANTS, _tenants)
_serve(tenants.LIST_RELEASES, _releases)
_serve(rollouts.START_ROLLOUT, _start_rollout)
_serve(rollouts.LIST_ROLLOUTS, _rollouts)
_serve(rollouts.GET_ROLLOUT, _rollout)
_serve(rollouts.PAUSE_ROLLOUT, _pause_rollout)
_serve(rollouts.RESUME_ROLLOUT, _resume_rollout)
_serve(rollouts.ABORT_ROLLOUT, _abort_rollout)
_serve(rollouts.APPROVE_ROLLOUT, _approve_rollout)
_serve(rollouts.RETRY_ROLLOUT, _retry_rollout)
_serve(reconciliations.START_RECONCILIATION, _reconcile)
_serve(reconciliations.GET_RECONCILIATION, _reconciliation)
_serve(reconciliations.START_ADOPTION, _adopt)
_serve(reconciliations.GET_ADOPTION, _adoption)
_serve(reconciliations.GET_DIAGNOSIS, _health)


def _no_such_route(event: Event) -> Response:
    raise InvalidRequest(f"There is no route {_route(event)[:100]!a}.")


def _route(event: Event) -> str:
    route = event.get("routeKey")
    return route if isinstance(route, str) else ""


def handler(event: object, _context: object) -> dict[str, Any]:
    asked = event if isinstance(event, dict) else {}
    route = _route(asked)
    try:
        # Everything after this believes the event about who the caller is.
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
