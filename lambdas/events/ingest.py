"""POST /events and POST /events/batch: takes the events of a tenant's producers."""

from typing import Any

from lambdas.event_runtime import use_cases
from orchestrator.api.answers import try_again_later, unknown_caller


def handler(event: object, _context: object) -> dict[str, Any]:
    request = event if isinstance(event, dict) else {}
    if not use_cases.api_gateway.sent(request):
        return unknown_caller().as_proxy_result()
    return try_again_later("Berth does not have this yet.").as_proxy_result()
