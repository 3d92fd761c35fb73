"""Answers to tenants and operators about usage."""

from __future__ import annotations

from collections.abc import Sequence

from lambdas.event_runtime import use_cases
from lambdas.event_serving import Served, served
from orchestrator.api.event_usage_answers import usage_response
from orchestrator.api.event_usage_routes import GET_USAGE, GetUsage
from orchestrator.api.fields import or_default
from orchestrator.api.responses import Response
from orchestrator.events.records import EventSettings


def _usage(request: GetUsage, settings: EventSettings) -> Response:
    return usage_response(settings, use_cases.reporting_usage.of_month(settings, or_default(request.month)))


SERVED: Sequence[Served] = (served(GET_USAGE, _usage),)
