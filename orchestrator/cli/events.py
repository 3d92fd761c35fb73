"""`berth events`: the event settings of a tenant, its events and their usage, and the purges of deleted tenants."""

from __future__ import annotations

from typing import Annotated

import typer

from orchestrator.api.event_change_routes import LIST_CHANGES, MAX_PAGE_SIZE, ListChanges
from orchestrator.api.event_configuration_models import (
    ChangeSettings,
    NoParameters,
)
from orchestrator.api.event_configuration_routes import (
    GET_SETTINGS,
    PUT_SETTINGS,
)
from orchestrator.api.event_usage_routes import GET_USAGE, LIST_PURGES, GetUsage
from orchestrator.api.fields import or_unset
from orchestrator.cli import event_reads, event_sending, render
from orchestrator.cli.api import Document
from orchestrator.cli.events_api import ask, ask_for
from orchestrator.cli.invocation import Invocation, Json, Tenant, one_of
from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.plans import Plan

_SETTINGS_EXAMPLES = """\
[bold]Examples[/]
  berth events settings acme                   show the settings of acme
  berth events settings acme --plan free       accept events for acme
  berth events settings acme --plan pro --no-type-index --name "Acme Ltd"

[bold]Plans[/]
  free       24 hours      10,000 events per month     10 per second
  starter     7 days      100,000 events per month     50 per second
  pro        30 days    2,000,000 events per month  1,000 per second
  team       90 days   20,000,000 events per month  2,000 per second
"""

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")


@app.callback()
def events() -> None:
    """Read the events of tenants and their usage, and change their event settings.

    See also berth inbox, berth keys, berth sources and berth forms.
    """


app.command(name="list", epilog=event_reads.LIST_EXAMPLES)(event_reads.list_events)
app.command(epilog=event_reads.SHOW_EXAMPLES)(event_reads.show)
app.command(epilog=event_reads.TAIL_EXAMPLES)(event_reads.tail)
app.command(epilog=event_sending.EXAMPLES)(event_sending.send)


@app.command(epilog=_SETTINGS_EXAMPLES)
def settings(
    context: typer.Context,
    tenant: Tenant,
    plan: Annotated[
        Plan | None,
        typer.Option(parser=one_of(Plan), metavar=f"<{'|'.join(Plan)}>", help="The plan of the tenant."),
    ] = None,
    inbox: Annotated[
        bool | None,
        typer.Option(
            "--inbox/--no-inbox",
            help="Keep events in an inbox until the tenant acknowledges them. This costs additional writes.",
        ),
    ] = None,
    type_index: Annotated[
        bool | None,
        typer.Option(
            "--type-index/--no-type-index", help="List events by type. This costs an additional write per event."
        ),
    ] = None,
    name: Annotated[str | None, typer.Option(metavar="TEXT", help="A display name.", show_default=False)] = None,
    as_json: Json = False,
) -> None:
    """Show or change the event settings of a tenant.

    A tenant accepts events once it has settings. Any option creates them.
    The defaults are the plan free, with inbox and with index by type.
    Inbox and index hold the events that come in while they are on.
    """
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        tenant_id, control_plane = TenantId.parse(tenant), here.find()
        if (plan, inbox, type_index, name) == (None, None, None, None):
            shown = ask_for(here, control_plane, tenant_id, GET_SETTINGS, NoParameters())
        else:
            change = ChangeSettings(
                tenant_id=tenant_id.value,
                plan=or_unset(plan),
                inbox=or_unset(inbox),
                type_index=or_unset(type_index),
                tenant_name=or_unset(name),
            )
            shown = ask(here, control_plane, PUT_SETTINGS, change)
        if as_json:
            render.show_json(shown)
        else:
            _show(shown)
            render.note(f"Make an API key: berth keys create {tenant_id} --name NAME --scope write")


@app.command()
def usage(
    context: typer.Context,
    tenant: Tenant,
    month: Annotated[
        str | None, typer.Option(metavar="YYYY-MM", help="The month. Default: the current one.", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """Show how many events a tenant had in a month.

    The count that the limit is checked against follows within seconds. The
    billed figure is exact; it is counted once an hour is over.
    """
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        tenant_id, control_plane = TenantId.parse(tenant), here.find()
        shown = ask_for(here, control_plane, tenant_id, GET_USAGE, GetUsage(month=or_unset(month)))
        if as_json:
            render.show_json(shown)
            return
        until = shown["billed_until"]
        render.show_pairs(
            {
                "tenant": shown["tenant_id"],
                "month": shown["month"],
                "events": f"{shown['events']:,} of {shown['events_per_month']:,} (plan {shown['plan']})",
                "billed": f"{shown['billed']:,}"
                + (f", counted until {render.moment(until)}" if until else ", no hour is counted yet"),
            }
        )


@app.command()
def history(
    context: typer.Context,
    tenant: Tenant,
    limit: Annotated[
        int, typer.Option(min=1, max=MAX_PAGE_SIZE, help="How many changes to show, the newest first.")
    ] = 50,
    as_json: Json = False,
) -> None:
    """Show who changed a tenant's event settings, API keys, sources and forms.

    Changes are kept for 400 days, and end with the tenant. The history of the
    tenant itself is in berth tenant.
    """
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        tenant_id, control_plane = TenantId.parse(tenant), here.find()
        listed = ask_for(here, control_plane, tenant_id, LIST_CHANGES, ListChanges(limit=limit))
        if as_json:
            render.show_json(listed)
        elif not listed["changes"]:
            render.show_line(f"No change of tenant {tenant_id} is on record.")
        for change in [] if as_json else listed["changes"]:
            _show_change(change)


def _show_change(change: Document) -> None:
    subject = f" {change['subject']}" if change["subject"] else ""
    render.show_line(f"{render.moment(change['changed_at'])}  {change['kind']}{subject}  by {change['changed_by']}")
    for line in changed(change):
        render.show_line(f"  {line}")


def changed(change: Document) -> list[str]:
    """The values that a change of the configuration has changed, one per line."""
    before, after = change["before"], change["after"]
    lines = []
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        shown = new if old in (None, new) else f"{old} -> {new if new is not None else 'nothing'}"
        if shown:
            lines.append(f"{name}: {shown}")
    return lines


@app.command()
def purges(context: typer.Context, as_json: Json = False) -> None:
    """Show the purges of deleted tenants: the open ones, and the last that were finished.

    A deleted tenant's keys, sources, forms, events and contents are deleted
    within the hour after the delete. A purge that fails is started again hourly.
    """
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        listed = ask(here, here.find(), LIST_PURGES, NoParameters())
        if as_json:
            render.show_json(listed)
        elif not listed["purges"]:
            render.show_line("There are no purges.")
        for purge in [] if as_json else listed["purges"]:
            _show_purge(purge)
        if not as_json and any(purge["status"] == "running" for purge in listed["purges"]):
            render.note(
                "A purge ends once nothing more was found for 15 minutes, unless the deployment sets another time."
            )


def _show_purge(purge: Document) -> None:
    deleted = ", ".join(
        f"{purge[f'deleted_{name}']:,} {name}" for name in ("events", "objects", "rows") if purge[f"deleted_{name}"]
    )
    status = f"{purge['status']}, stuck" if purge["stuck"] else purge["status"]
    line = f"{purge['tenant_id']}  {status}  requested {render.moment(purge['requested_at'])}"
    finished = f"  finished {render.moment(purge['finished_at'])}" if purge["finished_at"] else ""
    nothing = "nothing" if finished else "nothing yet"
    render.show_line(f"{line}{finished}  deleted {deleted or nothing}")
    if purge["failure"]:
        render.show_line(f"  {purge['failure']}")


def days(hours: int) -> str:
    """The retention in the words of the table of plans."""
    return f"{hours // 24} days" if hours > 24 and hours % 24 == 0 else f"{hours} hours"


def _show(settings: Document) -> None:
    render.show_pairs(
        {
            "tenant": settings["tenant_id"],
            "name": settings["tenant_name"] or None,
            "plan": settings["plan"],
            "retention": days(settings["retention_hours"]),
            "limits": f"{settings['events_per_month']:,} events per month, "
            f"{settings['events_per_second']:,} events per second",
            "shards": str(settings["shards"]),
            "inbox": "on" if settings["inbox"] else "off",
            "type index": "on" if settings["type_index"] else "off",
            "updated": render.moment(settings["updated_at"]),
        }
    )
