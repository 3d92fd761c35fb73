"""`berth adopt`: adds tenants from before Berth to the index."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.api.fields import or_unset
from orchestrator.api.reconciliation_routes import GET_ADOPTION, START_ADOPTION, AdoptionIdRequest, StartAdoption
from orchestrator.cli import render
from orchestrator.cli.adopt_view import show
from orchestrator.cli.api import Api, Document
from orchestrator.cli.errors import ApiProblem, ExitCode
from orchestrator.cli.interrupts import noting_an_interrupt
from orchestrator.cli.invocation import Invocation, Json, Reason, Timeout
from orchestrator.cli.problems import problem
from orchestrator.cli.reconcile import OVER, WHERE_TO_LOOK, is_dead
from orchestrator.client.retrying import Retrying, too_busy
from orchestrator.reconciling.records import ReconciliationStatus

if TYPE_CHECKING:
    from orchestrator.client.transport import ApiAnswer

_TIMEOUT_SECONDS = 3600
_FOUND = 200
_STARTED = 202

HELP = """\
[bold]Examples[/]
  berth adopt --dry-run   list the tenants, and what would be done with each
  berth adopt             adopt them
  berth rollout plan      then show what moving them would do
"""


def adopt(
    context: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what was found and would be done.")] = False,
    reason: Reason = None,
    timeout: Timeout = _TIMEOUT_SECONDS,
    as_json: Json = False,
) -> None:
    """Adopt tenants from before Berth.

    Reads every row of the table once, and adds tenants that an earlier system
    wrote there to Berth's index, with their stacks. No stack and no queue is
    changed. From then on they are tenants like any other: rollouts move them, and
    berth reconcile checks them. Adopting twice does no harm.

    The exit code is 8 if a tenant could not be adopted; in a dry run, if any
    tenant was found.
    """
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        api = here.connect()
        adoption = _adopt_all(here, api, dry_run=dry_run, reason=reason, timeout=timeout)
        code = _show_result(adoption, as_json=as_json)
    raise typer.Exit(code)


def _adopt_all(here: Invocation, api: Api, *, dry_run: bool, reason: str | None, timeout: float) -> dict[str, Any]:
    """Run adoptions until the whole table was read. Each starts at the cursor where the previous one stopped."""
    result: dict[str, Any] = {}
    cursor: str | None = None
    with (
        noting_an_interrupt("Stopped waiting. The adoption continues in the control plane. See: berth adopt --dry-run"),
        here.retrying(timeout) as retrying,
    ):
        while True:
            started = _checked(
                retrying(
                    partial(
                        api.send_request,
                        START_ADOPTION,
                        StartAdoption(dry_run=dry_run, cursor=or_unset(cursor), reason=or_unset(reason)),
                    )
                ),
                _STARTED,
            )
            part = _watch(here, api, retrying, started["adoptionId"], result)
            result = _merged(result, part)
            if part["status"] not in OVER or part["cursor"] in (None, cursor):
                return result
            cursor = part["cursor"]


def _checked(answer: ApiAnswer, status: int) -> Document:
    if answer.status != status:
        raise problem(answer)
    return answer.body


def _watch(here: Invocation, api: Api, retrying: Retrying, adoption: str, before: Document) -> Document:
    """Poll the adoption until it has ended or the time is up."""
    document = _checked(
        retrying(
            partial(api.send_request, GET_ADOPTION, AdoptionIdRequest(adoption_id=adoption)),
            partial(_retry_reason, here, before),
        ),
        _FOUND,
    )
    if is_dead(here, document):
        raise ApiProblem(
            f"Adoption {adoption} has made no progress since {render.moment(document['updatedAt'])}: "
            "its function has died.",
            ExitCode.ATTENTION,
            document,
            [WHERE_TO_LOOK, "Then start another: berth adopt"],
        )
    return document


def _retry_reason(here: Invocation, before: Document, answer: ApiAnswer) -> str | None:
    if answer.status != _FOUND:
        return too_busy(answer)
    document = answer.body
    if document["status"] in OVER or is_dead(here, document):
        return None
    if document["status"] == ReconciliationStatus.PENDING:
        return f"Adoption {document['adoptionId']} is about to start"
    so_far = _merged(before, document)
    return f"Read {render.counted(so_far['rows'], 'row')}: {render.counted(so_far['total'], 'tenant')} found"


def _merged(before: Document, part: Document) -> dict[str, Any]:
    """Several adoptions as one. A part may repeat tenants of the previous part; they are counted once."""
    if not before:
        return dict(part)
    tenants = {each["tenantId"]: each for each in (*before["tenants"], *part["tenants"])}
    repeated = len(before["tenants"]) + len(part["tenants"]) - len(tenants)
    return {
        **part,
        "adoptionId": before["adoptionId"],
        "startedAt": before["startedAt"],
        "rows": before["rows"] + part["rows"],
        "total": before["total"] + part["total"] - repeated,
        "adopted": before["adopted"] + part["adopted"],
        "tenants": list(tenants.values()),
    }


def _show_result(adoption: Document, *, as_json: bool) -> ExitCode:
    if as_json:
        render.show_json(adoption)
    else:
        show(adoption)
    if adoption["status"] not in OVER:
        render.note("The adoption is still running. Run this again to see the rest: berth adopt")
        return ExitCode.NOT_READY
    left = adoption["total"] - adoption["adopted"]
    return ExitCode.ATTENTION if left or adoption["status"] == ReconciliationStatus.INCOMPLETE else ExitCode.OK
