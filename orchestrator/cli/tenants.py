"""`berth tenants`: lists the tenants, page by page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer
from rich.text import Text

from orchestrator.cli import render, selection
from orchestrator.cli.api import Document
from orchestrator.cli.invocation import Invocation, Json, one_of
from orchestrator.cli.selection import Selection
from orchestrator.common.tiers import STANDARD
from orchestrator.tenants.fleet import PAGE_SIZE
from orchestrator.tenants.records import TenantState


class Output(StrEnum):
    TABLE = "table"
    WIDE = "wide"
    NAME = "name"
    JSON = "json"


def tenants(
    context: typer.Context,
    state: selection.State = None,
    version: selection.Version = None,
    label: selection.Labels = None,
    pinned: selection.Pinned = None,
    tier: selection.Tier = None,
    prefix: selection.Prefix = None,
    limit: Annotated[
        int | None,
        typer.Option(metavar="NUMBER", min=1, help=f"The maximum number of tenants to list. Default: {PAGE_SIZE}."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="List all tenants.")] = False,
    cursor: Annotated[
        str | None, typer.Option(metavar="CURSOR", help="Continue where a list with the same filters ended.")
    ] = None,
    output: Annotated[
        Output | None,
        typer.Option(
            "--output",
            "-o",
            parser=one_of(Output),
            metavar="FORMAT",
            help=f"One of {', '.join(Output)}. name prints ids only, one per line.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the tenants, with their tiers, pins and labels.

    Deleted tenants are listed only with --state DELETED, and stacks that are kept
    ready for new tenants only with --prefix berth-warm-.
    """
    if every and limit:
        raise typer.BadParameter("cannot be combined with --all.", param_hint="'--limit'")
    if as_json and output not in (None, Output.JSON):
        raise typer.BadParameter("cannot be combined with --output.", param_hint="'--json'")
    shown = Output.JSON if as_json else output or Output.TABLE
    selected = Selection.of(state, version, label, pinned, tier, prefix)
    here: Invocation = context.obj
    with here.reporting_errors(as_json=shown is Output.JSON):
        api = here.connect()
        with here.retrying() as retrying:
            wanted = None if every else limit or PAGE_SIZE
            found, cursor = selected.find(api, retrying, wanted=wanted, cursor=cursor)
        if shown is Output.JSON:
            render.show_json({"tenants": found, "cursor": cursor})
        elif shown is Output.NAME:
            for tenant in found:
                render.show_line(tenant["tenantId"])
        else:
            _show(found, filtered=bool(selected), wide=shown is Output.WIDE)
        if cursor and shown is not Output.JSON:
            render.note(f"There are more tenants. List all: --all. Or continue from here: --cursor {cursor}")


def _show(found: Sequence[Document], *, filtered: bool, wide: bool) -> None:
    if found:
        _show_list(found, wide=wide)
    elif filtered:
        render.show_line("No tenant matches. See all tenants: berth tenants")
    else:
        render.show_line("There are no tenants yet. Create one: berth create TENANT --wait")


def _show_list(found: Sequence[Document], *, wide: bool) -> None:
    # A fleet of one tier, as most are, needs no column for it.
    has_tiers = wide or any(tenant["tier"] not in (None, STANDARD) for tenant in found)
    has_pins = wide or any(tenant["pinnedVersion"] for tenant in found)
    has_labels = wide or any(tenant["labels"] for tenant in found)
    headings = [
        *("Tenant", "State", "Version"),
        *(["Tier"] if has_tiers else []),
        *(["Pin"] if has_pins else []),
        "Updated (UTC)",
        *(["Labels"] if has_labels else []),
        *(["Queue"] if wide else []),
    ]
    table = render.columns(*headings)
    for tenant in found:
        table.add_row(
            *(tenant["tenantId"], render.state(tenant["state"]), tenant["version"] or ""),
            *([tenant.get("tier") or ""] if has_tiers else []),
            *([tenant["pinnedVersion"] or ""] if has_pins else []),
            render.moment(tenant["updatedAt"], "%Y-%m-%d %H:%M") if tenant["updatedAt"] else "",
            *([Text(render.labels(tenant["labels"]))] if has_labels else []),
            *([tenant["queueUrl"] or ""] if wide else []),
        )
    render.show_table(table, wide=wide)
    counts = Counter(tenant["state"] for tenant in found)
    by_state = ", ".join(f"{count} {state}" for state, count in counts.items())
    render.show_line(f"\n{render.counted(len(found), 'tenant')}: {by_state}")
    for tenant in found:
        if cause := render.root_cause(tenant):
            render.show_line(Text.assemble((f"{tenant['tenantId']}: ", "bold"), cause))
    for state in (TenantState.UPDATE_FAILED, TenantState.FAILED):
        if counts[state]:
            render.note(f"Retry what is {state}: berth retry TENANT, or all: berth retry --state {state}")
