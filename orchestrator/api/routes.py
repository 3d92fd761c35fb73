"""Every route of the control plane's API. Functions, the gateway, policies and the document read this module.

The routes of the event plane are in :mod:`orchestrator.api.event_plane_routes`, so that the functions of the control
plane do not load them.
"""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.api import (
    comparison_routes,
    operation_routes,
    queue_routes,
    reconciliation_routes,
    release_routes,
    rollout_routes,
    tenant_routes,
)
from orchestrator.api.problems import Problem
from orchestrator.api.route import AnyRoute

ROUTES: tuple[AnyRoute, ...] = (
    *queue_routes.ROUTES,
    *tenant_routes.ROUTES,
    *comparison_routes.ROUTES,
    *operation_routes.ROUTES,
    *release_routes.ROUTES,
    *rollout_routes.ROUTES,
    *reconciliation_routes.ROUTES,
)
"""The control plane's API."""

PROBLEMS: Mapping[str, Problem] = {problem.kind: problem for route in ROUTES for problem in route.problems}
"""Every kind of problem, by kind. A kind has the same status and title on every route."""
