"""The connections of all tenants whose deliveries fail or wait."""

from __future__ import annotations

from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from orchestrator.api.connection_routes import LIST_TROUBLES
from orchestrator.cli.errors import ApiProblem, ControlPlaneNotFound
from orchestrator.cli.waiting import Waiting, troubles_waiting
from orchestrator.console.event_plane import ask_plane, base_of
from orchestrator.console.page import page
from orchestrator.console.visit import Away, Console, CredentialsRefused, Visit


def events(visit: Visit) -> Response:
    if wanted := visit.parameter("tenant"):
        return RedirectResponse(f"{base_of(wanted)}/events", 303)
    listed = ask_plane(visit, LIST_TROUBLES)
    return visit.show("events.html", troubled=listed["connections"], more=listed["more"])


def troubles(visit: Visit) -> list[tuple[Waiting, str]]:
    """The first page's lines about connections, each with the page that it leads to; none without an event plane."""
    try:
        listed = visit.ask_events(LIST_TROUBLES)
    except ControlPlaneNotFound:
        return []
    except (Away, CredentialsRefused, ApiProblem) as error:
        # The rest of the first page does not depend on the event plane, which other permissions are for.
        return [(Waiting(f"the event plane cannot be asked: {error}", "berth doctor"), "/events")]
    return [(each, "/events") for each in troubles_waiting(listed)]


def routes(console: Console) -> list[Route]:
    return [page(console, "/events", events)]
