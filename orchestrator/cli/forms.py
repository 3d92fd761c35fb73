"""`berth forms`: the addresses at which submissions of a tenant's forms come in."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from orchestrator.api.event_configuration_models import (
    CreateForm,
    NoParameters,
    OfForm,
    UpdateForm,
)
from orchestrator.api.event_configuration_routes import (
    CREATE_FORM,
    DELETE_FORM,
    LIST_FORMS,
    PAUSE_FORM,
    RESUME_FORM,
    UPDATE_FORM,
)
from orchestrator.api.fields import or_unset
from orchestrator.cli import render
from orchestrator.cli.api import Document
from orchestrator.cli.event_orders import OrderCommands
from orchestrator.cli.events_api import ask_for, with_url
from orchestrator.cli.invocation import Invocation, Json, Tenant
from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.resource_ids import IdPrefix, parse_resource_id

_EXAMPLES = """\
[bold]Examples[/]
  berth forms create acme --name Contact --allow-origin https://example.com
  berth forms create acme --name Contact --allow-origin https://example.com \\
      --redirect https://example.com/thanks --honeypot website
  berth forms update acme FORM_ID --allow-origin https://shop.example.com
  berth forms pause acme FORM_ID
"""

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", epilog=_EXAMPLES)

FormId = Annotated[
    str, typer.Argument(metavar="FORM_ID", help="The form's id: see berth forms list.", show_default=False)
]
Name = Annotated[str, typer.Option(metavar="TEXT", help="A display name.", show_default=False)]
Origins = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-origin",
        metavar="URL",
        help="Scheme and host of a site whose pages may send the form; may be repeated. Any page may send a new form "
        "without it.",
    ),
]
Redirect = Annotated[
    str | None,
    typer.Option("--redirect", metavar="URL", help="The page to show after a submission, at one of the origins."),
]
Honeypot = Annotated[
    str | None,
    typer.Option(metavar="FIELD", help="A field that people do not see. A submission that fills it in is dropped."),
]
PerMinute = Annotated[
    int | None,
    typer.Option(
        metavar="NUMBER", min=1, max=6000, help="How many submissions are accepted per minute. A new form has 60."
    ),
]


@app.callback()
def forms() -> None:
    """Forms: addresses to which web pages of a tenant send their forms."""


@app.command(epilog=_EXAMPLES)
def create(
    context: typer.Context,
    tenant: Tenant,
    name: Name,
    origin: Origins = None,
    redirect: Redirect = None,
    honeypot: Honeypot = None,
    per_minute: PerMinute = None,
    as_json: Json = False,
) -> None:
    """Create a form, and print its URL."""
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        tenant_id, control_plane = TenantId.parse(tenant), here.find()
        request = CreateForm(
            name=name,
            origins=or_unset(origin or None),
            redirect_url=or_unset(redirect),
            honeypot=or_unset(honeypot),
            submissions_per_minute=or_unset(per_minute),
        )
        form = with_url(ask_for(here, control_plane, tenant_id, CREATE_FORM, request), control_plane)
        _show(form, as_json=as_json)
        render.note("Use the URL as the form's action, with method post.")
        if not form["origins"]:
            render.note(
                f"Any page may send this form: berth forms update {tenant_id} {form['form_id']} --allow-origin URL"
            )


@app.command(name="list")
def list_forms(context: typer.Context, tenant: Tenant, as_json: Json = False) -> None:
    """List the forms of a tenant."""
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        tenant_id, control_plane = TenantId.parse(tenant), here.find()
        listed = ask_for(here, control_plane, tenant_id, LIST_FORMS, NoParameters())
        if as_json:
            render.show_json({"forms": [with_url(each, control_plane) for each in listed["forms"]]})
        elif listed["forms"]:
            table = render.columns("Form id", "Name", "Status", "Per minute", "Origins")
            for form in listed["forms"]:
                status = render.state(form["status"])
                origins = Text(", ".join(form["origins"]) or "any")
                table.add_row(form["form_id"], Text(form["name"]), status, str(form["submissions_per_minute"]), origins)
            render.stdout().print(table)
            render.note(f"The URL of a form is {control_plane.events_api_url.rstrip('/')}/forms/FORM_ID")
        else:
            render.show_line(f"Tenant {tenant_id} has no forms. Make one: berth forms create {tenant_id} --help")


@app.command(epilog=_EXAMPLES)
def update(
    context: typer.Context,
    tenant: Tenant,
    form_id: FormId,
    name: Annotated[str | None, typer.Option(metavar="TEXT", help="A display name.")] = None,
    origin: Origins = None,
    any_origin: Annotated[bool, typer.Option("--any-origin", help="Let any page send the form.")] = False,
    redirect: Redirect = None,
    no_redirect: Annotated[bool, typer.Option("--no-redirect", help="Show no page after a submission.")] = False,
    honeypot: Honeypot = None,
    no_honeypot: Annotated[bool, typer.Option("--no-honeypot", help="Remove the honeypot.")] = False,
    per_minute: PerMinute = None,
    as_json: Json = False,
) -> None:
    """Change a form. The given origins replace the present ones."""
    for option, value, negation in (
        ("--allow-origin", origin, any_origin),
        ("--redirect", redirect, no_redirect),
        ("--honeypot", honeypot, no_honeypot),
    ):
        if value and negation:
            opposite = "--any-origin" if option == "--allow-origin" else option.replace("--", "--no-")
            raise typer.BadParameter(f"cannot be combined with {opposite}.", param_hint=f"'{option}'")
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        tenant_id, checked = TenantId.parse(tenant), parse_resource_id(IdPrefix.FORM, form_id)
        control_plane = here.find()
        request = UpdateForm(
            form_id=checked,
            name=or_unset(name),
            origins=[] if any_origin else or_unset(origin or None),
            redirect_url=None if no_redirect else or_unset(redirect),
            honeypot=None if no_honeypot else or_unset(honeypot),
            submissions_per_minute=or_unset(per_minute),
        )
        form = with_url(ask_for(here, control_plane, tenant_id, UPDATE_FORM, request), control_plane)
        _show(form, as_json=as_json)


_ORDERS = OrderCommands(app, "form", FormId, lambda form_id: OfForm(form_id=parse_resource_id(IdPrefix.FORM, form_id)))
_ORDERS.add("pause", PAUSE_FORM, "is paused", "Pause a form: within 10 seconds it refuses submissions.")
_ORDERS.add("resume", RESUME_FORM, "accepts submissions", "Let a paused form accept submissions again.")
_ORDERS.add(
    "delete",
    DELETE_FORM,
    "is deleted",
    "Delete a form. Its URL cannot be brought back.\n\nSubmissions that came in stay until they expire.",
    destroys=True,
)


def _show(form: Document, *, as_json: bool) -> None:
    if as_json:
        render.show_json(form)
        return
    render.show_pairs(
        {
            "tenant": form["tenant_id"],
            "form id": form["form_id"],
            "name": form["name"],
            "status": render.state(form["status"]),
            "url": form["url"],
            "origins": ", ".join(form["origins"]) or "any",
            "redirect": form["redirect_url"],
            "honeypot": form["honeypot"],
            "per minute": str(form["submissions_per_minute"]),
        }
    )
