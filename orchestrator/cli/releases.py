"""`berth releases`: lists the published releases, and how many tenants are at each."""

from __future__ import annotations

import re
from functools import partial
from typing import Annotated

import typer
from rich.text import Text

from orchestrator.api.fields import EmptyRequest
from orchestrator.api.tenant_routes import LIST_RELEASES
from orchestrator.cli import completing, render
from orchestrator.cli.api import Document
from orchestrator.cli.invocation import Invocation, Json
from orchestrator.cli.problems import problem
from orchestrator.common.errors import InvalidRequest
from orchestrator.common.versions import VERSION_PATTERN
from orchestrator.reconciling.fleet_counts import SMALL_FLEET
from orchestrator.tenants.records import TenantState

_FOUND = 200


def releases(
    context: typer.Context,
    version: Annotated[
        str | None,
        typer.Argument(
            metavar="VERSION",
            help="Show this release in full.",
            show_default=False,
            autocompletion=completing.versions,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the published releases, newest first, and how many tenants are at each.

    New tenants get the current release unless they are pinned to another.
    To move tenants to a release, see berth rollout.
    """
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        if version is not None and not re.fullmatch(VERSION_PATTERN, version):
            raise InvalidRequest(f"{version!a} is not a version like 1.2.3.")
        api = here.connect()
        with here.retrying() as retrying:
            answer = retrying(partial(api.send_request, LIST_RELEASES, EmptyRequest()))
        if answer.status != _FOUND:
            raise problem(answer)
        document = answer.body if version is None else _one(answer.body, version)
        if as_json:
            render.show_json(document)
        elif version is None:
            _show_list(document)
        else:
            _show_one(document, current=answer.body["current"])


def _one(document: Document, version: str) -> Document:
    for release in document["releases"]:
        if release["version"] == version:
            return dict(release)
    there = document["elsewhere"].get(version)
    at_it = f" {render.counted(there['total'], 'tenant is', 'tenants are')} at it." if there else ""
    raise InvalidRequest(f"Version {version} was never published.{at_it} See the published releases: berth releases")


def _show_list(document: Document) -> None:
    current, published, elsewhere = document["current"], document["releases"], document["elsewhere"]
    table = render.columns("Version", "Published (UTC)", "Tenants", "Not ready", "", "Notes")
    for column in (2, 3):
        table.columns[column].justify = "right"
    for release in published:
        not_ready = _not_ready(release["tenants"])
        table.add_row(
            release["version"],
            render.moment(release["publishedAt"], "%Y-%m-%d %H:%M"),
            str(release["tenants"]["total"]),
            Text(str(not_ready), "bold red" if not_ready else ""),
            "current" if release["version"] == current else "",
            Text(_first_line(release["notes"] or "")),
        )
    if published:
        render.stdout().print(table)
    for version, tenants in elsewhere.items():
        there = render.counted(tenants["total"], "tenant is", "tenants are")
        if version:
            render.note(f"{there} at {version}, which was never published: berth tenants --version {version}")
        else:
            render.note(f"{there} not at any version yet: {_states(tenants)}. See: berth tenants")
    if sum(each["tenants"]["total"] for each in published) > SMALL_FLEET and "countedAt" in document:
        render.note(f"The tenants were counted at {render.moment(document['countedAt'], '%H:%M:%S')} UTC.")
    if current not in {release["version"] for release in published}:
        render.note(f"The current version, {current}, is not published yet: wait until its deployment has ended.")


def _show_one(release: Document, *, current: str) -> None:
    version, tenants = release["version"], release["tenants"]
    render.show_pairs(
        {
            "version": version + (" (current)" if version == current else ""),
            "published": render.moment(release["publishedAt"]),
            "digest": release["digest"],
            "template": release["templateUrl"],
            "tenants": f"{tenants['total']}: {_states(tenants)}" if tenants["total"] else "none",
        }
    )
    if release["notes"]:
        render.show_line()
        render.show_line(release["notes"])
    if tenants["total"]:
        render.note(f"List them: berth tenants --version {version}")
    if version == current:
        render.note("Move the other tenants to it: berth rollout plan, then berth rollout start")


def _states(tenants: Document) -> str:
    return ", ".join(f"{count} {state}" for state, count in tenants["byState"].items())


def _not_ready(tenants: Document) -> int:
    return int(tenants["total"] - tenants["byState"].get(TenantState.READY, 0))


def _first_line(notes: str) -> str:
    return notes.partition("\n")[0].lstrip("-*# ")
