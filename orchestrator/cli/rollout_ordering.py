"""Sends the orders of `berth rollout`, shows their results and watches the rollout."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import typer

from orchestrator.api.fields import or_unset
from orchestrator.api.rollout_models import OrderRollout
from orchestrator.api.rollout_routes import ABORT_ROLLOUT, PAUSE_ROLLOUT, RESUME_ROLLOUT
from orchestrator.cli import render
from orchestrator.cli.api import Api, Document
from orchestrator.cli.errors import ExitCode
from orchestrator.cli.interrupts import noting_an_interrupt
from orchestrator.cli.invocation import Invocation
from orchestrator.cli.problems import problem
from orchestrator.cli.release_changes import compare_moves
from orchestrator.cli.rollout_finding import named_or_only
from orchestrator.cli.rollout_next import exit_code, next_steps
from orchestrator.cli.rollout_spec import rollout_id
from orchestrator.cli.rollout_view import (
    is_plan,
    show_ended,
    show_started,
    show_unchanged,
)
from orchestrator.cli.rollout_watching import watch as watch_rollout
from orchestrator.rollouts.records import RolloutStatus

if TYPE_CHECKING:
    from orchestrator.client.transport import ApiAnswer

_DONE = 200
_STARTED = 202


def send_start(here: Invocation, order: partial[ApiAnswer]) -> ApiAnswer:
    with (
        noting_an_interrupt("Interrupted. If the rollout was started, it continues. See: berth rollout list"),
        here.retrying() as retrying,
    ):
        answer = retrying(order)
    if answer.status not in (_DONE, _STARTED):
        raise problem(answer)
    return answer


def show_started_and_watch(here: Invocation, api: Api, answer: ApiAnswer, *, watched: bool, as_json: bool) -> ExitCode:
    """Show the rollout that was started, or that no tenant has to be moved; then watch it if ``watched``."""
    rollout = answer.body
    started = answer.status == _STARTED
    if as_json and not (started and watched):
        render.show_json(rollout)
    elif not started:
        show_unchanged(rollout)
    elif not as_json and not (rollout["dryRun"] and watched):
        # The result of a plan that is waited for shows all of this again.
        show_started(rollout)
    if not started:
        return ExitCode.OK
    if not watched:
        _note_next(rollout)
        return ExitCode.OK
    if not rollout["dryRun"]:
        name = rollout["rolloutId"]
        render.note(f"\nStarted. Pause it: berth rollout pause {name}. Abort it: berth rollout abort {name}")
    return watch_until_end(here, api, rollout["rolloutId"], as_json=as_json)


def watch_until_end(here: Invocation, api: Api, rollout: str, *, as_json: bool) -> ExitCode:
    ended = watch_rollout(api, here.world, rollout)
    if as_json:
        render.show_json(ended)
        _note_next(ended)
    else:
        show_ended(ended, compared(here, api, ended))
    return exit_code(ended)


def compared(here: Invocation, api: Api, rollout: Document) -> list[Document]:
    """The differences between the releases of a plan's moves; empty for other rollouts."""
    if not is_plan(rollout):
        return []
    with here.retrying() as retrying:
        return compare_moves(api, retrying, rollout)


def send_order(
    context: typer.Context, rollout: str | None, verb: str, reason: str | None, *, as_json: bool, confirmed: bool = True
) -> None:
    given = rollout_id(rollout) if rollout is not None else None
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        api = here.connect()
        with here.retrying() as retrying:
            name = named_or_only(api, retrying, given, verb)
        route, request = _ORDERS[verb], OrderRollout(rollout_id=name, reason=or_unset(reason))
        if not confirmed and (warning := route.warning(request)):
            here.confirm(warning)
        with here.retrying() as retrying:
            answer = retrying(partial(api.send_request, route, request))
        show_ordered(answer, partial(_changed_message, verb), as_json=as_json)


def show_ordered(
    answer: ApiAnswer, message: Callable[[Document], str], *, as_json: bool, bake_ended: bool = False
) -> None:
    if answer.status not in (_DONE, _STARTED):
        raise problem(answer)
    if as_json:
        render.show_json(answer.body)
    elif answer.status == _DONE:
        render.show_line(answer.body["detail"])
    else:
        render.show_line(message(answer.body))
    if answer.status == _STARTED:
        _note_next(answer.body, bake_ended=bake_ended)


_ORDERS = {"pause": PAUSE_ROLLOUT, "resume": RESUME_ROLLOUT, "abort": ABORT_ROLLOUT}


def _changed_message(verb: str, rollout: Document) -> str:
    name = rollout["rolloutId"]
    updates = render.counted(rollout["inFlight"], "update is", "updates are")
    finishing = f" {updates} still running and will be finished." if rollout["inFlight"] else ""
    match verb:
        case "pause":
            return f"Rollout {name} is paused.{finishing}"
        case "resume":
            return f"Rollout {name} is resumed."
        case _:
            ended = "aborted" if rollout["status"] == RolloutStatus.ABORTED else "being aborted"
            return f"Rollout {name} is {ended}.{finishing}"


def _note_next(rollout: Document, *, bake_ended: bool = False) -> None:
    for step in next_steps(rollout, bake_ended=bake_ended):
        render.note(step)


def should_watch(here: Invocation, requested: bool | None) -> bool:
    return here.world.someone_is_there() if requested is None else requested
