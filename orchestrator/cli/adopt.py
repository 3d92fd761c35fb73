"""`berth adopt`: adds an earlier system's tenants to the index, once."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import render
from orchestrator.cli.errors import ExitCode, is_denied
from orchestrator.cli.interrupts import noting_an_interrupt
from orchestrator.cli.invocation import Invocation, Json, Reason, Yes
from orchestrator.cli.progress import Progress
from orchestrator.common.errors import InvalidRequest
from orchestrator.common.input_limits import REASON_MAX_LENGTH, REASON_PATTERN
from orchestrator.tenants.records import Request

if TYPE_CHECKING:
    from orchestrator.adapters.migration import Migration, Plan

_NOT_THE_ADOPTER = "Only the role in berth:adopterArn may adopt tenants: see A fleet from before Berth in the runbook."
HELP = """\
[bold]Examples[/]
  berth adopt --dry-run   list the tenants, and what would be done with each
  berth adopt             show the same, ask, and adopt them
  berth rollout plan      then show what moving them would do
"""


def adopt(
    context: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what was found and would be done.")] = False,
    yes: Yes = False,
    reason: Reason = None,
    as_json: Json = False,
) -> None:
    """Adopt tenants from before Berth.

    Reads every row of the table once, with your AWS credentials, and shows the
    tenants that an earlier system wrote there. Once confirmed, it adds them to
    Berth's index, with their stacks. No stack and no queue is changed. From then
    on rollouts move them, and berth reconcile checks them. Adopting twice does no
    harm. Without a terminal and without --yes, nothing is changed.

    The exit code is 8 if a tenant was found that is not adopted or has no stack.
    """
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        if reason and (len(reason) > REASON_MAX_LENGTH or not re.match(REASON_PATTERN, reason)):
            raise InvalidRequest(f"--reason must be one line of at most {REASON_MAX_LENGTH} characters.")
        migration = here.find().migration(here.world.sleep)
        with Progress(here.world.monotonic, busy_with="reading the table") as progress:
            plans = list(migration.find(progress.show_waiting))
        adoptable = [plan for plan in plans if plan.seen is not None]
        if not as_json:
            _show(plans, migration.scanned)
        if adoptable and not (dry_run or yes or as_json) and here.world.someone_is_there():
            here.confirm(f"This adopts {render.counted(len(adoptable), 'tenant')}.")
            yes = True
        results = _adopt(here, migration, adoptable, reason) if yes and not dry_run else {}
        adopted = [tenant for tenant, problem in results.items() if problem is None]
        if as_json:
            tenants = [_document(plan, results) for plan in plans]
            render.show_json({"rows": migration.scanned, "adopted": len(adopted), "tenants": tenants})
        elif results:
            render.show_line(f"Adopted {len(adopted)} of {render.counted(len(plans), 'tenant')}.")
            render.note("They are tenants like any other now. See what a rollout does: berth rollout plan")
        elif adoptable:
            render.note("Nothing was changed. Adopt them: berth adopt --yes")
    is_complete = all(plan.has_stack and plan.tenant_id in adopted for plan in plans)
    raise typer.Exit(ExitCode.OK if is_complete else ExitCode.ATTENTION)


def _adopt(here: Invocation, migration: Migration, plans: list[Plan], reason: str | None) -> dict[str, str | None]:
    """Adopt the tenants one by one. The problem of each, by tenant; ``None`` if it was adopted."""
    results: dict[str, str | None] = {}
    request = Request(by=f"berth adopt, requested by {here.find().caller()}", reason=reason or "")
    with noting_an_interrupt("Interrupted. Adopt the others: berth adopt"), Progress(here.world.monotonic) as progress:
        for number, plan in enumerate(plans):
            if number % 100 == 99:
                progress.show_waiting(f"Tried {number + 1} of {len(plans)} tenants")
            try:
                problem = results[plan.tenant_id] = migration.adopt(plan, request)
            except Exception as error:
                if is_denied(error):
                    render.complain(_NOT_THE_ADOPTER)
                raise
            if problem is not None:
                render.complain(f"{plan.tenant_id} was not adopted: {problem}")
    return results


def _show(plans: list[Plan], rows: int) -> None:
    table = render.columns("Tenant", "Finding, and what an adoption does")
    for plan in plans:
        table.add_row(plan.tenant_id, plan.detail if plan.seen else f"Not adopted. {plan.detail}")
    if plans:
        render.stdout().print(table)
    found = render.counted(len(plans), "tenant")
    render.show_line(f"Read {render.counted(rows, 'row')}. Found {found} from before Berth.")


def _document(plan: Plan, results: dict[str, str | None]) -> dict[str, object]:
    problem = results.get(plan.tenant_id)
    adopted = plan.tenant_id in results and problem is None
    document = {"tenantId": plan.tenant_id, "detail": plan.detail, "adoptable": plan.seen is not None}
    return {**document, "adopted": adopted, "problem": problem}
