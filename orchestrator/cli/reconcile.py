"""`berth reconcile`: compares the records with the stacks, and repairs differences where that is safe."""

from __future__ import annotations

import re
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.api.reading import decode
from orchestrator.api.reconciliation_routes import (
    GET_RECONCILIATION,
    START_RECONCILIATION,
    ReconciliationIdRequest,
    StartReconciliation,
)
from orchestrator.cli import completing, render
from orchestrator.cli.api import Api, Document
from orchestrator.cli.errors import ApiProblem, ExitCode
from orchestrator.cli.interrupts import noting_an_interrupt
from orchestrator.cli.invocation import Invocation, Json, Reason, Timeout
from orchestrator.cli.problems import problem
from orchestrator.cli.reconcile_view import checked, show, show_running
from orchestrator.client.retrying import Retrying, too_busy
from orchestrator.common.times import parse_timestamp
from orchestrator.reconciling.records import ReconciliationStatus

if TYPE_CHECKING:
    from orchestrator.client.transport import ApiAnswer

BEGINS_WITHIN_SECONDS = 60
STALLED_AFTER = timedelta(minutes=25)
"""If the function dies, another one continues the survey after 15 minutes, when the schedule starts it the next time. A
reconciliation without progress for this long has died."""

_TIMEOUT_SECONDS = 1800
_FOUND = 200
_STARTED = 202
OVER = (ReconciliationStatus.DONE, ReconciliationStatus.INCOMPLETE)
WHERE_TO_LOOK = (
    "See berth doctor, and the log of the function in the output ReconcileFunctionName of the control plane's stack."
)

HELP = """\
[bold]Examples[/]
  berth reconcile --dry-run       show what is wrong, and change nothing
  berth reconcile                 repair what can be repaired, show the rest
  berth reconcile --detect-drift  also find resources changed by hand
  berth reconcile --only acme     repair acme only, and show the rest
  berth reconcile --no-wait       only start it; --follow ID shows the result

[bold]Findings[/]
  unfinished-operation  an operation whose execution died, or is stuck
  orphan-stack          a stack without a tenant, or of a deleted tenant
  missing-stack         a tenant that was provisioned, but has no stack
  metadata-differs      the recorded queue or version is not the stack's
  vanished-queue        a stack whose queue was deleted
  unknown-version       a tenant at a version that was never published
  stack-drifted         a stack whose resources differ from its template
  broken-stack          a stack that somebody left broken; its queue works
  foreign-stack         not Berth's stack, but with a tenant's stack name
  not-adopted           a tenant from before Berth: see berth adopt
  stalled-rollout       a rollout whose execution has died
"""


def reconcile(
    context: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what was found and would be done.")] = False,
    detect_drift: Annotated[
        bool,
        typer.Option(
            "--detect-drift",
            help="Also let CloudFormation detect drift in every tenant's stack. This takes longer.",
        ),
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TENANT",
            help="Repair only this tenant, and only show what else was found. May be repeated.",
            show_default=False,
            autocompletion=completing.tenant_ids,
        ),
    ] = None,
    follow: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Follow a reconciliation that was started before.", show_default=False),
    ] = None,
    reason: Reason = None,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait for the result.")] = True,
    timeout: Timeout = _TIMEOUT_SECONDS,
    as_json: Json = False,
) -> None:
    """Find where records and stacks differ, and repair it.

    Operations whose execution died are closed with their real result; metadata is
    corrected to match the stack; missing stacks are created again; leftovers of
    deleted tenants are deleted. No repair loses a message or deletes a queue in
    service: for such findings you get advice instead.

    Some of these checks also run on a schedule: see berth doctor.
    The exit code is 8 if a finding was not repaired; in a dry run, if there is
    any finding.
    """
    if follow is not None:
        if dry_run or detect_drift or only or reason:
            raise typer.BadParameter(
                "cannot be combined with --dry-run, --detect-drift, --only or --reason.", param_hint="'--follow'"
            )
        _check_id(follow)
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        api = here.connect()
        if follow:
            reconciliation = _found(here, api, follow)
        else:
            request = decode(
                StartReconciliation,
                {
                    "dryRun": dry_run,
                    "detectDrift": detect_drift,
                    **({"only": only} if only else {}),
                    **({"reason": reason} if reason else {}),
                },
            )
            reconciliation = start_reconciliation(here, api, request)
        if wait and reconciliation["status"] not in OVER:
            reconciliation = follow_reconciliation(here, api, reconciliation["reconciliationId"], timeout)
        code = _show_result(reconciliation, waited=wait, as_json=as_json)
    raise typer.Exit(code)


def _check_id(text: str) -> None:
    # Imported here because JSON schemas take long to load, and --help does not need them.
    from orchestrator.common.times import ID_PATTERN

    if not re.fullmatch(ID_PATTERN, text):
        message = f"{text!a} is not the id of a reconciliation, like 20261231-235959-0a1b."
        raise typer.BadParameter(message, param_hint="'--follow'")


def start_reconciliation(here: Invocation, api: Api, request: StartReconciliation) -> Document:
    with (
        noting_an_interrupt("Interrupted. If the reconciliation was started, it continues in the control plane."),
        here.retrying() as retrying,
    ):
        answer = retrying(
            partial(
                api.send_request,
                START_RECONCILIATION,
                request,
            )
        )
    if answer.status != _STARTED:
        raise problem(answer)
    return answer.body


def _found(here: Invocation, api: Api, reconciliation: str) -> Document:
    with here.retrying() as retrying:
        answer = retrying(
            partial(api.send_request, GET_RECONCILIATION, ReconciliationIdRequest(reconciliation_id=reconciliation))
        )
    if answer.status != _FOUND:
        raise problem(answer)
    return answer.body


def follow_reconciliation(here: Invocation, api: Api, reconciliation: str, timeout: float) -> Document:
    """Poll the reconciliation until it has ended or the time is up."""
    with (
        noting_an_interrupt(
            f"Stopped waiting. It continues in the control plane. See: berth reconcile --follow {reconciliation}"
        ),
        here.retrying(timeout) as retrying,
    ):
        answer = retrying(
            partial(api.send_request, GET_RECONCILIATION, ReconciliationIdRequest(reconciliation_id=reconciliation)),
            partial(_retry_reason, here, retrying),
        )
    if answer.status != _FOUND:
        raise problem(answer)
    if is_dead(here, answer.body):
        raise ApiProblem(
            f"Reconciliation {reconciliation} has made no progress since "
            f"{render.moment(answer.body['updatedAt'])}: its function has died.",
            ExitCode.ATTENTION,
            answer.body,
            [WHERE_TO_LOOK, "Then start another: berth reconcile"],
        )
    return answer.body


def _retry_reason(here: Invocation, retrying: Retrying, answer: ApiAnswer) -> str | None:
    if answer.status != _FOUND:
        return too_busy(answer)
    document = answer.body
    if document["status"] in OVER or is_dead(here, document):
        return None
    name = f"Reconciliation {document['reconciliationId']}"
    if document["status"] == ReconciliationStatus.PENDING:
        late = retrying.seconds > BEGINS_WITHIN_SECONDS
        return f"{name} should have started within a minute. {WHERE_TO_LOOK}" if late else f"{name} is about to start"
    return f"{name} is running: checked {checked(document)}"


def is_dead(here: Invocation, document: Document) -> bool:
    """True if the function that reconciles has died: there was no progress for longer than a function can run."""
    if document["status"] != ReconciliationStatus.RUNNING:
        return False
    return here.world.now() - parse_timestamp(document["updatedAt"]) > STALLED_AFTER


def _show_result(reconciliation: Document, *, waited: bool, as_json: bool) -> ExitCode:
    ended = reconciliation["status"] in OVER
    if as_json:
        render.show_json(reconciliation)
    elif ended:
        show(reconciliation)
    else:
        show_running(reconciliation)
    if ended:
        left = reconciliation["total"] - reconciliation["repaired"] - reconciliation["ordered"]
        incomplete = reconciliation["status"] == ReconciliationStatus.INCOMPLETE
        return ExitCode.ATTENTION if left or incomplete else ExitCode.OK
    running = "It is still running" if waited else "It runs in the control plane"
    render.note(f"{running}. See its result: berth reconcile --follow {reconciliation['reconciliationId']}")
    return ExitCode.NOT_READY if waited else ExitCode.OK
