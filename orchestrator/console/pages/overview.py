"""The first page: what waits for someone, and the fleet by release and state."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from orchestrator.api.release_routes import LIST_RELEASES
from orchestrator.api.rollout_routes import LIST_ROLLOUTS
from orchestrator.cli.api import Document
from orchestrator.cli.waiting import Waiting, fleet_of, waiting_for_someone
from orchestrator.console.drawing import bar, bars
from orchestrator.console.page import page
from orchestrator.console.pages.events import troubles
from orchestrator.console.view import address
from orchestrator.console.visit import Console, Visit
from orchestrator.tenants.records import TenantState

ORDER = (
    TenantState.READY,
    TenantState.UPDATING,
    TenantState.PROVISIONING,
    TenantState.DELETING,
    TenantState.UNKNOWN,
    TenantState.UPDATE_FAILED,
    TenantState.FAILED,
)
"""The order of the states in a drawing: what is well first."""


def overview(visit: Visit) -> Response:
    releases = visit.ask(LIST_RELEASES)
    rollouts = visit.ask(LIST_ROLLOUTS, open=True)["rollouts"]
    fleet = fleet_of(releases)
    waiting = waiting_for_someone(fleet, rollouts, releases)
    return visit.show(
        "overview.html",
        waiting=[*((each, _link(each)) for each in waiting), *troubles(visit)],
        fleet=fleet,
        releases=releases,
        whole=bar("fleet", fleet["byState"], ORDER),
        by_release=bars(_by_release(releases), ORDER),
        rollouts=rollouts,
    )


def _link(waiting: Waiting) -> str:
    if waiting.rollout:
        return f"/rollouts/{waiting.rollout}"
    return address("/tenants", state=waiting.state) if waiting.state else "/rollouts/plan"


def _by_release(releases: Document) -> dict[str, Any]:
    """The counts by state of every release that has tenants, the newest first."""
    counted = {release["version"]: release["tenants"]["byState"] for release in releases["releases"]}
    counted |= {version: tenants["byState"] for version, tenants in releases["elsewhere"].items()}
    return {version: states for version, states in counted.items() if states}


def routes(console: Console) -> list[Route]:
    return [page(console, "/", overview)]
