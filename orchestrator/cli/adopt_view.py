"""Shows adoptions, as the API describes them."""

from __future__ import annotations

from rich.text import Text

from orchestrator.cli import render
from orchestrator.cli.api import Document
from orchestrator.reconciling.records import ReconciliationStatus


def show(adoption: Document) -> None:
    if adoption["status"] == ReconciliationStatus.INCOMPLETE:
        render.show_line(Text(f"Incomplete: {adoption['reason']} The rest of the table was not read.", "bold red"))
    if not adoption["total"]:
        if adoption["status"] == ReconciliationStatus.DONE:
            render.show_line(f"There is no tenant to adopt: read {render.counted(adoption['rows'], 'row')}.", "green")
        return
    done = "would be done" if adoption["dryRun"] else "was done"
    table = render.columns("Tenant", f"Finding, and what {done}")
    for tenant in adoption["tenants"]:
        table.add_row(tenant["tenantId"], Text.assemble(tenant["detail"], "\n", _outcome(tenant, adoption)))
    render.stdout().print(table)
    rows, tenants = render.counted(adoption["rows"], "row"), render.counted(adoption["total"], "tenant")
    render.show_line(f"\nRead {rows}. Found {tenants} that Berth has not listed.")
    if adoption["dryRun"]:
        render.show_line("This was a dry run: nothing was changed.")
    else:
        render.show_line(f"Adopted {adoption['adopted']}, not adopted {adoption['total'] - adoption['adopted']}.")
    _show_advice(adoption)
    for step in _next_steps(adoption):
        render.note(step)


def _outcome(tenant: Document, adoption: Document) -> Text:
    if tenant["adopted"]:
        return Text(f"adopted: {tenant['result']}", "green")
    if not tenant["adoptable"]:
        return Text("not adopted: see below", "bold red")
    if adoption["dryRun"]:
        return Text("would be adopted", "yellow")
    return Text(f"not adopted: {tenant['result'] or 'no reason was given'}", "bold red")


def _show_advice(adoption: Document) -> None:
    left = [tenant for tenant in adoption["tenants"] if tenant["advice"]]
    if left:
        render.show_line("\nTo be done by hand", "bold")
    for tenant in left:
        render.show_line(Text.assemble((f"{tenant['tenantId']}: ", "cyan"), tenant["advice"]))


def _next_steps(adoption: Document) -> list[str]:
    if adoption["dryRun"]:
        return ["Adopt them: berth adopt"] if any(tenant["adoptable"] for tenant in adoption["tenants"]) else []
    if adoption["adopted"]:
        return [
            "They are now tenants like any other. See what a rollout to the current release does: berth rollout plan"
        ]
    return []
