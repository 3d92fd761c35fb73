"""The first page: what waits for someone, and the fleet by release and state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from orchestrator.api.operation_routes import LIST_OPERATIONS
from orchestrator.api.reconciliation_routes import LIST_RECONCILIATIONS
from orchestrator.api.release_routes import LIST_RELEASES
from orchestrator.api.rollout_routes import LIST_ROLLOUTS
from orchestrator.cli.api import Document
from orchestrator.cli.waiting import Waiting, findings_waiting, fleet_of, rollouts_under_way, waiting_for_someone
from orchestrator.common.times import parse_timestamp
from orchestrator.console.drawing import Plot, Took, bar, bars, plotted
from orchestrator.console.page import page
from orchestrator.console.pages.events import troubles
from orchestrator.console.view import address
from orchestrator.console.visit import Console, Visit
from orchestrator.tenants.records import TenantState

OPERATIONS = 50
SHOWN = 8
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
    survey = visit.ask(LIST_RECONCILIATIONS)["survey"]
    operations = visit.ask(LIST_OPERATIONS, limit=OPERATIONS)["operations"]
    waiting = [(each, _link(each)) for each in waiting_for_someone(fleet, rollouts, releases)]
    waiting += [(each, "/health") for each in findings_waiting(survey)]
    return visit.show(
        "overview.html",
        waiting=[*waiting, *troubles(visit)],
        under_way=[(each, _link(each)) for each in rollouts_under_way(rollouts)],
        operations=operations[:SHOWN],
        plot=plot(operations),
        fleet=fleet,
        releases=releases,
        whole=bar("fleet", fleet["byState"], ORDER),
        by_release=bars(_by_release(releases), ORDER),
        by_tier=bars(_by_tier(releases), ORDER),
    )


def plot(operations: Sequence[Document]) -> Plot | None:
    """The times that finished operations took, the oldest at the left."""
    ended = [
        Took(
            f"{each['operation']} {each['tenantId'] or ''} {each['status']}",
            (parse_timestamp(each["endedAt"]) - parse_timestamp(each["startedAt"])).total_seconds(),
            each["status"],
            each["tenantId"],
        )
        for each in reversed(operations)
        if each["endedAt"]
    ]
    return plotted(ended) if ended else None


def _link(waiting: Waiting) -> str:
    if waiting.rollout:
        return f"/rollouts/{waiting.rollout}"
    if waiting.state:
        return address("/tenants", state=waiting.state)
    return "/releases" if waiting.command.startswith("berth releases") else "/rollouts/plan"


def _by_release(releases: Document) -> dict[str, Any]:
    """The counts by state of every release that has tenants, the newest first."""
    counted = {release["version"]: release["tenants"]["byState"] for release in releases["releases"]}
    counted |= {version: tenants["byState"] for version, tenants in releases["elsewhere"].items()}
    return {version: states for version, states in counted.items() if states}


def _by_tier(releases: Document) -> dict[str, Counter[str]]:
    """The counts by state of every tier that has tenants. A release belongs to one tier."""
    counted: dict[str, Counter[str]] = {}
    for release in releases["releases"]:
        if release["tenants"]["total"]:
            counted.setdefault(release["tier"], Counter()).update(release["tenants"]["byState"])
    return counted


def routes(console: Console) -> list[Route]:
    return [page(console, "/", overview)]
