"""The operators' API: tenants, releases, rollouts, reconciliations and health."""

from collections.abc import Callable, Mapping
from typing import Any

from lambdas.observing import logger
from lambdas.runtime import use_cases
from orchestrator.api import comparison_routes as comparisons
from orchestrator.api import operation_routes as operations
from orchestrator.api import reconciliation_routes as reconciliations
from orchestrator.api import release_models, rollout_models, rollout_requests, tenant_models
from orchestrator.api import release_routes as releases
from orchestrator.api import rollout_routes as rollouts
from orchestrator.api import tenant_routes as tenants
from orchestrator.api.comparison_answers import comparison_response
from orchestrator.api.fields import EmptyRequest, or_default
from orchestrator.api.operation_answers import operations_response
from orchestrator.api.operator_answers import order_response, tenant_response, tenants_response
from orchestrator.api.reading import read
from orchestrator.api.reconciliation_answers import (
    health_response,
    reconciliation_response,
    reconciliation_start_response,
    reconciliations_response,
)
from orchestrator.api.release_answers import (
    release_changes_response,
    release_checked_response,
    release_order_response,
    release_published_response,
    releases_response,
)
from orchestrator.api.responses import Response, refuse, try_again_later, unknown_caller
from orchestrator.api.rollout_answers import (
    open_rollouts_response,
    rollout_order_response,
    rollout_response,
    rollout_start_response,
    rollouts_response,
)
from orchestrator.api.route import RequestT, Route
from orchestrator.common.callers import caller
from orchestrator.common.errors import InvalidRequest, Throttled, Unsettled
from orchestrator.rollouts.counting import reviews_of
from orchestrator.rollouts.listing import list_rollouts, open_rollouts
from orchestrator.rollouts.refusals import unknown_rollout
from orchestrator.tenants.fleet import list_tenants, tenant_detail

Event = Mapping[str, Any]

ROUTES: dict[str, Callable[[Event], Response]] = {}
"""The function that answers each route, by the route's key."""


def _serve(route: Route[RequestT, Any], answer: Callable[[RequestT, str], Response]) -> None:
    """``answer`` gets the request in the route's own model, and the caller's ARN."""
    ROUTES[route.key] = lambda event: answer(read(route, event), caller(event))


def _create(request: tenant_models.CreateTenant, by: str) -> Response:
    return order_response(
        request.tenant, use_cases.lifecycle.create(request.tenant, request.to_domain(by), unpin=request.unpin)
    )


def _tenant(request: tenant_models.GetTenant, _by: str) -> Response:
    before = or_default(request.history_before)
    return tenant_response(tenant_detail(request.tenant, use_cases.ports.tenants, before=before))


def _compare(request: comparisons.CompareTenant, _by: str) -> Response:
    return comparison_response(use_cases.comparing.compare(request.tenant))


def _delete(request: tenant_models.DeleteTenant, by: str) -> Response:
    return order_response(request.tenant, use_cases.lifecycle.delete(request.tenant, request.to_domain(by)))


def _upgrade(request: tenant_models.UpgradeTenant, by: str) -> Response:
    return order_response(
        request.tenant, use_cases.lifecycle.upgrade(request.tenant, or_default(request.version), request.to_domain(by))
    )


def _move(request: tenant_models.MoveTenant, by: str) -> Response:
    return order_response(request.tenant, use_cases.lifecycle.move(request.tenant, request.tier, request.to_domain(by)))


def _retry(request: tenant_models.RetryTenant, by: str) -> Response:
    return order_response(
        request.tenant, use_cases.lifecycle.retry(request.tenant, by, reason=or_default(request.reason, ""))
    )


def _label(request: tenant_models.LabelTenant, by: str) -> Response:
    return order_response(
        request.tenant, use_cases.lifecycle.label(request.tenant, request.edit(), request.to_domain(by))
    )


def _pin(request: tenant_models.PinTenant, by: str) -> Response:
    return order_response(
        request.tenant, use_cases.lifecycle.pin(request.tenant, request.version, request.to_domain(by))
    )


def _unpin(request: tenant_models.UnpinTenant, by: str) -> Response:
    return order_response(request.tenant, use_cases.lifecycle.unpin(request.tenant, request.to_domain(by)))


def _tenants(request: tenant_models.ListTenants, _by: str) -> Response:
    page = list_tenants(
        use_cases.ports.fleet,
        state=or_default(request.state),
        version=or_default(request.version),
        labels=request.labels,
        pinned=or_default(request.pinned),
        prefix=or_default(request.prefix, ""),
        tier=or_default(request.tier),
        cursor=or_default(request.cursor),
        limit=request.limit,
    )
    return tenants_response(page)


def _operations(request: operations.ListOperations, _by: str) -> Response:
    return operations_response(use_cases.recent_operations.newest(limit=request.limit))


def _releases(_request: EmptyRequest, _by: str) -> Response:
    counts = use_cases.fleet_counter.current()
    settings, releases = use_cases.ports.settings, use_cases.ports.releases.releases()
    return releases_response(
        releases,
        use_cases.release_chooser.choices(releases),
        counts.by_version,
        deployed=settings.template_version,
        default_tier=settings.default_tier,
        promotion=settings.promotion,
        history=use_cases.ports.release_states.changes(limit=release_models.HISTORY_SIZE),
        counted_at=counts.at,
    )


def _publish_release(request: release_models.ProposeRelease, by: str) -> Response:
    return release_published_response(use_cases.publishing.publish(request.to_domain(by)))


def _check_release(request: release_models.ProposeRelease, by: str) -> Response:
    return release_checked_response(use_cases.publishing.check(request.to_domain(by)))


def _promote_release(request: release_models.OrderRelease, by: str) -> Response:
    return release_order_response(
        use_cases.releasing.promote(request.version, by, reason=or_default(request.reason, ""))
    )


def _withdraw_release(request: release_models.OrderRelease, by: str) -> Response:
    return release_order_response(
        use_cases.releasing.withdraw(request.version, by, reason=or_default(request.reason, ""))
    )


def _reinstate_release(request: release_models.OrderRelease, by: str) -> Response:
    return release_order_response(
        use_cases.releasing.reinstate(request.version, by, reason=or_default(request.reason, ""))
    )


def _release_changes(request: release_models.GetReleaseChanges, _by: str) -> Response:
    return release_changes_response(use_cases.comparing_releases.compare(request.from_version, request.version))


def _start_rollout(request: rollout_requests.StartRollout, by: str) -> Response:
    spec = request.spec(max_concurrency=use_cases.ports.settings.rollout_concurrency)
    return rollout_start_response(use_cases.rollouts.start(spec, by, reason=or_default(request.reason, "")))


def _rollouts(request: rollout_requests.ListRollouts, _by: str) -> Response:
    table = use_cases.ports.rollout_table
    if request.open:
        return open_rollouts_response(open_rollouts(table))
    return rollouts_response(list_rollouts(table, limit=request.limit, after=or_default(request.cursor)), request.limit)


def _rollout(request: rollout_requests.RolloutIdRequest, _by: str) -> Response:
    table, rollout_id = use_cases.ports.rollout_table, request.rollout_id
    rollout = table.rollout(rollout_id)
    if rollout is None:
        return rollout_order_response(unknown_rollout(rollout_id))
    stages = table.stages(rollout_id)
    reviews = reviews_of(rollout, table)
    failures = table.failures(rollout_id, limit=rollout_models.MAX_FAILURES)
    return rollout_response(rollout, stages, failures, reviews, table.orders(rollout_id))


def _pause_rollout(request: rollout_requests.OrderRollout, by: str) -> Response:
    return rollout_order_response(
        use_cases.rollouts.pause(request.rollout_id, by, reason=or_default(request.reason, ""))
    )


def _resume_rollout(request: rollout_requests.OrderRollout, by: str) -> Response:
    return rollout_order_response(
        use_cases.rollouts.resume(request.rollout_id, by, reason=or_default(request.reason, ""))
    )


def _abort_rollout(request: rollout_requests.OrderRollout, by: str) -> Response:
    return rollout_order_response(
        use_cases.rollouts.abort(request.rollout_id, by, reason=or_default(request.reason, ""))
    )


def _approve_rollout(request: rollout_requests.ApproveStage, by: str) -> Response:
    return rollout_order_response(
        use_cases.rollouts.approve(request.rollout_id, request.stage, by, reason=or_default(request.reason, ""))
    )


def _promote_rollout(request: rollout_requests.PromoteStage, by: str) -> Response:
    return rollout_order_response(
        use_cases.rollout_adjusting.promote(
            request.rollout_id,
            request.stage,
            by,
            approve=or_default(request.approve, False),
            reason=or_default(request.reason, ""),
        )
    )


def _change_rollout(request: rollout_requests.ChangeRollout, by: str) -> Response:
    new = request.new_pace(max_concurrency=use_cases.ports.settings.rollout_concurrency)
    return rollout_order_response(
        use_cases.rollout_adjusting.change(request.rollout_id, new, by, reason=or_default(request.reason, ""))
    )


def _retry_rollout(request: rollout_requests.OrderRollout, by: str) -> Response:
    return rollout_start_response(
        use_cases.rollouts.retry(request.rollout_id, by, reason=or_default(request.reason, ""))
    )


def _reconcile(request: reconciliations.StartReconciliation, by: str) -> Response:
    return reconciliation_start_response(use_cases.reconciliations.start(request.spec, by))


def _reconciliation(request: reconciliations.ReconciliationIdRequest, _by: str) -> Response:
    return reconciliation_response(use_cases.reconciliations.find(request.reconciliation_id))


def _reconciliations(_request: EmptyRequest, _by: str) -> Response:
    asked = use_cases.reconciliations
    return reconciliations_response(asked.newest(limit=reconciliations.MAX_LISTED), asked.latest_survey())


def _health(_request: EmptyRequest, _by: str) -> Response:
    settings = use_cases.ports.settings
    return health_response(settings.version, settings.template_version, use_cases.health.examine())


_serve(tenants.CREATE_TENANT, _create)
_serve(tenants.GET_TENANT, _tenant)
_serve(comparisons.COMPARE_TENANT, _compare)
_serve(tenants.DELETE_TENANT, _delete)
_serve(tenants.UPGRADE_TENANT, _upgrade)
_serve(tenants.MOVE_TENANT, _move)
_serve(tenants.RETRY_TENANT, _retry)
_serve(tenants.LABEL_TENANT, _label)
_serve(tenants.PIN_TENANT, _pin)
_serve(tenants.UNPIN_TENANT, _unpin)
_serve(tenants.LIST_TENANTS, _tenants)
_serve(operations.LIST_OPERATIONS, _operations)
_serve(releases.LIST_RELEASES, _releases)
_serve(releases.PUBLISH_RELEASE, _publish_release)
_serve(releases.CHECK_RELEASE, _check_release)
_serve(releases.GET_RELEASE_CHANGES, _release_changes)
_serve(releases.PROMOTE_RELEASE, _promote_release)
_serve(releases.WITHDRAW_RELEASE, _withdraw_release)
_serve(releases.REINSTATE_RELEASE, _reinstate_release)
_serve(rollouts.START_ROLLOUT, _start_rollout)
_serve(rollouts.LIST_ROLLOUTS, _rollouts)
_serve(rollouts.GET_ROLLOUT, _rollout)
_serve(rollouts.PAUSE_ROLLOUT, _pause_rollout)
_serve(rollouts.RESUME_ROLLOUT, _resume_rollout)
_serve(rollouts.ABORT_ROLLOUT, _abort_rollout)
_serve(rollouts.APPROVE_ROLLOUT, _approve_rollout)
_serve(rollouts.PROMOTE_ROLLOUT, _promote_rollout)
_serve(rollouts.CHANGE_ROLLOUT, _change_rollout)
_serve(rollouts.RETRY_ROLLOUT, _retry_rollout)
_serve(reconciliations.START_RECONCILIATION, _reconcile)
_serve(reconciliations.GET_RECONCILIATION, _reconciliation)
_serve(reconciliations.LIST_RECONCILIATIONS, _reconciliations)
_serve(reconciliations.GET_DIAGNOSIS, _health)


def _no_such_route(event: Event) -> Response:
    raise InvalidRequest(f"There is no route {_route(event)[:100]!a}.")


def _route(event: Event) -> str:
    route = event.get("routeKey")
    return route if isinstance(route, str) else ""


def handler(event: object, _context: object) -> dict[str, Any]:
    request = event if isinstance(event, dict) else {}
    route = _route(request)
    try:
        # From here on, the caller in the event is trusted.
        by_api = use_cases.api_gateway.sent(request)
        response = ROUTES.get(route, _no_such_route)(request) if by_api else unknown_caller()
    except InvalidRequest as error:
        response = refuse(error)
    except (Throttled, Unsettled) as error:
        response = try_again_later(str(error))
    logger.info(
        "Asked by an operator",
        extra={
            "route": route if route in ROUTES else None,
            "caller": use_cases.api_gateway.caller(request),
            "tenant_id": response.body.get("tenantId"),
            "rollout_id": response.body.get("rolloutId"),
            "status": response.status,
            "execution": response.body.get("execution"),
        },
    )
    return response.as_proxy_result()
