"""The tenants' part of the Events API: each API key acts for its own tenant, whatever the request says."""

from collections.abc import Sequence
from typing import Any

from lambdas import event_changes, event_configuration, event_connections, event_history, event_reads, event_usage
from lambdas.event_runtime import use_cases
from lambdas.event_serving import Answer, Answered, Event, Served, read_json, respond
from orchestrator.api.event_answers import denied_response, over_limit_response
from orchestrator.api.event_reading import api_key_of
from orchestrator.events.authorising import Denied
from orchestrator.events.records import Scope

SERVED: Sequence[Served] = (
    *event_configuration.SERVED,
    *event_connections.SERVED,
    *event_changes.SERVED,
    *event_reads.SERVED,
    *event_history.SERVED,
    *event_usage.SERVED,
)


def _answer(served: Served) -> Answer:
    scope = Scope(str(served.route.scope))

    def answer(event: Event) -> Answered:
        # The key is checked before the request is read, so that nobody without a key learns what a route takes.
        grant = use_cases.authorising.by_key(api_key_of(event), scope)
        if isinstance(grant, Denied):
            return Answered(denied_response(grant, scope))
        settings = grant.standing.settings
        over, key_id = use_cases.request_quotas.take(settings), grant.key.key_id
        if over:
            return Answered(over_limit_response(over), {"tenant_id": settings.life.tenant.value, "by_key": key_id})
        response = served.answer(read_json(served.route, event), settings, key_id)
        return Answered(response, {"tenant_id": settings.life.tenant.value, "by_key": key_id})

    return answer


ROUTES = {each.route.key: _answer(each) for each in SERVED}


def handler(event: object, _context: object) -> dict[str, Any]:
    return respond(event, ROUTES, signed=False)
