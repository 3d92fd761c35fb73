"""`berth deliveries`, `berth attempts` and `berth resend`: what became of a tenant's events, and once more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer
from rich.text import Text

from orchestrator.api.delivery_routes import (
    GET_ATTEMPTS,
    LIST_DELIVERIES,
    RESEND_EVENT,
    ListDeliveries,
    OfAttempts,
    ResendEvent,
)
from orchestrator.api.fields import or_unset
from orchestrator.cli import render
from orchestrator.cli.api import Document
from orchestrator.cli.connections import ConnectionId
from orchestrator.cli.event_reads import PAGE_SIZE, EventIdArgument
from orchestrator.cli.events_api import ask_for
from orchestrator.cli.invocation import Invocation, Json, Tenant
from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.delivery.history import MAX_PAGE_SIZE
from orchestrator.events.delivery.records import DeliveryState
from orchestrator.events.delivery.rounds import ResendResult
from orchestrator.events.event_ids import parse_event_id
from orchestrator.events.resource_ids import IdPrefix, parse_resource_id
from orchestrator.events.statuses import EventStatus

DELIVERIES_EXAMPLES = """\
[bold]Examples[/]
  berth deliveries acme CONNECTION_ID                  those that failed
  berth deliveries acme CONNECTION_ID --status parked  those that wait
  berth events list acme --status retrying             events being retried
      Without those that wait in the inbox: see berth attempts
"""
ATTEMPTS_EXAMPLES = """\
[bold]Examples[/]
  berth attempts acme EVENT_ID             where the event went, and every try
  berth events list acme --status failed   events that failed
"""
RESEND_EXAMPLES = """\
[bold]Examples[/]
  berth resend acme EVENT_ID
      To all connections to which it failed
  berth resend acme EVENT_ID --connection CONNECTION_ID
      To this connection, which may have received it before
  berth replay acme --connection CONNECTION_ID --since 2h
      Many events at once: see berth replay --help
"""
_RESULTS: Mapping[str, str] = {
    ResendResult.SENT: "is being sent",
    ResendResult.DUE: "waited, and is tried now as well. Its retries stay as planned",
    ResendResult.TRYING: "is being tried at this moment",
    ResendResult.PARKED: "goes out when the connection is resumed, because that is paused",
    ResendResult.EXHAUSTED: "is not sent again, because it was sent too often. Send its payload as a new event",
}


def deliveries(
    context: typer.Context,
    tenant: Tenant,
    connection_id: ConnectionId,
    status: Annotated[
        str, typer.Option(metavar="STATUS", help="failed, newest first; or parked, oldest event first.")
    ] = DeliveryState.FAILED.value,
    limit: Annotated[
        int | None,
        typer.Option(metavar="NUMBER", min=1, help=f"The maximum number to list. Default: {PAGE_SIZE}."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="List all of them.")] = False,
    as_json: Json = False,
) -> None:
    """List the deliveries of a connection that failed for good, or are parked.

    Parked deliveries wait until the connection is resumed, or until its receiver works again.
    """
    if every and limit:
        raise typer.BadParameter("cannot be combined with --all.", param_hint="'--limit'")
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        tenant_id, named = TenantId.parse(tenant), parse_resource_id(IdPrefix.CONNECTION, connection_id)
        control_plane = here.find()
        found: list[Document] = []
        cursor: str | None = None
        number = None if every else limit or PAGE_SIZE
        while number is None or len(found) < number:
            size = MAX_PAGE_SIZE if number is None else min(number - len(found), MAX_PAGE_SIZE)
            request = ListDeliveries(connection_id=named, status=status, cursor=or_unset(cursor), limit=size)
            page = ask_for(here, control_plane, tenant_id, LIST_DELIVERIES, request)
            found += page["deliveries"]
            cursor = page["cursor"]
            if cursor is None:
                break
        if as_json:
            render.show_json({"deliveries": found, "cursor": cursor})
            return
        if not found:
            render.show_line(f"The connection {named} of tenant {tenant_id} has no {status} deliveries.")
        for each in found:
            _show_delivery(each, each["event_id"])
        if cursor:
            render.note("There are more. List all: --all.")
        if found and status == DeliveryState.FAILED:
            render.note(
                f"Every try of one: berth attempts {tenant_id} EVENT_ID. Send all of them again: berth replay "
                f"{tenant_id} --connection {named} --since 7d --only-failed"
            )


def attempts(context: typer.Context, tenant: Tenant, event_id: EventIdArgument, as_json: Json = False) -> None:
    """Show where an event was delivered to, and every try, oldest first."""
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        tenant_id, request = TenantId.parse(tenant), OfAttempts(event_id=parse_event_id(event_id))
        shown = ask_for(here, here.find(), tenant_id, GET_ATTEMPTS, request)
        if as_json:
            render.show_json(shown)
            return
        render.show_pairs({"event id": shown["event_id"], "tenant": shown["tenant_id"], "status": shown["status"]})
        render.show_line()
        if not shown["deliveries"]:
            is_over = shown["status"] == EventStatus.FILTERED
            render.show_line("No connection wants it." if is_over else "No connection has tried to deliver it yet.")
        for each in shown["deliveries"]:
            _show_delivery(each, _connection(each))
        if shown["attempts"]:
            render.show_line()
        if omitted := shown.get("attempts_omitted"):
            render.show_line(f"{omitted} older tries are not shown.")
        for each in shown["attempts"]:
            _show_attempt(each)


def resend(
    context: typer.Context,
    tenant: Tenant,
    event_id: EventIdArgument,
    connection: Annotated[
        str | None,
        typer.Option(
            metavar="CONNECTION_ID",
            help="Send it to this connection, even if it has received it. Default: all to which it failed.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Send an event again.

    With --connection, a delivery that waits for a retry is tried now as well: an
    extra try, whatever the breaker says. A success turns a failed event into a
    delivered one. A failure is retried, and leaves the event as it is.
    """
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        tenant_id = TenantId.parse(tenant)
        named = parse_resource_id(IdPrefix.CONNECTION, connection) if connection else None
        request = ResendEvent(event_id=parse_event_id(event_id), connection_id=or_unset(named))
        control_plane = here.find()
        # The answer to a resend has no names. They are read first, so that nothing can go wrong after the resend.
        of_event = OfAttempts(event_id=request.event_id)
        tried = None if as_json else ask_for(here, control_plane, tenant_id, GET_ATTEMPTS, of_event)
        answered = ask_for(here, control_plane, tenant_id, RESEND_EVENT, request)
        if tried is None:
            render.show_json(answered)
            return
        for line in results_of_resend(answered, tried):
            render.show_line(line)
        render.note(f"How it goes: berth attempts {tenant_id} {answered['event_id']}")


def results_of_resend(answered: Document, tried: Document) -> list[str]:
    """The result for each delivery of an event that is sent again. ``tried`` is the answer of getAttempts."""
    known = {each["connection_id"]: each for each in tried["deliveries"]}
    return [
        f"To {_connection(known.get(each['connection_id'], each))}: the event {_RESULTS[each['result']]}."
        for each in answered["results"]
    ]


def answer_code(attempt: Document) -> str:
    """The HTTP status of a try. A queue and a mail server take an event without one."""
    return str(attempt["code"] or ("taken" if attempt["delivered"] else "no answer"))


def _connection(shown: Document) -> str:
    """The connection of a delivery or an attempt. A deleted one has no name any more."""
    name = shown.get("connection_name")
    return f"{shown['connection_id']} ({name})" if name else str(shown["connection_id"])


def _show_delivery(delivery: Document, named: str) -> None:
    """One line, with what somebody needs to know to act."""
    status = render.state(delivery["status"])
    status.pad_right(len("delivered") - len(status))
    parts = [render.counted(delivery["tries"], "try", "tries")]
    parts += [render.moment(delivery["at"])] if delivery["at"] else []
    parts += [f"next try by {render.moment(delivery['due_at'])}"] if delivery["due_at"] else []
    parts += [str(delivery["code"])] if delivery["code"] else []
    parts += ["resent"] if delivery["resend"] else []
    render.show_line(Text(f"{named} ") + status + Text(f" {', '.join(parts)}"))
    if delivery["reason"]:
        render.show_line(f"  {first_line(delivery['reason'])}")


def _show_attempt(attempt: Document) -> None:
    outcome = Text("delivered", "green") if attempt["delivered"] else Text("failed   ", "bold red")
    when = render.moment(attempt["at"], "%Y-%m-%d %H:%M:%S")
    asked = ", asked for" if attempt["resend"] else ""
    render.show_line(
        Text(f"{when} {_connection(attempt)} try {attempt['number']} ")
        + outcome
        + Text(f" {answer_code(attempt)}, {attempt['milliseconds']} ms{asked}")
    )
    if attempt["answer"] and not attempt["delivered"]:
        render.show_line(f"  {first_line(attempt['answer'])}")


def first_line(text: str) -> str:
    """The beginning of an answer. --json has the rest."""
    lines = text.strip().splitlines()
    return lines[0][:160] if lines else ""
