"""`berth status`: one screen about the control plane, the fleet, and what waits for an operator."""

from __future__ import annotations

from collections import Counter
from functools import partial
from importlib import metadata
from typing import TYPE_CHECKING

import typer

from orchestrator.api.fields import EmptyRequest
from orchestrator.api.release_routes import LIST_RELEASES
from orchestrator.api.rollout_models import ListRollouts
from orchestrator.api.rollout_routes import LIST_ROLLOUTS
from orchestrator.cli import render
from orchestrator.cli.api import Api, Document
from orchestrator.cli.invocation import Invocation, Json
from orchestrator.cli.problems import problem
from orchestrator.common.versions import is_older
from orchestrator.rollouts.records import RolloutStatus
from orchestrator.tenants.records import TenantState

if TYPE_CHECKING:
    from orchestrator.client.retrying import Retrying
    from orchestrator.client.transport import ApiAnswer

_FOUND = 200
_ROLLOUTS = 20
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
            rollouts = _unfinished(api, retrying)
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
        waiting = _waiting(document)
        if as_json:
            render.show_json({**document, "waiting": waiting})
        else:
            _show(document, waiting)


def _found(answer: ApiAnswer) -> Document:
    if answer.status != _FOUND:
        raise problem(answer)
    return answer.body


def _unfinished(api: Api, retrying: Retrying) -> list[Document]:
    """The rollouts that run or wait, and the newest one if it has halted."""
    found = _listed(api, retrying, ListRollouts(open=True))
    unfinished = [each for each in found if RolloutStatus(each["status"]).active]
    if found and found[0] not in unfinished:
        # It has halted. A list of rollouts costs a read for each of them, so it is asked for only now.
        newest = _listed(api, retrying, ListRollouts(limit=_ROLLOUTS))
        real = next((each["rolloutId"] for each in newest if not each["dryRun"]), None)
        unfinished = [each for each in found[:1] if each["rolloutId"] == real] + unfinished
    return unfinished


def _listed(api: Api, retrying: Retrying, request: ListRollouts) -> list[Document]:
    rollouts: list[Document] = _found(retrying(partial(api.send_request, LIST_ROLLOUTS, request)))["rollouts"]
    return rollouts


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


def _waiting(document: Document) -> list[dict[str, str]]:
    """What an operator can do something about, each with the command to begin with."""
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
        waiting.append({"what": f"rollout {rollout['rolloutId']} is {rollout['status']}", "command": command})
    current = versions["currentRelease"]
    behind = sum(number for version, number in fleet["byVersion"].items() if is_older(version, than=current))
    if behind and not document["rollouts"]:
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
