"""`berth get-queue`: asks for a tenant's queue as a platform does, and can wait for it."""

from __future__ import annotations

import shlex
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.api.fields import TenantIdRequest
from orchestrator.api.queue_routes import CREDENTIAL_ROUTES, GET_QUEUE
from orchestrator.cli import render
from orchestrator.cli.api import Document
from orchestrator.cli.errors import ExitCode
from orchestrator.cli.interrupts import noting_an_interrupt
from orchestrator.cli.invocation import Invocation, Json, Tenant, Timeout, one_of
from orchestrator.cli.problems import problem
from orchestrator.client.retrying import BUSY_RETRY_SECONDS, RetryReason, too_busy
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.credentials import Access

if TYPE_CHECKING:
    from orchestrator.client.transport import ApiAnswer

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
            help="Also get temporary credentials, to send or to receive, and print them. Nothing is provisioned.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Get a tenant's queue; provision it if there is none."""
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        tenant_id = TenantId.parse(tenant)
        asked = TenantIdRequest(tenant_id=tenant_id.value)
        api = here.connect()
        with (
            here.retrying(timeout if wait else BUSY_RETRY_SECONDS) as retrying,
            noting_an_interrupt(f"Stopped waiting. Provisioning of tenant {tenant} continues."),
        ):
            answer = retrying(
                partial(api.send_request, CREDENTIAL_ROUTES[credentials] if credentials else GET_QUEUE, asked),
                until_ready(tenant_id) if wait else too_busy,
            )
        code = _show(tenant_id, answer, as_json=as_json, waited=retrying.seconds if wait else None)
    raise typer.Exit(code)


def until_ready(tenant: TenantId) -> RetryReason:
    def retry_reason(answer: ApiAnswer) -> str | None:
        if answer.status == _PROVISIONING:
            execution, waits = answer.body.get("execution"), answer.body.get("waitSeconds")
            if waits is not None:
                return f"Tenant {tenant} waits for its turn to be provisioned, about {waits} s: {execution}"
            return f"Tenant {tenant} is being provisioned by {execution}"
        return too_busy(answer)

    return retry_reason


def _show(tenant: TenantId, answer: ApiAnswer, *, as_json: bool, waited: float | None) -> ExitCode:
    """Show the queue, or that it is being provisioned. Every other answer is a problem."""
    if answer.status not in (_READY, _PROVISIONING):
        raise problem(answer)
    document = answer.body
    if as_json:
        render.show_json(document)
    else:
        credentials: Document = document.get("credentials", {})
        render.show_pairs(
            {
                "tenant": tenant.value,
                "state": render.state(document.get("state", "")),
                "queue url": document.get("queueUrl"),
                "queue arn": document.get("queueArn"),
                "version": document.get("version"),
                "execution": document.get("execution"),
                "waits for its turn": f"about {document['waitSeconds']} s" if "waitSeconds" in document else None,
                "access": _access(credentials) if credentials else None,
            }
        )
        if credentials:
            _show_credentials(credentials)
    if answer.status == _READY:
        return ExitCode.OK
    render.note(
        f"Not ready yet. Wait for it: berth get-queue {tenant} --wait"
        if waited is None
        else f"Still not ready after {waited:.0f} s. Provisioning continues: try again, or use a longer --timeout."
    )
    return ExitCode.NOT_READY


def _access(credentials: Document) -> str:
    return f"{credentials['access']}, until {render.moment(credentials['expiresAt'])}"


def _show_credentials(credentials: Document) -> None:
    """Print the credentials as shell commands, for trying the queue out by hand."""
    render.show_line()
    for variable, name in (
        ("AWS_ACCESS_KEY_ID", "accessKeyId"),
        ("AWS_SECRET_ACCESS_KEY", "secretAccessKey"),
        ("AWS_SESSION_TOKEN", "sessionToken"),
    ):
        render.show_line(f"export {variable}={shlex.quote(credentials[name])}")
