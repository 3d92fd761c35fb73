"""`berth listen`: events as they come in, in the terminal and at a local server, signed as a webhook is."""

from __future__ import annotations

import base64
import binascii
from datetime import datetime
from ipaddress import ip_address
from typing import Annotated

import typer

from orchestrator.adapters.http_sender import HttpWebhooks
from orchestrator.api.event_read_routes import GET_EVENT, OfEvent, PayloadAs
from orchestrator.cli import event_view, render
from orchestrator.cli.api import Document
from orchestrator.cli.control_plane import ControlPlane
from orchestrator.cli.event_reads import incoming
from orchestrator.cli.event_types import EventType
from orchestrator.cli.events_api import ask_for, secret_from
from orchestrator.cli.invocation import Invocation, Tenant
from orchestrator.common.errors import InvalidRequest
from orchestrator.common.own_versions import berth_version
from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.delivery.addresses import AddressRules
from orchestrator.events.delivery.answers import Failure
from orchestrator.events.delivery.signing import new_signing_secret, signature_headers
from orchestrator.events.delivery.webhook_request import EVENT_ID_HEADER, EVENT_TYPE_HEADER, WebhookRequest
from orchestrator.events.listing import Kind

EXAMPLES = """\
[bold]Examples[/]
  berth listen acme
  berth listen acme --forward http://127.0.0.1:3000/hook
      To a program on this machine
  berth listen acme --type order.created --json
      One line of JSON per event

The forwarded requests are signed like those of a webhook, with the secret
of --secret-file, or with a new one that is printed at the start: see
docs/webhook-receivers.md. They are no deliveries: nothing is recorded or
retried, and connections get the events all the same.
"""
_FIRST_ERROR = 300
_RULES = AddressRules(plain_http=True, loopback=True)


def listen(
    context: typer.Context,
    tenant: Tenant,
    forward: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Post each event to this address, which must be on this machine.", show_default=False
        ),
    ] = None,
    secret_file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Sign with the secret in this file (whsec_...). Default: a new one.",
            show_default=False,
        ),
    ] = None,
    event_type: EventType = None,
    submissions: Annotated[
        bool, typer.Option("--submissions", help="Listen to the submissions of forms instead of the other events.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON per event.")] = False,
) -> None:
    """Show events as they come in, and forward them to a server on this machine, until Ctrl-C.

    It begins with the next event, and asks every two seconds. Older events: see
    berth events list and berth replay.
    """
    if submissions and event_type:
        raise typer.BadParameter("cannot be combined with --submissions.", param_hint="'--type'")
    if secret_file and not forward:
        raise typer.BadParameter("needs --forward.", param_hint="'--secret-file'")
    kind = Kind.SUBMISSIONS if submissions else Kind.EVENTS
    here: Invocation = context.obj
    try:
        with here.reporting_errors(as_json=as_json):
            tenant_id = TenantId.parse(tenant)
            to = _local(forward) if forward else None
            secret = _secret(secret_file) if to else ""
            control_plane = here.find()
            render.note(f"Waiting for {kind} of tenant {tenant_id}. Ctrl-C ends this.")
            if to:
                # A secret that was given may be that of a real connection, and terminals and logs keep what is printed.
                shown = "the secret of --secret-file" if secret_file else secret
                render.note(f"They are forwarded to {to}, signed with {shown}")
            for event in incoming(here, control_plane, tenant_id, kind, event_type, only_new=True):
                answer = _forward(here, control_plane, tenant_id, event, to, secret) if to else None
                if as_json:
                    render.show_json_line({**event, "forwarded": answer} if answer else event)
                else:
                    event_view.show_line(event)
                    if answer:
                        _show_answer(answer)
    except KeyboardInterrupt:
        # Ctrl-C is the way to end this command, so that is no error.
        render.note("No longer listening.")


def _local(url: str) -> str:
    """The address, if it is on this machine. Events of a tenant are not sent anywhere else by an operator's command."""
    try:
        target = _RULES.parse(url)
        if target.host == "localhost" or ip_address(target.host).is_loopback:
            return target.url
    except (InvalidRequest, ValueError):
        pass
    raise InvalidRequest(
        f"--forward: {url!a} is not an address on this machine, such as http://127.0.0.1:3000/hook. To send events "
        "elsewhere, make a connection: berth connections create --help"
    )


def _secret(file: str | None) -> str:
    secret = secret_from(file) if file else new_signing_secret()
    try:
        base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except (ValueError, binascii.Error):
        raise InvalidRequest("The secret is not whsec_ followed by base64.") from None
    return secret


def _forward(
    here: Invocation, control_plane: ControlPlane, tenant: TenantId, event: Document, to: str, secret: str
) -> Document:
    """Post one event, with the bytes that came in. Whatever the server does, listening goes on."""
    event_id = event["event_id"]
    whole = ask_for(here, control_plane, tenant, GET_EVENT, OfEvent(event_id=event_id, payload_as=PayloadAs.BASE64))
    body = event_view.payload_bytes(whole)
    began = here.world.monotonic()
    answer = HttpWebhooks(_RULES).post(_request(event, to, body, secret, here.world.now()))
    milliseconds = int((here.world.monotonic() - began) * 1000)
    if isinstance(answer, Failure):
        return {"code": None, "milliseconds": milliseconds, "answer": answer.text}
    text = answer.body.decode(errors="replace")[:1000]
    return {"code": answer.status, "milliseconds": milliseconds, "answer": text}


def _request(event: Document, to: str, body: bytes, secret: str, at: datetime) -> WebhookRequest:
    headers = {
        "user-agent": f"Berth/{berth_version()} listen",
        "accept": "*/*",
        "content-type": event["content_type"],
        **signature_headers(f"{event['event_id']}-listen", body, [secret], at),
        EVENT_ID_HEADER: event["event_id"],
        EVENT_TYPE_HEADER: event["event_type"],
    }
    # The sender of the event chose its type and its content type.
    return WebhookRequest(to, {name: _printable(value) for name, value in headers.items()}, body)


def _printable(value: str) -> str:
    return "".join(each if " " <= each <= "~" else "_" for each in value)


def _show_answer(answer: Document) -> None:
    if answer["code"] is None:
        render.show_line(f"  no answer after {answer['milliseconds']} ms: {answer['answer']}", "bold red")
        return
    style = "green" if answer["code"] < _FIRST_ERROR else "bold red"
    first = answer["answer"].strip().splitlines()[:1]
    render.show_line(f"  {answer['code']} in {answer['milliseconds']} ms {''.join(first)[:120]}".rstrip(), style)
