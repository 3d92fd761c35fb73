"""Shows reconciliations, as the API describes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.text import Text

from orchestrator.cli import render
from orchestrator.cli.api import Document
from orchestrator.reconciling.records import ReconciliationStatus, Remedy

_WOULD: Mapping[str, str] = {
    Remedy.SETTLE: "would record its result, and release the tenant's lock",
    Remedy.CREATE: "would create the tenant",
    Remedy.RECREATE: "would remove the lost queue from the metadata, and create the tenant again",
    Remedy.DELETE: "would delete the stack, unless there are messages in its queues",
    Remedy.CORRECT: "would correct the metadata to match the stack",
    Remedy.UPGRADE: "would upgrade the tenant to its release",
}
_BY_HAND = "to be done by hand: see below"
_MAX_SUBJECTS = 5
"""How many subjects are named next to advice that they share. The table of findings names all of them."""


def show(reconciliation: Document) -> None:
    """Show a reconciliation that has ended."""
    if reconciliation["status"] == ReconciliationStatus.INCOMPLETE:
        render.show_line(Text(f"Incomplete: {reconciliation['reason']} The rest was not checked.", "bold red"))
    if not reconciliation["total"]:
        if reconciliation["status"] == ReconciliationStatus.DONE:
            render.show_line(f"No differences: checked {checked(reconciliation)}.", "green")
        else:
            render.show_line(f"No differences so far: checked {checked(reconciliation)}.")
    else:
        _show_findings(reconciliation)
    for step in _next_steps(reconciliation):
        render.note(step)


def show_running(reconciliation: Document) -> None:
    """Show a reconciliation that has not ended."""
    drift = ", with drift detection" if reconciliation["detectDrift"] else ""
    render.show_pairs(
        {
            "id": reconciliation["reconciliationId"],
            "status": render.state(reconciliation["status"]),
            "mode": f"dry run{drift}" if reconciliation["dryRun"] else f"repair{drift}",
            "requested": render.moment(reconciliation["startedAt"]),
            "reason": reconciliation["requestedBecause"],
            "checked": checked(reconciliation) if reconciliation["status"] == ReconciliationStatus.RUNNING else None,
        }
    )


def checked(reconciliation: Document) -> str:
    """How many operations, tenants and stacks the reconciliation has checked so far."""
    counts = reconciliation["lookedAt"]
    parts = [
        render.counted(counts["operations"], "unfinished operation"),
        render.counted(counts["tenants"], "tenant"),
        render.counted(counts["stacks"], "stack"),
    ]
    if reconciliation["detectDrift"]:
        parts.append(f"{render.counted(counts['drift'], 'stack')} for drift")
    return ", ".join(parts)


def _show_findings(reconciliation: Document) -> None:
    findings: Sequence[Document] = reconciliation["findings"]
    done = "would be done" if reconciliation["dryRun"] else "was done"
    table = render.columns("Finding", "Subject", f"Details, and what {done}")
    for finding in findings:
        details = Text.assemble(finding["detail"], "\n", _outcome(finding, dry_run=reconciliation["dryRun"]))
        table.add_row(finding["kind"], finding["subject"], details)
    render.stdout().print(table)
    if reconciliation["total"] > len(findings):
        render.show_line(f"... and {reconciliation['total'] - len(findings)} more, which are only counted.")
    counts = ", ".join(f"{count} {kind}" for kind, count in reconciliation["counts"].items())
    render.show_line(f"\nChecked {checked(reconciliation)}. Findings: {reconciliation['total']} ({counts}).")
    if reconciliation["dryRun"]:
        render.show_line("This was a dry run: nothing was changed.")
    else:
        repaired, started = reconciliation["repaired"], reconciliation["ordered"]
        left = reconciliation["total"] - repaired - started
        render.show_line(f"Repaired {repaired}, started an operation for {started}, not repaired {left}.")
    _show_advice(findings)


def _outcome(finding: Document, *, dry_run: bool) -> Text:
    if finding["repaired"]:
        return Text(f"repaired: {finding['result']}", "green")
    if finding["ordered"]:
        return Text(f"operation started: {finding['result']}", "green")
    if finding["remedy"] == Remedy.NONE:
        return Text(_BY_HAND, "bold red")
    if dry_run:
        return Text(_WOULD.get(finding["remedy"], finding["remedy"]), "yellow")
    return Text(f"not repaired: {finding['result'] or 'no reason was given'}", "bold red")


def _show_advice(findings: Sequence[Document]) -> None:
    """Print each advice once, on one line however long, so that its commands can be copied."""
    subjects: dict[str, list[str]] = {}
    for finding in findings:
        if finding["remedy"] == Remedy.NONE:
            subjects.setdefault(finding["advice"] or finding["detail"], []).append(finding["subject"])
    if subjects:
        render.show_line("\nTo be done by hand", "bold")
    for advice, names in subjects.items():
        more = f" and {len(names) - _MAX_SUBJECTS} more" if len(names) > _MAX_SUBJECTS else ""
        render.show_line(Text.assemble((f"{', '.join(names[:_MAX_SUBJECTS])}{more}: ", "cyan"), advice))


def _next_steps(reconciliation: Document) -> list[str]:
    if reconciliation["dryRun"]:
        complete = reconciliation["total"] == len(reconciliation["findings"])
        nothing_to_repair = complete and all(finding["remedy"] == Remedy.NONE for finding in reconciliation["findings"])
        return [] if nothing_to_repair else ["Repair what can be repaired: berth reconcile"]
    steps = []
    if reconciliation["ordered"]:
        steps.append("The started operations are running. See their results: berth tenants, and berth tenant TENANT")
    if reconciliation["status"] == ReconciliationStatus.INCOMPLETE:
        steps.append("Check the rest: berth reconcile")
    return steps
