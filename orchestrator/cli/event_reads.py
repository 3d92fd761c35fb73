"""`berth events list`, `show` and `tail`: the events of a tenant."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Annotated

import msgspec
import typer

from orchestrator.api.event_read_routes import GET_EVENT, LIST_EVENTS, ListEvents, OfEvent, PayloadAs
from orchestrator.api.fields import or_unset
from orchestrator.cli import event_view, render
from orchestrator.cli.api import Document
from orchestrator.cli.control_plane import ControlPlane
from orchestrator.cli.event_types import EventType
from orchestrator.cli.events_api import ask_for
from orchestrator.cli.invocation import Invocation, Json, Tenant
from orchestrator.common.errors import InvalidRequest
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import parse_timestamp
from orchestrator.events.event_ids import event_timestamp, parse_event_id
from orchestrator.events.listing import MAX_PAGE_SIZE, Kind
from orchestrator.events.statuses import UNDELIVERED, EventStatus

LIST_EXAMPLES = """\
[bold]Examples[/]
  berth events list acme                               the newest events
  berth events list acme --since 2h --type order.created
  berth events list acme --status failed --all --json
  berth events list acme --submissions                 the submissions of forms
"""
SHOW_EXAMPLES = """\
[bold]Examples[/]
  berth events show acme EVENT_ID                  the event with its payload
  berth events show acme EVENT_ID --raw > payload  the payload, byte for byte
"""
TAIL_EXAMPLES = """\
[bold]Examples[/]
  berth events tail acme                               until Ctrl-C
  berth events tail acme --type order.created --json   a line of JSON per event
  berth events tail acme --submissions                 the submissions of forms
"""
PAGE_SIZE = 50
POLL_SECONDS = 2
FIRST_EVENTS = 10
"""The number of events with which `tail` begins."""
LATE = timedelta(seconds=10)
"""How much later an event may become visible than one with a later timestamp."""

_AGO = re.compile(r"(\d{1,6})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
TIME_HELP = "ISO 8601, or how long ago: 30m, 2h, 7d."

EventIdArgument = Annotated[
    str, typer.Argument(metavar="EVENT_ID", help="The event's id: see berth events list.", show_default=False)
]


def list_events(
    context: typer.Context,
    tenant: Tenant,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help=f"Only events from this time on. {TIME_HELP}", show_default=False)
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only events before this time.", show_default=False)
    ] = None,
    event_type: EventType = None,
    status: Annotated[
        str | None,
        typer.Option(
            metavar="STATUS",
            help=f"Only events with this status: {UNDELIVERED}, {', '.join(EventStatus)}.",
            show_default=False,
        ),
    ] = None,
    source: Annotated[
        str | None, typer.Option(metavar="SOURCE_ID", help="Only webhooks of this source.", show_default=False)
    ] = None,
    form: Annotated[
        str | None, typer.Option(metavar="FORM_ID", help="Only submissions of this form.", show_default=False)
    ] = None,
    submissions: Annotated[
        bool, typer.Option("--submissions", help="List the submissions of all forms instead of the other events.")
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option(metavar="NUMBER", min=1, help=f"The maximum number of events to list. Default: {PAGE_SIZE}."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="List all events.")] = False,
    cursor: Annotated[
        str | None, typer.Option(metavar="CURSOR", help="Continue where a list with the same filters ended.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the events of a tenant, newest first.

    Use at most one of --type, --source and --form. Events that wait in the inbox
    are undelivered, whatever their deliveries do: see berth attempts.
    """
    if every and limit:
        raise typer.BadParameter("cannot be combined with --all.", param_hint="'--limit'")
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        tenant_id, now = TenantId.parse(tenant), here.world.now()
        first, end = time_of_option("--since", since, now), time_of_option("--until", until, now)
        if first and end and _moment(first) >= _moment(end):
            raise InvalidRequest("--since is not before --until, so no event can be found.")
        wanted = ListEvents(
            kind=Kind.SUBMISSIONS if submissions else Kind.EVENTS,
            since=or_unset(first),
            until=or_unset(end),
            event_type=or_unset(event_type),
            status=or_unset(status),
            source_id=or_unset(source),
            form_id=or_unset(form),
        )
        control_plane = here.find()
        found: list[Document] = []
        number = None if every else limit or PAGE_SIZE
        while number is None or len(found) < number:
            size = MAX_PAGE_SIZE if number is None else min(number - len(found), MAX_PAGE_SIZE)
            request = msgspec.structs.replace(wanted, cursor=or_unset(cursor), limit=size)
            page = ask_for(here, control_plane, tenant_id, LIST_EVENTS, request)
            found += page["events"]
            cursor = page["cursor"]
            if cursor is None:
                break
        if as_json:
            render.show_json({"events": found, "cursor": cursor})
            return
        leaves_out_inbox = status in (EventStatus.RETRYING, EventStatus.FAILED)
        if found:
            event_view.show_list(found)
        elif leaves_out_inbox:
            render.show_line(f"Tenant {tenant_id} has no such events outside its inbox.")
        else:
            render.show_line(f"Tenant {tenant_id} has no {'events yet' if wanted == ListEvents() else 'such events'}.")
            render.note(f"How to send one: berth events send --help. Its keys: berth keys list {tenant_id}")
        if cursor:
            render.note(f"There are more events. List all: --all. Or continue from here: --cursor {cursor}")
        if leaves_out_inbox:
            render.note(
                "Events that wait in the inbox are not in this list. They are undelivered, whatever their deliveries "
                f"do: see berth inbox {tenant_id}, and of each berth attempts {tenant_id} EVENT_ID. Deliveries that "
                f"failed or are parked, of all events: berth deliveries {tenant_id} CONNECTION_ID"
            )


def show(
    context: typer.Context,
    tenant: Tenant,
    event_id: EventIdArgument,
    raw: Annotated[
        bool, typer.Option("--raw", help="Write only the payload, byte for byte, to standard output.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show an event with its payload.

    Control characters in the payload are shown as escape sequences, except with --raw.
    """
    if raw and as_json:
        raise typer.BadParameter("cannot be combined with --json.", param_hint="'--raw'")
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        tenant_id = TenantId.parse(tenant)
        request = OfEvent(event_id=parse_event_id(event_id), payload_as=PayloadAs.BASE64 if raw else PayloadAs.JSON)
        event = ask_for(here, here.find(), tenant_id, GET_EVENT, request)
        if raw:
            _write(event_view.payload_bytes(event), to_terminal=here.world.output_is_a_terminal())
        elif as_json:
            render.show_json(event)
        else:
            event_view.show_event(event)


def tail(
    context: typer.Context,
    tenant: Tenant,
    event_type: EventType = None,
    submissions: Annotated[
        bool, typer.Option("--submissions", help="Show the submissions of all forms instead of the other events.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON per event.")] = False,
) -> None:
    """Show events as they come in, newest last, until Ctrl-C.

    It begins with the last ten, and asks every two seconds. If a tenant has more
    than a hundred events per second, it may miss some: see berth events list.
    """
    if submissions and event_type:
        raise typer.BadParameter("cannot be combined with --submissions.", param_hint="'--type'")
    kind = Kind.SUBMISSIONS if submissions else Kind.EVENTS
    here: Invocation = context.obj
    try:
        with here.reporting_errors(as_json=as_json):
            tenant_id = TenantId.parse(tenant)
            control_plane = here.find()
            others = "" if submissions else " Submissions of forms: --submissions."
            render.note(f"Waiting for {kind} of tenant {tenant_id}. Ctrl-C ends this.{others}")
            for event in incoming(here, control_plane, tenant_id, kind, event_type):
                if as_json:
                    render.show_json_line(event)
                else:
                    event_view.show_line(event)
    except KeyboardInterrupt:
        # Ctrl-C is the way to end this command, so that is no error.
        render.note("No longer watching.")


def incoming(
    here: Invocation,
    control_plane: ControlPlane,
    tenant: TenantId,
    kind: Kind,
    event_type: str | None,
    *,
    only_new: bool = False,
) -> Iterator[Document]:
    """The newest events, unless ``only_new``, and then those that come in, oldest first."""
    seen: dict[str, datetime] = {}
    newest: datetime | None = None
    is_first = True
    while True:
        found: list[Document] = []
        cursor: str | None = None
        while True:
            request = ListEvents(
                kind=kind,
                event_type=or_unset(event_type),
                since=or_unset(event_timestamp(newest - LATE) if newest else None),
                cursor=or_unset(cursor),
                limit=FIRST_EVENTS if is_first else MAX_PAGE_SIZE,
            )
            page = ask_for(here, control_plane, tenant, LIST_EVENTS, request)
            unseen = [event for event in page["events"] if event["event_id"] not in seen]
            found += unseen
            cursor = page["cursor"]
            # A page of events that were all shown is where the last poll began.
            if is_first or cursor is None or (page["events"] and not unseen):
                break
        for event in reversed(found):
            received = parse_timestamp(event["timestamp"])
            seen[event["event_id"]] = received
            newest = max(newest or received, received)
            if not (is_first and only_new):
                yield event
        if newest:
            seen = {event_id: at for event_id, at in seen.items() if at >= newest - LATE}
        is_first = False
        here.world.sleep(POLL_SECONDS)


def time_of_option(option: str, text: str | None, now: datetime) -> str | None:
    """The time of an option: as it is given, or from how long ago it says."""
    if text is None:
        return None
    ago = _AGO.fullmatch(text)
    if ago is None:
        return _checked(option, text)
    number, unit = ago.groups()
    try:
        return event_timestamp(now - timedelta(**{_UNITS[unit]: int(number)}))
    except OverflowError:
        raise InvalidRequest(f"{option}: {text!a} is too long ago.") from None


def _moment(text: str) -> datetime:
    """A time as the API reads it: without an offset, it is in UTC."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _checked(option: str, text: str) -> str:
    try:
        _moment(text)
    except ValueError:
        raise InvalidRequest(
            f"{option}: {text!a} is not a time, such as 2026-11-17T12:00:00Z, 30m, 2h or 7d."
        ) from None
    return text


def _write(data: bytes, *, to_terminal: bool) -> None:
    if to_terminal and not all(each in b"\t\n" or 0x20 <= each < 0x7F for each in data):
        raise InvalidRequest(
            "The payload holds characters that could control the terminal. Write it to a file or a pipe: --raw > FILE"
        )
    render.write_bytes(data)
