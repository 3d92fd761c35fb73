"""`berth status`: one screen about the control plane, the fleet, and what waits for an operator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from functools import partial
from importlib import metadata
from typing import TYPE_CHECKING

import typer

from orchestrator.api.fields import EmptyRequest
from orchestrator.api.release_routes import LIST_RELEASES
from orchestrator.api.rollout_models import ListRollouts
from orchestrator.api.rollout_routes import LIST_ROLLOUTS
from orchestrator.cli import render
from orchestrator.cli.api import Document
from orchestrator.cli.invocation import Invocation, Json
from orchestrator.cli.problems import problem
from orchestrator.cli.rollout_view import doing
from orchestrator.common.versions import is_older
from orchestrator.rollouts.records import RolloutStatus
from orchestrator.tenants.records import TenantState

if TYPE_CHECKING:
    from orchestrator.client.transport import ApiAnswer

_FOUND = 200
_FAILED = (TenantState.FAILED, TenantState.UPDATE_FAILED, TenantState.UNKNOWN)


def status(context: typer.Context, as_json: Json = False) -> None:
    """Show one screen: where, who, versions, the fleet, and what waits for you.

    To check the health of the control plane, see berth doctor.
    """
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        control_plane = here.find()
        stack, caller, api = control_plane.stack, control_plane.caller(), control_plane.api()
        with here.retrying() as retrying:
            releases = _found(retrying(partial(api.send_request, LIST_RELEASES, EmptyRequest())))
            rollouts = _found(retrying(partial(api.send_request, LIST_ROLLOUTS, ListRollouts(open=True))))["rollouts"]
        document = {
            "controlPlane": {"name": stack.name, "place": stack.place, "stackStatus": stack.status},
            "caller": caller,
            "versions": {
                "commandLine": metadata.version("berth"),
                "controlPlane": stack.version,
                "currentRelease": releases["current"],
            },
            "fleet": _fleet(releases),
            "rollouts": [
                {"rolloutId": each["rolloutId"], "status": each["status"], "version": each["version"]}
                for each in rollouts
            ],
        }
        withdrawn = {each["version"] for each in releases["releases"] if each.get("withdrawn")}
        waiting = _waiting(document, withdrawn, {each["rolloutId"]: doing(each).plain for each in rollouts})
        if as_json:
            render.show_json({**document, "waiting": waiting})
        else:
            _show(document, waiting)


def _found(answer: ApiAnswer) -> Document:
    if answer.status != _FOUND:
        raise problem(answer)
    return answer.body


def _fleet(releases: Document) -> dict[str, object]:
    by_state: Counter[str] = Counter()
    by_version: dict[str, int] = {}
    counted = {release["version"]: release["tenants"] for release in releases["releases"]} | dict(releases["elsewhere"])
    for version, tenants in counted.items():
        by_state.update(tenants["byState"])
        if tenants["total"]:
            by_version[version] = tenants["total"]
    return {
        "total": sum(by_version.values()),
        "byState": dict(sorted(by_state.items())),
        "byVersion": by_version,
        "countedAt": releases.get("countedAt"),
    }


def _waiting(document: Document, withdrawn: Collection[str], in_words: Mapping[str, str]) -> list[dict[str, str]]:
    """What an operator can do something about, each with the command to begin with.

    ``withdrawn`` are the releases that were withdrawn, and ``in_words`` has what each rollout is doing.
    """
    fleet, versions = document["fleet"], document["versions"]
    waiting = [
        {
            "what": f"{render.counted(number, 'tenant is', 'tenants are')} {state}",
            "command": f"berth tenants --state {state}",
        }
        for state in _FAILED
        if (number := fleet["byState"].get(state))
    ]
    for rollout in document["rollouts"]:
        command = f"berth rollout status {rollout['rolloutId']}"
        waiting.append(
            {"what": f"rollout {rollout['rolloutId']} is {in_words[rollout['rolloutId']]}", "command": command}
        )
    for version, number in fleet["byVersion"].items():
        if version in withdrawn:
            what = f"{render.counted(number, 'tenant is', 'tenants are')} at {version}, which was withdrawn"
            waiting.append({"what": what, "command": f"berth releases {version}"})
    current = versions["currentRelease"]
    behind = sum(
        number
        for version, number in fleet["byVersion"].items()
        if version not in withdrawn and is_older(version, than=current)
    )
    moving = (
        each for each in document["rollouts"] if each["version"] == current or RolloutStatus(each["status"]).active
    )
    if behind and not any(moving):
        what = f"{render.counted(behind, 'tenant is', 'tenants are')} at an earlier release than {current}"
        waiting.append({"what": what, "command": "berth rollout plan"})
    return waiting


def _show(document: Document, waiting: list[dict[str, str]]) -> None:
    fleet, versions = document["fleet"], document["versions"]
    states = ", ".join(f"{number} {state}" for state, number in fleet["byState"].items())
    at = ", ".join(f"{number} at {version or 'no version'}" for version, number in fleet["byVersion"].items())
    render.show_pairs(
        {
            "where": f"{document['controlPlane']['place']} ({document['controlPlane']['stackStatus']})",
            "who": document["caller"],
            "versions": f"control plane {versions['controlPlane'] or 'unknown'}, command line "
            f"{versions['commandLine']}, current release {versions['currentRelease']}",
            "fleet": f"{render.counted(fleet['total'], 'tenant')}: {states}" if fleet["total"] else "no tenants yet",
            "releases": at or None,
        }
    )
    render.show_line()
    if not waiting:
        render.show_line("Nothing waits for you. Check the health: berth doctor")
    for each in waiting:
        render.show_line(f"{each['what'][:1].upper()}{each['what'][1:]}: {each['command']}")
