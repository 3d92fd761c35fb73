"""The connections of all tenants whose deliveries fail or wait."""

from __future__ import annotations

from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from orchestrator.api.connection_routes import LIST_TROUBLES
from orchestrator.console.event_plane import ask_plane, base_of
from orchestrator.console.page import page
from orchestrator.console.visit import Console, Visit


def events(visit: Visit) -> Response:
    if wanted := visit.parameter("tenant"):
        return RedirectResponse(f"{base_of(wanted)}/events", 303)
    listed = ask_plane(visit, LIST_TROUBLES)
    return visit.show("events.html", troubled=listed["connections"], more=listed["more"])


def routes(console: Console) -> list[Route]:
    return [page(console, "/events", events)]
