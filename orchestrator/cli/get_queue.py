"""`berth get-queue`: a tenant's queue, asked for as a platform would, and waited for as an operator would."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import render
from orchestrator.cli.api import Document
from orchestrator.cli.asking import PATIENCE_SECONDS, Later, too_busy
from orchestrator.cli.errors import ExitCode
from orchestrator.cli.interrupts import noting_an_interrupt
from orchestrator.cli.invocation import Invocation, Json, Tenant, Timeout, one_of
from orchestrator.cli.problems import problem
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.credentials import Access

if TYPE_CHECKING:
    from orchestrator.adapters.berth_api import ApiAnswer

_READY = 200
_PROVISIONING = 202


def get_queue(
    context: typer.Context,
    tenant: Tenant,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the queue is ready.")] = False,
    timeout: Timeout = 900,
    credentials: Annotated[
        Access | None,
        typer.Option(
            parser=one_of(Access),
            metavar="<send|receive>",
            help="Ask for temporary credentials, to send or to receive. They are printed. Nothing is provisioned.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Ask for a tenant's queue, which provisions it when there is none."""
    here: Invocation = context.obj
    with here.telling_errors(as_json=as_json):
        tenant_id = TenantId.parse(tenant)
        api = here.connect()
        with (
            here.asking(timeout if wait else PATIENCE_SECONDS) as asking,
            noting_an_interrupt(f"No longer waiting. What was started for tenant {tenant} goes on."),
        ):
            answer = asking(
                lambda: api.get_credentials(tenant_id, credentials) if credentials else api.get_queue(tenant_id),
                until_ready(tenant_id) if wait else too_busy,
            )
        code = _show(tenant_id, answer, as_json=as_json, waited=asking.seconds if wait else None)
    raise typer.Exit(code)


def until_ready(tenant: TenantId) -> Later:
    def later(answer: ApiAnswer) -> str | None:
        if answer.status == _PROVISIONING:
            return f"Tenant {tenant} is being provisioned by {answer.body.get('execution')}"
        return too_busy(answer)

    return later


def _show(tenant: TenantId, answer: ApiAnswer, *, as_json: bool, waited: float | None) -> ExitCode:
    """Show a queue or that it is on its way. Every other answer is a problem."""
    if answer.status not in (_READY, _PROVISIONING):
        raise problem(answer)
    said = answer.body
    if as_json:
        render.show_json(said)
    else:
        given: Document = said.get("credentials", {})
        render.show_pairs(
            {
                "tenant": tenant.value,
                "status": render.state(said.get("status", "")),
                "queue url": said.get("queueUrl"),
                "queue arn": said.get("queueArn"),
                "version": said.get("version"),
                "execution": said.get("execution"),
                "access": f"{given['access']}, until {render.moment(given['expiresAt'])}" if given else None,
            }
        )
        if given:
            _show_credentials(given)
    if answer.status == _READY:
        return ExitCode.OK
    render.note(
        f"Not ready yet. Wait for it: berth get-queue {tenant} --wait"
        if waited is None
        else f"Still not ready after {waited:.0f} s. It goes on: ask again later, or wait with a longer --timeout."
    )
    return ExitCode.NOT_READY


def _show_credentials(given: Document) -> None:
    """As a shell takes them: they are for trying the queue out by hand."""
    render.show_line()
    for variable, name in (
        ("AWS_ACCESS_KEY_ID", "accessKeyId"),
        ("AWS_SECRET_ACCESS_KEY", "secretAccessKey"),
        ("AWS_SESSION_TOKEN", "sessionToken"),
    ):
        render.show_line(f"export {variable}={shlex.quote(given[name])}")
