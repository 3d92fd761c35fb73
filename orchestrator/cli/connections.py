"""`berth connections`: where the events of a tenant are delivered to."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from msgspec import UNSET, UnsetType
from rich.text import Text

from orchestrator.api.connection_models import CreateConnection, OfConnection, UpdateConnection
from orchestrator.api.connection_routes import (
    CREATE_CONNECTION,
    DELETE_CONNECTION,
    GET_CONNECTION,
    LIST_CONNECTIONS,
    PAUSE_CONNECTION,
    RESUME_CONNECTION,
    ROTATE_CONNECTION,
    TEST_CONNECTION,
    UPDATE_CONNECTION,
)
from orchestrator.api.event_configuration_models import NoParameters
from orchestrator.api.fields import or_unset
from orchestrator.cli import render
from orchestrator.cli.api import Document
from orchestrator.cli.event_next import connection_steps
from orchestrator.cli.event_orders import OrderCommands
from orchestrator.cli.event_types import checked_types
from orchestrator.cli.events_api import ask_for, reason
from orchestrator.cli.invocation import Invocation, Json, Tenant
from orchestrator.cli.next_step import lines
from orchestrator.common.errors import InvalidRequest
from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.delivery.records import API_ORIGIN, DestinationKind
from orchestrator.events.delivery.retries import MAX_DURATION, MAX_TRIES
from orchestrator.events.resource_ids import IdPrefix, parse_resource_id

_EXAMPLES = """\
[bold]Examples[/]
  berth connections create acme --name Queue
      Events that are sent to the API go to the tenant's own queue
  berth connections create acme --name Shop \\
      --webhook https://shop.example.com/hooks --type order.created
  berth connections create acme --name CRM --from SOURCE_ID \\
      --webhook https://crm.example.com/in --filter-file filter.json
  berth connections test acme CONNECTION_ID
  berth connections pause acme CONNECTION_ID

A filter is JSON, such as {"payload": {"total": {"$gte": 100}}}, and so is a
transform, such as {"remove": ["customer.card"], "wrap": "order"}: see
docs/events-for-tenants.md.
"""
_WHERE = "Destination (the tenant's own queue if none is given)"
_WHAT = "Which events, and how"

_NOTHING_TO_CHANGE = (
    "Say what to change: the name (--name), the address (--address), which events the connection gets (--type, "
    "--filter-file or --no-filter), its transform (--transform-file or --no-transform), or the waits between tries "
    "(--retry or --usual-retries)."
)

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", epilog=_EXAMPLES)

ConnectionId = Annotated[
    str,
    typer.Argument(
        metavar="CONNECTION_ID", help="The connection's id: see berth connections list.", show_default=False
    ),
]
Types = Annotated[
    list[str] | None,
    typer.Option(
        "--type",
        metavar="TYPE",
        help="Deliver only events of this type; may be repeated. Without it, all are delivered.",
        callback=checked_types,
        rich_help_panel=_WHAT,
    ),
]
FilterFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A file with a filter, as JSON, in place of --type.", rich_help_panel=_WHAT),
]
TransformFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A file with a transform of payloads, as JSON.", rich_help_panel=_WHAT),
]
Retry = Annotated[
    list[int] | None,
    typer.Option(
        "--retry",
        metavar="SECONDS",
        min=1,
        max=int(MAX_DURATION.total_seconds()),
        help=f"A wait between two tries; repeat it for each: at most {MAX_TRIES - 1}, within {MAX_DURATION.days} days. "
        "By default there are eight tries, within about a day.",
        rich_help_panel=_WHAT,
    ),
]


@app.callback()
def connections() -> None:
    """Connections: where the events of a tenant are delivered to."""


@app.command(epilog=_EXAMPLES)
def create(
    context: typer.Context,
    tenant: Tenant,
    name: Annotated[str, typer.Option(metavar="TEXT", help="A display name.", show_default=False)],
    origin: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="ID",
            help="The source or form whose events are delivered, or api for those that are sent to the API.",
            rich_help_panel=_WHAT,
        ),
    ] = API_ORIGIN,
    webhook: Annotated[
        str | None,
        typer.Option(metavar="URL", help="A URL that gets signed requests.", rich_help_panel=_WHERE),
    ] = None,
    zapier: Annotated[str | None, typer.Option(metavar="URL", help="The URL of a Zap.", rich_help_panel=_WHERE)] = None,
    email: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="An address of mail. You confirm that its owner wants the mail.",
            rich_help_panel=_WHERE,
        ),
    ] = None,
    event_type: Types = None,
    filter_file: FilterFile = None,
    transform_file: TransformFile = None,
    retry: Retry = None,
    as_json: Json = False,
) -> None:
    """Connect events of a tenant to a destination.

    The secret by which the receiver of a webhook checks the signature is printed once.
    """
    kind, address = _destination(webhook, zapier, email)
    _check_one_filter(event_type, filter_file)
    here: Invocation = context.obj
    others = {each.value for each in DestinationKind if each is not kind}
    # In messages, the address is the option that was given.
    here = replace(here, parameters=[each for each in here.parameters if each.name not in others])
    with here.reporting_errors(as_json=as_json):
        tenant_id = TenantId.parse(tenant)
        request = CreateConnection(
            name=name,
            origin=origin,
            destination=kind,
            address=or_unset(address),
            filter=_filter(event_type, filter_file),
            transform=_document("transform", transform_file),
            retry_seconds=or_unset(retry),
        )
        created = ask_for(here, here.find(), tenant_id, CREATE_CONNECTION, request)
        _show(created, as_json=as_json)
        if created["secret"]:
            render.note("The secret is shown only now: the receiver needs it to check the signature.")
        render.note(f"Try it: berth connections test {tenant_id} {created['connection_id']}")


@app.command(name="list")
def list_connections(context: typer.Context, tenant: Tenant, as_json: Json = False) -> None:
    """List the connections of a tenant."""
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        tenant_id = TenantId.parse(tenant)
        listed = ask_for(here, here.find(), tenant_id, LIST_CONNECTIONS, NoParameters())
        if as_json:
            render.show_json(listed)
        elif listed["connections"]:
            table = render.columns("Connection id", "Name", "Status", "Origin", "Destination")
            for each in listed["connections"]:
                destination = Text(" ".join(filter(None, [each["destination"], each["address"]])))
                table.add_row(
                    each["connection_id"], Text(each["name"]), render.state(each["status"]), each["origin"], destination
                )
            render.stdout().print(table)
        else:
            render.show_line(
                f"Tenant {tenant_id} has no connections, so its events are delivered nowhere. Make one: berth "
                f"connections create {tenant_id} --help"
            )


@app.command()
def show(context: typer.Context, tenant: Tenant, connection_id: ConnectionId, as_json: Json = False) -> None:
    """Show one connection."""
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        tenant_id, request = TenantId.parse(tenant), _of(connection_id)
        found = ask_for(here, here.find(), tenant_id, GET_CONNECTION, request)
        _show(found, as_json=as_json)
        for line in lines(connection_steps(found)):
            render.note(line)


@app.command()
def update(
    context: typer.Context,
    tenant: Tenant,
    connection_id: ConnectionId,
    name: Annotated[str | None, typer.Option(metavar="TEXT", help="A display name.")] = None,
    address: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Another URL, or another address of mail.")
    ] = None,
    event_type: Types = None,
    filter_file: FilterFile = None,
    no_filter: Annotated[bool, typer.Option("--no-filter", help="Deliver all events.", rich_help_panel=_WHAT)] = False,
    transform_file: TransformFile = None,
    no_transform: Annotated[
        bool, typer.Option("--no-transform", help="Send payloads as they are.", rich_help_panel=_WHAT)
    ] = False,
    retry: Retry = None,
    usual_retries: Annotated[
        bool, typer.Option("--usual-retries", help="Use the default waits again.", rich_help_panel=_WHAT)
    ] = False,
    as_json: Json = False,
) -> None:
    """Change a connection. It takes effect within 10 seconds."""
    _check_one_filter(event_type, filter_file)
    for option, value, opposite, negation in (
        ("--type", event_type, "--no-filter", no_filter),
        ("--filter-file", filter_file, "--no-filter", no_filter),
        ("--transform-file", transform_file, "--no-transform", no_transform),
        ("--retry", retry, "--usual-retries", usual_retries),
    ):
        if value and negation:
            raise typer.BadParameter(f"cannot be combined with {opposite}.", param_hint=f"'{option}'")
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        tenant_id, checked = TenantId.parse(tenant), _of(connection_id)
        unchanged = UpdateConnection(connection_id=checked.connection_id)
        request = msgspec.structs.replace(
            unchanged,
            name=or_unset(name),
            address=or_unset(address),
            filter=None if no_filter else _filter(event_type, filter_file),
            transform=None if no_transform else _document("transform", transform_file),
            retry_seconds=None if usual_retries else or_unset(retry),
        )
        if request == unchanged:
            raise InvalidRequest(_NOTHING_TO_CHANGE)
        _show(ask_for(here, here.find(), tenant_id, UPDATE_CONNECTION, request), as_json=as_json)


def _of(connection_id: str) -> OfConnection:
    return OfConnection(connection_id=parse_resource_id(IdPrefix.CONNECTION, connection_id))


_ORDERS = OrderCommands(app, "connection", ConnectionId, _of)
_ORDERS.add(
    "pause",
    PAUSE_CONNECTION,
    "is paused",
    "Pause a connection: within 10 seconds its deliveries wait until it is resumed.",
)
_ORDERS.add(
    "resume",
    RESUME_CONNECTION,
    "delivers",
    "Let a paused or disabled connection deliver again, beginning with what has waited.",
)


@app.command()
def rotate(context: typer.Context, tenant: Tenant, connection_id: ConnectionId, as_json: Json = False) -> None:
    """Replace the signing secret of a webhook, and print the new one.

    For 24 hours deliveries carry the signatures of both secrets.
    """
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        tenant_id, request = TenantId.parse(tenant), _of(connection_id)
        rotated = ask_for(here, here.find(), tenant_id, ROTATE_CONNECTION, request)
        _show(rotated, as_json=as_json)
        render.note("The secret is shown only now.")


@app.command(name="test")
def send_test(context: typer.Context, tenant: Tenant, connection_id: ConnectionId, as_json: Json = False) -> None:
    """Send a test event to one connection, whatever its filter says."""
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        tenant_id, request = TenantId.parse(tenant), _of(connection_id)
        sent = ask_for(here, here.find(), tenant_id, TEST_CONNECTION, request)
        if as_json:
            render.show_json(sent)
        else:
            render.show_line(f"Test event {sent['event_id']} is sent to connection {connection_id} alone.")
            render.note(f"See what became of it: berth attempts {tenant_id} {sent['event_id']}")


_ORDERS.add(
    "delete",
    DELETE_CONNECTION,
    "is deleted",
    "Delete a connection. Deliveries that are not finished fail.\n\n"
    "Its secret cannot be brought back. Events stay until they expire.",
    destroys=True,
)


def _destination(webhook: str | None, zapier: str | None, email: str | None) -> tuple[DestinationKind, str | None]:
    given = {
        kind: address
        for kind, address in (
            (DestinationKind.WEBHOOK, webhook),
            (DestinationKind.ZAPIER, zapier),
            (DestinationKind.EMAIL, email),
        )
        if address is not None
    }
    if len(given) > 1:
        options = " and ".join(f"--{kind}" for kind in given)
        raise typer.BadParameter(f"{options} cannot be combined: make a connection for each.")
    return next(iter(given.items()), (DestinationKind.QUEUE, None))


def _check_one_filter(types: list[str] | None, file: Path | None) -> None:
    if types and file:
        raise typer.BadParameter(
            "cannot be combined with --filter-file: name the types in the filter.", param_hint="'--type'"
        )


def _filter(types: list[str] | None, file: Path | None) -> dict[str, Any] | UnsetType:
    return filter_of_types(types) if types else _document("filter", file)


def filter_of_types(types: list[str]) -> dict[str, Any]:
    """The filter that lets only events of these types through."""
    return {"event_type": types[0] if len(types) == 1 else {"$in": types}}


def _document(name: str, file: Path | None) -> dict[str, Any] | UnsetType:
    if file is None:
        return UNSET
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"The {name} cannot be read from {str(file)!a}: {reason(error)}") from None
    except (ValueError, RecursionError):
        raise InvalidRequest(f"The {name} in {str(file)!a} is not JSON.") from None
    if not isinstance(document, dict):
        raise InvalidRequest(f"The {name} in {str(file)!a} is not a JSON object.")
    return document


def _show(connection: Document, *, as_json: bool) -> None:
    if as_json:
        render.show_json(connection)
        return
    render.show_pairs(
        {
            "tenant": connection["tenant_id"],
            "id": connection["connection_id"],
            "name": connection["name"],
            "status": render.state(connection["status"]),
            "reason": connection["reason"],
            "origin": connection["origin"],
            "to": connection["destination"],
            "address": connection["address"],
            "filter": _json(connection["filter"]),
            "transform": _json(connection["transform"]),
            "retries": waits(connection["retry_seconds"]),
            "failing": _since(connection["failing_since"]),
            "waits": _until(connection["breaker_open_until"]),
            "secret": connection.get("secret"),
            "rotated": _overlap(connection["former_secret_until"]),
            "created": render.moment(connection["created_at"]),
        }
    )


def _json(document: object) -> str | None:
    return json.dumps(document) if document else None


def waits(seconds: list[int]) -> str:
    """The waits between the tries of a delivery."""
    return "after " + ", ".join(map(render.duration, seconds)) if seconds else "none"


def _since(moment: str | None) -> str | None:
    return f"since {render.moment(moment)}" if moment else None


def _overlap(moment: str | None) -> str | None:
    return f"the former secret is used, too, until {render.moment(moment)}" if moment else None


def _until(moment: str | None) -> str | None:
    return f"until {render.moment(moment)}, because deliveries failed" if moment else None
