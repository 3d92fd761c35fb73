"""The operators' part of the Events API: what tenants can do themselves, for any tenant, and the event settings."""

from collections.abc import Sequence
from typing import Any

from lambdas import event_configuration, event_reads, event_usage
from lambdas.event_runtime import use_cases
from lambdas.event_serving import Answer, Answered, Event, Served, read_json, respond
from orchestrator.api.event_configuration_answers import refusal_response, settings_response
from orchestrator.api.event_configuration_routes import PUT_SETTINGS
from orchestrator.api.event_usage_answers import purges_response
from orchestrator.api.event_usage_routes import LIST_PURGES
from orchestrator.api.for_operators import for_operators, tenant_in
from orchestrator.events.refusals import Refused

SERVED: Sequence[Served] = (*event_configuration.SERVED, *event_reads.SERVED, *event_usage.SERVED)


def _answer(served: Served) -> Answer:
    route = for_operators(served.route)

    def answer(event: Event) -> Answered:
        request = read_json(route, event)
        tenant = tenant_in(request)
        settings = use_cases.configuring.settings_of(tenant)
        response = refusal_response(settings) if isinstance(settings, Refused) else served.answer(request, settings)
        return Answered(response, {"tenant_id": tenant.value})

    return answer


def _put_settings(event: Event) -> Answered:
    request = read_json(PUT_SETTINGS, event)
    response = settings_response(use_cases.configuring.change_settings(request.tenant, request.to_domain()))
    return Answered(response, {"tenant_id": request.tenant_id})


def _list_purges(event: Event) -> Answered:
    read_json(LIST_PURGES, event)
    return Answered(purges_response(use_cases.listing_purges.purges(), use_cases.ports.clock.now()))


ROUTES = {for_operators(each.route).key: _answer(each) for each in SERVED} | {
    PUT_SETTINGS.key: _put_settings,
    LIST_PURGES.key: _list_purges,
}


def handler(event: object, _context: object) -> dict[str, Any]:
    return respond(event, ROUTES, signed=True)
