"""`berth releases`: lists the published releases, and how many tenants are at each."""

from __future__ import annotations

import re
from functools import partial
from typing import Annotated

import typer
from rich.text import Text

from orchestrator.api.fields import EmptyRequest
from orchestrator.api.release_routes import LIST_RELEASES
from orchestrator.cli import completing, render
from orchestrator.cli.api import Document
from orchestrator.cli.invocation import Invocation, Json
from orchestrator.cli.problems import problem
from orchestrator.common.errors import InvalidRequest
from orchestrator.common.tiers import STANDARD
from orchestrator.common.versions import VERSION_PATTERN
from orchestrator.reconciling.fleet_counts import SMALL_FLEET
from orchestrator.releases.states import PromotionMode
from orchestrator.releases.template_contract import is_operators
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

    New tenants get the current release unless they are pinned to another, and
    nothing gets a release that was withdrawn: see berth release.
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
            _show_one(document, answer.body)


def _one(document: Document, version: str) -> Document:
    for release in document["releases"]:
        if release["version"] == version:
            return dict(release)
    there = document["elsewhere"].get(version)
    at_it = f" {render.counted(there['total'], 'tenant is', 'tenants are')} at it." if there else ""
    raise InvalidRequest(f"Version {version} was never published.{at_it} See the published releases: berth releases")


def _show_list(document: Document) -> None:
    current, published, elsewhere = document["current"], document["releases"], document["elsewhere"]
    has_tiers = len(document.get("tiers", ())) > 1
    tier = ["Tier"] if has_tiers else []
    table = render.columns("Version", *tier, "Published (UTC)", "Tenants", "Not ready", "", "Notes")
    for column in table.columns:
        if column.header in ("Tenants", "Not ready"):
            column.justify = "right"
    for release in published:
        not_ready = _not_ready(release["tenants"])
        table.add_row(
            release["version"],
            *([release["tier"]] if has_tiers else []),
            render.moment(release["publishedAt"], "%Y-%m-%d %H:%M"),
            str(release["tenants"]["total"]),
            Text(str(not_ready), "bold red" if not_ready else ""),
            _mark(release, document),
            Text(_first_line(release["notes"] or "")),
        )
    if published:
        render.stdout().print(table)
    _note_candidate(document)
    for version, tenants in elsewhere.items():
        there = render.counted(tenants["total"], "tenant is", "tenants are")
        if version:
            render.note(f"{there} at {version}, which was never published: berth tenants --version {version}")
        else:
            _note_tenants_without_version(tenants["byState"])
    if sum(each["tenants"]["total"] for each in published) > SMALL_FLEET and "countedAt" in document:
        render.note(f"The tenants were counted at {render.moment(document['countedAt'], '%H:%M:%S')} UTC.")
    if current not in {release["version"] for release in published}:
        render.note(f"The current version, {current}, is not published yet: wait until its deployment has ended.")


def _show_one(release: Document, all_releases: Document) -> None:
    version, tenants, current = release["version"], release["tenants"], _current(release, all_releases)
    render.show_pairs(
        {
            "version": version + (f" ({mark})" if (mark := _mark(release, all_releases).plain) else ""),
            "tier": release.get("tier"),
            "withdrawn": _withdrawn(release["withdrawn"]),
            "published": render.moment(release["publishedAt"]) + _by(release.get("publishedBy")),
            "digest": release["digest"],
            "template": release["templateUrl"],
            "tenants": f"{tenants['total']}: {_states(tenants)}" if tenants["total"] else "none",
        }
    )
    if release["notes"]:
        render.show_line()
        render.show_line(release["notes"])
    for entry in reversed(all_releases.get("history", [])):
        if entry["version"] == version:
            render.show_line(_entry(entry))
    if tenants["total"]:
        render.note(f"List them: berth tenants --version {version}")
    if release["withdrawn"] and tenants["total"]:
        render.note(f"Move them back: berth rollout start --to {current} --allow-downgrade")
    if release["withdrawn"]:
        render.note(f"If it is good after all: berth release reinstate {version}")
    if version == current:
        option = "" if release["tier"] == STANDARD else f" --tier {release['tier']}"
        render.note(f"Move the other tenants to it: berth rollout plan{option}, then berth rollout start{option}")


def _current(release: Document, document: Document) -> str:
    """The current release of the release's tier."""
    current: str = document["tiers"][release["tier"]]
    return current


def _mark(release: Document, document: Document) -> Text:
    if release["withdrawn"]:
        return Text("withdrawn", "bold red")
    return Text("current" if release["version"] == _current(release, document) else "")


def _by(publisher: str | None) -> str:
    return f" by {publisher}" if publisher else ""


def _withdrawn(withdrawal: Document | None) -> str | None:
    if withdrawal is None:
        return None
    by = withdrawal["requestedBy"] or "somebody"
    reason = f": {withdrawal['reason']}" if withdrawal["reason"] else ""
    return f"{render.moment(withdrawal['at'])} by {by}{reason}"


def _entry(entry: Document) -> str:
    """One change of the release, as a line of its history."""
    at = render.moment(entry["at"]) if entry["at"] else "at an unknown time"
    reason = f": {entry['reason']}" if entry["reason"] else ""
    altered = " (this entry was altered)" if entry["altered"] else ""
    return f"{at}  {entry['order'] or 'unreadable'} by {entry['requestedBy'] or 'somebody'}{reason}{altered}"


def _note_candidate(document: Document) -> None:
    """Say how the deployed release becomes current, if deployments do not make it so."""
    deployed, current = document.get("deployed"), document["current"]
    found = next((release for release in document["releases"] if release["version"] == deployed), None)
    if found is None or deployed == current:
        return
    if found["withdrawn"]:
        render.note(f"Release {deployed}, which is deployed, is withdrawn. See why: berth releases {deployed}")
    elif is_operators(current):
        render.note(
            f"Release {deployed} is deployed. New tenants get {current}, which is yours, until another release is "
            f"promoted: berth release promote {deployed}"
        )
    elif document["promotion"] == PromotionMode.AFTER_ROLLOUT:
        render.note(
            f"Release {deployed} is deployed, and becomes current when the fleet was moved to it: berth rollout start "
            f"--to {deployed}. At once: berth release promote {deployed}"
        )


def _note_tenants_without_version(by_state: Document) -> None:
    """These tenants have not got their first version yet."""
    there = render.counted(sum(by_state.values()), "tenant is", "tenants are")
    render.note(f"{there} not at any version yet: {_states({'byState': by_state})}. See: berth tenants")


def _states(tenants: Document) -> str:
    return ", ".join(f"{count} {state}" for state, count in tenants["byState"].items())


def _not_ready(tenants: Document) -> int:
    return int(tenants["total"] - tenants["byState"].get(TenantState.READY, 0))


def _first_line(notes: str) -> str:
    return notes.partition("\n")[0].lstrip("-*# ")
