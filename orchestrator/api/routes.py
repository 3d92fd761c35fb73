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
"""The event plane's API."""

PROBLEMS: Mapping[str, Problem] = {problem.kind: problem for route in ROUTES for problem in route.problems}
"""Every kind of problem, by kind. A kind has the same status and title on every route."""
