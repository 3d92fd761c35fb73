"""`berth inbox`: the events that a tenant has not acknowledged yet."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from orchestrator.api.event_read_routes import ACKNOWLEDGE, READ_INBOX, AcknowledgeEvents, ReadInbox
from orchestrator.api.fields import or_unset
from orchestrator.cli import event_view, render
from orchestrator.cli.api import Document
from orchestrator.cli.errors import ExitCode
from orchestrator.cli.event_reads import PAGE_SIZE
from orchestrator.cli.event_types import EventType
from orchestrator.cli.events_api import ask_for
from orchestrator.cli.invocation import Invocation, Json, Tenant
from orchestrator.common.errors import InvalidRequest
from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.event_ids import parse_event_id
from orchestrator.events.inbox import MAX_ACKNOWLEDGED, MAX_PAGE_SIZE, Acknowledged

_EXAMPLES = """\
[bold]Examples[/]
  berth inbox acme                          the oldest undelivered events
  berth inbox acme --type order.created --json
  berth inbox ack acme EVENT_ID EVENT_ID    these events are handled
  berth inbox acme --json | jq -r '.events\\[].event_id' | berth inbox ack acme -
"""
_READ = "read"


class ReadByDefault(TyperGroup):
    """`berth inbox acme` means `berth inbox read acme`."""

    # Any: the type of a context is private to typer.
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, "--help"):
            args = [_READ, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=ReadByDefault, no_args_is_help=True, rich_markup_mode="rich", epilog=_EXAMPLES)


@app.callback()
def inbox() -> None:
    """The inbox of a tenant: events that wait until they are acknowledged.

    berth inbox TENANT reads it. Reading changes nothing.
    """


@app.command(name=_READ, epilog=_EXAMPLES)
def read(
    context: typer.Context,
    tenant: Tenant,
    event_type: EventType = None,
    limit: Annotated[
        int, typer.Option(metavar="NUMBER", min=1, help="The maximum number of events to read.")
    ] = PAGE_SIZE,
    as_json: Json = False,
) -> None:
    """Read the undelivered events of a tenant, oldest first. --json includes their payloads.

    Events stay in the inbox until they are acknowledged, or until they expire.
    """
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        tenant_id, control_plane = TenantId.parse(tenant), here.find()
        found: list[Document] = []
        cursor: str | None = None
        while len(found) < limit:
            request = ReadInbox(
                event_type=or_unset(event_type),
                cursor=or_unset(cursor),
                limit=min(limit - len(found), MAX_PAGE_SIZE),
            )
            page = ask_for(here, control_plane, tenant_id, READ_INBOX, request)
            found += page["events"]
            cursor = page["cursor"]
            if cursor is None:
                break
        if as_json:
            render.show_json({"events": found, "cursor": cursor})
        elif found:
            event_view.show_list(found)
            more = " There are more." if cursor else ""
            render.note(f"Acknowledge those that are handled: berth inbox ack {tenant_id} EVENT_ID...{more}")
        else:
            render.show_line(f"The inbox of tenant {tenant_id} has no {'such events' if event_type else 'events'}.")


@app.command(epilog=_EXAMPLES)
def ack(
    context: typer.Context,
    tenant: Tenant,
    event_ids: Annotated[
        list[str],
        typer.Argument(
            metavar="EVENT_ID...",
            help="The ids of the events, or - to read them from standard input.",
            show_default=False,
        ),
    ],
    as_json: Json = False,
) -> None:
    """Acknowledge events: they count as delivered, and leave the inbox.

    To acknowledge an event again changes nothing.
    """
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        tenant_id = TenantId.parse(tenant)
        given = sys.stdin.read().split() if event_ids == ["-"] else event_ids
        ids = list(dict.fromkeys(map(parse_event_id, given)))
        if not ids:
            raise InvalidRequest("There is no event id in standard input.")
        control_plane = here.find()
        results: list[Document] = []
        for start in range(0, len(ids), MAX_ACKNOWLEDGED):
            request = AcknowledgeEvents(event_ids=ids[start : start + MAX_ACKNOWLEDGED])
            results += ask_for(here, control_plane, tenant_id, ACKNOWLEDGE, request)["results"]
    unknown = [each["event_id"] for each in results if each["result"] == Acknowledged.UNKNOWN]
    if as_json:
        render.show_json({"results": results})
    else:
        render.show_line(f"{render.counted(len(results) - len(unknown), 'event')} of tenant {tenant_id} acknowledged.")
    if unknown:
        render.complain(f"Tenant {tenant_id} has no such events, or they have expired: {', '.join(unknown)}")
        raise typer.Exit(ExitCode.GONE)
