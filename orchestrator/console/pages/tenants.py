"""The tenants, page by page. The filters are in the address, so that a list can be kept and sent to others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from orchestrator.api.release_routes import LIST_RELEASES
from orchestrator.api.tenant_routes import CREATE_TENANT, LIST_TENANTS, RETRY_TENANT
from orchestrator.cli import render
from orchestrator.cli.api import Document
from orchestrator.cli.errors import ApiProblem
from orchestrator.cli.next_step import NextStep
from orchestrator.cli.selection import labels_of, unknown_tier
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.tiers import STANDARD
from orchestrator.console.actions import REASON, Action, Done, Field, outcome, reason_in
from orchestrator.console.actions import routes as action_routes
from orchestrator.console.page import page
from orchestrator.console.view import address, command_of, segment
from orchestrator.console.visit import Console, Visit
from orchestrator.tenants.fleet import PAGE_SIZE
from orchestrator.tenants.records import TenantState

FILTERS = ("prefix", "state", "version", "tier", "label", "pinned")
SIZE = PAGE_SIZE
MAX_RETRIED = 100
"""Tenants that one form can retry. Each is one request, and a person waits for the answer."""
_RETRIED = (TenantState.FAILED, TenantState.UPDATE_FAILED)


def tenants(visit: Visit) -> Response:
    filters = _filters(visit)
    found = _listed(visit, filters, cursor=visit.parameter("cursor"), limit=SIZE)
    published = visit.ask(LIST_RELEASES)
    releases = published["releases"]
    following = address("/tenants", **filters, cursor=found["cursor"]) if found["cursor"] else None
    return visit.show(
        "tenants.html",
        filters=filters,
        filtered=any(filters.values()),
        tenants=found["tenants"],
        following=following,
        first=address("/tenants", **filters) if visit.parameter("cursor") else None,
        versions=[release["version"] for release in releases],
        tiers=sorted(published["tiers"]),
        # A fleet of one tier, as most are, needs no column for it.
        has_tiers=any(tenant["tier"] not in (None, STANDARD) for tenant in found["tenants"]),
        unknown=unknown_tier(filters["tier"], published),
        command_line=command_of("berth tenants", _options(filters)),
        retry=address("/tenants/do/retry", **filters) if _why_no_retry(filters) is None else None,
        retry_command=_retry_command(filters),
    )


def go(visit: Visit) -> Response:
    """The box at the top of every page: a tenant's whole id."""
    wanted = visit.parameter("tenant")
    return RedirectResponse(f"/tenants/{segment(wanted)}" if wanted else "/tenants", 303)


def _filters(visit: Visit) -> dict[str, str | None]:
    return {name: visit.parameter(name) for name in FILTERS}


def _listed(visit: Visit, filters: Mapping[str, str | None], *, cursor: str | None, limit: int) -> Document:
    return visit.ask(
        LIST_TENANTS,
        state=filters["state"],
        version=filters["version"],
        tier=filters["tier"],
        label=filters["label"],
        prefix=filters["prefix"],
        pinned={"true": True, "false": False}.get(filters["pinned"] or ""),
        cursor=cursor,
        limit=limit,
    )


def _options(filters: Mapping[str, str | None]) -> list[tuple[str, str | None]]:
    """The options of a command that selects the same tenants."""
    options: list[tuple[str, str | None]] = [
        (f"--{name}", value) for name, value in filters.items() if value and name not in ("label", "pinned")
    ]
    options += [("--label", label) for label in (filters["label"] or "").split(",") if label]
    if filters["pinned"]:
        options.append(("--pinned" if filters["pinned"] == "true" else "--not-pinned", None))
    return options


# Actions


def _create(visit: Visit) -> Action:
    releases = [release for release in visit.ask(LIST_RELEASES)["releases"] if not release["withdrawn"]]
    tiers = sorted({release["tier"] for release in releases})

    def send(visit: Visit, fields: Mapping[str, str]) -> Done:
        name = TenantId.parse(fields.get("tenant", "")).value
        labels = [part.strip() for part in fields.get("labels", "").split(",") if part.strip()]
        answer = visit.ask(
            CREATE_TENANT,
            tenantId=name,
            tier=fields.get("tier") or None,
            version=fields.get("version") or None,
            labels=labels_of(labels, hint="Labels") or None,
            reason=reason_in(fields),
        )
        return Done(f"{name}: {outcome(answer)}", f"/tenants/{segment(name)}")

    return Action(
        "Create a tenant",
        NextStep("create", "Create a tenant", "berth create TENANT"),
        "The tenant gets a queue of its own. If the tenant exists already, only its pin and its labels are changed.",
        send,
        "/tenants",
        fields=(
            Field("tenant", "Id", required=True, longest=40, hint="1 to 40 letters, digits and inner dashes."),
            Field(
                "tier", "Tier", "choice", choices=("", *tiers), names={"": "that of the release, else the default one"}
            ),
            Field(
                "version",
                "Release",
                "choice",
                choices=("", *(release["version"] for release in releases)),
                names={"": "the current one"},
                hint="A release that is chosen here is also the tenant's pin.",
            ),
            Field("labels", "Labels", longest=2_000, hint="plan=gold, several with commas"),
            REASON,
        ),
    )


def _retry_all(visit: Visit) -> Action:
    """The retry of all tenants of a list. The list's filters are in the address, and each form states their number."""
    filters = _filters(visit)
    found = _listed(visit, filters, cursor=None, limit=MAX_RETRIED)
    names = [each["tenantId"] for each in found["tenants"]]
    refusal = _why_no_retry(filters)
    if refusal is None and found["cursor"]:
        refusal = f"More than {MAX_RETRIED} tenants may match. Use narrower filters, or {_retry_command(filters)}"
    elif refusal is None and not names:
        refusal = "No tenant matches."

    def send(visit: Visit, fields: Mapping[str, str]) -> Done:
        return Done(_retried(visit, names, reason_in(fields)), address("/tenants", **filters))

    selected = ", ".join(f"{name} {value}" for name, value in filters.items() if value)
    return Action(
        "Retry what failed",
        NextStep("retry", "Retry what failed", _retry_command(filters), refusal),
        f"The latest operation of {render.counted(len(names), 'tenant')} is repeated with the same options.\n"
        f"Selected: {selected or 'all tenants'}.",
        send,
        address("/tenants", **filters),
        names,
        typed=str(len(names)),
        typed_is="the number of tenants",
    )


def _why_no_retry(filters: Mapping[str, str | None]) -> str | None:
    if filters["state"] not in _RETRIED:
        return f"Choose the tenants by a state first: {' or '.join(_RETRIED)}."
    if filters["prefix"]:
        return "Remove the filter by the beginning of the id: berth retry has none."
    return None


def _retried(visit: Visit, names: Sequence[str], reason: str | None) -> str:
    """Retries each tenant, and says how many were started and why the others were not."""
    refused = []
    for name in names:
        try:
            visit.ask(RETRY_TENANT, tenantId=name, reason=reason)
        except ApiProblem as error:
            refused.append(f"{name}: {error}")
    started = f"{render.counted(len(names) - len(refused), 'operation was', 'operations were')} started."
    return " ".join([started, *refused])


def _retry_command(filters: Mapping[str, str | None]) -> str:
    return command_of("berth retry", _options(filters))


def routes(console: Console) -> list[Route]:
    return [
        page(console, "/tenants", tenants),
        page(console, "/go", go),
        *action_routes(console, "/tenants/do/create", _create),
        *action_routes(console, "/tenants/do/retry", _retry_all),
    ]
