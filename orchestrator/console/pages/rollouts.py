"""The rollouts, newest first, and the plan of a new one. A plan is a dry run: nothing starts without one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from starlette.responses import Response
from starlette.routing import Route

from orchestrator.api.release_routes import LIST_RELEASES
from orchestrator.api.rollout_routes import LIST_ROLLOUTS, START_ROLLOUT
from orchestrator.cli.api import Document
from orchestrator.cli.next_step import NextStep
from orchestrator.cli.rollout import SAMPLE
from orchestrator.cli.rollout_spec import StageOptions
from orchestrator.cli.rollout_view import doing, kind, target
from orchestrator.cli.selection import labels_of
from orchestrator.console.actions import REASON, Action, Done, Field, checked, reason_in
from orchestrator.console.actions import routes as action_routes
from orchestrator.console.page import page
from orchestrator.console.view import address, command_of
from orchestrator.console.visit import Console, Visit, number

SIZE = 50
MAX_BAKE = 7 * 24 * 3600
MAX_CONCURRENCY = 1_000
FILTERS = ("to", "tier", "label", "share", "undo", "stages", "concurrency", "tolerate", "bake", "alarm")
FLAGS = {"approval": "--approval-last", "downgrade": "--allow-downgrade", "replacement": "--allow-replacement"}


def rollouts(visit: Visit) -> Response:
    found = visit.ask(LIST_ROLLOUTS, limit=SIZE, cursor=visit.parameter("cursor"))
    return visit.show(
        "rollouts.html",
        rollouts=[
            {**each, "doing": doing(each).plain, "kind": kind(each), "to": target(each)} for each in found["rollouts"]
        ],
        following=address("/rollouts", cursor=found["cursor"]) if found["cursor"] else None,
        command_line="berth rollout list",
    )


def _plan(visit: Visit) -> Action:
    """The dry run of a rollout. What it is about is in the address, so that a plan can be sent to others."""
    asked = {name: visit.parameter(name) for name in (*FILTERS, *FLAGS)}
    releases = [release for release in visit.ask(LIST_RELEASES)["releases"] if not release["withdrawn"]]
    options = [(f"--{name}", value) for name, value in asked.items() if name in FILTERS and value]
    flags = [(option, None) for name, option in FLAGS.items() if asked[name]]

    def send(visit: Visit, fields: Mapping[str, str]) -> Done:
        answer = visit.ask(START_ROLLOUT, **request_of(fields), dryRun=True, sample=fields.get("sample") or str(SAMPLE))
        if "rolloutId" not in answer:
            return Done(str(answer["detail"]), "/rollouts")
        return Done("The dry run has begun. It changes nothing.", f"/rollouts/{answer['rolloutId']}")

    return Action(
        "Plan a rollout",
        NextStep("plan", "Plan a rollout", command_of("berth rollout plan", [*options, *flags])),
        "A dry run asks CloudFormation what would change, for a sample of the tenants, and changes nothing. The "
        "rollout itself can be started from its result.",
        send,
        "/rollouts",
        fields=_fields(asked, releases),
    )


def _fields(asked: Mapping[str, str | None], releases: Sequence[Document]) -> tuple[Field, ...]:
    def given(name: str) -> str:
        return asked[name] or ""

    def choices(name: str) -> tuple[str, ...]:
        found = [release[name] for release in releases]
        return ("", *dict.fromkeys(found if name == "version" else sorted(found)))

    return (
        Field("to", "Release", "choice", given("to"), choices("version"), names={"": "the current release"}),
        Field(
            "tier",
            "Only tenants of the tier",
            "choice",
            given("tier"),
            choices("tier"),
            names={"": "that of the release, else standard"},
        ),
        Field("label", "Only tenants with these labels", value=given("label"), hint="plan=gold, several with commas"),
        Field("share", "Only this share of them", value=given("share"), hint="A number or a percentage, such as 25%."),
        Field("undo", "Undo the rollout", value=given("undo"), hint="The id of a rollout whose tenants move back."),
        Field("stages", "Stages", value=given("stages"), hint="Sizes, such as 1,10%,rest, which is the default."),
        *pace_fields(asked),
        Field("alarm", "An alarm that halts it", value=given("alarm")),
        Field("approval", "Wait for approval before the last stage", "check", "on" if asked["approval"] else ""),
        Field("downgrade", "Allow an older release", "check", "on" if asked["downgrade"] else ""),
        Field(
            "replacement",
            "Allow changes that replace or remove queues or other data",
            "check",
            "on" if asked["replacement"] else "",
        ),
        Field("sample", "Tenants to check", value=str(SAMPLE), hint="A number or a percentage."),
        REASON,
    )


def pace_fields(asked: Mapping[str, str | None] | None = None) -> tuple[Field, ...]:
    """The fields about how fast a rollout goes."""
    given = asked or {}
    return (
        Field("concurrency", "Tenants at once", "number", given.get("concurrency") or ""),
        Field(
            "tolerate", "Tenants of a stage that may fail", value=given.get("tolerate") or "", hint="Such as 2 or 5%."
        ),
        Field("bake", "Bake after each stage, in seconds", "number", given.get("bake") or ""),
    )


def whole_number(fields: Mapping[str, str], name: str, label: str, most: int, *, least: int = 0) -> int | None:
    """The number in a field; ``None`` if the field is empty."""
    return number(fields[name], least=least, most=most, name=label) if fields.get(name) else None


def request_of(fields: Mapping[str, str]) -> dict[str, object]:
    """The fields of the form as a request for a rollout, without its dry run."""
    stages = StageOptions(
        stages=fields.get("stages") or None,
        concurrency=whole_number(fields, "concurrency", "Tenants at once", MAX_CONCURRENCY, least=1),
        tolerate=fields.get("tolerate") or None,
        bake=whole_number(fields, "bake", "Bake", MAX_BAKE),
        alarm=fields.get("alarm") or None,
        approval=False,
        approval_last=checked(fields, "approval"),
        file=None,
    )
    labels = [part.strip() for part in fields.get("label", "").split(",") if part.strip()]
    return {
        "version": fields.get("to") or None,
        "tier": fields.get("tier") or None,
        "labels": labels_of(labels) or None,
        "share": fields.get("share") or None,
        "undo": fields.get("undo") or None,
        "stages": stages.documents() or None,
        "allowDowngrade": checked(fields, "downgrade") or None,
        "allowReplacement": checked(fields, "replacement") or None,
        "reason": reason_in(fields),
    }


def routes(console: Console) -> list[Route]:
    return [page(console, "/rollouts", rollouts), *action_routes(console, "/rollouts/plan", _plan)]
