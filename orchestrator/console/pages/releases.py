"""The releases: which is current, the tenants at each, what differs between two, and orders about one."""

from __future__ import annotations

import json
from collections.abc import Mapping

from starlette.responses import Response
from starlette.routing import Route

from orchestrator.api.release_models import OrderRelease
from orchestrator.api.release_routes import (
    GET_RELEASE_CHANGES,
    LIST_RELEASES,
    PROMOTE_RELEASE,
    REINSTATE_RELEASE,
    WITHDRAW_RELEASE,
)
from orchestrator.cli.api import Document
from orchestrator.cli.release_next import release_steps
from orchestrator.console.actions import Action, Done, outcome, reason_in
from orchestrator.console.actions import routes as action_routes
from orchestrator.console.drawing import bar
from orchestrator.console.page import page
from orchestrator.console.pages.overview import ORDER
from orchestrator.console.visit import Console, NotThere, Visit

ROUTES = {"promote": PROMOTE_RELEASE, "withdraw": WITHDRAW_RELEASE, "reinstate": REINSTATE_RELEASE}
EFFECTS = {
    "promote": "New tenants get release {} from now on. No tenant is moved.",
    "reinstate": "Release {} can be chosen again. Rollouts that halted stay halted.",
}


def releases(visit: Visit) -> Response:
    found = visit.ask(LIST_RELEASES)
    return visit.show(
        "releases.html",
        found=found,
        releases=[
            {
                **each,
                "drawn": bar(each["version"], each["tenants"]["byState"], ORDER),
                "steps": release_steps(each),
            }
            for each in found["releases"]
        ],
    )


def changes(visit: Visit) -> Response:
    versions = [each["version"] for each in visit.ask(LIST_RELEASES)["releases"]]
    earlier, later = visit.parameter("from"), visit.parameter("to")
    both = earlier and later
    compared = visit.ask(GET_RELEASE_CHANGES, version=later, fromVersion=earlier) if both else None
    return visit.show(
        "release_changes.html",
        versions=versions,
        earlier=earlier or (versions[1] if len(versions) > 1 else ""),
        later=later or (versions[0] if versions else ""),
        compared=compared,
        changes=_by_entry(compared) if compared and compared["changes"] else [],
    )


def _by_entry(compared: Document) -> list[tuple[str, str, list[dict[str, str]]]]:
    """The changes by resource: its name, its type, and the values that differ."""
    entries: dict[tuple[str, str], list[dict[str, str]]] = {}
    for change in compared["changes"]:
        kind = change["resourceType"] or change["section"].removesuffix("s")
        values = {
            which: json.dumps(change[which], indent=1) if which in change else "none" for which in ("before", "after")
        }
        entries.setdefault((change["logicalId"], kind), []).append(
            {"path": change["path"] or "the whole entry", "change": change["change"], **values}
        )
    return [(name, kind, found) for (name, kind), found in entries.items()]


def _plan(visit: Visit) -> Action:
    version, verb = visit.name("version"), visit.name("verb")
    release = next((each for each in visit.ask(LIST_RELEASES)["releases"] if each["version"] == version), None)
    if release is None or verb not in ROUTES:
        raise NotThere("There is no such release or action")
    step = next(step for step in release_steps(release) if step.verb == verb)
    warning = WITHDRAW_RELEASE.warning(OrderRelease(version=version)) or ""

    def send(visit: Visit, fields: Mapping[str, str]) -> Done:
        answer = visit.ask(ROUTES[verb], version=version, reason=reason_in(fields))
        return Done(outcome(answer), "/releases")

    return Action(
        f"{step.label} {version}",
        step,
        warning if verb == "withdraw" else EFFECTS[verb].format(version),
        send,
        "/releases",
        [f"release {version}"],
        typed=version if verb == "withdraw" else None,
        typed_is="the version",
    )


def routes(console: Console) -> list[Route]:
    return [
        page(console, "/releases", releases),
        page(console, "/releases/changes", changes),
        *action_routes(console, "/releases/{version}/do/{verb}", _plan),
    ]
