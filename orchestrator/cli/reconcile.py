"""`berth reconcile`: what is recorded compared with what is there, and put right where that is safe."""

from __future__ import annotations

import re
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import render
from orchestrator.cli.api import Api, Document
from orchestrator.cli.asking import Asking, too_busy
from orchestrator.cli.errors import ApiProblem, ExitCode
from orchestrator.cli.interrupts import noting_an_interrupt
from orchestrator.cli.invocation import Invocation, Json, Reason, Timeout
from orchestrator.cli.problems import problem
from orchestrator.cli.reconcile_view import looked_at, show, show_asked
from orchestrator.common.times import parse_timestamp
from orchestrator.reconciling.records import ReconciliationStatus

if TYPE_CHECKING:
    from orchestrator.adapters.berth_api import ApiAnswer

BEGINS_WITHIN_SECONDS = 60
STALLED_AFTER = timedelta(minutes=20)
"""The function that does it may take 15 minutes, and no longer: if nothing has changed for this long, it has died."""

_TIMEOUT_SECONDS = 1800
_FOUND = 200
_STARTED = 202
OVER = (ReconciliationStatus.DONE, ReconciliationStatus.INCOMPLETE)
WHERE_TO_LOOK = (
    "Look at berth doctor, and at the log of the function that the control plane's stack names ReconcileFunctionName."
)

HELP = """\
[bold]Examples[/]
  berth reconcile --dry-run       what is wrong? nothing is changed
  berth reconcile                 put right what can be, and tell the rest
  berth reconcile --detect-drift  also look for what was changed by hand
  berth reconcile --no-wait       only ask for it; --follow ID shows the end

[bold]What it finds[/]
  unfinished-operation  its execution died, or hangs
  orphan-stack          a stack, and no such tenant, or it was deleted
  missing-stack         a tenant that was provisioned, and no stack
  metadata-differs      the queue or version on record is not the stack's
  vanished-queue        the stack stands, and its queue is gone
  unknown-version       a tenant at a version that was never published
  stack-drifted         resources are not as the template has them
  broken-stack          served, and somebody left its stack broken
  foreign-stack         named like a tenant's stack, and none
  unlisted-tenant       from before Berth, and not adopted: see berth adopt
  stalled-rollout       it should go on, and nothing moves it
"""


def reconcile(
    context: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what is found and would be done.")] = False,
    detect_drift: Annotated[
        bool,
        typer.Option(
            "--detect-drift",
            help="Also have CloudFormation compare every tenant's stack with what is there: that takes longer.",
        ),
    ] = False,
    follow: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="Follow one that was asked for before, instead of asking for one.", show_default=False
        ),
    ] = None,
    reason: Reason = None,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait for the result.")] = True,
    timeout: Timeout = _TIMEOUT_SECONDS,
    as_json: Json = False,
) -> None:
    """Find where records and stacks differ, and put it right.

    Operations whose execution died get the end that is true; metadata is made to
    say what the stack says; what is missing is created; what is left of deleted
    tenants is deleted. No message is lost and no queue in service deleted: what
    would take that is left to you, with advice.

    Part of it runs by itself, every few minutes: see berth doctor.
    The exit code is 8 if something is left that was not put right; in a dry run,
    if anything was found.
    """
    if follow is not None:
        if dry_run or detect_drift or reason:
            raise typer.BadParameter(
                "it goes with neither --dry-run nor --detect-drift nor --reason.", param_hint="'--follow'"
            )
        _check_id(follow)
    here: Invocation = context.obj
    with here.telling_errors(as_json=as_json):
        api = here.connect()
        if follow:
            asked = _found(here, api, follow)
        else:
            asked = ask_for_reconciliation(here, api, dry_run=dry_run, detect_drift=detect_drift, reason=reason)
        if wait and asked["status"] not in OVER:
            asked = follow_reconciliation(here, api, asked["reconciliationId"], timeout)
        code = _tell(asked, waited=wait, as_json=as_json)
    raise typer.Exit(code)


def _check_id(given: str) -> None:
    # Not at the top: JSON schemas take long to load, and --help does not need them.
    from orchestrator.common.times import ID_PATTERN

    if not re.fullmatch(ID_PATTERN, given):
        message = f"{given!a} is not the id of a reconciliation, like 20261231-235959-0a1b."
        raise typer.BadParameter(message, param_hint="'--follow'")


def ask_for_reconciliation(
    here: Invocation, api: Api, *, dry_run: bool, detect_drift: bool, reason: str | None
) -> Document:
    with (
        noting_an_interrupt("Interrupted. If it was started, it goes on in the control plane."),
        here.asking() as asking,
    ):
        answer = asking(partial(api.reconcile, dry_run=dry_run, detect_drift=detect_drift, reason=reason))
    if answer.status != _STARTED:
        raise problem(answer)
    return answer.body


def _found(here: Invocation, api: Api, reconciliation: str) -> Document:
    with here.asking() as asking:
        answer = asking(partial(api.reconciliation, reconciliation))
    if answer.status != _FOUND:
        raise problem(answer)
    return answer.body


def follow_reconciliation(here: Invocation, api: Api, reconciliation: str, timeout: float) -> Document:
    """Look at it until it is over, or the time is up."""
    with (
        noting_an_interrupt(
            f"No longer waiting. It goes on in the control plane. See: berth reconcile --follow {reconciliation}"
        ),
        here.asking(timeout) as asking,
    ):
        answer = asking(partial(api.reconciliation, reconciliation), partial(_later, here, asking))
    if answer.status != _FOUND:
        raise problem(answer)
    if is_dead(here, answer.body):
        raise ApiProblem(
            f"Reconciliation {reconciliation} has not moved since {render.moment(answer.body['updatedAt'])}: it died.",
            ExitCode.ATTENTION,
            answer.body,
            [WHERE_TO_LOOK, "Then ask for another one: berth reconcile"],
        )
    return answer.body


def _later(here: Invocation, asking: Asking, answer: ApiAnswer) -> str | None:
    if answer.status != _FOUND:
        return too_busy(answer)
    said = answer.body
    if said["status"] in OVER or is_dead(here, said):
        return None
    what = f"Reconciliation {said['reconciliationId']}"
    if said["status"] == ReconciliationStatus.PENDING:
        late = asking.seconds > BEGINS_WITHIN_SECONDS
        return f"{what} should have begun within a minute. {WHERE_TO_LOOK}" if late else f"{what} is about to begin"
    return f"{what} goes on: looked at {looked_at(said)}"


def is_dead(here: Invocation, said: Document) -> bool:
    """Whether the function that was to do it has died: nothing has changed for longer than it can run."""
    if said["status"] != ReconciliationStatus.RUNNING:
        return False
    return here.world.now() - parse_timestamp(said["updatedAt"]) > STALLED_AFTER


def _tell(came: Document, *, waited: bool, as_json: bool) -> ExitCode:
    is_over = came["status"] in OVER
    if as_json:
        render.show_json(came)
    elif is_over:
        show(came)
    else:
        show_asked(came)
    if is_over:
        left = came["total"] - came["repaired"] - came["ordered"]
        incomplete = came["status"] == ReconciliationStatus.INCOMPLETE
        return ExitCode.ATTENTION if left or incomplete else ExitCode.OK
    goes_on = "Still going on" if waited else "It goes on in the control plane"
    render.note(f"{goes_on}. See what comes of it: berth reconcile --follow {came['reconciliationId']}")
    return ExitCode.NOT_READY if waited else ExitCode.OK
