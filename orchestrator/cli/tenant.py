"""`berth tenant`: shows everything that is recorded about one tenant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated

import typer
from rich.text import Text

from orchestrator.api.reading import decode
from orchestrator.api.tenant_models import GetTenant
from orchestrator.api.tenant_routes import GET_TENANT
from orchestrator.cli import live_stack, render
from orchestrator.cli.api import Api, Document
from orchestrator.cli.invocation import Invocation, Json, Tenant
from orchestrator.cli.problems import problem
from orchestrator.cli.tenant_next import next_steps
from orchestrator.common.tenant_ids import TenantId

_FOUND = 200

_WORDS = {
    "pinnedVersion": "pin",
    "queueUrl": "queue url",
    "queueArn": "queue arn",
    "stackId": "stack",
}
"""Names for the operator, by the field of the API."""


def tenant(
    context: typer.Context,
    tenant: Tenant,
    before: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Show the history before this time instead.", show_default=False),
    ] = None,
    live: Annotated[
        bool,
        typer.Option("--live", help="Also compare the records with the stack, as it is now."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Show everything that is recorded about one tenant.

    Its state, its queue, its current operation, the latest result of each
    operation, and the last 100 events of its history.
    """
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        tenant_id = TenantId.parse(tenant)
        request = decode(GetTenant, {"tenantId": tenant_id.value, **({"historyBefore": before} if before else {})})
        api = here.connect()
        with here.retrying() as retrying:
            answer = retrying(partial(api.send_request, GET_TENANT, request))
        if answer.status != _FOUND:
            raise problem(answer)
        # The records are shown even if CloudFormation cannot be asked.
        if not as_json:
            _show(answer.body)
        compared = _compare(here, api, tenant_id) if live else None
        if as_json:
            render.show_json({**answer.body, **({"live": compared} if compared else {})})
        elif compared:
            live_stack.show(answer.body, compared)


def _compare(here: Invocation, api: Api, tenant: TenantId) -> Document:
    with here.retrying() as retrying:
        return live_stack.compare(api, tenant, retrying)


def show_summary(document: Document) -> None:
    """Show the tenant's present state."""
    render.show_pairs(
        {
            "tenant": document["tenantId"],
            "state": render.state(document["state"]),
            "version": document["version"],
            "tier": document["tier"],
            "pinned to": document["pinnedVersion"],
            "labels": render.labels(document["labels"]) or None,
            "updated": _moment(document["updatedAt"]),
            "queue url": document["queueUrl"],
            "queue arn": document["queueArn"],
            "root cause": render.root_cause(document),
        }
    )


def _show(document: Document) -> None:
    show_summary(document)
    if resources := document["resources"]:
        render.show_line("\nOther outputs of its stack", "bold")
        for name, value in sorted(resources.items()):
            render.show_line(f"{name}: {value}")
    if current := document["currentOperation"]:
        render.show_line("\nCurrent operation", "bold")
        render.show_pairs(
            {
                "operation": f"{render.operation(current)}, attempt {current['attempt']}",
                "since": _moment(current["startedAt"]),
                "asked by": current["requestedBy"],
                "reason": current["reason"],
                "execution": current["execution"],
            }
        )
    for audit in document["audits"]:
        render.show_line(f"\n{render.operation(audit)}", "bold")
        render.show_pairs(
            {
                "status": render.state(audit["status"]),
                "its turn is expected": _moment(audit.get("expectedAt")),
                "attempt": str(audit["attempt"]),
                "updated": _moment(audit["updatedAt"]),
                "asked by": audit["requestedBy"],
                "reason": audit["reason"],
                "execution": audit["execution"],
                "root cause": render.root_cause(audit),
            }
        )
    if document["history"]:
        _show_history(document["history"])
    for step in next_steps(document):
        render.note(step)
    if earlier := document.get("earlierThan"):
        render.note(f"There are earlier events: berth tenant {document['tenantId']} --before {earlier}")


def _show_history(history: Sequence[Document]) -> None:
    render.show_line("\nHistory", "bold")
    table = render.columns("Time (UTC)", "Operation", "Version", "Try", "Status", "Asked by", "Details")
    begun: set[str | None] = set()
    for entry in history:
        table.add_row(
            render.moment_of_entry(entry),
            entry["operation"] or "",
            render.version(entry),
            str(entry["attempt"] or ""),
            render.state(entry["status"] or ""),
            Text(render.who(entry["requestedBy"] or "")),
            Text("\n").join(_details(entry, first=entry["execution"] is None or entry["execution"] not in begun)),
        )
        begun.add(entry["execution"])
    render.stdout().print(table)


def _details(entry: Document, *, first: bool) -> Iterator[Text]:
    """The root cause, if any; and for the ``first`` entry of an operation also the request and its reason."""
    if entry["altered"]:
        yield render.ALTERED
    if cause := entry["rootCause"]:
        yield Text(cause["reason"])
    if first:
        parts = changes_in(entry) if entry["after"] else options_in(entry["request"] or {})
        lines = [", ".join(parts)] if parts else []
        yield from map(Text, [*lines, *([entry["reason"]] if entry["reason"] else [])])


def changes_in(entry: Document) -> list[str]:
    before, after = entry["before"], entry["after"]
    return [
        f"{_WORDS.get(name, name)}: {_shown(before.get(name))} -> {_shown(value)}"
        for name, value in after.items()
        if value != before.get(name)
    ] or ["nothing changed"]


def options_in(request: Document) -> list[str]:
    """The options of the request. Changes of labels and pin have entries of their own."""
    flags = {
        "allowDowngrade": "downgrade allowed",
        "allowReplacement": "replacement allowed",
        "force": "forced",
    }
    options = [words for name, words in flags.items() if request.get(name)]
    if request.get("tier"):
        options.append(f"tier {request['tier']}")
    if request.get("drainSeconds"):
        options.append(f"drained for {request['drainSeconds']} s")
    return options


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        value = render.labels(value)
    return str(value) if value else "none"


def _moment(text: str | None) -> str | None:
    return render.moment(text) if text else None
