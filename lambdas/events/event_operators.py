"""The operators' part of the Events API: what tenants can do themselves, for any tenant, and the event settings."""

from collections.abc import Sequence
from typing import Any

from lambdas import event_changes, event_configuration, event_connections, event_history, event_reads, event_usage
from lambdas.event_runtime import use_cases
from lambdas.event_serving import Answer, Answered, Event, Served, read_json, respond
from orchestrator.api.connection_answers import troubles_response
from orchestrator.api.connection_routes import LIST_TROUBLES
from orchestrator.api.event_configuration_answers import refusal_response, settings_response
from orchestrator.api.event_configuration_routes import PUT_SETTINGS
from orchestrator.api.event_read_answers import event_credentials_response
from orchestrator.api.event_read_routes import GET_CREDENTIALS
from orchestrator.api.event_usage_answers import purges_response
from orchestrator.api.event_usage_routes import LIST_PURGES
from orchestrator.api.for_operators import for_operators, tenant_in
from orchestrator.api.responses import no_credentials
from orchestrator.common.callers import source_identity
from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.refusals import Refused

SERVED: Sequence[Served] = (
    *event_configuration.SERVED,
    *event_connections.SERVED,
    *event_changes.SERVED,
    *event_reads.SERVED,
    *event_history.SERVED,
    *event_usage.SERVED,
)


def _answer(served: Served) -> Answer:
    route = for_operators(served.route)

    def answer(event: Event) -> Answered:
        request = read_json(route, event)
        tenant = tenant_in(request)
        by = use_cases.api_gateway.caller(event)
        settings = use_cases.configuring(by).settings_of(tenant)
        response = refusal_response(settings) if isinstance(settings, Refused) else served.answer(request, settings, by)
        return Answered(response, {"tenant_id": tenant.value})

    return answer


def _put_settings(event: Event) -> Answered:
    request = read_json(PUT_SETTINGS, event)
    configuring = use_cases.configuring(use_cases.api_gateway.caller(event))
    response = settings_response(configuring.change_settings(request.tenant, request.to_domain()))
    return Answered(response, {"tenant_id": request.tenant_id})


def _list_purges(event: Event) -> Answered:
    read_json(LIST_PURGES, event)
    return Answered(purges_response(use_cases.listing_purges.purges(), use_cases.ports.clock.now()))


def _list_troubles(event: Event) -> Answered:
    read_json(LIST_TROUBLES, event)
    return Answered(troubles_response(use_cases.listing_troubles.list()))


def _get_credentials(event: Event) -> Answered:
    """Temporary credentials for a tenant's own programs. The response is not logged, because it holds secrets."""
    tenant = TenantId.parse(read_json(GET_CREDENTIALS, event).tenant_id)
    access = use_cases.ports.access
    if access is None:
        return Answered(no_credentials(), {"tenant_id": tenant.value})
    caller = use_cases.api_gateway.caller(event)
    settings = use_cases.configuring(caller).settings_of(tenant)
    if isinstance(settings, Refused):
        return Answered(refusal_response(settings), {"tenant_id": tenant.value})
    identity = source_identity(caller)
    issued = access.issue(settings, source_identity=identity)
    names = {"tenant_id": tenant.value, "source_identity": identity}
    return Answered(event_credentials_response(tenant, issued), names)


ROUTES = {for_operators(each.route).key: _answer(each) for each in SERVED} | {
    PUT_SETTINGS.key: _put_settings,
    LIST_PURGES.key: _list_purges,
    LIST_TROUBLES.key: _list_troubles,
    GET_CREDENTIALS.key: _get_credentials,
}


def handler(event: object, _context: object) -> dict[str, Any]:
    return respond(event, ROUTES, signed=True)
