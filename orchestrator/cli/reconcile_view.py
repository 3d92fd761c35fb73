"""How reconciliations are shown. The documents are those of the API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.text import Text

from orchestrator.cli import render
from orchestrator.cli.api import Document
from orchestrator.reconciling.records import ReconciliationStatus, Remedy

_WOULD: Mapping[str, str] = {
    Remedy.SETTLE: "would record how it ended, and free the tenant",
    Remedy.CREATE: "would have the tenant created",
    Remedy.RECREATE: "would forget the queue that is gone, and have the tenant created",
    Remedy.DELETE: "would have what is left of it deleted, unless there are messages in it",
    Remedy.CORRECT: "would have the metadata say what the stack says",
    Remedy.ADOPT: "would bring the tenant into the lists",
    Remedy.UPGRADE: "would have the tenant moved to the release where it ought to be",
}
_A_PERSON = "needs a person: see below"
_MAX_SUBJECTS = 5
"""How many are named beside the advice that they share. The table above names all of them."""


def show(came: Document) -> None:
    """What came of one that is over."""
    if came["status"] == ReconciliationStatus.INCOMPLETE:
        render.show_line(Text(f"Incomplete: {came['reason']} What was not looked at is not told.", "bold red"))
    if not came["total"]:
        if came["status"] == ReconciliationStatus.DONE:
            render.show_line(f"All is as it should be: looked at {looked_at(came)}.", "green")
        else:
            render.show_line(f"Nothing was found so far: looked at {looked_at(came)}.")
    else:
        _show_findings(came)
    for step in _next_steps(came):
        render.note(step)


def show_asked(asked: Document) -> None:
    """How one stands that is not over."""
    drift = ", with drift" if asked["detectDrift"] else ""
    render.show_pairs(
        {
            "id": asked["reconciliationId"],
            "status": render.state(asked["status"]),
            "what": f"dry run{drift}" if asked["dryRun"] else f"repair{drift}",
            "asked for": render.moment(asked["startedAt"]),
            "why": asked["requestedBecause"],
        }
    )


def looked_at(reconciliation: Document) -> str:
    told = reconciliation["lookedAt"]
    parts = [
        render.counted(told["operations"], "unfinished operation"),
        render.counted(told["tenants"], "tenant"),
        render.counted(told["stacks"], "stack"),
    ]
    if reconciliation["detectDrift"]:
        parts.append(f"drift of {told['drift']}")
    return ", ".join(parts)


def _show_findings(came: Document) -> None:
    findings: Sequence[Document] = came["findings"]
    done = "would be done" if came["dryRun"] else "was done"
    table = render.columns("Finding", "Subject", f"What is wrong, and what {done}")
    for finding in findings:
        told = Text.assemble(finding["detail"], "\n", _outcome(finding, dry_run=came["dryRun"]))
        table.add_row(finding["kind"], finding["subject"], told)
    render.stdout().print(table)
    if came["total"] > len(findings):
        render.show_line(f"... and {came['total'] - len(findings)} more, which are only counted.")
    counts = ", ".join(f"{count} {kind}" for kind, count in came["counts"].items())
    render.show_line(f"\nLooked at {looked_at(came)}. Found {came['total']}: {counts}.")
    if came["dryRun"]:
        render.show_line("This was a dry run: nothing was changed.")
    else:
        left = came["total"] - came["repaired"] - came["ordered"]
        render.show_line(f"Repaired {came['repaired']}, ordered {came['ordered']}, left {left}.")
    _show_left_to_a_person(findings)


def _outcome(finding: Document, *, dry_run: bool) -> Text:
    if finding["repaired"]:
        return Text(f"repaired: {finding['result']}", "green")
    if finding["ordered"]:
        return Text(f"ordered: {finding['result']}", "green")
    if finding["remedy"] == Remedy.NONE:
        return Text(_A_PERSON, "bold red")
    if dry_run:
        return Text(_WOULD.get(finding["remedy"], finding["remedy"]), "yellow")
    return Text(f"not repaired: {finding['result'] or 'no reason was given'}", "bold red")


def _show_left_to_a_person(findings: Sequence[Document]) -> None:
    """In lines of their own, however long: there are commands in them, to be copied. The same advice is given once."""
    subjects: dict[str, list[str]] = {}
    for finding in findings:
        if finding["remedy"] == Remedy.NONE:
            subjects.setdefault(finding["advice"] or finding["detail"], []).append(finding["subject"])
    if subjects:
        render.show_line("\nNeeds a person", "bold")
    for advice, of in subjects.items():
        more = f" and {len(of) - _MAX_SUBJECTS} more" if len(of) > _MAX_SUBJECTS else ""
        render.show_line(Text.assemble((f"{', '.join(of[:_MAX_SUBJECTS])}{more}: ", "cyan"), advice))


def _next_steps(came: Document) -> list[str]:
    if came["dryRun"]:
        told_all = came["total"] == len(came["findings"])
        nothing_to_repair = told_all and all(finding["remedy"] == Remedy.NONE for finding in came["findings"])
        return [] if nothing_to_repair else ["Put right what can be: berth reconcile"]
    steps = []
    if came["ordered"]:
        steps.append("What was ordered goes on. See how it ends: berth tenants, and berth tenant TENANT")
    if came["status"] == ReconciliationStatus.INCOMPLETE:
        steps.append("Look at the rest: berth reconcile")
    return steps
