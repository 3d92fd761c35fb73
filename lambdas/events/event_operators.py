"""The operators' routes of the Events API."""

from typing import Any

from lambdas.event_runtime import use_cases
from orchestrator.api.answers import not_through_the_api, try_again_later


def handler(event: object, _context: object) -> dict[str, Any]:
    request = event if isinstance(event, dict) else {}
    if not use_cases.api_gateway.sent(request):
        return not_through_the_api().as_proxy_result()
    return try_again_later("Berth does not have this yet.").as_proxy_result()
