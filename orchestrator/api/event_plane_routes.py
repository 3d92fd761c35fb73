"""Every route of the event plane's API. Its gateway, policies and document read this module."""

from __future__ import annotations

from orchestrator.api import event_configuration_routes, event_read_routes, event_routes, event_usage_routes
from orchestrator.api.route import AnyRoute

EVENT_ROUTES: tuple[AnyRoute, ...] = (
    *event_routes.ROUTES,
    *event_read_routes.ROUTES,
    *event_configuration_routes.ROUTES,
    *event_usage_routes.ROUTES,
)
"""The event plane's API. Routes for tenants need an API key, the others AWS credentials."""

INGEST_ROUTES = frozenset({"POST /events", "POST /events/batch"})
"""The keys of the routes by which tenants' producers hand in events. A function of its own serves them."""

PUBLIC_EVENT_ROUTES = ("POST /forms/{formId}", "OPTIONS /forms/{formId}", "ANY /hooks/{sourceId}")
"""The keys of the routes for everybody. They take whatever a browser or a provider sends, so they declare no request.
The function checks the origin of a form, and the signature of a webhook.
"""
