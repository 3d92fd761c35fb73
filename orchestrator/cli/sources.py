"""`berth sources`: the addresses at which webhooks of a tenant come in."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from orchestrator.api.event_configuration_models import (
    CreateSource,
    NoParameters,
    OfSource,
)
from orchestrator.api.event_configuration_routes import (
    CREATE_SOURCE,
    DELETE_SOURCE,
    LIST_SOURCES,
    PAUSE_SOURCE,
    RESUME_SOURCE,
)
from orchestrator.api.fields import or_unset
from orchestrator.cli import render
from orchestrator.cli.event_orders import OrderCommands
from orchestrator.cli.events_api import ask_for, secret_from, with_url
from orchestrator.cli.invocation import Invocation, Json, Tenant, one_of
from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.configuring_sources import GENERATING_PROVIDERS
from orchestrator.events.records import Provider
from orchestrator.events.resource_ids import IdPrefix, parse_resource_id
from orchestrator.events.signatures import ALGORITHMS, ENCODINGS

_EXAMPLES = """\
[bold]Examples[/]
  berth sources create acme --name GitHub --provider github
      Berth makes the secret, and prints it once
  berth sources create acme --name Stripe --provider stripe \\
      --secret-file secret.txt
  pass show stripe | berth sources create acme --name Stripe \\
      --provider stripe --secret-file -
  berth sources create acme --name ERP --provider hmac --header X-Signature
  berth sources list acme
  berth sources pause acme SOURCE_ID

There is no option for the secret itself: other users of the machine can see
the arguments of a command, and shells record them.
"""
_HOW = "For providers hmac, shared-secret and none"

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", epilog=_EXAMPLES)

SourceId = Annotated[
    str, typer.Argument(metavar="SOURCE_ID", help="The source's id: see berth sources list.", show_default=False)
]


@app.callback()
def sources() -> None:
    """Sources of webhooks: addresses at which a provider's webhooks come in for a tenant."""


@app.command(epilog=_EXAMPLES)
def create(
    context: typer.Context,
    tenant: Tenant,
    name: Annotated[str, typer.Option(metavar="TEXT", help="A display name.", show_default=False)],
    provider: Annotated[
        Provider,
        typer.Option(
            parser=one_of(Provider),
            metavar="PROVIDER",
            help=f"Who sends the webhooks: {', '.join(Provider)}.",
            show_default=False,
        ),
    ],
    secret_file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="The file with the secret that the provider signs with; - is stdin. Stripe, Shopify and Slack make "
            "the secret, so it is required for them. For the others, Berth makes one if this option is left out.",
        ),
    ] = None,
    header: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The header with the signature or the secret.", rich_help_panel=_HOW),
    ] = None,
    algorithm: Annotated[
        str | None,
        typer.Option(metavar="NAME", help=f"{', '.join(ALGORITHMS)}. Default: sha256.", rich_help_panel=_HOW),
    ] = None,
    encoding: Annotated[
        str | None, typer.Option(metavar="NAME", help=f"{', '.join(ENCODINGS)}. Default: hex.", rich_help_panel=_HOW)
    ] = None,
    prefix: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="The text before the signature or the secret in the header, such as sha256=.",
            rich_help_panel=_HOW,
        ),
    ] = None,
    event_type_header: Annotated[
        str | None, typer.Option(metavar="NAME", help="The header with the event's type.", rich_help_panel=_HOW)
    ] = None,
    delivery_id_header: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The header with the delivery's id: repeats are one event.", rich_help_panel=_HOW
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Create a source, and print its URL.

    A secret that Berth makes is printed once.
    """
    given = {
        "header": header,
        "algorithm": algorithm,
        "encoding": encoding,
        "prefix": prefix,
        "event_type_header": event_type_header,
        "delivery_id_header": delivery_id_header,
    }
    verification = {name: value for name, value in given.items() if value is not None}
    if secret_file is None and provider not in (*GENERATING_PROVIDERS, Provider.NONE):
        raise typer.BadParameter(
            f"is required, because {provider} makes the secret itself: copy it from there into a file.",
            param_hint="'--secret-file'",
        )
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        tenant_id = TenantId.parse(tenant)
        secret = secret_from(secret_file) if secret_file else None
        control_plane = here.find()
        request = CreateSource(
            name=name, provider=provider, secret=or_unset(secret), verification=or_unset(verification or None)
        )
        created = with_url(ask_for(here, control_plane, tenant_id, CREATE_SOURCE, request), control_plane)
        if as_json:
            render.show_json(created)
        else:
            render.show_pairs(
                {
                    "tenant": created["tenant_id"],
                    "source id": created["source_id"],
                    "name": created["name"],
                    "provider": created["provider"],
                    "url": created["url"],
                    "secret": created["secret"],
                }
            )
        if created["secret"]:
            render.note("The secret is shown only now: enter it at the sender, with the URL.")
        else:
            render.note("Enter the URL at the sender.")
        if provider is Provider.NONE:
            render.note("No signature is checked: anyone who knows the URL can send events.")


@app.command(name="list")
def list_sources(context: typer.Context, tenant: Tenant, as_json: Json = False) -> None:
    """List the sources of a tenant."""
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        tenant_id, control_plane = TenantId.parse(tenant), here.find()
        listed = ask_for(here, control_plane, tenant_id, LIST_SOURCES, NoParameters())
        if as_json:
            render.show_json({"sources": [with_url(each, control_plane) for each in listed["sources"]]})
        elif listed["sources"]:
            table = render.columns("Source id", "Name", "Provider", "Status", "Created (UTC)")
            for source in listed["sources"]:
                status = render.state(source["status"])
                created = render.moment(source["created_at"], "%Y-%m-%d %H:%M")
                table.add_row(source["source_id"], Text(source["name"]), source["provider"], status, created)
            render.stdout().print(table)
            render.note(f"The URL of a source is {control_plane.events_api_url.rstrip('/')}/hooks/SOURCE_ID")
        else:
            render.show_line(f"Tenant {tenant_id} has no sources. Make one: berth sources create {tenant_id} --help")


_ORDERS = OrderCommands(
    app, "source", SourceId, lambda source_id: OfSource(source_id=parse_resource_id(IdPrefix.SOURCE, source_id))
)
_ORDERS.add(
    "pause",
    PAUSE_SOURCE,
    "is paused",
    "Pause a source: within 10 seconds it refuses webhooks. Most providers send them again later.",
)
_ORDERS.add("resume", RESUME_SOURCE, "accepts webhooks", "Let a paused source accept webhooks again.")
_ORDERS.add(
    "delete",
    DELETE_SOURCE,
    "is deleted",
    "Delete a source. Its URL and its secret cannot be brought back.\n\nEvents that came in stay until they expire.",
    destroys=True,
)
