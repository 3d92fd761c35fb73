"""`berth tenant`: all that is recorded about one tenant."""

from __future__ import annotations

from collections.abc import Sequence

import typer
from rich.text import Text

from orchestrator.cli import render
from orchestrator.cli.api import Document
from orchestrator.cli.invocation import Invocation, Json, Tenant
from orchestrator.cli.problems import problem
from orchestrator.tenants import TenantId

_FOUND = 200


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
                "execution": audit["execution"],
                "root cause": render.root_cause(audit),
            }
        )
    if document["history"]:
        _show_history(document["history"])


def _show_history(history: Sequence[Document]) -> None:
    render.show_line("\nHistory", "bold")
    table = render.columns("At (UTC)", "Operation", "Version", "Try", "Status", "Asked by", "Why")
    for entry in history:
        cause = entry["rootCause"]
        table.add_row(
            render.moment(entry["at"], "%Y-%m-%d %H:%M:%S"),
            entry["operation"],
            render.version(entry),
            str(entry["attempt"]),
            render.state(entry["status"]),
            Text(render.who(entry["requestedBy"] or "")),
            Text(cause["reason"] if cause else ""),
        )
    render.stdout().print(table)


def _moment(text: str | None) -> str | None:
    return render.moment(text) if text else None
