"""Every route of both APIs. Functions, gateways, policies, the client and the documents read this module."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.api import (
    event_configuration_routes,
    event_read_routes,
    event_routes,
    queue_routes,
    reconciliation_routes,
    rollout_routes,
    tenant_routes,
)
from orchestrator.api.problems import Problem
from orchestrator.api.route import AnyRoute

ROUTES: tuple[AnyRoute, ...] = (
    *queue_routes.ROUTES,
    *tenant_routes.ROUTES,
    *rollout_routes.ROUTES,
    *reconciliation_routes.ROUTES,
)
"""The control plane's API."""

EVENT_ROUTES: tuple[AnyRoute, ...] = (
    *event_routes.ROUTES,
    *event_read_routes.ROUTES,
    *event_configuration_routes.ROUTES,
)
"""The event plane's API. Routes for tenants need an API key, the others AWS credentials."""

INGEST_ROUTES = frozenset({"POST /events", "POST /events/batch"})
"""The keys of the routes by which tenants' producers hand in events. A function of its own serves them."""

PUBLIC_EVENT_ROUTES = ("POST /forms/{formId}", "OPTIONS /forms/{formId}", "ANY /hooks/{sourceId}")
"""The keys of the routes for everybody. They take whatever a browser or a provider sends, so they declare no request.
The function checks the origin of a form, and the signature of a webhook.
"""

PROBLEMS: Mapping[str, Problem] = {problem.kind: problem for route in ROUTES for problem in route.problems}
"""Every kind of problem, by kind. A kind has the same status and title on every route."""
