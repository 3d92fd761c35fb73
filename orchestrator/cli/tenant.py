"""`berth tenant`: all that is recorded about one tenant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import typer
from rich.text import Text

from orchestrator.cli import render
from orchestrator.cli.api import Document
from orchestrator.cli.invocation import Invocation, Json, Tenant
from orchestrator.cli.problems import problem
from orchestrator.common.tenant_ids import TenantId

_FOUND = 200

_WORDS = {
    "pinnedVersion": "pin",
    "queueUrl": "queue url",
    "queueArn": "queue arn",
    "stackId": "stack",
}
"""What is called otherwise in an answer."""


def tenant(context: typer.Context, tenant: Tenant, as_json: Json = False) -> None:
    """Show all that is recorded about one tenant.

    Its state, its queue, what is going on now, how each operation ended last, and its whole history.
    """
    here: Invocation = context.obj
    with here.telling_errors(as_json=as_json):
        tenant_id = TenantId.parse(tenant)
        api = here.connect()
        with here.asking() as asking:
            answer = asking(lambda: api.tenant(tenant_id))
        if answer.status != _FOUND:
            raise problem(answer)
        if as_json:
            render.show_json(answer.body)
        else:
            _show(answer.body)


def show_summary(document: Document) -> None:
    """The tenant as it is now."""
    labels = ", ".join(f"{name}={value}" for name, value in sorted(document["labels"].items()))
    render.show_pairs(
        {
            "tenant": document["tenantId"],
            "state": render.state(document["state"]),
            "version": document["version"],
            "pinned to": document["pinnedVersion"],
            "labels": labels or None,
            "updated": _moment(document["updatedAt"]),
            "queue url": document["queueUrl"],
            "queue arn": document["queueArn"],
            "root cause": render.root_cause(document),
        }
    )


def _show(document: Document) -> None:
    show_summary(document)
    if now := document["currentOperation"]:
        render.show_line("\nGoing on now", "bold")
        render.show_pairs(
            {
                "operation": f"{render.operation(now)}, attempt {now['attempt']}",
                "since": _moment(now["startedAt"]),
                "asked by": now["requestedBy"],
                "why": now["reason"],
                "execution": now["execution"],
            }
        )
    for audit in document["audits"]:
        render.show_line(f"\n{render.operation(audit)}", "bold")
        render.show_pairs(
            {
                "status": render.state(audit["status"]),
                "attempt": str(audit["attempt"]),
                "updated": _moment(audit["updatedAt"]),
                "asked by": audit["requestedBy"],
                "why": audit["reason"],
                "execution": audit["execution"],
                "root cause": render.root_cause(audit),
            }
        )
    if document["history"]:
        _show_history(document["history"])


def _show_history(history: Sequence[Document]) -> None:
    render.show_line("\nHistory", "bold")
    table = render.columns("At (UTC)", "Operation", "Version", "Try", "Status", "Asked by", "Why")
    begun: set[str | None] = set()
    for entry in history:
        table.add_row(
            render.moment_of_entry(entry),
            entry["operation"] or "",
            render.version(entry),
            str(entry["attempt"] or ""),
            render.state(entry["status"] or ""),
            Text(render.who(entry["requestedBy"] or "")),
            Text("\n").join(_why(entry, first=entry["execution"] is None or entry["execution"] not in begun)),
        )
        begun.add(entry["execution"])
    render.stdout().print(table)


def _why(entry: Document, *, first: bool) -> Iterator[Text]:
    """What came of it; and, of the ``first`` entry of an operation, what was asked for and why."""
    if entry["altered"]:
        yield render.ALTERED
    if cause := entry["rootCause"]:
        yield Text(cause["reason"])
    if first:
        asked = _changed(entry) if entry["after"] else _asked(entry["request"] or {})
        told = [", ".join(asked)] if asked else []
        yield from map(Text, [*told, *([entry["reason"]] if entry["reason"] else [])])


def _changed(entry: Document) -> list[str]:
    before, after = entry["before"], entry["after"]
    return [
        f"{_WORDS.get(name, name)}: {_shown(before.get(name))} -> {_shown(value)}"
        for name, value in after.items()
        if value != before.get(name)
    ] or ["nothing changed"]


def _asked(request: Document) -> list[str]:
    """What was asked for beyond the operation itself. Labels and pin have an entry of their own."""
    told = {
        "allowDowngrade": "downgrade allowed",
        "allowReplacement": "replacement allowed",
        "force": "forced",
    }
    asked = [words for name, words in told.items() if request.get(name)]
    if request.get("drainSeconds"):
        asked.append(f"drained for {request['drainSeconds']} s")
    return asked


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        value = ", ".join(f"{name}={each}" for name, each in sorted(value.items()))
    return str(value) if value else "none"


def _moment(text: str | None) -> str | None:
    return render.moment(text) if text else None
