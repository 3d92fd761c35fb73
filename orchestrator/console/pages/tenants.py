"""The tenants, page by page. The filters are in the address, so that a list can be kept and sent to others."""

from __future__ import annotations

from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from orchestrator.api.release_routes import LIST_RELEASES
from orchestrator.api.tenant_routes import LIST_TENANTS
from orchestrator.console.page import page
from orchestrator.console.view import address, command_of, segment
from orchestrator.console.visit import Console, Visit
from orchestrator.tenants.fleet import PAGE_SIZE

FILTERS = ("prefix", "state", "version", "tier", "label", "pinned")
SIZE = PAGE_SIZE


def tenants(visit: Visit) -> Response:
    filters = {name: visit.parameter(name) for name in FILTERS}
    found = visit.ask(
        LIST_TENANTS,
        state=filters["state"],
        version=filters["version"],
        tier=filters["tier"],
        label=filters["label"],
        prefix=filters["prefix"],
        pinned={"true": True, "false": False}.get(filters["pinned"] or ""),
        cursor=visit.parameter("cursor"),
        limit=SIZE,
    )
    releases = visit.ask(LIST_RELEASES)["releases"]
    following = address("/tenants", **filters, cursor=found["cursor"]) if found["cursor"] else None
    return visit.show(
        "tenants.html",
        filters=filters,
        filtered=any(filters.values()),
        tenants=found["tenants"],
        following=following,
        first=address("/tenants", **filters) if visit.parameter("cursor") else None,
        versions=[release["version"] for release in releases],
        tiers=sorted({release["tier"] for release in releases}),
        command_line=_command(filters),
    )


def go(visit: Visit) -> Response:
    """The box at the top of every page: a tenant's whole id."""
    wanted = visit.parameter("tenant")
    return RedirectResponse(f"/tenants/{segment(wanted)}" if wanted else "/tenants", 303)


def _command(filters: dict[str, str | None]) -> str:
    """The command that lists the same tenants."""
    options: list[tuple[str, str | None]] = [
        (f"--{name}", value) for name, value in filters.items() if value and name not in ("label", "pinned")
    ]
    options += [("--label", label) for label in (filters["label"] or "").split(",") if label]
    if filters["pinned"]:
        options.append(("--pinned" if filters["pinned"] == "true" else "--not-pinned", None))
    return command_of("berth tenants", options)


def routes(console: Console) -> list[Route]:
    return [page(console, "/tenants", tenants), page(console, "/go", go)]
