"""`berth tenants`: lists the tenants, page by page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Annotated

import typer
from rich.text import Text

from orchestrator.api.fields import or_unset
from orchestrator.api.tenant_models import MAX_PAGE_SIZE, ListTenants
from orchestrator.api.tenant_routes import LIST_TENANTS
from orchestrator.cli import render
from orchestrator.cli.api import Document
from orchestrator.cli.invocation import Invocation, Json, one_of
from orchestrator.cli.problems import problem
from orchestrator.tenants.fleet import PAGE_SIZE
from orchestrator.tenants.records import TenantState

_FOUND = 200
_STATES = ", ".join(TenantState)


def tenants(
    context: typer.Context,
    state: Annotated[
        TenantState | None,
        typer.Option(parser=one_of(TenantState), metavar="STATE", help=f"Only tenants in this state: {_STATES}."),
    ] = None,
    version: Annotated[str | None, typer.Option(metavar="VERSION", help="Only tenants at this version.")] = None,
    limit: Annotated[
        int | None,
        typer.Option(metavar="NUMBER", min=1, help=f"The maximum number of tenants to list. Default: {PAGE_SIZE}."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="List all tenants.")] = False,
    cursor: Annotated[
        str | None, typer.Option(metavar="CURSOR", help="Continue where a list with the same filters ended.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the tenants.

    Deleted tenants are listed only with --state DELETED.
    """
    if every and limit:
        raise typer.BadParameter("cannot be combined with --all.", param_hint="'--limit'")
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        api = here.connect()
        found: list[Document] = []
        wanted = None if every else limit or PAGE_SIZE
        with here.retrying() as retrying:
            while wanted is None or len(found) < wanted:
                page = MAX_PAGE_SIZE if wanted is None else min(wanted - len(found), MAX_PAGE_SIZE)
                answer = retrying(
                    partial(
                        api.send_request,
                        LIST_TENANTS,
                        ListTenants(
                            state=or_unset(state), version=or_unset(version), cursor=or_unset(cursor), limit=page
                        ),
                    )
                )
                if answer.status != _FOUND:
                    raise problem(answer)
                found += answer.body["tenants"]
                cursor = answer.body["cursor"]
                if cursor is None:
                    break
        if as_json:
            render.show_json({"tenants": found, "cursor": cursor})
        else:
            _show(found, filtered=bool(state or version), cursor=cursor)


def _show(found: Sequence[Document], *, filtered: bool, cursor: str | None) -> None:
    if found:
        _show_list(found)
    elif filtered:
        render.show_line("No tenant matches. See all tenants: berth tenants")
    else:
        render.show_line("There are no tenants yet. Create one: berth create TENANT --wait")
    if cursor:
        render.note(f"There are more tenants. List all: --all. Or continue from here: --cursor {cursor}")


def _show_list(found: Sequence[Document]) -> None:
    table = render.columns("Tenant", "State", "Version", "Updated (UTC)")
    for tenant in found:
        updated = render.moment(tenant["updatedAt"], "%Y-%m-%d %H:%M") if tenant["updatedAt"] else ""
        table.add_row(tenant["tenantId"], render.state(tenant["state"]), tenant["version"] or "", updated)
    render.stdout().print(table)
    counts = Counter(tenant["state"] for tenant in found)
    by_state = ", ".join(f"{count} {state}" for state, count in counts.items())
    render.show_line(f"\n{render.counted(len(found), 'tenant')}: {by_state}")
    for tenant in found:
        if cause := render.root_cause(tenant):
            render.show_line(Text.assemble((f"{tenant['tenantId']}: ", "bold"), cause))
