"""`berth keys`: the API keys of a tenant."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from orchestrator.api.event_configuration_models import (
    CreateKey,
    NoParameters,
    OfKey,
    RotateKey,
)
from orchestrator.api.event_configuration_routes import (
    CREATE_KEY,
    LIST_KEYS,
    REVOKE_KEY,
    ROTATE_KEY,
)
from orchestrator.api.fields import or_unset
from orchestrator.cli import render
from orchestrator.cli.api import Document
from orchestrator.cli.control_plane import ControlPlane
from orchestrator.cli.event_next import warning_about
from orchestrator.cli.events_api import ask_for
from orchestrator.cli.invocation import Invocation, Json, Tenant, Yes, one_of
from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.configuring_keys import DEFAULT_OVERLAP, MAX_LIFETIME, MAX_OVERLAP
from orchestrator.events.records import Scope
from orchestrator.events.resource_ids import IdPrefix, parse_resource_id

_EXAMPLES = """\
[bold]Examples[/]
  berth keys create acme --name "Shop" --scope write     a key that sends events
  berth keys create acme --name "Reports" --scope read --expires 90
  berth keys list acme                                   all keys of acme
  berth keys rotate acme KEY_ID                          the old key works 24 h
  berth keys revoke acme KEY_ID                          stops within 10 seconds
"""
_HOUR = 3600
_DAY = 24 * _HOUR

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", epilog=_EXAMPLES)

KeyId = Annotated[str, typer.Argument(metavar="KEY_ID", help="The key's id: see berth keys list.", show_default=False)]


@app.callback()
def keys() -> None:
    """API keys, with which a tenant sends and reads its events.

    A key is shown once, when it is made. Berth keeps only its digest.
    """


@app.command(epilog=_EXAMPLES)
def create(
    context: typer.Context,
    tenant: Tenant,
    name: Annotated[str, typer.Option(metavar="TEXT", help="A display name.", show_default=False)],
    scope: Annotated[
        list[Scope],
        typer.Option(
            parser=one_of(Scope),
            metavar=f"<{'|'.join(Scope)}>",
            help="What the key is for; may be repeated. admin includes the others.",
            show_default=False,
        ),
    ],
    expires: Annotated[
        int | None,
        typer.Option(
            metavar="DAYS",
            min=1,
            max=MAX_LIFETIME.days,
            help="How long the key works. Default: until it is revoked.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Create an API key, and print it once."""
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        tenant_id, control_plane = TenantId.parse(tenant), here.find()
        request = CreateKey(
            name=name,
            scopes=list(dict.fromkeys(scope)),
            expires_in_seconds=or_unset(expires * _DAY if expires else None),
        )
        issued = ask_for(here, control_plane, tenant_id, CREATE_KEY, request)
        _show_issued(issued, control_plane, as_json=as_json)


@app.command(name="list")
def list_keys(context: typer.Context, tenant: Tenant, as_json: Json = False) -> None:
    """List the API keys of a tenant, without the keys themselves."""
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        tenant_id = TenantId.parse(tenant)
        listed = ask_for(here, here.find(), tenant_id, LIST_KEYS, NoParameters())
        if as_json:
            render.show_json(listed)
        elif listed["keys"]:
            _show_list(listed)
        else:
            render.show_line(f"Tenant {tenant_id} has no API keys. Make one: berth keys create {tenant_id} --help")


@app.command()
def rotate(
    context: typer.Context,
    tenant: Tenant,
    key_id: KeyId,
    overlap: Annotated[
        int,
        typer.Option(
            metavar="HOURS", min=0, max=int(MAX_OVERLAP.total_seconds()) // _HOUR, help="How long the old key works."
        ),
    ] = int(DEFAULT_OVERLAP.total_seconds()) // _HOUR,
    as_json: Json = False,
) -> None:
    """Replace an API key by a new one, and print the new one once.

    The new key has the same name, scopes and lifetime.
    """
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        tenant_id, checked = TenantId.parse(tenant), parse_resource_id(IdPrefix.KEY, key_id)
        control_plane = here.find()
        request = RotateKey(key_id=checked, overlap_seconds=overlap * _HOUR)
        issued = ask_for(here, control_plane, tenant_id, ROTATE_KEY, request)
        _show_issued(issued, control_plane, as_json=as_json)


@app.command()
def revoke(context: typer.Context, tenant: Tenant, key_id: KeyId, yes: Yes = False, as_json: Json = False) -> None:
    """Revoke an API key: it stops working within 10 seconds."""
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        tenant_id, request = TenantId.parse(tenant), OfKey(key_id=parse_resource_id(IdPrefix.KEY, key_id))
        if not yes:
            here.confirm(warning_about("key", key_id, tenant_id.value))
        revoked = ask_for(here, here.find(), tenant_id, REVOKE_KEY, request)
        if as_json:
            render.show_json(revoked)
        else:
            render.show_line(f"The API key {key_id} ({revoked['name']}) of tenant {tenant_id} is revoked.")


def _show_issued(issued: Document, control_plane: ControlPlane, *, as_json: bool) -> None:
    if as_json:
        render.show_json(issued)
    else:
        render.show_pairs(
            {
                "tenant": issued["tenant_id"],
                "key id": issued["key_id"],
                "name": issued["name"],
                "scopes": ", ".join(issued["scopes"]),
                "expires": render.moment(issued["expires_at"]) if issued["expires_at"] else "never",
                "key": issued["key"],
            }
        )
    render.note("The key is shown only now: store it where the program that uses it finds it.")
    if replaced := issued["replaced"]:
        render.note(f"The old key {replaced['key_id']} works until {render.moment(replaced['expires_at'])}.")
    render.note("Try it, with the key in the variable BERTH_KEY:")
    render.note(f"  {curl(issued['scopes'], control_plane.events_api_url.rstrip('/'))}")


def curl(scopes: list[str], url: str) -> str:
    """A command to try the key with. It takes the key from a variable, because shells record commands."""
    key = '-H "Authorization: Bearer $BERTH_KEY"'
    if {Scope.WRITE, Scope.ADMIN}.isdisjoint(scopes):
        return f"curl {key} {url}/events"
    body = '{"event_type": "order.created", "payload": {"order": 42}}'
    return f"curl {key} -H 'Content-Type: application/json' -d '{body}' {url}/events"


def _show_list(listed: Document) -> None:
    table = render.columns("Key id", "Name", "Begins with", "Scopes", "Status", "Last used (UTC)", "Expires (UTC)")
    for key in listed["keys"]:
        table.add_row(
            key["key_id"],
            Text(key["name"]),
            key["prefix"],
            ", ".join(key["scopes"]),
            render.state(key["status"]),
            _moment(key["last_used_at"]),
            _moment(key["expires_at"]),
        )
    render.stdout().print(table)


def _moment(text: str | None) -> str:
    return render.moment(text, "%Y-%m-%d %H:%M") if text else "never"
