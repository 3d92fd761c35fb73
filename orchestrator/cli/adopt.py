"""`berth adopt`: tenants from before Berth are brought into the index."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.cli import render
from orchestrator.cli.adopt_view import show
from orchestrator.cli.api import Api, Document
from orchestrator.cli.asking import Asking, too_busy
from orchestrator.cli.errors import ApiProblem, ExitCode
from orchestrator.cli.interrupts import noting_an_interrupt
from orchestrator.cli.invocation import Invocation, Json, Reason, Timeout
from orchestrator.cli.problems import problem
from orchestrator.cli.reconcile import OVER, WHERE_TO_LOOK, is_dead
from orchestrator.reconciling.records import ReconciliationStatus

if TYPE_CHECKING:
    from orchestrator.adapters.berth_api import ApiAnswer

_TIMEOUT_SECONDS = 3600
_FOUND = 200
_STARTED = 202

HELP = """\
[bold]Examples[/]
  berth adopt --dry-run   which tenants are there, and what would be done?
  berth adopt             bring them in
  berth rollout plan      then: what would moving them to the current release change?
"""


def adopt(
    context: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what is found and would be done.")] = False,
    reason: Reason = None,
    timeout: Timeout = _TIMEOUT_SECONDS,
    as_json: Json = False,
) -> None:
    """Bring tenants from before Berth into Berth's lists.

    Looks at every row of the table once. Tenants that an earlier system has
    written there are listed, with their stacks; no stack and no queue is changed.
    From then on they are tenants like any other: rollouts move them, and berth
    reconcile looks after them. Asking again does no harm.

    The exit code is 8 if a tenant is left that was not adopted; in a dry run, if
    any was found.
    """
    here: Invocation = context.obj
    with here.telling_errors(as_json=as_json):
        api = here.connect()
        came = _adopt_everybody(here, api, dry_run=dry_run, reason=reason, timeout=timeout)
        code = _tell(came, as_json=as_json)
    raise typer.Exit(code)


def _adopt_everybody(
    here: Invocation, api: Api, *, dry_run: bool, reason: str | None, timeout: float
) -> dict[str, Any]:
    """One adoption after the other, each from where the one before it has left off."""
    came: dict[str, Any] = {}
    cursor: str | None = None
    with (
        noting_an_interrupt(
            "No longer waiting. What was begun goes on in the control plane. See: berth adopt --dry-run"
        ),
        here.asking(timeout) as asking,
    ):
        while True:
            asked = _checked(asking(partial(api.adopt, dry_run=dry_run, cursor=cursor, reason=reason)), _STARTED)
            part = _watch(here, api, asking, asked["adoptionId"], came)
            came = _together(came, part)
            if part["status"] not in OVER or part["cursor"] in (None, cursor):
                return came
            cursor = part["cursor"]


def _checked(answer: ApiAnswer, status: int) -> Document:
    if answer.status != status:
        raise problem(answer)
    return answer.body


def _watch(here: Invocation, api: Api, asking: Asking, adoption: str, before: Document) -> Document:
    """Look at it until it is over, or the time is up."""
    said = _checked(asking(partial(api.adoption, adoption), partial(_later, here, before)), _FOUND)
    if is_dead(here, said):
        raise ApiProblem(
            f"Adoption {adoption} has not moved since {render.moment(said['updatedAt'])}: it died.",
            ExitCode.ATTENTION,
            said,
            [WHERE_TO_LOOK, "Then ask again: berth adopt"],
        )
    return said


def _later(here: Invocation, before: Document, answer: ApiAnswer) -> str | None:
    if answer.status != _FOUND:
        return too_busy(answer)
    said = answer.body
    if said["status"] in OVER or is_dead(here, said):
        return None
    if said["status"] == ReconciliationStatus.PENDING:
        return f"Adoption {said['adoptionId']} is about to begin"
    so_far = _together(before, said)
    return f"Looked at {render.counted(so_far['rows'], 'row')}: {render.counted(so_far['total'], 'tenant')} found"


def _together(before: Document, part: Document) -> dict[str, Any]:
    """What several adoptions came to, as if it had been one. A part may tell again what the one before it has told."""
    if not before:
        return dict(part)
    tenants = {each["tenantId"]: each for each in (*before["tenants"], *part["tenants"])}
    told_twice = len(before["tenants"]) + len(part["tenants"]) - len(tenants)
    return {
        **part,
        "adoptionId": before["adoptionId"],
        "startedAt": before["startedAt"],
        "rows": before["rows"] + part["rows"],
        "total": before["total"] + part["total"] - told_twice,
        "adopted": before["adopted"] + part["adopted"],
        "tenants": list(tenants.values()),
    }


def _tell(came: Document, *, as_json: bool) -> ExitCode:
    if as_json:
        render.show_json(came)
    else:
        show(came)
    if came["status"] not in OVER:
        render.note("Still going on. Ask again to see the rest: berth adopt")
        return ExitCode.NOT_READY
    left = came["total"] - came["adopted"]
    return ExitCode.ATTENTION if left or came["status"] == ReconciliationStatus.INCOMPLETE else ExitCode.OK
