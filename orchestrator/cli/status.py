"""`berth status`: one screen about the control plane, the fleet, what waits for an operator, and what is under way."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import typer

from orchestrator.api.connection_routes import LIST_TROUBLES
from orchestrator.api.event_configuration_models import NoParameters
from orchestrator.api.fields import EmptyRequest
from orchestrator.api.reconciliation_routes import LIST_RECONCILIATIONS
from orchestrator.api.release_routes import LIST_RELEASES
from orchestrator.api.rollout_requests import ListRollouts
from orchestrator.api.rollout_routes import LIST_ROLLOUTS
from orchestrator.cli import render
from orchestrator.cli.api import Document
from orchestrator.cli.errors import ApiProblem, ControlPlaneNotFound, explain, sdk_errors
from orchestrator.cli.events_api import ask
from orchestrator.cli.invocation import Invocation, Json
from orchestrator.cli.problems import problem
from orchestrator.cli.waiting import (
    Waiting,
    findings_waiting,
    fleet_of,
    rollouts_under_way,
    troubles_waiting,
    waiting_for_someone,
)
from orchestrator.common.own_versions import berth_version

if TYPE_CHECKING:
    from orchestrator.cli.control_plane import ControlPlane
    from orchestrator.client.transport import ApiAnswer

_FOUND = 200


def status(context: typer.Context, as_json: Json = False) -> None:
    """Show one screen: where, who, versions, the fleet, what waits for you, and rollouts that are under way.

    To check the health of the control plane, see berth doctor.
    """
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        control_plane = here.find()
        stack, caller, api = control_plane.stack, control_plane.caller(), control_plane.api()
        with here.retrying() as retrying:
            releases = _found(retrying(partial(api.send_request, LIST_RELEASES, EmptyRequest())))
            rollouts = _found(retrying(partial(api.send_request, LIST_ROLLOUTS, ListRollouts(open=True))))["rollouts"]
            survey = _survey(retrying(partial(api.send_request, LIST_RECONCILIATIONS, EmptyRequest())))
        fleet = fleet_of(releases)
        document = {
            "controlPlane": {"name": stack.name, "place": stack.place, "stackStatus": stack.status},
            "caller": caller,
            "versions": {
                "commandLine": berth_version(),
                "controlPlane": stack.version,
                "currentRelease": releases["current"],
            },
            "fleet": fleet,
            "rollouts": [
                {"rolloutId": each["rolloutId"], "status": each["status"], "version": each["version"]}
                for each in rollouts
            ],
        }
        found = [
            *waiting_for_someone(fleet, rollouts, releases),
            *findings_waiting(survey),
            *_troubles(here, control_plane),
        ]
        if as_json:
            waiting = [{"what": each.what, "command": each.command} for each in found]
            render.show_json({**document, "waiting": waiting})
        else:
            _show(document, found, rollouts_under_way(rollouts))


def _found(answer: ApiAnswer) -> Document:
    if answer.status != _FOUND:
        raise problem(answer)
    return answer.body


def _survey(answer: ApiAnswer) -> Document | None:
    """The latest scheduled survey."""
    survey: Document | None = _found(answer)["survey"]
    return survey


def _troubles(here: Invocation, control_plane: ControlPlane) -> list[Waiting]:
    """Lines about connections. There may be no event plane, and it needs permissions of its own."""
    try:
        return troubles_waiting(ask(here, control_plane, LIST_TROUBLES, NoParameters()))
    except ControlPlaneNotFound:
        return []
    except ApiProblem as error:
        reason = str(error)
    except sdk_errors() as error:
        reason = explain(error).line
    return [Waiting(f"the event plane cannot be asked: {reason}", "berth doctor")]


def _show(document: Document, waiting: Sequence[Waiting], under_way: Sequence[Waiting]) -> None:
    fleet, versions = document["fleet"], document["versions"]
    states = ", ".join(f"{number} {state}" for state, number in fleet["byState"].items())
    at = ", ".join(f"{number} at {version or 'no version'}" for version, number in fleet["byVersion"].items())
    render.show_pairs(
        {
            "where": f"{document['controlPlane']['place']} ({document['controlPlane']['stackStatus']})",
            "who": document["caller"],
            "versions": f"Berth {versions['controlPlane'] or 'of an unknown version'}, current release "
            f"{versions['currentRelease']}, command line {versions['commandLine']}",
            "fleet": f"{render.counted(fleet['total'], 'tenant')}: {states}" if fleet["total"] else "no tenants yet",
            "releases": at or None,
        }
    )
    render.show_line()
    if not waiting:
        render.show_line("Nothing waits for you. Check the health: berth doctor")
    for each in [*waiting, *under_way]:
        render.show_line(f"{each.what[:1].upper()}{each.what[1:]}: {each.command}")
