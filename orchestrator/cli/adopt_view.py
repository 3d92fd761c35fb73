"""How adoptions are shown. The documents are those of the API."""

from __future__ import annotations

from rich.text import Text

from orchestrator.cli import render
from orchestrator.cli.api import Document
from orchestrator.reconciling.records import ReconciliationStatus


def show(came: Document) -> None:
    if came["status"] == ReconciliationStatus.INCOMPLETE:
        render.show_line(Text(f"Incomplete: {came['reason']} The rest of the table was not looked at.", "bold red"))
    if not came["total"]:
        if came["status"] == ReconciliationStatus.DONE:
            render.show_line(f"There is nobody to adopt: looked at {render.counted(came['rows'], 'row')}.", "green")
        return
    done = "would be done" if came["dryRun"] else "was done"
    table = render.columns("Tenant", f"What was found, and what {done}")
    for tenant in came["tenants"]:
        table.add_row(tenant["tenantId"], Text.assemble(tenant["detail"], "\n", _outcome(tenant, came)))
    render.stdout().print(table)
    rows, tenants = render.counted(came["rows"], "row"), render.counted(came["total"], "tenant")
    render.show_line(f"\nLooked at {rows}. Found {tenants} that Berth has not listed.")
    if came["dryRun"]:
        render.show_line("This was a dry run: nothing was changed.")
    else:
        render.show_line(f"Adopted {came['adopted']}, left {came['total'] - came['adopted']}.")
    _show_left_to_a_person(came)
    for step in _next_steps(came):
        render.note(step)


def _outcome(tenant: Document, came: Document) -> Text:
    if tenant["adopted"]:
        return Text(f"adopted: {tenant['result']}", "green")
    if not tenant["adoptable"]:
        return Text("not adopted: see below", "bold red")
    if came["dryRun"]:
        return Text("would be adopted", "yellow")
    return Text(f"not adopted: {tenant['result'] or 'no reason was given'}", "bold red")


def _show_left_to_a_person(came: Document) -> None:
    left = [tenant for tenant in came["tenants"] if tenant["advice"]]
    if left:
        render.show_line("\nNeeds a person", "bold")
    for tenant in left:
        render.show_line(Text.assemble((f"{tenant['tenantId']}: ", "cyan"), tenant["advice"]))


def _next_steps(came: Document) -> list[str]:
    if came["dryRun"]:
        return ["Adopt them: berth adopt"] if any(tenant["adoptable"] for tenant in came["tenants"]) else []
    if came["adopted"]:
        return [
            "They are tenants like any other now. What moving them to the current release changes: berth rollout plan"
        ]
    return []
