"""Every route of the event plane's API. Its gateway, policies and document read this module."""

from __future__ import annotations

from orchestrator.api import (
    connection_routes,
    delivery_routes,
    event_change_routes,
    event_configuration_routes,
    event_read_routes,
    event_routes,
    event_usage_routes,
    receiving_routes,
)
from orchestrator.api.route import AnyRoute

EVENT_ROUTES: tuple[AnyRoute, ...] = (
    *event_routes.ROUTES,
    *event_read_routes.ROUTES,
    *event_configuration_routes.ROUTES,
    *connection_routes.ROUTES,
    *delivery_routes.ROUTES,
    *event_change_routes.ROUTES,
    *event_usage_routes.ROUTES,
    *receiving_routes.ROUTES,
)
"""The event plane's API. Tenants call with an API key, everybody without credentials, and all others with AWS's."""

INGEST_ROUTES = frozenset({"POST /events", "POST /events/batch"})
"""The keys of the routes by which tenants' producers hand in events. A function of its own serves them."""
