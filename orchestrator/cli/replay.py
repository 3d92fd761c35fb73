"""`berth replay`: sends the events of a time again, and shows how far that has come."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.text import Text
from typer.core import TyperGroup

from orchestrator.api.delivery_routes import (
    CANCEL_REPLAY,
    GET_REPLAY,
    LIST_REPLAYS,
    PAUSE_REPLAY,
    RESUME_REPLAY,
    START_REPLAY,
    ListReplays,
    OfReplay,
    StartReplay,
)
from orchestrator.api.fields import or_unset
from orchestrator.api.route import Route
from orchestrator.cli import render
from orchestrator.cli.api import Document
from orchestrator.cli.control_plane import ControlPlane
from orchestrator.cli.errors import ExitCode
from orchestrator.cli.event_reads import TIME_HELP, time_of_option
from orchestrator.cli.events_api import ask_for
from orchestrator.cli.interrupts import noting_an_interrupt
from orchestrator.cli.invocation import NOT_ASKED, Invocation, Json, Tenant
from orchestrator.common.errors import InvalidRequest
from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.delivery.history import MAX_PAGE_SIZE
from orchestrator.events.resource_ids import IdPrefix, parse_resource_id

_EXAMPLES = """\
[bold]Examples[/]
  berth replay acme --connection CONNECTION_ID --since 2h
      What the connection has missed in the last two hours
  berth replay acme --connection CONNECTION_ID --since 7d --only-failed
      What has failed in the last week
  berth replay acme --from SOURCE_ID \\
      --since 2026-11-17T08:00:00Z --until 2026-11-17T09:00:00Z
      To all connections of a source
  berth replay acme --connection CONNECTION_ID --since 1h --include-delivered
      Everything, also what it has received
  berth replay list acme
  berth replay show acme REPLAY_ID --follow
  berth replay pause acme REPLAY_ID
"""
FOLLOW_SECONDS = 5
_START = "start"
_EXIT_CODES = {"finished": ExitCode.OK, "cancelled": ExitCode.FAILED, "paused": ExitCode.ATTENTION}
"""The exit code after a replay was followed until it stood still, by the replay's status."""


class StartByDefault(TyperGroup):
    """`berth replay acme ...` means `berth replay start acme ...`."""

    # Any: the type of a context is private to typer.
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, "--help"):
            args = [_START, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=StartByDefault, no_args_is_help=True, rich_markup_mode="rich", epilog=_EXAMPLES)

ReplayId = Annotated[
    str, typer.Argument(metavar="REPLAY_ID", help="The replay's id: see berth replay list.", show_default=False)
]
Follow = Annotated[bool, typer.Option("--follow", help="Show the progress until the replay has ended.")]


@app.callback()
def replay() -> None:
    """Send the events of a time again, to one connection or to all connections of an origin.

    berth replay TENANT starts a replay. One event: see berth resend.
    """


@app.command(name=_START, epilog=_EXAMPLES)
def start(
    context: typer.Context,
    tenant: Tenant,
    since: Annotated[
        str, typer.Option(metavar="TIME", help=f"Events from this time on. {TIME_HELP}", show_default=False)
    ],
    connection: Annotated[
        str | None, typer.Option(metavar="CONNECTION_ID", help="Send to this connection.", show_default=False)
    ] = None,
    origin: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="ORIGIN",
            help="Send to all connections of this origin: api, a source's id or a form's id.",
            show_default=False,
        ),
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="Events before this time. Default: now.", show_default=False)
    ] = None,
    only_failed: Annotated[
        bool, typer.Option("--only-failed", help="Only what failed, and nothing that was never sent.")
    ] = False,
    include_delivered: Annotated[
        bool, typer.Option("--include-delivered", help="Also what the connection has received: it gets it twice.")
    ] = False,
    follow: Follow = False,
    yes: Annotated[
        bool, typer.Option("--yes", help=f"Do not ask for confirmation of --include-delivered. {NOT_ASKED}")
    ] = False,
    as_json: Json = False,
) -> None:
    """Send events of a time again: what failed, and what a connection wants and was never sent.

    What a connection has received is sent again only with --include-delivered.
    The replay begins within a minute, and sends up to 5,000 events per minute.
    """
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        tenant_id, now = TenantId.parse(tenant), here.world.now()
        if (connection is None) == (origin is None):
            raise InvalidRequest("Use either --connection or --from.")
        request = StartReplay(
            connection_id=or_unset(parse_resource_id(IdPrefix.CONNECTION, connection) if connection else None),
            origin=or_unset(origin),
            since=time_of_option("--since", since, now) or since,
            until=or_unset(time_of_option("--until", until, now)),
            include_delivered=include_delivered,
            only_failed=only_failed,
        )
        if not yes and (warning := START_REPLAY.warning(request)):
            here.confirm(f"Tenant {tenant_id}: {warning}")
        control_plane = here.find()
        started = ask_for(here, control_plane, tenant_id, START_REPLAY, request)
        if follow:
            started = _follow(here, control_plane, tenant_id, started, as_json=as_json)
        else:
            _show(started, as_json=as_json)
            render.note(f"How far it has come: berth replay show {tenant_id} {started['replay_id']} --follow")
    if follow:
        raise typer.Exit(_EXIT_CODES[started["status"]])


@app.command(name="list")
def list_replays(
    context: typer.Context,
    tenant: Tenant,
    limit: Annotated[int, typer.Option(min=1, max=MAX_PAGE_SIZE, help="How many to show, the newest first.")] = 20,
    as_json: Json = False,
) -> None:
    """List the replays of a tenant, newest first. They are kept for 90 days."""
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        tenant_id = TenantId.parse(tenant)
        listed = ask_for(here, here.find(), tenant_id, LIST_REPLAYS, ListReplays(limit=limit))
        if as_json:
            render.show_json(listed)
        elif not listed["replays"]:
            render.show_line(f"Tenant {tenant_id} has no replays.")
        for each in [] if as_json else listed["replays"]:
            render.show_line(_line(each))


@app.command()
def show(
    context: typer.Context, tenant: Tenant, replay_id: ReplayId, follow: Follow = False, as_json: Json = False
) -> None:
    """Show a replay with its progress."""
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        tenant_id, request, control_plane = TenantId.parse(tenant), _of(replay_id), here.find()
        found = ask_for(here, control_plane, tenant_id, GET_REPLAY, request)
        if follow:
            found = _follow(here, control_plane, tenant_id, found, as_json=as_json)
        else:
            _show(found, as_json=as_json)
    if follow:
        raise typer.Exit(_EXIT_CODES[found["status"]])


@app.command()
def pause(context: typer.Context, tenant: Tenant, replay_id: ReplayId, as_json: Json = False) -> None:
    """Pause a replay. It stays where it is until it is resumed."""
    _order(context, tenant, replay_id, PAUSE_REPLAY, as_json=as_json)


@app.command()
def resume(context: typer.Context, tenant: Tenant, replay_id: ReplayId, as_json: Json = False) -> None:
    """Let a paused replay go on, within a minute."""
    _order(context, tenant, replay_id, RESUME_REPLAY, as_json=as_json)


@app.command()
def cancel(context: typer.Context, tenant: Tenant, replay_id: ReplayId, as_json: Json = False) -> None:
    """Cancel a replay. What it has sent so far stays sent."""
    _order(context, tenant, replay_id, CANCEL_REPLAY, as_json=as_json)


def _order(context: typer.Context, tenant: str, replay_id: str, route: Route[OfReplay, Any], *, as_json: bool) -> None:
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        tenant_id, request = TenantId.parse(tenant), _of(replay_id)
        _show(ask_for(here, here.find(), tenant_id, route, request), as_json=as_json)


def _of(replay_id: str) -> OfReplay:
    return OfReplay(replay_id=parse_resource_id(IdPrefix.REPLAY, replay_id))


def _follow(
    here: Invocation, control_plane: ControlPlane, tenant: TenantId, replay: Document, *, as_json: bool
) -> Document:
    """Show every change until the replay stands still. Returns the replay as it is then."""
    request = OfReplay(replay_id=replay["replay_id"])
    last: Document | None = None
    stays = f"No longer watching. The replay goes on. See: berth replay show {tenant} {replay['replay_id']}"
    with noting_an_interrupt(stays):
        while True:
            if replay != last and not as_json:
                render.show_line(_line(replay))
            if replay["status"] != "running":
                break
            last = replay
            here.world.sleep(FOLLOW_SECONDS)
            replay = ask_for(here, control_plane, tenant, GET_REPLAY, request)
    if as_json:
        render.show_json(replay)
    elif replay["reason"]:
        render.complain(replay["reason"])
    return replay


def _show(replay: Document, *, as_json: bool) -> None:
    if as_json:
        render.show_json(replay)
        return
    ended = replay["ended_at"]
    render.show_pairs(
        {
            "replay id": replay["replay_id"],
            "tenant": replay["tenant_id"],
            "to": replay["connection_id"] or f"all connections of {replay['origin']}",
            "events": f"{render.moment(replay['since'])} to {render.moment(replay['until'])}",
            "sends": sends(replay),
            "status": render.state(replay["status"]),
            "reason": replay["reason"],
            "progress": progress(replay),
            "started": f"{render.moment(replay['created_at'])} by {render.who(replay['created_by'])}",
            "ended": render.moment(ended) if ended else None,
        }
    )


def _line(replay: Document) -> Text:
    status = render.state(replay["status"])
    status.pad_right(len("cancelled") - len(status))
    to = replay["connection_id"] or replay["origin"]
    return Text(f"{replay['replay_id']} ") + status + Text(f" {progress(replay)}, to {to}")


def progress(replay: Document) -> str:
    """How far a replay has come."""
    looked_at = render.counted(replay["looked_at"], "event")
    return f"{replay['percent']} %: {looked_at} looked at, {replay['sent']:,} sent, {replay['skipped']:,} skipped"


def sends(replay: Document) -> str:
    """The deliveries that a replay sends, in words."""
    if replay["only_failed"]:
        return "only what failed"
    return "everything, also what was delivered" if replay["include_delivered"] else "what failed or was never sent"
