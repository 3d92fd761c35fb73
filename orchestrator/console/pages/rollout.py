"""One rollout, live: its stages, its bake, why it halted, its failures by cause, and what can be done with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from starlette.responses import Response
from starlette.routing import Route

from orchestrator.api.release_routes import LIST_RELEASES
from orchestrator.api.rollout_routes import (
    ABORT_ROLLOUT,
    APPROVE_ROLLOUT,
    CHANGE_ROLLOUT,
    GET_ROLLOUT,
    PAUSE_ROLLOUT,
    PROMOTE_ROLLOUT,
    RESUME_ROLLOUT,
    RETRY_ROLLOUT,
    START_ROLLOUT,
)
from orchestrator.api.route import AnyRoute
from orchestrator.api.tenant_routes import LIST_TENANTS
from orchestrator.cli import render
from orchestrator.cli.api import Document
from orchestrator.cli.next_step import NextStep
from orchestrator.cli.rollout_next import (
    depends_on_withdrawal,
    is_over,
    rollout_steps,
)
from orchestrator.cli.rollout_options import options_of
from orchestrator.cli.rollout_spec import tolerated_share
from orchestrator.cli.rollout_view import doing, is_plan, kind, settled, skip_reason, stage_status, target
from orchestrator.common.times import parse_timestamp
from orchestrator.console.actions import REASON, Action, Done, reason_in
from orchestrator.console.actions import routes as action_routes
from orchestrator.console.drawing import Bar, bar
from orchestrator.console.page import page
from orchestrator.console.pages.rollouts import MAX_BAKE, MAX_CONCURRENCY, pace_fields, whole_number
from orchestrator.console.visit import Console, NotThere, Visit
from orchestrator.rollouts.records import RolloutStatus

PARTS = ("moved", "skipped", "failed", "under-way", "waiting")
"""The parts of a stage, in the order of its drawing."""
MAX_NAMED = 100
"""Tenants that a confirmation names. A larger rollout states its number and its filters."""


def rollout(visit: Visit) -> Response:
    found = _find(visit)
    return visit.show(
        "rollout.html",
        rollout=found,
        doing=doing(found).plain,
        kind=kind(found),
        to=target(found),
        plan=is_plan(found),
        over=is_over(found),
        stages=[
            {**stage, "drawn": _drawn(stage), "shown": stage_status(found, stage).plain} for stage in found["stages"]
        ],
        skipped=[(skip_reason(reason, each["count"]), each) for reason, each in found["skipped"].items()],
        left=_time_left(found, visit.console.clock()),
        filters=_filters(found),
        steps=_steps(visit, found),
        base=f"/rollouts/{found['rolloutId']}",
    )


def _find(visit: Visit) -> Document:
    return visit.ask(GET_ROLLOUT, rolloutId=visit.name("rollout"))


def _drawn(stage: Document) -> Bar:
    counts = {
        "moved": stage["succeeded"],
        "skipped": stage["skipped"],
        "failed": stage["failed"],
        "under-way": stage["inFlight"],
        "waiting": max(0, stage["total"] - settled(stage) - stage["inFlight"]),
    }
    return bar(f"Stage {stage['number']}", counts, PARTS)


def _time_left(rollout: Document, now: datetime) -> str | None:
    """How long the rest takes at the pace so far, without bakes and approvals. ``None`` if nothing is known."""
    done = sum(map(settled, rollout["stages"]))
    if not done or rollout["status"] != RolloutStatus.RUNNING or done >= rollout["total"]:
        return None
    working = 0.0
    for stage in rollout["stages"]:
        if stage["startedAt"]:
            ended = parse_timestamp(stage["endedAt"]) if stage["endedAt"] else now
            working += max(0.0, (ended - parse_timestamp(stage["startedAt"])).total_seconds())
    return render.duration(working / done * (rollout["total"] - done))


def _filters(rollout: Document) -> list[str]:
    """The tenants that the rollout is about, in words."""
    spec = rollout["spec"]
    words = [f"label {name}={value}" for name, value in spec.get("labels", {}).items()]
    words += [f"tier {spec['tier']}"] if spec.get("tier") else []
    words += [f"a share of {spec['share']}"] if spec.get("share") else []
    words += [f"{len(spec['tenants'])} named tenants"] if spec.get("tenants") else []
    words += [f"tenants of rollout {spec['undo']}"] if spec.get("undo") else []
    return words or ["all tenants"]


# Actions


def _steps(visit: Visit, rollout: Document) -> list[NextStep]:
    """A plan can be started. Everything else is as the command line has it."""
    withdrawn = _is_withdrawn(visit, rollout)
    if not rollout["dryRun"]:
        return rollout_steps(rollout, withdrawn=withdrawn)
    refusal = None
    if not is_over(rollout):
        refusal = "The dry run has not ended."
    elif rollout["failed"]:
        refusal = f"{render.counted(rollout['failed'], 'tenant')} would fail. Remove the causes, and plan again."
    elif rollout["status"] != RolloutStatus.SUCCEEDED:
        refusal = "The dry run did not check all tenants. Plan again."
    elif withdrawn:
        refusal = "The release was withdrawn."
    start = NextStep("start", "Start it", f"berth rollout start{options_of(rollout['spec'])}", refusal)
    return [start, *([] if is_over(rollout) else [step for step in rollout_steps(rollout) if step.verb == "abort"])]


def _is_withdrawn(visit: Visit, rollout: Document) -> bool:
    """True if the rollout's release is withdrawn now. Asked only if the next steps depend on it."""
    if not depends_on_withdrawal(rollout):
        return False
    releases = visit.ask(LIST_RELEASES)["releases"]
    return any(each["version"] == rollout["version"] and each["withdrawn"] for each in releases)


def _start(visit: Visit, rollout: Document, step: NextStep) -> Action:
    spec = {name: value for name, value in rollout["spec"].items() if name not in ("dryRun", "sample", "retry")}
    number = rollout["selected"]
    loses = (
        "\nThis may replace or remove queues and other resources, with the data in them."
        if spec.get("allowReplacement")
        else ""
    )

    def send(visit: Visit, fields: Mapping[str, str]) -> Done:
        answer = visit.ask(START_ROLLOUT, **spec, reason=reason_in(fields))
        if "rolloutId" not in answer:
            return Done(str(answer["detail"]), "/rollouts")
        return Done("The rollout has begun.", f"/rollouts/{answer['rolloutId']}")

    return Action(
        f"Start the rollout to {target(rollout)}",
        step,
        f"Moves {render.counted(number, 'tenant')} to {target(rollout)}, in "
        f"{render.counted(len(rollout['planned']), 'stage')}: {', '.join(map(str, rollout['planned']))}.\n"
        f"Selected: {', '.join(_filters(rollout))}.{loses}",
        send,
        _path(rollout),
        _names(visit, rollout),
        typed=str(number),
        typed_is="the number of tenants",
    )


def _names(visit: Visit, rollout: Document) -> Sequence[str]:
    """The tenants that the rollout moves, if they are few and the list agrees with the plan's own number."""
    spec = rollout["spec"]
    if rollout["selected"] > MAX_NAMED or spec.get("undo") or spec.get("share"):
        return ()
    if spec.get("tenants"):
        return tuple(spec["tenants"])
    label = ",".join(f"{name}={value}" for name, value in spec.get("labels", {}).items())
    listed = visit.ask(LIST_TENANTS, label=label or None, tier=spec.get("tier"), limit=500)["tenants"]
    to = rollout["version"]
    names = [
        each["tenantId"]
        for each in listed
        if each["queueUrl"] and each["pinnedVersion"] in (None, to) and (each["version"] != to or each["rootCause"])
    ]
    return names if len(names) == rollout["selected"] else ()


def _undo(_visit: Visit, rollout: Document, step: NextStep) -> Action:
    number = rollout["succeeded"]

    def send(visit: Visit, fields: Mapping[str, str]) -> Done:
        answer = visit.ask(START_ROLLOUT, undo=rollout["rolloutId"], reason=reason_in(fields))
        if "rolloutId" not in answer:
            return Done(str(answer["detail"]), _path(rollout))
        return Done("The undo has begun.", f"/rollouts/{answer['rolloutId']}")

    return Action(
        f"Undo rollout {rollout['rolloutId']}",
        step,
        f"A new rollout moves {render.counted(number, 'tenant')} back to their earlier releases. To see first what "
        "would change, plan a rollout with this one to undo.",
        send,
        _path(rollout),
        [f"the tenants of rollout {rollout['rolloutId']}"],
        typed=str(number),
        typed_is="the number of tenants",
    )


def _order(
    route: AnyRoute,
    title: str,
    effect: str,
    *,
    typed: bool = False,
) -> Callable[[Visit, Document, NextStep], Action]:
    """An order to a rollout, with a reason."""

    def make(_visit: Visit, rollout: Document, step: NextStep) -> Action:
        name, number = rollout["rolloutId"], step.stage

        def send(visit: Visit, fields: Mapping[str, str]) -> Done:
            answer = visit.ask(route, rolloutId=name, stage=number, reason=reason_in(fields))
            started = answer.get("rolloutId", name)
            notice = answer.get("detail") or f"Rollout {started}: {doing(answer).plain}"
            return Done(notice, f"/rollouts/{started}")

        return Action(
            title.format(name, stage=number),
            step,
            effect.format(name, stage=number, failed=render.counted(rollout["failed"], "tenant")),
            send,
            _path(rollout),
            [f"rollout {name}"],
            typed=name if typed else None,
            typed_is="the rollout's id",
        )

    return make


def _change(_visit: Visit, rollout: Document, step: NextStep) -> Action:
    name = rollout["rolloutId"]

    def send(visit: Visit, fields: Mapping[str, str]) -> Done:
        pace = {
            "maxConcurrency": whole_number(fields, "concurrency", "Tenants at once", MAX_CONCURRENCY, least=1),
            "tolerated": tolerated_share(fields["tolerate"]) if fields.get("tolerate") else None,
            "bakeSeconds": whole_number(fields, "bake", "Bake", MAX_BAKE),
        }
        if all(value is None for value in pace.values()):
            raise ValueError("Give at least one value, so that something changes.")
        answer = visit.ask(CHANGE_ROLLOUT, rolloutId=name, **pace, reason=reason_in(fields))
        changed = f"Rollout {name}: the pace of the stages that are left is changed."
        return Done(str(answer.get("detail", changed)), _path(rollout))

    return Action(
        f"Change the pace of {name}",
        step,
        f"This applies to the current stage of {name} and to all later ones. What is left empty stays as it is. A "
        "lower concurrency applies at once; with a higher one, the updates that are running are finished first.",
        send,
        _path(rollout),
        [f"rollout {name}"],
        fields=(*pace_fields(), REASON),
    )


ACTIONS: Mapping[str, Callable[[Visit, Document, NextStep], Action]] = {
    "start": _start,
    "change": _change,
    "undo": _undo,
    "approve": _order(APPROVE_ROLLOUT, "Approve stage {stage}", "Stage {stage} of {0} begins."),
    "promote": _order(PROMOTE_ROLLOUT, "Do not wait in stage {stage}", "The bake of stage {stage} of {0} ends."),
    "resume": _order(RESUME_ROLLOUT, "Resume {}", "Rollout {} goes on. The failures so far are accepted: {failed}."),
    "pause": _order(PAUSE_ROLLOUT, "Pause {}", "Rollout {} starts no further tenant. Updates that are running finish."),
    "retry": _order(RETRY_ROLLOUT, "Retry the failed tenants", "A new rollout moves the failed ones of {}: {failed}."),
    "abort": _order(
        ABORT_ROLLOUT,
        "Abort {}",
        "Rollout {} ends for good. Updates that are running finish, and tenants that were moved stay.",
        typed=True,
    ),
}


def _path(rollout: Document) -> str:
    return f"/rollouts/{rollout['rolloutId']}"


def _plan(visit: Visit) -> Action:
    found = _find(visit)
    step = next((step for step in _steps(visit, found) if step.verb == visit.name("verb")), None)
    if step is None:
        raise NotThere("There is no such action")
    named = visit.parameter("stage")
    if named and named.isdecimal() and int(named) != step.stage:
        # The page that led here is older than the stage that waits now.
        step = replace(step, stage=int(named), refusal=step.refusal or f"Stage {named} does not wait any more.")
    return ACTIONS[step.verb](visit, found, step)


def routes(console: Console) -> list[Route]:
    return [
        page(console, "/rollouts/{rollout}", rollout),
        *action_routes(console, "/rollouts/{rollout}/do/{verb}", _plan),
    ]
