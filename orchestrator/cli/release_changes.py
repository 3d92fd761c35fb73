"""The differences between two releases, property by property, as `berth release diff` and `berth rollout plan` show
them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial

from rich.text import Text

from orchestrator.api.release_models import GetReleaseChanges
from orchestrator.api.release_routes import GET_RELEASE_CHANGES
from orchestrator.cli import render
from orchestrator.cli.api import Api, Document
from orchestrator.client.retrying import Retrying

MAX_COMPARED = 3
"""The maximum number of moves that a plan compares: those with the most tenants."""
_FOUND = 200


def compare_moves(api: Api, retrying: Retrying, rollout: Document) -> list[Document]:
    """The differences of the moves that a dry run has found. A plan without them is better than no plan, so the reason
    takes their place if the control plane cannot compare."""
    compared: list[Document] = []
    for move in rollout["changes"]["moves"][:MAX_COMPARED]:
        request = GetReleaseChanges(version=move["version"], from_version=move["fromVersion"])
        answer = retrying(partial(api.send_request, GET_RELEASE_CHANGES, request))
        if answer.status == _FOUND:
            compared.append({**move, "changes": answer.body["changes"], "review": answer.body["review"]})
        else:
            compared.append({**move, "trouble": answer.body.get("detail", f"The API answered {answer.status}.")})
    return compared


def show_moves(compared: Sequence[Document], total: int) -> None:
    """Show the compared moves. ``total`` is the number of moves that there are."""
    for move in compared:
        tenants = render.counted(move["count"], "tenant")
        heading = f"From {move['fromVersion']} to {move['version']}, by the releases' templates ({tenants})"
        render.show_line(f"\n{heading}", "bold")
        if trouble := move.get("trouble"):
            render.show_line(f"  {trouble}")
            continue
        if move["changes"] is None:
            render.show_line("  They cannot be compared, because one of them is not as it was published.")
        elif not move["changes"]:
            render.show_line("  They are the same, except for the description.")
        else:
            show_changes(move["changes"], indent="  ")
        if review := move["review"]:
            at = render.moment(review["reviewedAt"])
            render.show_line(f"  A change set of this move has replaced and removed no queue ({at}).")
    if total > len(compared):
        render.note(f"\nThere are {total - len(compared)} more moves. To compare others: berth release diff FROM TO")


def show_changes(changes: Sequence[Document], *, indent: str = "") -> None:
    entry: tuple[str, str] | None = None
    for change in changes:
        if entry != (change["section"], change["logicalId"]):
            entry = change["section"], change["logicalId"]
            kind = change["resourceType"] or change["section"].removesuffix("s")
            whole = f": {change['change']}" if not change["path"] else ""
            render.show_line(Text.assemble(indent, (change["logicalId"], "bold"), f" ({kind}){whole}"))
        if change["path"]:
            render.show_line(f"{indent}  {change['path']}: {_value(change, 'before')} -> {_value(change, 'after')}")


def _value(change: Document, which: str) -> str:
    return json.dumps(change[which]) if which in change else "none"
